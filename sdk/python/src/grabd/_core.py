"""What both clients share: settings, requests, responses and the decision to retry. No input or output."""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import quote, urljoin

import httpx

from ._errors import (
    ApiError,
    ConnectionFailedError,
    GrabdError,
    RequestTimeoutError,
    UnexpectedResponseError,
    WaitTimeoutError,
)
from ._events import EventParser
from ._generated import CAPTURE_OPTIONS, ERROR_CLASSES, CaptureOptions, Grab, GrabList
from ._model import Model

VERSION = "0.2.0"

MAX_RETRIES = 10
MAX_DELAY = 8.0
MAX_RETRY_AFTER = 60.0
"""A longer `Retry-After` is left to the caller."""
DEFAULT_TIMEOUT = 30.0
CREATE_TIMEOUT = 40.0
"""The service renders for up to 25 s."""
DOWNLOAD_TIMEOUT = 120.0
WAIT_TIMEOUT = 300.0
WATCH_TIMEOUT = 1800.0
MAX_TIMEOUT = 7 * 86_400.0
LONG_POLL = 25
"""The longest wait in seconds that the service supports in one request."""
IDS_PER_REQUEST = 100
"""The most grabs that one request waits for."""
MIN_POLL = 1.0
"""Between two polls of a service, or a proxy, that responds without waiting."""
SITE_POLL = 2.0
"""Between two reads of a site job, which takes minutes."""
STREAM_IDLE = 45.0
"""A stream that is silent for longer is broken: the service sends a comment every 15 s."""
MAX_EMPTY_STREAMS = 5
"""Streams in a row without an event after which a watch fails."""
LIMITS = httpx.Limits(max_connections=200, max_keepalive_connections=20)
"""Each wait has a connection, and the service accepts so many from one address by default."""
MAX_JSON_BYTES = 16 << 20
"""JSON responses are far smaller."""
MAX_IMAGE_BYTES = 256 << 20

AnyModel = TypeVar("AnyModel", bound=Model)


