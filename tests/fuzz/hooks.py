"""How schemathesis talks to grabd, and what it must find beside its own checks."""

import os
import uuid

import requests
import schemathesis

TARGETS = os.environ["FUZZ_TARGETS"].split()
PEER = os.environ["FUZZ_PEER"]


def is_positive(case):
    """Was the case made to be accepted?"""
    meta = case.meta
    return meta is not None and meta.generation.mode.is_positive


@schemathesis.hook
def before_call(context, case, kwargs):
    """Random addresses would test the address guard alone, and one key for all would answer everything from the first."""
    if not is_positive(case):
        return
    headers = case.headers or {}
    if "Idempotency-Key" in headers:
        headers["Idempotency-Key"] = str(uuid.uuid4())
    if case.operation.definition.raw.get("operationId") == "createGrab" and isinstance(case.body, dict):
        case.body["url"] = TARGETS[len(str(case.body)) % len(TARGETS)]
        # Waiting is tried elsewhere; here it would only eat the time.
        if "delay_ms" in case.body:
            case.body["delay_ms"] %= 50
    if "Prefer" in headers and "wait" in str(headers["Prefer"]):
        headers["Prefer"] = "wait=1"


@schemathesis.check
def no_internal_error(context, response, case):
    """A capture may fail as `render_failed`; nothing else of ours may."""
    if response.status_code >= 500 and response.json()["error"]["code"] != "render_failed":
        raise AssertionError(f"{response.status_code} {response.text}")


@schemathesis.check
def manners(context, response, case):
    """What every answer has, whatever it answers to."""
    missing = [name for name in ("x-request-id", "ratelimit", "ratelimit-policy") if name not in response.headers]
    if missing:
        raise AssertionError(f"missing: {', '.join(missing)}")
    links = ", ".join(response.headers.get("link", []))
    if response.status_code >= 400 and 'rel="help"' not in links:
        raise AssertionError("an error without a way to its meaning")


@schemathesis.check
def unknown_to_other_teams(context, response, case):
    """Whatever one team gets an id for is not there for another."""
    if response.status_code not in (200, 201, 202) or "json" not in str(response.headers.get("content-type")):
        return
    answer = response.json()
    noun = case.operation.path.split("/")[1]
    if noun not in ("grabs", "webhooks") or "id" not in answer or "message_id" in answer:
        return
    url = f"{case.operation.base_url}/{noun}/{answer['id']}"
    foreign = requests.get(url, headers={"Authorization": f"Bearer {PEER}"}, timeout=10)
    if foreign.status_code != 404:
        raise AssertionError(f"another team got {foreign.status_code} for {url}")
