"""Hooks and additional checks for schemathesis."""

import os
import uuid

import requests
import schemathesis

TARGETS = os.environ["FUZZ_TARGETS"].split()
PEER = os.environ["FUZZ_PEER"]


def is_positive(case):
    """Whether the case is meant to be accepted."""
    meta = case.meta
    return meta is not None and meta.generation.mode.is_positive


@schemathesis.hook
def before_call(context, case, kwargs):
    """Replaces random URLs, which would test only the address guard, and idempotency keys, which would cause replays."""
    if not is_positive(case):
        return
    headers = case.headers or {}
    if "Idempotency-Key" in headers:
        headers["Idempotency-Key"] = str(uuid.uuid4())
    if case.operation.definition.raw.get("operationId") == "createGrab" and isinstance(case.body, dict):
        case.body["url"] = TARGETS[len(str(case.body)) % len(TARGETS)]
        # Delays are tested elsewhere and would only take time.
        if "delay_ms" in case.body:
            case.body["delay_ms"] %= 50
    if "Prefer" in headers and "wait" in str(headers["Prefer"]):
        headers["Prefer"] = "wait=1"


@schemathesis.check
def no_internal_error(context, response, case):
    """`render_failed` is the only allowed server error."""
    if response.status_code >= 500 and response.json()["error"]["code"] != "render_failed":
        raise AssertionError(f"{response.status_code} {response.text}")


@schemathesis.check
def common_headers(context, response, case):
    """Headers that every response has, except to a request whose header is too large to be read."""
    if response.status_code == 400 and "The header of the request has more than" in response.text:
        return
    missing = [name for name in ("x-request-id", "ratelimit", "ratelimit-policy") if name not in response.headers]
    if missing:
        raise AssertionError(f"missing: {', '.join(missing)}")
    links = ", ".join(response.headers.get("link", []))
    if response.status_code >= 400 and 'rel="help"' not in links:
        raise AssertionError("an error without a help link")


@schemathesis.check
def exact_errors(context, response, case):
    """An error has a code and a message, and its cause in a header."""
    causes = response.headers.get("error-cause", [])
    if response.status_code < 400:
        if causes:
            raise AssertionError(f"{response.status_code} has an Error-Cause")
        return
    if causes not in (["request"], ["target"], ["service"]):
        raise AssertionError(f"Error-Cause is {causes}")
    if response.headers.get("content-type") == ["image/svg+xml"] or case.method.upper() == "HEAD":
        return
    body = response.json()
    if list(body) != ["error"] or sorted(body["error"]) != ["code", "message"]:
        raise AssertionError(f"an error with other members: {response.text}")


@schemathesis.check
def unknown_to_other_teams(context, response, case):
    """Objects of one team are not found for another team."""
    if response.status_code not in (200, 201, 202) or "json" not in str(response.headers.get("content-type")):
        return
    answer = response.json()
    noun = case.operation.path.split("/")[1]
    if noun not in ("grabs", "monitors", "proxies", "sites", "webhooks") or "id" not in answer or "message_id" in answer:
        return
    url = f"{case.operation.base_url}/{noun}/{answer['id']}"
    foreign = requests.get(url, headers={"Authorization": f"Bearer {PEER}"}, timeout=10)
    if foreign.status_code != 404:
        raise AssertionError(f"another team got {foreign.status_code} for {url}")
