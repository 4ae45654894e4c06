"""Does with clients that are generated from the OpenAPI document what every caller does first: a capture, one as on a phone, a
batch, an asynchronous capture that is waited for, and an error.
"""

import json
import os
import urllib.error
import urllib.request

import models
from grabd_client import AuthenticatedClient
from grabd_client.api.grabs import create_batch, create_grab, get_grab
from grabd_client.models import CreateBatchRequest, CreateGrabRequest, CreateGrabRequestDevice, Grab

BASE, KEY, REFUSED = os.environ["BASE"], os.environ["KEY"], os.environ["REFUSED"]
URL = "https://example.com/"


def openapi_python_client() -> None:
    client = AuthenticatedClient(base_url=BASE, token=KEY)
    plain = create_grab.sync(client=client, body=CreateGrabRequest(url=URL))
    assert isinstance(plain, Grab) and (plain.status, plain.width) == ("done", 1280), plain
    phone = create_grab.sync(client=client, body=CreateGrabRequest(url=URL, device=CreateGrabRequestDevice("phone")))
    assert isinstance(phone, Grab) and (phone.width, phone.height) == (390, 844), phone
    captures = {"grabs": [{"url": URL}, {"url": URL, "width": 800}], "options": {"format": "webp"}}
    batch = create_batch.sync(client=client, body=CreateBatchRequest.from_dict(captures))
    assert all(result.grab.status == "done" for result in batch.results), batch
    queued = create_grab.sync(client=client, body=CreateGrabRequest(url=URL), prefer="respond-async")
    ended = get_grab.sync(queued.id, client=client, prefer="wait=20")
    assert ended.status == "done", ended
    refused = create_grab.sync_detailed(client=client, body=CreateGrabRequest(url=REFUSED))
    assert (refused.status_code, refused.parsed.error.code) == (400, "ssrf_detected"), refused
    print("openapi-python-client: all done")


def call(method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    """Sends a model as it is generated: with the defaults of the schemas."""
    data = None if body is None else body.model_dump_json(exclude_none=True, by_alias=True, warnings=False).encode()
    all_headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", **(headers or {})}
    try:
        with urllib.request.urlopen(urllib.request.Request(BASE + path, data, all_headers, method=method)) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def datamodel_code_generator() -> None:
    def create(headers: dict[str, str] | None = None, **options: object) -> models.Grab:
        status, text = call("POST", "/grabs", models.CreateGrabRequest(**options), headers)
        assert status < 300, (status, text)
        return models.Grab.model_validate_json(text)

    plain = create(url=URL)
    assert (plain.status.value, plain.width) == ("done", 1280), plain
    phone = create(url=URL, device="phone")
    assert (phone.width, phone.height) == (390, 844), phone
    status, text = call("POST", "/grabs/batch", models.CreateBatchRequest(grabs=[{"url": URL}, {"url": URL, "width": 800}]))
    assert status == 200 and all(result["grab"]["status"] == "done" for result in json.loads(text)["results"]), text
    queued = create({"Prefer": "respond-async"}, url=URL)
    _, text = call("GET", f"/grabs/{queued.id}", headers={"Prefer": "wait=20"})
    assert models.Grab.model_validate_json(text).status.value == "done", text
    status, text = call("POST", "/grabs", models.CreateGrabRequest(url=REFUSED))
    assert (status, json.loads(text)["error"]["code"]) == (400, "ssrf_detected"), text
    print("datamodel-code-generator: all done")


openapi_python_client()
datamodel_code_generator()
