"""A server with scripted responses, and both clients behind one interface."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from grabd import AsyncGrabd, Grabd  # noqa: E402

Responder = Callable[["Handler"], None]


@dataclass(frozen=True)
class Received:
    """A received request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        service = cast("FakeService", self.server)
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with service.lock:
            service.received.append(Received(self.command, self.path, headers, body))
            number = len(service.received)
        service.responders[min(number, len(service.responders)) - 1](self)

    do_GET = do_POST = do_PATCH = do_DELETE = handle_any

    def respond(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class FakeService(ThreadingHTTPServer):
    """Gives the responses in turn, and the last one again and again."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, *responders: Responder) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.responders = responders
        self.received: list[Received] = []
        self.lock = threading.Lock()
        self.is_over = threading.Event()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def __enter__(self) -> FakeService:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are part of the tests."""


def answer(status: int, body: object, headers: Mapping[str, str] | None = None) -> Responder:
    return lambda handler: handler.respond(status, json.dumps(body).encode(), headers)


def failure(status: int, code: str, headers: Mapping[str, str] | None = None) -> Responder:
    body = {"error": {"code": code, "message": f"It is {code}."}}
    return answer(status, body, {"x-request-id": "request-1", **(headers or {})})


def reset(handler: Handler) -> None:
    """Breaks the connection without a response."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def silence(handler: Handler) -> None:
    """Responds with nothing until the test is over."""
    cast(FakeService, handler.server).is_over.wait(60)
    handler.close_connection = True


def stream(text: str) -> Responder:
    """A stream that ends after these events."""

    def respond(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.wfile.write(text.encode())
        handler.close_connection = True

    return respond


def grab(status: str, **more: object) -> dict[str, object]:
    members = {"created_at": "2026-11-21T09:30:12.480Z", "target_url": "https://example.com/", "width": 1, "height": 1}
    return {"id": "id-1", "status": status, **members, **more}


DONE = answer(200, grab("done", image_url="/i/1.png"))


def run(id: str) -> dict[str, Any]:
    return {
        "id": id,
        "due_at": "2026-11-21T09:30:00.000Z",
        "outcome": "changed",
        "grab_id": "g",
        "compared_to": "f",
        "difference_ratio": 0.021,
        "what_changed": ["image"],
        "text_changes": [],
        "element_changes": [{"change": "added", "role": "link", "name": "New", "before": None, "after": None}],
        "alerted": True,
        "finished_at": "2026-11-21T09:30:12.480Z",
        "error": None,
    }


def monitor(id: str) -> dict[str, Any]:
    return {
        "id": id,
        "name": "example.com",
        "capture": {"url": "https://example.com/", "width": 800},
        "every": "6h",
        "cron": None,
        "time_zone": "UTC",
        "compare": {
            "image": {"threshold_ratio": 0.001, "ignore": [".ad", {"x": 0, "y": 0, "width": 9, "height": 9}], "min_region_px": 0},
            "status": False,
            "text": None,
            "elements": True,
            "baseline": "latest",
        },
        "alert_after": 1,
        "notify": {"webhook": True, "email": True},
        "keep": 100,
        "quiet": {"from": "22:00", "to": "07:00", "time_zone": "UTC"},
        "state": "active",
        "created_at": "2026-11-21T09:00:00.000Z",
        "updated_at": "2026-11-21T09:00:00.000Z",
        "next_run_at": "2026-11-21T15:30:00.000Z",
        "baseline_grab_id": "f",
        "last_run": run("r"),
        "live": True,
        "has_feed": False,
    }


def site(id: str) -> dict[str, Any]:
    return {
        "id": id,
        "live": True,
        "name": "example.com",
        "url": "https://example.com/",
        "sitemap": None,
        "capture": {"width": 800},
        "max_pages": 20,
        "max_depth": 3,
        "include": [],
        "exclude": [],
        "robots": True,
        "requests_per_minute": 30,
        "state": "capturing",
        "error": None,
        "pages": {"found": 9, "skipped": 1, "captured": 5, "failed": 0, "waiting": 3},
        "created_at": "2026-11-21T09:00:00.000Z",
        "updated_at": "2026-11-21T09:00:00.000Z",
        "finished_at": None,
    }


def site_page(number: int) -> dict[str, Any]:
    return {
        "number": number,
        "url": f"https://example.com/{number}",
        "depth": 1,
        "found_on": "https://example.com/",
        "state": "done",
        "skipped_because": None,
        "grab_id": "g",
        "image_url": "https://grabd.example/i/g.png",
        "error": None,
    }


def proxy(id: str) -> dict[str, Any]:
    return {
        "id": id,
        "name": "Office",
        "url": "http://proxy.example.com:3128",
        "has_login": True,
        "created_at": "2026-11-21T09:00:00.000Z",
        "updated_at": "2026-11-21T09:00:00.000Z",
        "last_used_at": None,
        "last_error": "login",
        "last_error_at": "2026-11-21T09:30:00.000Z",
    }


def event(id: int, status: str) -> str:
    return f"event: grab\nid: {id}\ndata: {json.dumps(grab(status))}\n\n"


class Sync:
    """Calls methods of the synchronous client. Iterators become lists."""

    def __init__(self, service: FakeService, **settings: Any) -> None:
        self.settings = {"retry_delay": 0.001, **settings}
        self.base_url = service.base_url

    def __call__(self, name: str, /, *arguments: Any, **options: Any) -> Any:
        with Grabd("sk_live_secret", self.base_url, **self.settings) as client:
            result = attrgetter(name)(client)(*arguments, **options)
            return list(result) if isinstance(result, Iterator) else result


class Async(Sync):
    """Calls methods of the asynchronous client."""

    def __call__(self, name: str, /, *arguments: Any, **options: Any) -> Any:
        return asyncio.run(self._call(name, *arguments, **options))

    async def _call(self, name: str, /, *arguments: Any, **options: Any) -> Any:
        async with AsyncGrabd("sk_live_secret", self.base_url, **self.settings) as client:
            result = attrgetter(name)(client)(*arguments, **options)
            if isinstance(result, AsyncIterator):
                return [one async for one in result]
            return await result if isinstance(result, Coroutine) else result


BOTH: tuple[type[Sync], ...] = (Sync, Async)