class BatchCapture(CaptureOptions, total=False):
    """One capture of a batch, or of a monitor: its URL, or the HTML document in `html`, and the options that are its own."""

    url: str


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request."""

    method: str
    path: str
    """Below the API root, such as `/grabs`; or an absolute URL, to which no API key is sent."""
    query: Mapping[str, object] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    """Whether it may be repeated although it may have been carried out."""
    waits: bool = False
    """Whether it creates grabs or waits for one. A limit that is used up is then waited for by the caller: no retry."""
    timeout: float | None = None
    default_timeout: float = DEFAULT_TIMEOUT
    max_bytes: int = MAX_JSON_BYTES

    @property
    def is_api(self) -> bool:
        """Whether it goes to the API. The API does not redirect, and the key is meant for its address only."""
        return not self.path.startswith(("http://", "https://"))

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Settings:
    """Checked settings of a client."""

    def __init__(
        self,
        api_key: str | None,
        base_url: str | None,
        max_retries: int,
        retry_delay: float,
        timeout: float | None,
    ) -> None:
        base_url = base_url if base_url is not None else os.environ.get("GRAB_BASE_URL")
        if not base_url:
            raise ValueError("Set `base_url` or GRAB_BASE_URL to the API root, which ends in /v1.")
        if not base_url.lower().startswith(("http://", "https://")):
            raise ValueError(f"`base_url` must be an http(s) URL; got {base_url}.")
        if not 0 <= max_retries <= MAX_RETRIES:
            raise ValueError(f"`max_retries` must be from 0 to {MAX_RETRIES}; got {max_retries}.")
        self.base_url = base_url.rstrip("/")
        self.api_key = api_key if api_key is not None else os.environ.get("GRAB_API_KEY")
        self.max_retries = max_retries
        self.retry_delay = checked_time("retry_delay", retry_delay)
        self.timeout = None if timeout is None else checked_time("timeout", timeout)

    def timeout_of(self, timeout: float | None, default: float = DEFAULT_TIMEOUT) -> float:
        """The time limit of an attempt."""
        if timeout is not None:
            return checked_time("timeout", timeout)
        return self.timeout if self.timeout is not None else default

    def request(self, client: httpx.Client | httpx.AsyncClient, call: Call) -> httpx.Request:
        """The request of a call."""
        headers = {"accept": "application/json" if call.is_api else "*/*", "user-agent": f"grabd-python/{VERSION}"}
        if call.is_api and self.api_key:
            headers["authorization"] = f"Bearer {self.api_key}"
        headers.update(call.headers)
        timeout = self.timeout_of(call.timeout, call.default_timeout)
        return client.build_request(
            call.method,
            self.base_url + call.path if call.is_api else call.path,
            params={name: _text(value) for name, value in call.query.items() if value is not None} or None,
            json=call.body,
            headers=headers,
            timeout=timeout,
        )

    def delay(self, retries: int, retry_after: float | None = None) -> float | None:
        """The wait in seconds before the next attempt. None if the service asks for too long a wait."""
        if retry_after is not None and retry_after > MAX_RETRY_AFTER:
            return None
        # Callers that failed together do not come back together.
        jittered = min(MAX_DELAY, self.retry_delay * 2.0**retries) * random.uniform(0.5, 1)
        return jittered if retry_after is None else retry_after + jittered / 4

    def delay_after(self, error: GrabdError, retries: int, call: Call) -> float | None:
        """The wait in seconds before the next attempt. None if there is none."""
        if retries >= self.max_retries or not _may_retry(error, call.repeatable):
            return None
        if call.waits and _is_limit(error):
            return None
        return self.delay(retries, _retry_after_of(error))

    def delay_of_limit(self, error: GrabdError, refusals: int) -> float | None:
        """The wait in seconds after a limit was used up, however long. None if the error is another one."""
        if not _is_limit(error):
            return None
        jittered = min(MAX_DELAY, self.retry_delay * 2.0**refusals) * random.uniform(0.5, 1)
        # All that wait are told the same time, so they are spread over the next second.
        retry_after = _retry_after_of(error)
        return jittered if retry_after is None else retry_after + random.uniform(0, min(1, retry_after))

    def delay_of_create(self, error: GrabdError, refusals: int) -> float | None:
        """The wait in seconds before a create that met a limit. None if it is left to the caller."""
        return None if self.max_retries == 0 else self.delay_of_limit(error, refusals)

    def image_url(self, grab: Grab | str) -> str:
        """The absolute URL of an image."""
        url = grab if isinstance(grab, str) else grab.image_url
        if not url:
            raise ValueError("The grab has no image: it is not done, or its image was deleted.")
        return urljoin(self.base_url, url)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def checked_time(name: str, seconds: float) -> float:
    """Checks a time limit."""
    if not 0 < seconds <= MAX_TIMEOUT:
        raise ValueError(f"`{name}` must be more than 0 and at most {MAX_TIMEOUT:g} s; got {seconds}.")
    return seconds


def grab_path(id: str, more: str = "") -> str:
    return f"/grabs/{_segment(id)}{more}"


def webhook_path(id: str, more: str = "") -> str:
    return f"/webhooks/{_segment(id)}{more}"


def monitor_path(id: str, more: str = "") -> str:
    return f"/monitors/{_segment(id)}{more}"


def site_path(id: str, more: str = "") -> str:
    return f"/sites/{_segment(id)}{more}"


def proxy_path(id: str) -> str:
    return f"/proxies/{_segment(id)}"


def delivery_path(id: str, delivery_id: str) -> str:
    return webhook_path(id, f"/deliveries/{_segment(delivery_id)}/redeliver")


def _segment(id: str) -> str:
    if not id:
        raise ValueError("`id` must not be empty.")
    return quote(id, safe="")


def create_call(
    url: str | None,
    options: Mapping[str, Any],
    extra_options: Mapping[str, Any] | None,
    idempotency_key: str | None,
    timeout: float | None,
    *,
    is_async: bool,
) -> Call:
    """The request of a create."""
    _check_names(options, " Give newer ones in `extra_options`.")
    body = {**(extra_options or {}), **options}
    if url is not None:
        body["url"] = url
    elif "html" not in body:
        raise TypeError("Give a URL, or the option `html`.")
    headers = {"idempotency-key": str(uuid.uuid4()) if idempotency_key is None else idempotency_key}
    if is_async:
        headers["prefer"] = "respond-async"
    return Call(
        method="POST",
        path="/grabs",
        body=body,
        headers=headers,
        waits=True,
        timeout=timeout,
        default_timeout=CREATE_TIMEOUT,
    )


def batch_call(
    captures: Sequence[str | BatchCapture],
    options: Mapping[str, Any],
    idempotency_key: str | None,
    timeout: float | None,
) -> Call:
    """The request of a batch."""
    if isinstance(captures, str):
        raise TypeError("`captures` must be a list, not one URL.")
    grabs: list[Mapping[str, Any]] = [{"url": one} if isinstance(one, str) else one for one in captures]
    _check_names(options)
    for one in grabs:
        _check_names({name: value for name, value in one.items() if name != "url"})
    return Call(
        method="POST",
        path="/grabs/batch",
        body={"grabs": grabs, "options": options},
        headers={"idempotency-key": str(uuid.uuid4()) if idempotency_key is None else idempotency_key},
        waits=True,
        timeout=timeout,
        default_timeout=CREATE_TIMEOUT,
    )


def monitor_body(capture: str | BatchCapture | None, members: Mapping[str, Any]) -> Mapping[str, Any]:
    """The body that creates or changes a monitor. Without a capture, that stays as it is."""
    if capture is None:
        return {**members}
    options: Mapping[str, Any] = {"url": capture} if isinstance(capture, str) else capture
    _check_names({name: value for name, value in options.items() if name != "url"})
    return {**members, "capture": options}


def monitor_batch_call(
    urls: Iterable[str], capture: CaptureOptions | None, members: Mapping[str, Any], timeout: float | None
) -> Call:
    """The create of a monitor for each URL."""
    # A single text would be a list of letters.
    if isinstance(urls, str):
        raise TypeError("`urls` must be a list of URLs.")
    body: dict[str, Any] = {**members, "urls": list(urls)}
    if capture is not None:
        _check_names(capture)
        body["capture"] = capture
    return Call(method="POST", path="/monitors/batch", body=body, repeatable=False, timeout=timeout)


def site_body(
    url: str | None, sitemap: str | None, capture: CaptureOptions | None, members: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The body that creates a job for a site."""
    if (url is None) == (sitemap is None):
        raise TypeError("Give either the URL of a start page or `sitemap`.")
    body: dict[str, Any] = {**members}
    body |= {"url": url} if sitemap is None else {"sitemap": sitemap}
    if capture is not None:
        _check_names(capture)
        body["capture"] = capture
    return body


