"""The client for asyncio: the same as that for threads, line by line."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import httpx

from . import _core
from ._core import BatchCapture, Call, GrabEvents, Settings, has_ended
from ._errors import ConnectionFailedError, GrabdError
from ._files import write_file
from ._generated import (
    Batch,
    CaptureOptions,
    CreateMonitorOptions,
    CreateProxyOptions,
    CreateSiteOptions,
    CreateWebhookOptions,
    Delivery,
    DeliveryList,
    Grab,
    GrabList,
    GrabText,
    Monitor,
    MonitorBatch,
    MonitorFeed,
    MonitorList,
    MonitorRun,
    MonitorRunList,
    Pricing,
    Proxy,
    ProxyList,
    Site,
    SiteList,
    SitePage,
    SitePageList,
    UpdateMonitorOptions,
    UpdateProxyOptions,
    UpdateWebhookOptions,
    Usage,
    Webhook,
    WebhookList,
)

if TYPE_CHECKING:
    import sys

    if sys.version_info >= (3, 11):
        from typing import Self, Unpack
    else:
        from typing_extensions import Self, Unpack

Status = Literal["pending", "processing", "done", "failed"]
TextFormat = Literal["markdown", "text", "elements", "accessibility", "report", "difference"]

_Answer = TypeVar("_Answer")


class AsyncGrabd:
    """A client of one grabd service with one API key. Tasks may share it. Close it, or use it in an `async with`.

    - `api_key`: `sk_live_…` captures pages, `sk_test_…` returns placeholders. Default: the variable `GRAB_API_KEY`.
    - `base_url`: the API root, ending in `/v1`. Default: the variable `GRAB_BASE_URL`.
    - `max_retries`: retries after the first attempt, from 0 to 10.
    - `retry_delay`: wait before the first retry in seconds; it doubles for each further one, up to 8 s.
    - `timeout`: time limit in seconds of each step of an attempt: connection, head and body of the response. Default:
      30, for a create 40, and for a download 120.
    - `http`: an `httpx.AsyncClient` of your own, for proxies or certificates. It is not closed with this one.
    """

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        max_retries: int = 3,
        retry_delay: float = 0.5,
        timeout: float | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._settings = Settings(api_key, base_url, max_retries, retry_delay, timeout)
        self._owns_http = http is None
        self._http = httpx.AsyncClient(limits=_core.LIMITS) if http is None else http
        self.webhooks = AsyncWebhooks(self)
        """The webhooks of the key's team and environment."""
        self.monitors = AsyncMonitors(self)
        """The monitors of the key's team and environment."""
        self.sites = AsyncSites(self)
        """The jobs that capture many pages of one site, of the key's team and environment."""
        self.proxies = AsyncProxies(self)
        """The proxies of the key's team and environment, through which pages can be loaded."""

    async def close(self) -> None:
        """Closes all connections."""
        if self._owns_http:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def capture(
        self,
        url: str | None = None,
        *,
        idempotency_key: str | None = None,
        extra_options: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        wait_timeout: float = _core.WAIT_TIMEOUT,
        **options: Unpack[CaptureOptions],
    ) -> Grab:
        """Captures a page and returns the done grab. One credit is spent, whatever number of attempts was needed.

        `idempotency_key` has 1 to 255 visible ASCII characters; creates with the same key capture and charge once. It
        is a random key, the same for all attempts, unless you choose one. `extra_options` has capture options that
        this version of the library does not know. `wait_timeout` is for limits that are used up, and for a
        grab that is still open after the create.

        Without a URL, the document in the option `html` is captured. If a limit is used up (429), the create is sent again after
        its `Retry-After`, until `wait_timeout` has passed.

        Raises RenderBlockedError or RenderFailedError if the page cannot be captured, which is free.
        """
        call = _core.create_call(url, options, extra_options, idempotency_key, timeout, is_async=False)
        grab = await self._create(call, Grab, wait_timeout)
        if not has_ended(grab):
            grab = await self.wait(grab.id, wait_timeout=wait_timeout, timeout=timeout)
        # For a failure, the same key gets the error response with its code.
        return grab if grab.status == "done" else await self._create(call, Grab, wait_timeout)

    async def _create(self, call: Call, model: type[_core.AnyModel], wait_timeout: float) -> _core.AnyModel:
        """Creates grabs, and waits for limits that are used up."""
        end = time.monotonic() + _core.checked_time("wait_timeout", wait_timeout)
        refusals = 0
        while True:
            try:
                return await self._get(call, model)
            except GrabdError as error:
                delay = self._settings.delay_of_create(error, refusals)
                if delay is None or time.monotonic() + delay >= end:
                    raise
                refusals += 1
            await asyncio.sleep(delay)

    async def create_grab(
        self,
        url: str | None = None,
        *,
        idempotency_key: str | None = None,
        extra_options: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        wait_timeout: float = _core.WAIT_TIMEOUT,
        **options: Unpack[CaptureOptions],
    ) -> Grab:
        """Creates a grab and returns at once, with a live key: `wait` for it, `watch` it, or receive a webhook.

        With a test key the returned grab has already ended. If a limit is used up (429), the create is sent again after its
        `Retry-After`, until `wait_timeout` has passed.
        """
        call = _core.create_call(url, options, extra_options, idempotency_key, timeout, is_async=True)
        return await self._create(call, Grab, wait_timeout)

    async def create_batch(
        self,
        captures: Sequence[str | BatchCapture],
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
        wait_timeout: float = _core.WAIT_TIMEOUT,
        **options: Unpack[CaptureOptions],
    ) -> Batch:
        """Queues up to 50 captures in one request: URLs, or mappings with the options of one capture, which win.

        The results are in the same order: each has the grab, or the error of a capture that was refused. When credits
        or limits are used up, the rest get that error. `idempotency_key` has 1 to 250 visible ASCII characters; a batch
        with the same key returns what was created before, and tries the rest again. If the batch itself is refused because a
        limit is used up (429), it is sent again after its `Retry-After`, until `wait_timeout` has passed.
        """
        call = _core.batch_call(captures, options, idempotency_key, timeout)
        return await self._create(call, Batch, wait_timeout)

    async def get_grab(self, id: str, *, timeout: float | None = None) -> Grab:
        """The current state of a grab."""
        return await self._get(Call(method="GET", path=_core.grab_path(id), timeout=timeout), Grab)

    async def read(
        self,
        id: str,
        format: TextFormat = "markdown",
        *,
        max_tokens: int | None = None,
        from_: int | None = None,
        compare_to: str | None = None,
        timeout: float | None = None,
    ) -> GrabText:
        """A text of a done grab: what it says, its elements, its report, or the difference to an earlier grab.

        It has at most `max_tokens` tokens, 100 to 50,000 and by default 8,000. If `next` of the answer is not None, go on with
        it as `from_`. Files are made at the capture: create it with `also`. `compare_to` is the id of the earlier grab of a
        difference, unless the capture named it.

        Raises NotFoundError if there is no such file.
        """
        call = _core.read_call(id, format, max_tokens, from_, compare_to, timeout)
        return await self._get(call, GrabText)

    async def list_grabs(
        self,
        *,
        limit: int | None = None,
        status: Status | None = None,
        starting_after: str | None = None,
        url: str | None = None,
        from_: str | None = None,
        until: str | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[Grab]:
        """The grabs of the key's team and environment, newest first.

        Further pages of `limit` grabs, 1 to 100, are fetched while you iterate. `url` is a text in the requested URL, `from_` and
        `until` are the first and the last day (UTC), such as 2026-11-20.
        """
        while True:
            page = await self.list_grabs_page(
                limit=limit,
                status=status,
                starting_after=starting_after,
                url=url,
                from_=from_,
                until=until,
                timeout=timeout,
            )
            for one in page.data:
                yield one
            starting_after = _core.next_page(page)
            if starting_after is None:
                return

    async def list_grabs_page(
        self,
        *,
        limit: int | None = None,
        status: Status | None = None,
        starting_after: str | None = None,
        ending_before: str | None = None,
        url: str | None = None,
        from_: str | None = None,
        until: str | None = None,
        timeout: float | None = None,
    ) -> GrabList:
        """One page of grabs. `starting_after` and `ending_before` are ids, and exclude each other.

        With `url`, a page can have fewer grabs than `limit`, or none: go on with its `next` as `starting_after`.
        """
        query = {
            "limit": limit,
            "status": status,
            "starting_after": starting_after,
            "ending_before": ending_before,
            "url": url,
            "from": from_,
            "until": until,
        }
        return await self._get(Call(method="GET", path="/grabs", query=query, timeout=timeout), GrabList)

    async def delete_grab(self, id: str, *, timeout: float | None = None) -> None:
        """Deletes the image of a grab: its URL stops working. The grab stays in the list."""
        await self._send(Call(method="DELETE", path=_core.grab_path(id), timeout=timeout))

    async def wait(self, id: str, *, wait_timeout: float = _core.WAIT_TIMEOUT, timeout: float | None = None) -> Grab:
        """Waits until a grab has ended, and returns it: `done` or `failed`.

        A limit that is used up (429) does not end the wait: the next request is sent after its `Retry-After`. Raises
        WaitTimeoutError if the grab has not ended in time. It goes on, and can be waited for again.
        """
        limit = self._settings.timeout_of(timeout)

        def ask(remaining: float) -> Awaitable[Grab]:
            return self._get(_core.long_poll_call(id, remaining, limit), Grab)

        def open_id(grab: Grab) -> str | None:
            return None if has_ended(grab) else id

        end = time.monotonic() + _core.checked_time("wait_timeout", wait_timeout)
        return await self._poll(ask, open_id, end, id, wait_timeout)

    async def wait_all(
        self,
        grabs: Iterable[Grab | str],
        *,
        wait_timeout: float = _core.WAIT_TIMEOUT,
        timeout: float | None = None,
    ) -> list[Grab]:
        """Waits until all of these grabs have ended, and returns them in the same order, each once: `done` or `failed`.

        A request waits for up to 100 grabs, so that a whole batch needs one connection. Limits are obeyed as by `wait`.
        Raises WaitTimeoutError, with the id of one of them, if not all have ended in time, and NotFoundError if there is no
        grab with one of the ids.
        """
        ids = list(dict.fromkeys(grab if isinstance(grab, str) else grab.id for grab in grabs))
        limit = self._settings.timeout_of(timeout)
        end = time.monotonic() + _core.checked_time("wait_timeout", wait_timeout)
        ended: list[Grab] = []
        for chunk in _core.chunks(ids):

            def ask(remaining: float, chunk: Sequence[str] = chunk) -> Awaitable[GrabList]:
                return self._get(_core.long_poll_all_call(chunk, remaining, limit), GrabList)

            def open_id(page: GrabList) -> str | None:
                return next((grab.id for grab in page.data if not has_ended(grab)), None)

            page = await self._poll(ask, open_id, end, chunk[0], wait_timeout)
            ended.extend(page.data)
            missing = _core.missing_id(chunk, page)
            if missing is not None:
                # It fails with the error that names the id.
                ended.append(await self.get_grab(missing, timeout=timeout))
        return ended

    async def _poll(
        self,
        ask: Callable[[float], Awaitable[_Answer]],
        open_id: Callable[[_Answer], str | None],
        end: float,
        id: str,
        wait_timeout: float,
        pause: float = _core.MIN_POLL,
        what: str = "grab",
    ) -> _Answer:
        """Asks until nothing in the answer is open. `id` is the id of one such `what`."""
        refused: GrabdError | None = None
        refusals = 0
        while True:
            start = time.monotonic()
            try:
                answer = await ask(max(0, end - start))
            except GrabdError as error:
                delay = self._settings.delay_of_limit(error, refusals)
                if delay is None:
                    raise
                refused, refusals = error, refusals + 1
            else:
                still_open = open_id(answer)
                if still_open is None:
                    return answer
                id, refused, refusals = still_open, None, 0
                delay = pause if time.monotonic() - start < pause else 0
            now = time.monotonic()
            if now >= end:
                raise _core.wait_timeout(id, wait_timeout, what) from refused
            await asyncio.sleep(min(delay, end - now))

    async def watch(self, id: str, *, wait_timeout: float = _core.WATCH_TIMEOUT) -> AsyncIterator[Grab]:
        """Follows a grab: yields its current state and each later one, until it has ended.

        A broken stream is resumed, and a limit that is used up (429) is waited for. Raises WaitTimeoutError if the grab has not ended in time.
        """
        end = time.monotonic() + _core.checked_time("wait_timeout", wait_timeout)
        last_id, empty_streams = "", 0
        refused: GrabdError | None = None
        refusals = 0
        while empty_streams < _core.MAX_EMPTY_STREAMS:
            remaining = end - time.monotonic()
            if remaining <= 0:
                raise _core.wait_timeout(id, wait_timeout) from refused
            if empty_streams > 0:
                await asyncio.sleep(min(self._settings.delay(empty_streams - 1) or 0, remaining))
            empty_streams += 1
            events = GrabEvents(last_id)
            try:
                async for grab in self._stream(id, events, end):
                    yield grab
                    if has_ended(grab):
                        return
                    last_id, empty_streams = events.last_id, 0
                    refused, refusals = None, 0
            except ConnectionFailedError:
                # A broken stream is resumed.
                pass
            except GrabdError as error:
                # A limit that is used up is waited for. Anything else is final.
                delay = self._settings.delay_of_limit(error, refusals)
                if delay is None:
                    raise
                refused, refusals, empty_streams = error, refusals + 1, empty_streams - 1
                await asyncio.sleep(max(0, min(delay, end - time.monotonic())))
        raise _core.no_events(id)

    async def _stream(self, id: str, events: GrabEvents, end: float) -> AsyncIterator[Grab]:
        """The grabs of one stream."""
        idle = max(0.1, min(_core.STREAM_IDLE, end - time.monotonic()))
        call = _core.events_call(id, events.last_id, idle)
        async with aclosing(await self._open_with_retries(call)) as response:
            if response.status_code == 204:
                # Nothing is left to send, because the grab has ended.
                grab = await self.get_grab(id)
                if has_ended(grab):
                    yield grab
                return
            try:
                async for chunk in response.aiter_bytes():
                    for grab in events.push(chunk):
                        yield grab
                    if time.monotonic() >= end:
                        return
            except httpx.HTTPError as cause:
                raise _core.connection_error(call, cause) from cause

    async def download(
        self, grab: Grab | str, *, max_bytes: int = _core.MAX_IMAGE_BYTES, timeout: float | None = None
    ) -> bytes:
        """The image of a done grab. Its URL is public, so that no API key is sent."""
        call = _core.download_call(self.image_url(grab), max_bytes, timeout)
        return (await self._send(call))[1]

    async def download_to_file(
        self,
        grab: Grab | str,
        path: str | os.PathLike[str],
        *,
        max_bytes: int = _core.MAX_IMAGE_BYTES,
        timeout: float | None = None,
    ) -> None:
        """Downloads the image of a done grab. The file appears complete or not at all; an existing one is replaced."""
        image = await self.download(grab, max_bytes=max_bytes, timeout=timeout)
        await asyncio.to_thread(write_file, path, image)

    def image_url(self, grab: Grab | str) -> str:
        """The absolute URL of an image. That of a test key's grab is relative to the service."""
        return self._settings.image_url(grab)

    async def usage(self, *, timeout: float | None = None) -> Usage:
        """Remaining credits, the plan, and the number of grabs of the last 30 days."""
        return await self._get(Call(method="GET", path="/usage", timeout=timeout), Usage)

    async def pricing(
        self,
        *,
        provider: str | None = None,
        detail: Literal["summary", "full"] | None = None,
        timeout: float | None = None,
    ) -> Pricing:
        """The prices, and a comparison with other services, or with one provider."""
        query = {"provider": provider, "detail": detail}
        return await self._get(Call(method="GET", path="/pricing", query=query, timeout=timeout), Pricing)

    async def _get(self, call: Call, model: type[_core.AnyModel]) -> _core.AnyModel:
        """Sends a request and returns the object in its response."""
        response, content = await self._send(call)
        return _core.decode(call, model, response, content)

    async def _send(self, call: Call) -> tuple[httpx.Response, bytes]:
        """Sends a request, with retries, and returns the complete response."""
        retries = 0
        while True:
            try:
                async with aclosing(await self._open(call)) as response:
                    return response, await _read(call, response, self._settings)
            except GrabdError as error:
                await self._sleep_after(error, retries, call)
            retries += 1

    async def _open_with_retries(self, call: Call) -> httpx.Response:
        """Sends a request, with retries, until a successful response begins."""
        retries = 0
        while True:
            try:
                return await self._open(call)
            except GrabdError as error:
                await self._sleep_after(error, retries, call)
            retries += 1

    async def _sleep_after(self, error: GrabdError, retries: int, call: Call) -> None:
        """Waits before a retry. Raises the error if there is none."""
        delay = self._settings.delay_after(error, retries, call)
        if delay is None:
            raise error
        await asyncio.sleep(delay)

    async def _open(self, call: Call) -> httpx.Response:
        """Sends one request and returns the head of a successful response, which the caller closes."""
        try:
            request = self._settings.request(self._http, call)
            response = await self._http.send(request, stream=True, follow_redirects=not call.is_api)
        except httpx.HTTPError as cause:
            raise _core.connection_error(call, cause) from cause
        if response.is_success:
            return response
        async with aclosing(response):
            raise _core.response_error(response, await _read(call, response, self._settings))


async def _read(call: Call, response: httpx.Response, settings: Settings) -> bytes:
    """A complete body, within the time and size limits of the call."""
    timeout = settings.timeout_of(call.timeout, call.default_timeout)
    end = time.monotonic() + timeout
    content = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > call.max_bytes:
                raise _core.too_large(call, response)
            if time.monotonic() > end:
                raise _core.timed_out(call, timeout)
    except httpx.HTTPError as cause:
        raise _core.connection_error(call, cause) from cause
    return bytes(content)


class AsyncWebhooks:
    """The webhooks of the key's team and environment. Use `AsyncGrabd.webhooks`."""

    def __init__(self, client: AsyncGrabd) -> None:
        self._client = client

    async def create(
        self, url: str, *, timeout: float | None = None, **members: Unpack[CreateWebhookOptions]
    ) -> Webhook:
        """Registers a URL. The `secret` is only in this response."""
        body = {**members, "url": url}
        call = Call(method="POST", path="/webhooks", body=body, repeatable=False, timeout=timeout)
        return await self._client._get(call, Webhook)

    async def list(self, *, timeout: float | None = None) -> tuple[Webhook, ...]:
        """All webhooks, newest first."""
        page = await self._client._get(Call(method="GET", path="/webhooks", timeout=timeout), WebhookList)
        return page.data

    async def get(self, id: str, *, timeout: float | None = None) -> Webhook:
        """One webhook, without its secret."""
        return await self._client._get(Call(method="GET", path=_core.webhook_path(id), timeout=timeout), Webhook)

    async def update(
        self, id: str, *, timeout: float | None = None, **changes: Unpack[UpdateWebhookOptions]
    ) -> Webhook:
        """Changes a webhook. What is left out stays as it is."""
        call = Call(method="PATCH", path=_core.webhook_path(id), body={**changes}, timeout=timeout)
        return await self._client._get(call, Webhook)

    async def delete(self, id: str, *, timeout: float | None = None) -> None:
        """Removes a webhook. Its pending messages are not sent."""
        await self._client._send(Call(method="DELETE", path=_core.webhook_path(id), timeout=timeout))

    async def rotate_secret(self, id: str, *, timeout: float | None = None) -> Webhook:
        """Creates a new `secret`, which is only in this response. For 24 hours messages are signed with both."""
        path = _core.webhook_path(id, "/rotate_secret")
        return await self._client._get(Call(method="POST", path=path, repeatable=False, timeout=timeout), Webhook)

    async def test(self, id: str, *, timeout: float | None = None) -> Delivery:
        """Sends a `webhook.test` message."""
        path = _core.webhook_path(id, "/test")
        return await self._client._get(Call(method="POST", path=path, repeatable=False, timeout=timeout), Delivery)

    async def deliveries(
        self,
        id: str,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[Delivery]:
        """The deliveries of the last 30 days, newest first.

        Further pages of `limit` deliveries, 1 to 100, are fetched while you iterate.
        """
        path = _core.webhook_path(id, "/deliveries")
        while True:
            query = {"limit": limit, "starting_after": starting_after}
            page = await self._client._get(Call(method="GET", path=path, query=query, timeout=timeout), DeliveryList)
            for one in page.data:
                yield one
            if not page.has_more or not page.data:
                return
            starting_after = page.data[-1].id

    async def redeliver(self, id: str, delivery_id: str, *, timeout: float | None = None) -> Delivery:
        """Sends a message again, with the same `webhook-id`."""
        path = _core.delivery_path(id, delivery_id)
        return await self._client._get(Call(method="POST", path=path, repeatable=False, timeout=timeout), Delivery)


class AsyncMonitors:
    """The monitors of the key's team and environment. Use `AsyncGrabd.monitors`."""

    def __init__(self, client: AsyncGrabd) -> None:
        self._client = client

    async def create(
        self, capture: str | BatchCapture, *, timeout: float | None = None, **members: Unpack[CreateMonitorOptions]
    ) -> Monitor:
        """Watches a page: a URL, or a mapping with its capture options. Give `every` or `cron`.

        Each capture that is done costs a credit.
        """
        body = _core.monitor_body(capture, members)
        call = Call(method="POST", path="/monitors", body=body, repeatable=False, timeout=timeout)
        return await self._client._get(call, Monitor)

    async def create_batch(
        self,
        urls: Iterable[str],
        *,
        capture: CaptureOptions | None = None,
        timeout: float | None = None,
        **members: Unpack[CreateMonitorOptions],
    ) -> Sequence[Monitor]:
        """Watches up to 50 pages with the same settings: creates a monitor for each URL, or none.

        The monitors have the order of the URLs. Each name is followed by the host and the path of the page.
        """
        call = _core.monitor_batch_call(urls, capture, members, timeout)
        return (await self._client._get(call, MonitorBatch)).monitors

    async def list(
        self, *, limit: int | None = None, starting_after: str | None = None, timeout: float | None = None
    ) -> AsyncIterator[Monitor]:
        """All monitors, newest first. Further pages of `limit` monitors, 1 to 100, are fetched while you iterate."""
        while True:
            query = {"limit": limit, "starting_after": starting_after}
            call = Call(method="GET", path="/monitors", query=query, timeout=timeout)
            page = await self._client._get(call, MonitorList)
            for one in page.data:
                yield one
            if not page.has_more or not page.data:
                return
            starting_after = page.data[-1].id

    async def get(self, id: str, *, timeout: float | None = None) -> Monitor:
        """One monitor with its last run."""
        return await self._client._get(Call(method="GET", path=_core.monitor_path(id), timeout=timeout), Monitor)

    async def update(
        self,
        id: str,
        *,
        capture: str | BatchCapture | None = None,
        timeout: float | None = None,
        **changes: Unpack[UpdateMonitorOptions],
    ) -> Monitor:
        """Changes a monitor. What is left out stays as it is. `paused` stops and continues its schedule."""
        body = _core.monitor_body(capture, changes)
        call = Call(method="PATCH", path=_core.monitor_path(id), body=body, timeout=timeout)
        return await self._client._get(call, Monitor)

    async def delete(self, id: str, *, timeout: float | None = None) -> None:
        """Removes a monitor and the list of its runs. Its captures stay."""
        await self._client._send(Call(method="DELETE", path=_core.monitor_path(id), timeout=timeout))

    async def runs(
        self,
        id: str,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[MonitorRun]:
        """The runs of a monitor, newest first.

        Further pages of `limit` runs, 1 to 100, are fetched while you iterate.
        """
        path = _core.monitor_path(id, "/runs")
        while True:
            query = {"limit": limit, "starting_after": starting_after}
            page = await self._client._get(Call(method="GET", path=path, query=query, timeout=timeout), MonitorRunList)
            for one in page.data:
                yield one
            if not page.has_more or not page.data:
                return
            starting_after = page.data[-1].id

    async def history(
        self, id: str, *, max_bytes: int = _core.MAX_IMAGE_BYTES, timeout: float | None = None
    ) -> bytes:
        """The history of a monitor as a zip archive: the images of its runs, and `runs.json`.

        It is refused if it has more than `max_bytes`. An account receives one archive at a time.
        """
        call = _core.download_call(_core.monitor_path(id, "/history.zip"), max_bytes, timeout)
        return (await self._client._send(call))[1]

    async def accept(self, id: str, *, grab_id: str | None = None, timeout: float | None = None) -> Monitor:
        """Makes a capture of the monitor the baseline of later ones: by default the latest that is done."""
        body = {} if grab_id is None else {"grab_id": grab_id}
        call = Call(method="POST", path=_core.monitor_path(id, "/accept"), body=body, timeout=timeout)
        return await self._client._get(call, Monitor)

    async def create_feed(self, id: str, *, timeout: float | None = None) -> MonitorFeed:
        """Gives an Atom feed and a badge of the monitor public addresses, which replace the former ones.

        They cannot be read again. Whoever knows them can read both, without a key.
        """
        call = Call(method="POST", path=_core.monitor_path(id, "/feed"), timeout=timeout)
        return await self._client._get(call, MonitorFeed)

    async def delete_feed(self, id: str, *, timeout: float | None = None) -> None:
        """Removes the public addresses of the feed and the badge."""
        await self._client._send(Call(method="DELETE", path=_core.monitor_path(id, "/feed"), timeout=timeout))


class AsyncSites:
    """The jobs that capture many pages of one site. Use `AsyncGrabd.sites`."""

    def __init__(self, client: AsyncGrabd) -> None:
        self._client = client

    async def create(
        self,
        url: str | None = None,
        *,
        sitemap: str | None = None,
        capture: CaptureOptions | None = None,
        timeout: float | None = None,
        **members: Unpack[CreateSiteOptions],
    ) -> Site:
        """Captures the pages of a site: those that links lead to from `url`, or those of `sitemap`.

        Returns the job at once; `wait` waits for its end. `capture` has the capture options. Each capture that is done costs a
        credit.
        """
        body = _core.site_body(url, sitemap, capture, members)
        call = Call(method="POST", path="/sites", body=body, repeatable=False, timeout=timeout)
        return await self._client._get(call, Site)

    async def list(
        self, *, limit: int | None = None, starting_after: str | None = None, timeout: float | None = None
    ) -> AsyncIterator[Site]:
        """All jobs, newest first. Further pages of `limit` jobs, 1 to 100, are fetched while you iterate."""
        while True:
            query = {"limit": limit, "starting_after": starting_after}
            page = await self._client._get(Call(method="GET", path="/sites", query=query, timeout=timeout), SiteList)
            for one in page.data:
                yield one
            if not page.has_more or not page.data:
                return
            starting_after = page.data[-1].id

    async def get(self, id: str, *, timeout: float | None = None) -> Site:
        """One job with its state and the numbers of its pages."""
        return await self._client._get(Call(method="GET", path=_core.site_path(id), timeout=timeout), Site)

    async def wait(self, id: str, *, wait_timeout: float = _core.WATCH_TIMEOUT, timeout: float | None = None) -> Site:
        """Waits until a job has ended with its last capture, and returns it.

        A limit that is used up (429) does not end the wait. Raises WaitTimeoutError if the job has not ended in time. It goes on,
        and can be waited for again.
        """
        call = Call(method="GET", path=_core.site_path(id), waits=True, timeout=timeout)

        async def ask(_: float) -> Site:
            return await self._client._get(call, Site)

        def open_id(site: Site) -> str | None:
            return id if site.finished_at is None else None

        end = time.monotonic() + _core.checked_time("wait_timeout", wait_timeout)
        return await self._client._poll(ask, open_id, end, id, wait_timeout, _core.SITE_POLL, "site job")

    async def pages(
        self,
        id: str,
        *,
        limit: int | None = None,
        starting_after: int | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[SitePage]:
        """The pages of a job in the order in which they were found.

        Further pages of the list, with `limit` entries, 1 to 100, are fetched while you iterate.
        """
        path = _core.site_path(id, "/pages")
        while True:
            query = {"limit": limit, "starting_after": starting_after}
            page = await self._client._get(Call(method="GET", path=path, query=query, timeout=timeout), SitePageList)
            for one in page.data:
                yield one
            if not page.has_more or not page.data:
                return
            starting_after = page.data[-1].number

    async def cancel(self, id: str, *, timeout: float | None = None) -> Site:
        """Stops a job: no more pages are found or captured. Captures that have begun are finished."""
        call = Call(method="POST", path=_core.site_path(id, "/cancel"), body={}, timeout=timeout)
        return await self._client._get(call, Site)

    async def delete(self, id: str, *, timeout: float | None = None) -> None:
        """Removes a job and the list of its pages. Its captures stay."""
        await self._client._send(Call(method="DELETE", path=_core.site_path(id), timeout=timeout))


class AsyncProxies:
    """The proxies of the key's team and environment, through which pages can be loaded. Use `AsyncGrabd.proxies`."""

    def __init__(self, client: AsyncGrabd) -> None:
        self._client = client

    async def create(self, *, timeout: float | None = None, **members: Unpack[CreateProxyOptions]) -> Proxy:
        """Stores a proxy. Its id is for the capture option `proxy`. The user name and the password are never returned."""
        call = Call(method="POST", path="/proxies", body={**members}, repeatable=False, timeout=timeout)
        return await self._client._get(call, Proxy)

    async def list(self, *, timeout: float | None = None) -> tuple[Proxy, ...]:
        """All proxies, newest first."""
        page = await self._client._get(Call(method="GET", path="/proxies", timeout=timeout), ProxyList)
        return page.data

    async def get(self, id: str, *, timeout: float | None = None) -> Proxy:
        """One proxy, with its last use and its last failure."""
        return await self._client._get(Call(method="GET", path=_core.proxy_path(id), timeout=timeout), Proxy)

    async def update(self, id: str, *, timeout: float | None = None, **changes: Unpack[UpdateProxyOptions]) -> Proxy:
        """Changes a proxy. What is left out stays as it is."""
        call = Call(method="PATCH", path=_core.proxy_path(id), body={**changes}, timeout=timeout)
        return await self._client._get(call, Proxy)

    async def delete(self, id: str, *, timeout: float | None = None) -> None:
        """Removes a proxy. Captures that name it fail from then on, and are not charged."""
        await self._client._send(Call(method="DELETE", path=_core.proxy_path(id), timeout=timeout))
