"""Both clients against a server with scripted responses."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any
from unittest.mock import patch

from support import (
    BOTH,
    DONE,
    Async,
    FakeService,
    Handler,
    Responder,
    Sync,
    answer,
    event,
    failure,
    grab,
    monitor,
    proxy,
    reset,
    run,
    silence,
    site,
    site_page,
    stream,
)

import grabd

URL = "https://example.com/"


class ClientTest(unittest.TestCase):
    def scenarios(self, *responders: Responder, **settings: Any) -> Any:
        """A fresh service for each of the clients."""
        for kind in BOTH:
            with self.subTest(kind.__name__), FakeService(*responders) as service:
                yield kind(service, **settings), service

    def test_create_that_fails_twice_is_repeated_with_the_same_key_and_body(self) -> None:
        for call, service in self.scenarios(failure(503, "internal_error"), reset, DONE):
            self.assertEqual(call("capture", URL, width=800, hide=["#a"]).status, "done")
            first, *others = service.received
            self.assertEqual(first.json(), {"width": 800, "hide": ["#a"], "url": URL})
            self.assertRegex(first.headers["idempotency-key"], "^[0-9a-f-]{36}$")
            self.assertEqual(first.headers["authorization"], "Bearer sk_live_secret")
            self.assertEqual(len(others), 2)
            for other in others:
                self.assertEqual(other.body, first.body)
                self.assertEqual(other.headers["idempotency-key"], first.headers["idempotency-key"])

    def test_document_is_captured_without_a_url(self) -> None:
        for call, service in self.scenarios(DONE):
            call("capture", html="<p>1</p>", width=400)
            call("create_grab", html="<p>2</p>")
            bodies = [one.json() for one in service.received]
            self.assertEqual(bodies, [{"html": "<p>1</p>", "width": 400}, {"html": "<p>2</p>"}])
            with self.assertRaises(TypeError):
                call("capture", width=400)
            self.assertEqual(len(service.received), 2)

    def test_different_creates_have_different_keys_unless_the_caller_chooses_one(self) -> None:
        for call, service in self.scenarios(DONE):
            call("capture", URL)
            call("capture", URL)
            call("create_grab", URL, idempotency_key="mine")
            keys = [one.headers["idempotency-key"] for one in service.received]
            self.assertEqual((len(set(keys)), keys[2]), (3, "mine"))
            preferences = [one.headers.get("prefer") for one in service.received]
            self.assertEqual(preferences, [None, None, "respond-async"])

    def test_batch_is_one_request_with_its_own_key_and_unknown_options_are_refused(self) -> None:
        error = {"code": "bad_request", "message": "`url` must be set."}
        results = [
            {"grab": grab("pending"), "error": None},
            {"grab": None, "error": error, "error_cause": "request"},
        ]
        for call, service in self.scenarios(failure(503, "internal_error"), answer(200, {"results": results})):
            batch = call("create_batch", [URL, {"width": 400}], format="webp")
            self.assertEqual((batch.results[0].grab.status, batch.results[0].error), ("pending", None))
            refused = batch.results[1]
            self.assertEqual((refused.grab, refused.error.code, refused.error_cause), (None, "bad_request", "request"))
            first, second = service.received
            self.assertEqual(
                first.json(), {"grabs": [{"url": URL}, {"width": 400}], "options": {"format": "webp"}}
            )
            self.assertRegex(first.headers["idempotency-key"], "^[0-9a-f-]{36}$")
            self.assertEqual(second.headers["idempotency-key"], first.headers["idempotency-key"])
            for captures, options in [([{"widht": 1}], {}), ([URL], {"widht": 1}), (URL, {})]:
                with self.assertRaises(TypeError):
                    call("create_batch", captures, **options)
            self.assertEqual(len(service.received), 2)

    def test_final_errors_are_not_retried_and_have_their_own_classes(self) -> None:
        for status, code in [
            (400, "bad_request"),
            (400, "invalid_viewport"),
            (400, "ssrf_detected"),
            (400, "idempotency_mismatch"),
            (401, "unauthorized"),
            (402, "credits_exhausted"),
            (404, "not_found"),
            (422, "render_blocked"),
            (500, "render_failed"),
        ]:
            headers = {"location": "/v1/grabs/id-1", "error-cause": "target"}
            for call, service in self.scenarios(failure(status, code, headers)):
                with self.assertRaises(grabd.ERROR_CLASSES[code]) as caught:
                    call("capture", URL)
                error = caught.exception
                self.assertEqual((error.status, error.code, str(error)), (status, code, f"It is {code}."))
                self.assertEqual((error.request_id, error.grab_id, error.cause), ("request-1", "id-1", "target"))
                self.assertEqual(len(service.received), 1)

    def test_transient_errors_are_retried(self) -> None:
        for status, code in [(409, "idempotency_conflict"), (429, "queue_limit_exceeded"), (500, "internal_error")]:
            for call, service in self.scenarios(failure(status, code), DONE):
                call("capture", URL)
                self.assertEqual(len(service.received), 2, code)

    def test_replayed_internal_error_is_final(self) -> None:
        for call, service in self.scenarios(failure(500, "internal_error", {"idempotent-replayed": "true"})):
            with self.assertRaises(grabd.InternalError):
                call("capture", URL)
            self.assertEqual(len(service.received), 1)

    def test_retries_are_bounded(self) -> None:
        for call, service in self.scenarios(failure(429, "rate_limit_exceeded"), max_retries=2):
            with self.assertRaises(grabd.RateLimitExceededError):
                call("usage")
            self.assertEqual(len(service.received), 3)

    def test_retry_after_delays_the_retry(self) -> None:
        for call, _ in self.scenarios(failure(429, "rate_limit_exceeded", {"retry-after": "1"}), DONE):
            start = time.monotonic()
            call("capture", URL)
            self.assertGreaterEqual(time.monotonic() - start, 1)

    def test_retry_after_of_more_than_a_minute_is_left_to_the_caller(self) -> None:
        for call, service in self.scenarios(failure(429, "rate_limit_exceeded", {"retry-after": "61"})):
            with self.assertRaises(grabd.RateLimitExceededError) as caught:
                call("usage")
            self.assertEqual((caught.exception.retry_after, len(service.received)), (61, 1))

    def test_request_without_idempotency_key_is_repeated_only_if_it_was_not_carried_out(self) -> None:
        for responder in (reset, failure(500, "internal_error"), failure(503, "internal_error")):
            for call, service in self.scenarios(responder):
                with self.assertRaises(grabd.GrabdError):
                    call("webhooks.create", "https://example.com/hook")
                self.assertEqual(len(service.received), 1)
        webhook = {"id": "w", "url": URL, "events": ["*"], "description": "", "status": "enabled", "created_at": ""}
        for call, service in self.scenarios(failure(429, "rate_limit_exceeded"), answer(201, webhook)):
            self.assertEqual(call("webhooks.create", URL, events=["*"]).events, ("*",))
            self.assertEqual(len(service.received), 2)

    def test_monitor_is_created_listed_over_pages_accepted_and_deleted(self) -> None:
        def page(one: dict[str, Any], has_more: bool) -> Responder:
            return answer(200, {"data": [one], "has_more": has_more})

        pages = [page(monitor("m"), True), page(monitor("n"), False), page(run("r"), False)]
        changed = [answer(200, monitor("m")), answer(200, monitor("m"))]
        gone: Responder = lambda handler: handler.respond(204)
        feed = answer(201, {"feed_url": "https://g.example/f", "badge_url": "https://g.example/b"})
        archive: Responder = lambda handler: handler.respond(200, b"archive")
        for call, service in self.scenarios(answer(201, monitor("m")), *pages, archive, *changed, feed, gone, gone):
            capture = {"url": URL, "width": 800}
            created = call("monitors.create", capture, every="6h")
            self.assertEqual((created.id, created.last_run.what_changed), ("m", ("image",)))
            self.assertEqual([one.id for one in call("monitors.list", limit=1)], ["m", "n"])
            self.assertEqual([one.outcome for one in call("monitors.runs", "m")], ["changed"])
            self.assertEqual(call("monitors.history", "m"), b"archive")
            call("monitors.update", "m", paused=True)
            call("monitors.accept", "m", grab_id="g")
            self.assertEqual(call("monitors.create_feed", "m").badge_url, "https://g.example/b")
            self.assertIsNone(call("monitors.delete_feed", "m"))
            self.assertIsNone(call("monitors.delete", "m"))
            sent = [(one.method, one.path, one.json() if one.body else None) for one in service.received]
            self.assertEqual(
                sent,
                [
                    ("POST", "/v1/monitors", {"every": "6h", "capture": capture}),
                    ("GET", "/v1/monitors?limit=1", None),
                    ("GET", "/v1/monitors?limit=1&starting_after=m", None),
                    ("GET", "/v1/monitors/m/runs", None),
                    ("GET", "/v1/monitors/m/history.zip", None),
                    ("PATCH", "/v1/monitors/m", {"paused": True}),
                    ("POST", "/v1/monitors/m/accept", {"grab_id": "g"}),
                    ("POST", "/v1/monitors/m/feed", None),
                    ("DELETE", "/v1/monitors/m/feed", None),
                    ("DELETE", "/v1/monitors/m", None),
                ],
            )

    def test_monitors_of_several_pages_are_created_by_one_request(self) -> None:
        created = answer(201, {"monitors": [monitor("m"), monitor("n")]})
        for call, service in self.scenarios(created, created):
            urls = [URL, "https://example.org/"]
            monitors = call("monitors.create_batch", urls, capture={"width": 800}, every="6h")
            self.assertEqual([one.id for one in monitors], ["m", "n"])
            call("monitors.create_batch", tuple(urls), every="6h")
            with self.assertRaisesRegex(TypeError, "widht"):
                call("monitors.create_batch", urls, capture={"widht": 800}, every="6h")
            with self.assertRaisesRegex(TypeError, "urls"):
                call("monitors.create_batch", URL, every="6h")
            sent = [(one.method, one.path, one.json()) for one in service.received]
            self.assertEqual(
                sent,
                [
                    ("POST", "/v1/monitors/batch", {"every": "6h", "urls": urls, "capture": {"width": 800}}),
                    ("POST", "/v1/monitors/batch", {"every": "6h", "urls": urls}),
                ],
            )

    def test_misspelled_capture_option_of_a_monitor_is_refused(self) -> None:
        for call, service in self.scenarios(answer(201, monitor("m"))):
            with self.assertRaisesRegex(TypeError, "widht"):
                call("monitors.create", {"url": URL, "widht": 800}, every="6h")
            with self.assertRaises(ValueError):
                call("monitors.get", "")
            self.assertEqual(service.received, [])

    def test_site_is_captured_listed_over_pages_canceled_and_deleted(self) -> None:
        def page(one: dict[str, Any], has_more: bool) -> Responder:
            return answer(200, {"data": [one], "has_more": has_more})

        pages = [page(site("s"), True), page(site("t"), False), page(site_page(1), True), page(site_page(2), False)]
        gone: Responder = lambda handler: handler.respond(204)
        for call, service in self.scenarios(answer(202, site("s")), *pages, answer(200, site("s")), gone):
            created = call("sites.create", URL, max_pages=20, capture={"width": 800})
            self.assertEqual((created.id, created.pages.captured), ("s", 5))
            self.assertEqual([one.id for one in call("sites.list", limit=1)], ["s", "t"])
            found = call("sites.pages", "s")
            self.assertEqual([one.url for one in found], ["https://example.com/1", "https://example.com/2"])
            call("sites.cancel", "s")
            self.assertIsNone(call("sites.delete", "s"))
            sent = [(one.method, one.path, one.json() if one.body else None) for one in service.received]
            self.assertEqual(
                sent,
                [
                    ("POST", "/v1/sites", {"url": URL, "max_pages": 20, "capture": {"width": 800}}),
                    ("GET", "/v1/sites?limit=1", None),
                    ("GET", "/v1/sites?limit=1&starting_after=s", None),
                    ("GET", "/v1/sites/s/pages", None),
                    ("GET", "/v1/sites/s/pages?starting_after=1", None),
                    ("POST", "/v1/sites/s/cancel", {}),
                    ("DELETE", "/v1/sites/s", None),
                ],
            )

    def test_site_is_waited_for(self) -> None:
        ended = answer(200, {**site("s"), "state": "done", "finished_at": "2026-11-21T09:02:00.000Z"})
        for call, service in self.scenarios(answer(200, site("s")), ended):
            with patch("grabd._core.SITE_POLL", 0.001):
                self.assertEqual(call("sites.wait", "s", wait_timeout=60).state, "done")
            self.assertEqual([one.path for one in service.received], ["/v1/sites/s", "/v1/sites/s"])
        for call, _ in self.scenarios(answer(200, site("s"))):
            with self.assertRaisesRegex(grabd.WaitTimeoutError, "The site job s has not ended after 0.05 s"):
                call("sites.wait", "s", wait_timeout=0.05)

    def test_site_needs_one_address_and_known_options(self) -> None:
        for call, service in self.scenarios(answer(202, site("s"))):
            for arguments in ({}, {"url": URL, "sitemap": URL}, {"sitemap": URL, "capture": {"widht": 800}}):
                with self.assertRaises(TypeError):
                    call("sites.create", **arguments)
            with self.assertRaises(ValueError):
                call("sites.get", "")
            self.assertEqual(service.received, [])

    def test_proxy_is_created_listed_read_changed_and_deleted(self) -> None:
        page = answer(200, {"data": [proxy("p"), proxy("q")], "has_more": False})
        gone: Responder = lambda handler: handler.respond(204)
        responders = (answer(201, proxy("p")), page, answer(200, proxy("p")), answer(200, proxy("p")), gone)
        members = {"name": "Office", "url": "http://proxy.example.com:3128", "username": "me", "password": "hidden"}
        for call, service in self.scenarios(*responders):
            created = call("proxies.create", **members)
            self.assertEqual((created.id, created.has_login, created.last_error), ("p", True, "login"))
            self.assertEqual([one.id for one in call("proxies.list")], ["p", "q"])
            self.assertEqual(call("proxies.get", "a/b").name, "Office")
            call("proxies.update", "p", username="")
            self.assertIsNone(call("proxies.delete", "p"))
            sent = [(one.method, one.path, one.json() if one.body else None) for one in service.received]
            self.assertEqual(
                sent,
                [
                    ("POST", "/v1/proxies", members),
                    ("GET", "/v1/proxies", None),
                    ("GET", "/v1/proxies/a%2Fb", None),
                    ("PATCH", "/v1/proxies/p", {"username": ""}),
                    ("DELETE", "/v1/proxies/p", None),
                ],
            )
            for name in ("get", "update", "delete"):
                with self.assertRaises(ValueError):
                    call(f"proxies.{name}", "")
            self.assertEqual(len(service.received), 5)

    def test_create_of_a_proxy_that_may_have_been_carried_out_is_not_repeated(self) -> None:
        for call, service in self.scenarios(failure(503, "internal_error")):
            with self.assertRaises(grabd.InternalError):
                call("proxies.create", name="Office", url="http://proxy.example.com:3128")
            self.assertEqual(len(service.received), 1)

    def test_silent_service_ends_in_a_timeout_after_the_retries(self) -> None:
        for call, service in self.scenarios(silence, max_retries=1):
            with self.assertRaises(grabd.RequestTimeoutError) as caught:
                call("usage", timeout=0.5)
            self.assertIsNotNone(caught.exception.__cause__)
            self.assertEqual(len(service.received), 2)

    def test_body_that_stops_ends_in_a_timeout(self) -> None:
        def half(handler: Handler) -> None:
            handler.respond(200, b"{", {"content-length": "100"})
            silence(handler)

        for call, _ in self.scenarios(half, max_retries=0):
            with self.assertRaises(grabd.RequestTimeoutError):
                call("usage", timeout=0.2)

    def test_unreachable_service_is_a_connection_error_with_its_cause(self) -> None:
        with grabd.Grabd("key", "http://127.0.0.1:9/v1", max_retries=0) as client:
            with self.assertRaises(grabd.ConnectionFailedError) as caught:
                client.usage()
        self.assertIsNotNone(caught.exception.__cause__)

    def test_redirect_is_not_followed(self) -> None:
        for call, service in self.scenarios(lambda handler: handler.respond(302, b"", {"location": "/elsewhere"})):
            with self.assertRaises(grabd.UnexpectedResponseError):
                call("usage")
            self.assertEqual(len(service.received), 1)

    def test_response_of_something_else_is_reported_as_such(self) -> None:
        values: list[object] = ["<html>", [], {}]
        for value in values:
            for call, _ in self.scenarios(answer(200, value)):
                with self.assertRaises(grabd.UnexpectedResponseError):
                    call("usage")
        for call, _ in self.scenarios(lambda handler: handler.respond(403, b"<html>no</html>")):
            with self.assertRaisesRegex(grabd.UnexpectedResponseError, "403.*<html>no"):
                call("usage")

    def test_unknown_code_is_an_api_error(self) -> None:
        for call, _ in self.scenarios(failure(418, "teapot")):
            with self.assertRaises(grabd.ApiError) as caught:
                call("usage")
            self.assertEqual((type(caught.exception), caught.exception.code), (grabd.ApiError, "teapot"))
            self.assertIsNone(caught.exception.cause)

    def test_unknown_members_are_kept(self) -> None:
        for call, _ in self.scenarios(answer(200, grab("done", colour="red"))):
            self.assertEqual(call("get_grab", "id-1").raw["colour"], "red")

    def test_grab_that_is_open_after_the_create_is_waited_for(self) -> None:
        for call, service in self.scenarios(answer(202, grab("pending")), answer(200, grab("processing")), DONE):
            self.assertEqual(call("capture", URL).status, "done")
            poll = service.received[1]
            self.assertEqual((poll.path, poll.headers["prefer"]), ("/v1/grabs/id-1", "wait=25"))

    def test_grab_that_fails_after_the_create_has_the_error_of_its_create(self) -> None:
        responders = answer(202, grab("pending")), answer(200, grab("failed")), failure(500, "render_failed")
        for call, service in self.scenarios(*responders):
            with self.assertRaises(grabd.RenderFailedError):
                call("capture", URL)
            first, _, last = service.received
            self.assertEqual(last.headers["idempotency-key"], first.headers["idempotency-key"])

    def test_wait_ends_with_an_error_that_names_the_grab(self) -> None:
        for call, service in self.scenarios(answer(200, grab("processing"))):
            with self.assertRaises(grabd.WaitTimeoutError) as caught:
                call("wait", "id-1", wait_timeout=0.1)
            self.assertEqual(caught.exception.grab_id, "id-1")
            # A service that responds without waiting is not asked in a loop.
            self.assertLessEqual(len(service.received), 3)

    def test_wait_and_watch_go_on_while_a_limit_is_used_up(self) -> None:
        limits = (
            failure(429, "rate_limit_exceeded", {"retry-after": "0"}),
            lambda handler: handler.respond(429, b"<html>Too Many Requests</html>", {"retry-after": "0"}),
        )
        for limit in limits:
            responders = *[limit] * 12, answer(200, grab("processing")), limit, DONE
            for call, service in self.scenarios(*responders, max_retries=0):
                self.assertEqual(call("wait", "id-1").status, "done")
                self.assertEqual(len(service.received), 15)
            responders = *[limit] * 12, stream(event(1, "pending")), limit, stream(event(2, "done"))
            for call, service in self.scenarios(*responders, max_retries=0):
                self.assertEqual(self.watched(call), ["pending", "done"])
                self.assertEqual(len(service.received), 15)

    def test_capture_goes_on_while_a_limit_is_used_up(self) -> None:
        limit = failure(429, "rate_limit_exceeded", {"retry-after": "0"})
        for call, service in self.scenarios(*[limit] * 12, DONE, max_retries=1):
            self.assertEqual(call("capture", URL).status, "done")
            keys = {one.headers["idempotency-key"] for one in service.received}
            self.assertEqual((len(service.received), len(keys)), (13, 1))
        for call, service in self.scenarios(limit, max_retries=1):
            with self.assertRaises(grabd.RateLimitExceededError):
                call("capture", URL, wait_timeout=0.001)
            self.assertLessEqual(len(service.received), 4)

    def test_creates_keep_to_retry_after_until_the_time_limit_of_the_caller(self) -> None:
        limit = failure(429, "rate_limit_exceeded", {"retry-after": "0"})
        batch = answer(200, {"results": [{"grab": grab("pending"), "error": None}]})
        for method, target, result in [("create_grab", URL, DONE), ("create_batch", [URL], batch)]:
            for call, service in self.scenarios(*[limit] * 12, result):
                call(method, target)
                keys = {one.headers["idempotency-key"] for one in service.received}
                self.assertEqual((len(service.received), len(keys)), (13, 1), method)
            # The caller's time is shorter than what the service asks for, so nothing is waited for.
            late = failure(429, "rate_limit_exceeded", {"retry-after": "90"})
            for call, service in self.scenarios(late):
                start = time.monotonic()
                with self.assertRaises(grabd.RateLimitExceededError) as caught:
                    call(method, target, wait_timeout=60)
                self.assertEqual((caught.exception.retry_after, len(service.received)), (90, 1), method)
                self.assertLess(time.monotonic() - start, 30)
            for call, service in self.scenarios(limit, max_retries=0):
                with self.assertRaises(grabd.RateLimitExceededError):
                    call(method, target)
                self.assertEqual(len(service.received), 1, method)

    def test_wait_all_waits_for_a_hundred_grabs_with_each_request(self) -> None:
        ids = [f"id-{number}" for number in range(101)]
        page = [answer(200, {"data": [grab("done", id=id) for id in part], "has_more": False}) for part in (ids[:100], ids[100:])]
        half = answer(200, {"data": [grab("pending", id=id) for id in ids[:100]], "has_more": False})
        for call, service in self.scenarios(half, *page):
            ended = call("wait_all", [*ids, ids[0]])
            self.assertEqual([one.id for one in ended], ids)
            paths = [one.path for one in service.received]
            self.assertEqual(paths, [f"/v1/grabs?ids={'%2C'.join(part)}" for part in (ids[:100], ids[:100], ids[100:])])
            self.assertTrue(all(one.headers["prefer"] == "wait=25" for one in service.received))

    def test_wait_all_names_a_grab_that_is_open_or_does_not_exist(self) -> None:
        page = answer(200, {"data": [grab("done", id="a"), grab("pending", id="b")], "has_more": False})
        for call, _ in self.scenarios(page):
            with self.assertRaises(grabd.WaitTimeoutError) as caught:
                call("wait_all", ["a", "b"], wait_timeout=0.1)
            self.assertEqual(caught.exception.grab_id, "b")
        page = answer(200, {"data": [grab("done", id="a")], "has_more": False})
        for call, service in self.scenarios(page, failure(404, "not_found")):
            with self.assertRaises(grabd.NotFoundError):
                call("wait_all", ["a", "b"])
            self.assertEqual(service.received[1].path, "/v1/grabs/b")

    def test_limit_that_is_used_up_until_the_end_of_the_wait_is_its_cause(self) -> None:
        for call, service in self.scenarios(failure(429, "rate_limit_exceeded", {"retry-after": "3600"})):
            for method in ("wait", "watch"):
                with self.assertRaises(grabd.WaitTimeoutError) as caught:
                    call(method, "id-1", wait_timeout=0.05)
                self.assertIsInstance(caught.exception.__cause__, grabd.RateLimitExceededError)
            # Retry-After is obeyed.
            self.assertLessEqual(len(service.received), 4)

    def test_list_follows_the_pages(self) -> None:
        first = answer(200, {"data": [grab("done", id="c"), grab("done", id="b")], "has_more": True})
        last = answer(200, {"data": [grab("done", id="a")], "has_more": False})
        for call, service in self.scenarios(first, last):
            self.assertEqual([one.id for one in call("list_grabs", limit=2, status="done")], ["c", "b", "a"])
            paths = [one.path for one in service.received]
            query = "/v1/grabs?limit=2&status=done"
            self.assertEqual(paths, [query, f"{query}&starting_after=b"])

    def test_search_goes_on_after_pages_without_grabs(self) -> None:
        empty = answer(200, {"data": [], "has_more": True, "next": "b"})
        last = answer(200, {"data": [grab("done", id="a")], "has_more": False})
        for call, service in self.scenarios(empty, last):
            listed = call("list_grabs", url="example.com", from_="2026-11-20", until="2026-11-21")
            self.assertEqual([one.id for one in listed], ["a"])
            filters = "url=example.com&from=2026-11-20&until=2026-11-21"
            paths = [one.path for one in service.received]
            self.assertEqual(paths, [f"/v1/grabs?{filters}", f"/v1/grabs?starting_after=b&{filters}"])

    def test_text_is_read_in_parts(self) -> None:
        part = {"format": "text", "text": "One. ", "from": 0, "next": 5, "tokens_estimate": 2, "total_tokens": 4}
        last = {"format": "text", "text": "Two.", "from": 5, "next": None, "tokens_estimate": 1, "total_tokens": 4}
        for call, service in self.scenarios(answer(200, part), answer(200, last)):
            first = call("read", "a/b", "text", max_tokens=100)
            self.assertEqual((first.text, first.from_, first.next), ("One. ", 0, 5))
            second = call("read", "a/b", "text", from_=first.next)
            self.assertEqual((second.text, second.from_, second.next), ("Two.", 5, None))
            paths = [one.path for one in service.received]
            path = "/v1/grabs/a%2Fb/read?format=text"
            self.assertEqual(paths, [f"{path}&max_tokens=100", f"{path}&from=5"])

    def test_deletion_has_no_body(self) -> None:
        for call, service in self.scenarios(lambda handler: handler.respond(204)):
            self.assertIsNone(call("delete_grab", "a/b"))
            self.assertEqual((service.received[0].method, service.received[0].path), ("DELETE", "/v1/grabs/a%2Fb"))
            with self.assertRaises(ValueError):
                call("delete_grab", "")

    def watched(self, call: Sync, **options: Any) -> list[str]:
        return [one.status for one in call("watch", "id-1", **options)]

    def test_broken_stream_of_events_is_resumed_after_the_last_one(self) -> None:
        def broken(handler: Handler) -> None:
            # Fewer bytes than announced.
            handler.respond(200, event(1, "pending").encode(), {"content-length": "10000"})
            handler.close_connection = True

        responders = broken, stream(event(2, "processing")), stream(": \n\n" + event(3, "done"))
        for call, service in self.scenarios(*responders):
            self.assertEqual(self.watched(call), ["pending", "processing", "done"])
            self.assertEqual([one.headers.get("last-event-id") for one in service.received], [None, "1", "2"])
            self.assertEqual(service.received[0].path, "/v1/grabs/id-1/events")

    def test_watch_of_a_grab_whose_last_state_was_seen_reads_the_grab(self) -> None:
        for call, _ in self.scenarios(stream(event(1, "pending")), lambda handler: handler.respond(204), DONE):
            self.assertEqual(self.watched(call), ["pending", "done"])

    def test_events_that_are_sent_again_are_not_yielded_again(self) -> None:
        twice = stream(event(1, "pending") + event(1, "pending"))
        for call, _ in self.scenarios(twice, stream(event(1, "pending") + event(2, "done"))):
            self.assertEqual(self.watched(call), ["pending", "done"])

    def test_streams_without_events_end_the_watch_with_an_error(self) -> None:
        for call, service in self.scenarios(stream("")):
            with self.assertRaises(grabd.UnexpectedResponseError):
                self.watched(call)
            self.assertEqual(len(service.received), 5)

    def test_silent_stream_ends_with_the_time_limit_of_the_watch(self) -> None:
        def opened(handler: Handler) -> None:
            stream(event(1, "pending"))(handler)
            silence(handler)

        for call, _ in self.scenarios(opened):
            with self.assertRaises(grabd.WaitTimeoutError):
                self.watched(call, wait_timeout=0.2)

    def test_watch_of_an_unknown_grab_fails_at_once(self) -> None:
        for call, service in self.scenarios(failure(404, "not_found")):
            with self.assertRaises(grabd.NotFoundError):
                self.watched(call)
            self.assertEqual(len(service.received), 1)

    def test_download_resolves_a_relative_url_and_sends_no_api_key(self) -> None:
        for call, service in self.scenarios(lambda handler: handler.respond(200, b"image")):
            done = grabd.Grab.from_json(grab("done", image_url="/i/1.png"))
            self.assertEqual(call("download", done), b"image")
            self.assertEqual(service.received[0].path, "/i/1.png")
            self.assertNotIn("authorization", service.received[0].headers)
            with self.assertRaises(grabd.UnexpectedResponseError):
                call("download", "/i/1.png", max_bytes=4)
            with self.assertRaises(ValueError):
                call("image_url", grabd.Grab.from_json(grab("failed", image_url=None)))

    def test_downloaded_file_is_complete_or_absent(self) -> None:
        responders = (lambda handler: handler.respond(200, b"image")), failure(404, "not_found")
        for call, _ in self.scenarios(*responders):
            with tempfile.TemporaryDirectory() as directory:
                target = Path(directory)
                call("download_to_file", "/i/1.png", target / "a.png")
                with self.assertRaises(grabd.ApiError):
                    call("download_to_file", "/i/1.png", target / "b.png")
                self.assertEqual((target / "a.png").read_bytes(), b"image")
                self.assertEqual([path.name for path in target.iterdir()], ["a.png"])

    def test_invalid_settings_are_reported(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"base_url": ""}, "GRAB_BASE_URL"),
            ({"base_url": "ftp://example.com"}, "http"),
            ({"max_retries": 11}, "max_retries"),
            ({"max_retries": -1}, "max_retries"),
            ({"timeout": 0}, "timeout"),
            ({"timeout": float("nan")}, "timeout"),
        ]
        for settings, message in cases:
            for client in (grabd.Grabd, grabd.AsyncGrabd):
                with self.assertRaisesRegex(ValueError, message):
                    client(**{"base_url": "https://example.com/v1", **settings})

    def test_unknown_option_is_refused_unless_it_is_given_as_an_extra(self) -> None:
        for call, service in self.scenarios(DONE):
            with self.assertRaisesRegex(TypeError, "widht"):
                call("capture", URL, widht=800)
            self.assertEqual(service.received, [])
            call("capture", URL, extra_options={"sepia": True})
            self.assertIs(service.received[0].json()["sepia"], True)


class PackageTest(unittest.TestCase):
    def test_stubs_of_grpc_may_be_in_another_directory(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            stubs = Path(directory, "grabd", "v1")
            stubs.mkdir(parents=True)
            Path(stubs, "grabs_pb2.py").write_text("NAME = 'stubs'")
            check = "import grabd; from grabd.v1 import grabs_pb2; print(grabd.Grabd.__name__, grabs_pb2.NAME)"
            sources = str(Path(grabd.__file__).parent.parent)
            for path in ((sources, directory), (directory, sources)):
                environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
                output = subprocess.check_output([sys.executable, "-c", check], env=environment, text=True)
                self.assertEqual(output.split(), ["Grabd", "stubs"])

    def test_version_is_that_of_the_package(self) -> None:
        settings = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text()
        self.assertIn(f'\nversion = "{grabd.__version__}"\n', settings)


class ParityTest(unittest.TestCase):
    def test_both_clients_have_the_same_methods(self) -> None:
        pairs = [
            (grabd.Grabd, grabd.AsyncGrabd),
            (grabd.Webhooks, grabd.AsyncWebhooks),
            (grabd.Monitors, grabd.AsyncMonitors),
            (grabd.Sites, grabd.AsyncSites),
            (grabd.Proxies, grabd.AsyncProxies),
        ]
        for sync, other in pairs:
            names = [name for name in vars(sync) if not name.startswith("_")]
            self.assertEqual(names, [name for name in vars(other) if not name.startswith("_")])
            for name in names:
                ours, theirs = (inspect.signature(getattr(one, name)) for one in (sync, other))
                self.assertEqual(list(ours.parameters.values()), list(theirs.parameters.values()), name)

    def test_async_is_used_by_the_async_client_only(self) -> None:
        self.assertTrue(inspect.iscoroutinefunction(grabd.AsyncGrabd.capture))
        self.assertFalse(inspect.iscoroutinefunction(grabd.Grabd.capture))
        self.assertTrue(issubclass(Async, Sync))


if __name__ == "__main__":
    unittest.main()
