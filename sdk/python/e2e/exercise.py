"""Uses the installed package against a running service: python exercise.py TASK, where TASK is JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue

import grabd
from grabd import AsyncGrabd, Grab, Grabd

task: dict[str, str] = json.loads(sys.argv[1])
PNG, JPEG = b"\x89PNG", b"\xff\xd8\xff"


def client(key: str = "live_key") -> Grabd:
    return Grabd(task[key], task["base_url"])


def check(condition: bool, what: object = "") -> None:
    """An assertion that also runs with -O."""
    if not condition:
        raise AssertionError(what)


def capture() -> Grab:
    with client() as live:
        grab = live.capture(task["page"], width=800, height=600, format="jpeg", quality=70, hide=[".ad"])
        check((grab.status, grab.width, grab.height, grab.format) == ("done", 800, 600, "jpeg"), grab)
        check(grab.target_url == task["page"] and grab.raw["id"] == grab.id, grab)
        image = live.download(grab)
        check(image.startswith(JPEG) and len(image) == grab.bytes, grab)
        path = Path(task["dir"], "image.jpeg")
        live.download_to_file(grab, path)
        check(path.read_bytes() == image)
    return grab


def placeholder() -> None:
    """A test key's image has a relative URL."""
    with client("test_key") as test:
        check(test.download(test.capture(task["page"])).startswith(PNG))
        check(test.usage().environment == "test")
        grab = test.capture(task["page"], also=["markdown"])
        part = test.read(grab.id, max_tokens=100)
        check(part.text.startswith("# TEST") and part.from_ == 0 and part.next is None, part)
        check([one.id for one in test.list_grabs(url=task["page"], limit=1)][0] == grab.id)


async def create_and_wait() -> None:
    async with AsyncGrabd(task["live_key"], task["base_url"]) as live:
        created = await live.create_grab(task["slow_page"])
        check(not grabd.has_ended(created), created)
        grab = await live.wait(created.id)
        check(grab.status == "done" and await live.get_grab(created.id) == grab, grab)
        check((await live.download(grab)).startswith(PNG))


async def watch() -> None:
    async with AsyncGrabd(task["live_key"], task["base_url"]) as live:
        created = await live.create_grab(task["slow_page"])
        states = [grab.status async for grab in live.watch(created.id)]
        check(states[-1] == "done" and len(states) > 1, states)
    # Whoever comes after the end gets the end.
    with client() as other:
        late = [grab.status for grab in other.watch(created.id)]
        check(late == ["done"], late)


def repeat() -> Grab:
    with client() as live:
        key = str(uuid.uuid4())
        first = live.capture(task["page"], idempotency_key=key)
        check(live.capture(task["page"], idempotency_key=key).id == first.id)
    return first


def errors() -> None:
    with client() as live:
        try:
            live.capture(task["refused_page"])
        except grabd.SsrfDetectedError as error:
            seen = (error.status, error.code, error.cause)
            check(seen == (400, "ssrf_detected", "request") and bool(error.request_id), error)
        else:
            raise AssertionError("a private address was captured")
        try:
            live.capture(task["failing_page"])
        except grabd.RenderFailedError as error:
            check(error.grab_id is not None and len(error.grab_id) == 36, error.grab_id)
            failed = live.get_grab(error.grab_id or "")
            shown = [failed.error_code, failed.error_cause, failed.error_message]
            check(shown == [error.code, error.cause, str(error)], failed)
        else:
            raise AssertionError("a page without content was captured")
        try:
            live.get_grab("01993e1c-7b1a-7000-8000-0123456789ab")
        except grabd.NotFoundError:
            pass
        else:
            raise AssertionError("an unknown grab was found")
        try:
            # A misspelled option is an error of the type checker, and costs no credit without one.
            live.capture(task["page"], widht=800)  # type: ignore[call-arg]
        except TypeError:
            pass
        else:
            raise AssertionError("an unknown option was sent")
    try:
        Grabd("sk_live_wrong", task["base_url"]).usage()
    except grabd.UnauthorizedError:
        pass
    else:
        raise AssertionError("a wrong key was accepted")


def list_grabs(captured: Grab, repeated: Grab) -> None:
    with client() as live:
        ids = [grab.id for grab in live.list_grabs(limit=2, status="done")]
        # Newest first, and none twice, over several pages.
        check(len(ids) >= 4 and ids == sorted(set(ids), reverse=True), ids)
        check({captured.id, repeated.id} <= set(ids), ids)
        page = live.list_grabs_page(limit=1)
        check(len(page.data) == 1 and page.has_more, page)
        live.delete_grab(captured.id)
        check(live.get_grab(captured.id).image_url is None)