def _check_names(options: Mapping[str, Any], hint: str = "") -> None:
    # The service ignores unknown members, so a misspelled option would cost a credit.
    if unknown := sorted(options.keys() - CAPTURE_OPTIONS):
        raise TypeError(f"Unknown capture options: {', '.join(unknown)}.{hint}")


def decode(call: Call, model: type[AnyModel], response: httpx.Response, content: bytes) -> AnyModel:
    """The object in a response."""
    try:
        return model.from_json(json.loads(content))
    except ValueError as cause:
        raise UnexpectedResponseError(
            f"{call} returned no {model.__name__}: {cause}",
            status=response.status_code,
            request_id=response.headers.get("x-request-id"),
        ) from cause


def too_large(call: Call, response: httpx.Response) -> UnexpectedResponseError:
    return UnexpectedResponseError(
        f"The response of {call} is larger than {call.max_bytes} bytes.",
        status=response.status_code,
        request_id=response.headers.get("x-request-id"),
    )


def connection_error(what: object, cause: httpx.HTTPError) -> ConnectionFailedError:
    """The error for what httpx raised."""
    if isinstance(cause, httpx.TimeoutException):
        return RequestTimeoutError(f"{what} had no response in time.")
    return ConnectionFailedError(f"{what} failed: {cause or type(cause).__name__}")


def timed_out(what: object, timeout: float) -> RequestTimeoutError:
    return RequestTimeoutError(f"{what} had no complete response within {timeout:g} s.")


def wait_timeout(id: str, timeout: float, what: str = "grab") -> WaitTimeoutError:
    return WaitTimeoutError(f"The {what} {id} has not ended after {timeout:g} s.", id)


def no_events(id: str) -> UnexpectedResponseError:
    return UnexpectedResponseError(f"The events of the grab {id} end without an event.", status=200)


def response_error(response: httpx.Response, content: bytes) -> GrabdError:
    """The error for a response that is no success."""
    status, headers = response.status_code, response.headers
    try:
        error = json.loads(content)["error"]
        code, message = error["code"], error["message"]
        if not (isinstance(code, str) and isinstance(message, str)):
            raise ValueError("code and message are strings")
    except (ValueError, KeyError, TypeError):
        # The response is not from the service.
        start = content[:200].decode("utf-8", "replace").strip()
        return UnexpectedResponseError(
            f"The response has the status {status} and is no error of grabd{start and ': '}{start}",
            status=status,
            request_id=headers.get("x-request-id"),
            retry_after=_retry_after(headers.get("retry-after")),
        )
    failure = ERROR_CLASSES.get(code, ApiError)(
        message,
        status=status,
        code=code,
        cause=headers.get("error-cause"),
        request_id=headers.get("x-request-id"),
        retry_after=_retry_after(headers.get("retry-after")),
        location=headers.get("location"),
    )
    failure._replayed = headers.get("idempotent-replayed") == "true"
    return failure


