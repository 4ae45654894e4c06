"""Verification of webhooks, and the parser of events."""

from __future__ import annotations

import json
import unittest
from datetime import datetime, timezone
from typing import Any, cast

import support
from standardwebhooks import Webhook

from grabd import WebhookVerificationError, verify_webhook
from grabd._events import EventParser, ServerSentEvent

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OLD_SECRET = "whsec_K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9"
AT = 1_795_206_774
BODY = json.dumps(
    {
        "id": "msg_1",
        "type": "grab.done",
        "timestamp": "2026-11-20T20:32:54.120Z",
        "environment": "live",
        "data": support.grab("done"),
    }
)


def signed(body: str = BODY, secret: str = SECRET) -> dict[str, str]:
    """Signs with another library."""
    signature = Webhook(secret).sign("msg_1", datetime.fromtimestamp(AT, timezone.utc), body)
    return {"webhook-id": "msg_1", "webhook-timestamp": str(AT), "webhook-signature": signature}


class WebhookTest(unittest.TestCase):
    def refused(self, body: str, headers: dict[str, str], **options: Any) -> None:
        with self.assertRaises(WebhookVerificationError):
            verify_webhook(body, headers, SECRET, **{"now": AT, **options})

    def test_signed_message_is_returned_parsed(self) -> None:
        upper = {name.upper(): value for name, value in signed().items()}
        received: list[tuple[str | bytes, dict[str, str]]] = [(BODY, signed()), (BODY.encode(), upper)]
        for body, headers in received:
            event = verify_webhook(body, headers, SECRET, now=AT)
            self.assertEqual((event.id, event.type, event.environment), ("msg_1", "grab.done", "live"))
            self.assertEqual(event.grab and event.grab.status, "done")

    def test_message_of_another_type_has_no_grab(self) -> None:
        body = json.dumps({**json.loads(BODY), "type": "webhook.test", "data": {}})
        self.assertIsNone(verify_webhook(body, signed(body), SECRET, now=AT).grab)

    def test_message_about_a_site_has_the_job(self) -> None:
        body = json.dumps({**json.loads(BODY), "type": "site.finished", "data": {"site": support.site("s")}})
        event = verify_webhook(body, signed(body), SECRET, now=AT)
        self.assertEqual((event.grab, event.monitor), (None, None))
        self.assertEqual((event.site and event.site.id, event.site and event.site.pages.found), ("s", 9))

    def test_message_about_a_monitor_has_the_monitor_and_its_run(self) -> None:
        data = {"monitor": support.monitor("m"), "run": support.run("r")}
        body = json.dumps({**json.loads(BODY), "type": "monitor.changed", "data": data})
        event = verify_webhook(body, signed(body), SECRET, now=AT)
        self.assertIsNone(event.grab)
        self.assertEqual((event.monitor and event.monitor.id, event.run and event.run.difference_ratio), ("m", 0.021))

    def test_one_of_several_signatures_or_secrets_is_enough(self) -> None:
        headers = signed()
        others = f"v1a,x v1,AAAA v1,\u00e9 {signed(BODY, OLD_SECRET)['webhook-signature']}"
        headers["webhook-signature"] = f"{others} {headers['webhook-signature']}"
        verify_webhook(BODY, headers, SECRET, now=AT)
        verify_webhook(BODY, signed(), [OLD_SECRET, SECRET], now=AT)
        with self.assertRaises(WebhookVerificationError):
            verify_webhook(BODY, signed(), OLD_SECRET, now=AT)

    def test_changed_message_is_refused(self) -> None:
        headers = signed()
        self.refused(BODY + " ", headers)
        for name, value in [
            ("id", "msg_2"),
            ("timestamp", str(AT + 1)),
            ("timestamp", "soon"),
            ("timestamp", "-1"),
            ("signature", "v1,"),
            ("signature", headers["webhook-signature"].replace("v1,", "v2,")),
        ]:
            self.refused(BODY, {**headers, f"webhook-{name}": value})
        for name in headers:
            self.refused(BODY, {other: value for other, value in headers.items() if other != name})

    def test_message_outside_of_the_tolerance_is_refused(self) -> None:
        for off in (300, -300):
            verify_webhook(BODY, signed(), SECRET, now=AT + off)
        for off in (301, -301):
            self.refused(BODY, signed(), now=AT + off)
        self.refused(BODY, signed(), now=AT + 11, tolerance=10)
        self.refused(BODY, signed(), now=None)

    def test_signed_body_that_is_no_message_is_refused(self) -> None:
        for body in ("", "[]", "null", '{"type":1}', "{", '{"type":"grab.done","data":{}}'):
            self.refused(body, signed(body))

    def test_wrong_arguments_are_reported_as_such(self) -> None:
        with self.assertRaises(TypeError):
            verify_webhook(cast(Any, json.loads(BODY)), signed(), SECRET)
        wrong: list[str | list[str]] = ["", "whsec_", "whsec_!", []]
        for secret in wrong:
            with self.assertRaises(ValueError):
                verify_webhook(BODY, signed(), secret)


class EventParserTest(unittest.TestCase):
    def test_events_are_parsed_however_they_are_cut(self) -> None:
        text = ':x\r\n\r\nid: 7\r\nevent: grab\r\ndata: {"a":\r\ndata:"ü"}\r\n\r\ndata: b\rid:8\r\rid\n\ndata\n\n'
        expected = [ServerSentEvent("7", '{"a":\n"ü"}'), ServerSentEvent("8", "b"), ServerSentEvent("", "")]
        content = text.encode()
        for size in range(1, len(content) + 1):
            parser = EventParser()
            events = [one for at in range(0, len(content), size) for one in parser.push(content[at : at + size])]
            self.assertEqual(events, expected, size)

    def test_event_without_an_end_is_refused_at_the_size_limit(self) -> None:
        parser = EventParser()
        with self.assertRaises(ValueError):
            for _ in range(4):
                parser.push(b"x" * (1 << 19))


if __name__ == "__main__":
    unittest.main()