class Receiver(BaseHTTPRequestHandler):
    received: Queue[tuple[Mapping[str, str], bytes]] = Queue()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()
        self.received.put((dict(self.headers.items()), body))

    def log_message(self, format: str, *args: object) -> None:
        pass


def webhooks() -> None:
    server = HTTPServer((task["receiver"], 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with client() as live:
        url = f"http://{task['receiver']}:{server.server_port}/hook"
        webhook = live.webhooks.create(url, events=["grab.done"], description="exercise")
        secret = webhook.secret or ""
        check([one.id for one in live.webhooks.list()] == [webhook.id])
        check(live.webhooks.update(webhook.id, description="changed").description == "changed")
        check(live.webhooks.get(webhook.id).secret is None)

        sent = live.webhooks.test(webhook.id)
        headers, body = Receiver.received.get(timeout=30)
        event = grabd.verify_webhook(body, headers, secret)
        check((event.id, event.type, event.grab) == (sent.message_id, "webhook.test", None), event)
        try:
            grabd.verify_webhook(body + b" ", headers, secret)
        except grabd.WebhookVerificationError:
            pass
        else:
            raise AssertionError("a changed message was accepted")

        check([one.id for one in live.webhooks.deliveries(webhook.id)] == [sent.id])
        check(live.webhooks.rotate_secret(webhook.id).secret not in (None, secret))
        check(live.webhooks.redeliver(webhook.id, sent.id).message_id == sent.message_id)
        live.webhooks.delete(webhook.id)
        check(live.webhooks.list() == ())
    server.shutdown()


def monitors() -> None:
    with client("test_key") as test:
        monitor = test.monitors.create({"url": task["page"], "width": 800}, every="1d", notify={"email": False})
        check((monitor.state, monitor.every, monitor.capture["width"]) == ("active", "1d", 800), monitor)
        check((monitor.compare.image is not None, monitor.notify.email, monitor.live) == (True, False, False), monitor)
        check([one.id for one in test.monitors.list(limit=1)] == [monitor.id])
        check(test.monitors.update(monitor.id, paused=True).next_run_at is None)
        check(test.monitors.update(monitor.id, paused=False).state == "active")
        check(all(run.outcome in ("running", "first", "same") for run in test.monitors.runs(monitor.id)))
        test.monitors.delete(monitor.id)
        for one in test.monitors.create_batch([task["page"], task["page"] + "?2"], capture={"width": 800}, every="1d"):
            check(one.capture["width"] == 800, one)
            test.monitors.delete(one.id)
        check(list(test.monitors.list()) == [])


def sites() -> None:
    with client("test_key") as test:
        site = test.sites.create(task["page"], max_depth=0, max_pages=5, capture={"width": 800})
        check((site.live, site.max_pages, site.max_depth, site.capture["width"]) == (False, 5, 0, 800), site)
        check([one.id for one in test.sites.list(limit=1)] == [site.id])
        # A job that has ended stays as it is.
        check(test.sites.cancel(site.id).state in ("canceled", "done"))
        check([page.url for page in test.sites.pages(site.id)] == [task["page"]])
        test.sites.delete(site.id)
        check(list(test.sites.list()) == [])


def proxies() -> None:
    with client("test_key") as test:
        url = "http://8.8.8.8:3128"
        proxy = test.proxies.create(name="exercise", url=url, username="me", password="hidden")
        check((proxy.url, proxy.has_login, proxy.last_used_at, proxy.last_error) == (url, True, None, None), proxy)
        check([one.id for one in test.proxies.list()] == [proxy.id])
        check(test.proxies.update(proxy.id, username="").has_login is False)
        check(test.capture(task["page"], proxy=proxy.id).status == "done")
        test.proxies.delete(proxy.id)
        check(test.proxies.list() == ())


captured = capture()
placeholder()
asyncio.run(create_and_wait())
asyncio.run(watch())
repeated = repeat()
errors()
list_grabs(captured, repeated)
webhooks()
monitors()
sites()
proxies()
with client() as last:
    check(last.pricing(detail="summary").pricing.currency == "USD")
    print(f"all checks passed; {last.usage().credits.total} credits left")
