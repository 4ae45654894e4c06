"""Verification of webhook messages (Standard Webhooks)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._errors import WebhookVerificationError
from ._generated import Grab, Monitor, MonitorRun, Site

MAX_SIGNATURES = 10
"""During a rotation there are two."""


@dataclass(frozen=True, kw_only=True)
class WebhookEvent:
    """A verified message."""

    id: str
    """Id of the message, the same at every attempt. Store it to recognise repetitions."""
    type: str
    """`grab.done`, `grab.failed`, `grab.changed`, `monitor.changed`, `monitor.failed`, `monitor.recovered`, `site.finished`,
    `credits.low` or `webhook.test`. Ignore the types that you do not know.
    """
    timestamp: str
    """When the message was made. RFC 3339."""
    environment: str
    """Environment of the grab, monitor or site job: `live` or `test`."""
    grab: Grab | None
    """The grab, as `get_grab` returns it. None if the message is not about a grab."""
    raw: Mapping[str, Any]
    """The whole message."""
    monitor: Monitor | None = None
    """The monitor, as `monitors.get` returns it. None if the message is not about a monitor."""
    run: MonitorRun | None = None
    """The run of the monitor. None if the message is not about a monitor."""
    site: Site | None = None
    """The job that captured a site, as `sites.get` returns it. None if the message is not about one."""


def verify_webhook(
    payload: bytes | str,
    headers: Mapping[str, str],
    secret: str | Sequence[str],
    *,
    tolerance: float = 300,
    now: float | None = None,
) -> WebhookEvent:
    """Verifies a message and returns it parsed.

    `payload` is the raw body, as it was received. `secret` is that of the webhook; give several to accept each of them.
    `tolerance` is how far the time of the message may be off, and `now` the current time for tests, both in seconds.

    Raises WebhookVerificationError if the message must not be processed: respond with 400.
    """
    if not isinstance(payload, (bytes, str)):
        raise TypeError("`payload` must be the raw body as bytes or str; a parsed body cannot be verified.")
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if not secrets:
        raise ValueError("`secret` must not be empty.")
    keys = [_key(one) for one in secrets]
    lower = {name.lower(): value for name, value in headers.items()}
    id, timestamp, signatures = (_header(lower, f"webhook-{name}") for name in ("id", "timestamp", "signature"))
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise WebhookVerificationError("`webhook-timestamp` is no time.")
    off = abs((time.time() if now is None else now) - int(timestamp))
    if not off <= tolerance:
        raise WebhookVerificationError(
            f"The time of the message is {off:.0f} s off; {tolerance:g} s are allowed."
        )
    body = payload.encode() if isinstance(payload, str) else payload
    signed = f"{id}.{timestamp}.".encode() + body
    expected = [base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()) for key in keys]
    is_valid = False
    for signature in signatures.split(" ")[:MAX_SIGNATURES]:
        version, _, encoded = signature.partition(",")
        if version == "v1":
            for one in expected:
                is_valid |= hmac.compare_digest(one, encoded.encode())
    if not is_valid:
        raise WebhookVerificationError("No signature of the message is valid.")
    try:
        message = json.loads(body)
        kind = message["type"]
        grab = Grab.from_json(message["data"]) if kind in ("grab.done", "grab.failed", "grab.changed") else None
        is_of_monitor = kind in ("monitor.changed", "monitor.failed", "monitor.recovered")
        return WebhookEvent(
            id=message["id"],
            type=kind,
            timestamp=message["timestamp"],
            environment=message["environment"],
            grab=grab,
            raw=message,
            monitor=Monitor.from_json(message["data"]["monitor"]) if is_of_monitor else None,
            run=MonitorRun.from_json(message["data"]["run"]) if is_of_monitor else None,
            site=Site.from_json(message["data"]["site"]) if kind == "site.finished" else None,
        )
    except (ValueError, KeyError, TypeError) as cause:
        raise WebhookVerificationError("The body is no message of grabd.") from cause


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise ValueError("`secret` must be the secret of a webhook: whsec_ and base64.")
    return key


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if not value:
        raise WebhookVerificationError(f"The header `{name}` is missing.")
    return value