def _retry_after(value: str | None) -> float | None:
    """Seconds of a `Retry-After`, which is a number or a date."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


def _is_limit(error: GrabdError) -> bool:
    """Whether a limit of the service, or of a proxy, is used up. The service has not begun to work then."""
    return isinstance(error, (ApiError, UnexpectedResponseError)) and error.status == 429


def _retry_after_of(error: GrabdError) -> float | None:
    return error.retry_after if isinstance(error, (ApiError, UnexpectedResponseError)) else None


def _may_retry(error: GrabdError, repeatable: bool) -> bool:
    """Whether a later attempt may succeed."""
    if _is_limit(error):
        return True
    if not repeatable:
        return False
    if isinstance(error, ConnectionFailedError):
        return True
    if isinstance(error, UnexpectedResponseError):
        return error.status in (502, 503, 504)
    if not isinstance(error, ApiError) or error._replayed:
        return False
    return error.code in ("idempotency_conflict", "internal_error") or error.status > 500


class GrabEvents:
    """The grabs in a stream of events, and where to resume it."""

    def __init__(self, last_id: str) -> None:
        self.last_id = last_id
        self._parser = EventParser()

    def push(self, chunk: bytes) -> list[Grab]:
        """The grabs that a chunk completes."""
        grabs = []
        try:
            for event in self._parser.push(chunk):
                grab = Grab.from_json(json.loads(event.data))
                # Sent again by something that does not know where to resume.
                if event.id and event.id == self.last_id and not has_ended(grab):
                    continue
                self.last_id = event.id
                grabs.append(grab)
        except ValueError as cause:
            raise UnexpectedResponseError(f"An event is no grab: {cause}", status=200) from cause
        return grabs


def events_call(id: str, last_id: str, timeout: float) -> Call:
    """The request of a stream of events."""
    headers = {"accept": "text/event-stream"}
    if last_id:
        headers["last-event-id"] = last_id
    return Call(method="GET", path=grab_path(id, "/events"), headers=headers, timeout=timeout, waits=True)


def long_poll_call(id: str, remaining: float, timeout: float) -> Call:
    """The request that waits for the end of a grab."""
    seconds = max(0, min(LONG_POLL, int(remaining) + 1))
    headers = {"prefer": f"wait={seconds}"}
    return Call(method="GET", path=grab_path(id), headers=headers, timeout=timeout + seconds, waits=True)


def long_poll_all_call(ids: Sequence[str], remaining: float, timeout: float) -> Call:
    """The request that waits for the end of several grabs."""
    seconds = max(0, min(LONG_POLL, int(remaining) + 1))
    headers = {"prefer": f"wait={seconds}"}
    query = {"ids": ",".join(ids)}
    return Call(method="GET", path="/grabs", query=query, headers=headers, timeout=timeout + seconds, waits=True)


def chunks(ids: Sequence[str]) -> list[Sequence[str]]:
    """The ids in parts of which each fits into one request."""
    return [ids[start : start + IDS_PER_REQUEST] for start in range(0, len(ids), IDS_PER_REQUEST)]


def next_page(page: GrabList) -> str | None:
    """Where the page after this one begins. None if there is none."""
    if page.next is not None or not page.has_more:
        return page.next
    return page.data[-1].id if page.data else None


def read_call(
    id: str,
    format: str,
    max_tokens: int | None,
    from_: int | None,
    compare_to: str | None,
    timeout: float | None,
) -> Call:
    """The request for a text of a grab."""
    query = {"format": format, "max_tokens": max_tokens, "from": from_, "compare_to": compare_to}
    return Call(method="GET", path=grab_path(id, "/read"), query=query, timeout=timeout)


def missing_id(ids: Sequence[str], page: GrabList) -> str | None:
    """The first id that is not on the page."""
    found = {grab.id for grab in page.data}
    return next((id for id in ids if id.lower() not in found), None)


def download_call(url: str, max_bytes: int, timeout: float | None) -> Call:
    """The request for an image or an archive."""
    return Call(method="GET", path=url, timeout=timeout, default_timeout=DOWNLOAD_TIMEOUT, max_bytes=max_bytes)


def has_ended(grab: Grab) -> bool:
    """Whether a grab has reached its final state."""
    return grab.status in ("done", "failed")
