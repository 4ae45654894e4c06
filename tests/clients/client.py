"""The Python client, in each of its era modes: python client.py TASK, where TASK is JSON as in exercise.mjs."""

import asyncio
import base64
import html
import json
import re
import sys
import uuid
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

TOOLS = ["create_grab", "get_grab", "list_grabs", "get_usage", "get_pricing", "capture_site", "monitor"]


async def exercise(client: Client, page: str) -> None:
    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == TOOLS, tools

    steps: list[float] = []

    async def progress(step: float, total: float | None, message: str | None) -> None:
        steps.append(step)

    made = await client.call_tool("create_grab", {"url": page, "width": 800, "height": 600}, progress_callback=progress)
    assert not made.is_error, made
    assert made.structured_content["status"] == "done", made.structured_content
    assert [block.type for block in made.content] == ["image", "resource_link", "text"]
    assert json.loads(made.content[2].text) == made.structured_content
    assert steps and all(a < b for a, b in zip(steps, steps[1:])), steps

    grab = made.structured_content["id"]
    got = await client.call_tool("get_grab", {"id": grab, "include_image": True})
    assert got.content[0].data == made.content[0].data
    listed = await client.call_tool("list_grabs", {"limit": 1})
    assert listed.structured_content["data"][0]["id"] == grab
    usage = await client.call_tool("get_usage", {})
    assert isinstance(usage.structured_content["credits"]["total"], int)
    pricing = await client.call_tool("get_pricing", {})
    assert pricing.structured_content["pricing"]["per_grab_usd"] == 0.002

    refused = await client.call_tool("create_grab", {"url": page, "width": 1})
    assert refused.is_error, refused
    failure = json.loads(refused.content[0].text)
    assert failure["error"]["code"] == "invalid_viewport" and failure["hint"], failure


# What covers the button of the page today.
COOKIES = (
    '<div id=cookies role=dialog aria-label=Cookies style="position:fixed;left:0;top:0;width:400px;height:90px;background:#fff">'
    "<p>This shop uses cookies.</p></div>"
)


def shop(button: str, price: int, front: str = "") -> str:
    """A page with a button, and with what is in front of it."""
    lines = "".join(f"<p>Line {line} of the description of a lamp that costs {price} euros.</p>" for line in range(9))
    return f"<!DOCTYPE html><button id=buy>{button}</button><article><h1>Lamp</h1>{lines}</article>{front}"


async def question(client: Client) -> None:
    """An agent's question: is the button covered, what does it say, and what changed since yesterday?"""
    base = f"https://shop.example/{uuid.uuid4()}"
    yesterday = {"html": shop("Buy now", 20), "base_url": base, "also": ["elements", "text"], "include_image": False}
    before = await client.call_tool("create_grab", yesterday)

    # Two calls: which capture is yesterday's, and how is the page now?
    found = await client.call_tool("list_grabs", {"url": base, "status": "done", "limit": 1})
    earlier = found.structured_content["data"][0]["id"]
    assert earlier == before.structured_content["id"], found
    now = await client.call_tool(
        "create_grab",
        {
            "html": shop("Sold out", 25, COOKIES),
            "base_url": base,
            "compare_to": earlier,
            "read": ["elements", "difference"],
            "include_image": False,
        },
    )
    assert not now.is_error, now
    # All of it is in the texts. The only image is that of the difference.
    assert [block.type for block in now.content].count("image") == 1, now.content
    texts = "\n".join(block.text for block in now.content if block.type == "text")
    [button] = [line for line in texts.splitlines() if re.match(r'\d+ button "Sold out" ', line)]
    assert 'covered_by={"selector":"#cookies","name":"Cookies"}' in button, button
    assert '~ was "Buy now", now button "Sold out" ' in texts, texts
    assert "+ Line 0 of the description of a lamp that costs 25 euros." in texts, texts

    grab = now.structured_content["id"]
    templates = (await client.list_resource_templates()).resource_templates
    assert [one.uri_template for one in templates] == ["grab://{id}/{file}"], templates
    text = await client.read_resource(f"grab://{grab}/text")
    assert "25 euros" in text.contents[0].text, text
    image = await client.read_resource(now.structured_content["image_url"])
    assert base64.b64decode(image.contents[0].blob).startswith(b"\x89PNG"), image


REDIRECT = "http://127.0.0.1:4711/callback"


class Memory:
    """Keeps client information and tokens in memory."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Person:
    """Acts as the person at the browser: signs in and allows the client."""

    def __init__(self, email: str, password: str) -> None:
        self.account = {"email": email, "password": password}
        self.answer = ""

    async def browse(self, url: str) -> None:
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            page = await browser.get(url)
            assert page.url.path == "/sign-in", page.url
            page = await browser.post(urljoin(url, "/sign-in"), data=self.hidden(page.text) | self.account)
            place = re.search(r'name="place" value="([^"]*)" checked', page.text)
            assert place, page.text
            form = self.hidden(page.text) | {"place": place[1], "decision": "allow"}
            allowed = await browser.post(urljoin(url, "/oauth/authorize"), data=form, follow_redirects=False)
            self.answer = allowed.headers["location"]

    @staticmethod
    def hidden(page: str) -> dict[str, str]:
        fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page)
        return {name: html.unescape(value) for name, value in fields}

    async def answered(self) -> AuthorizationCodeResult:
        of = {name: values[0] for name, values in parse_qs(urlsplit(self.answer).query).items()}
        return AuthorizationCodeResult(code=of["code"], state=of["state"], iss=of["iss"])


def http_client(url: str, auth: dict[str, str]) -> httpx2.AsyncClient:
    if "key" in auth:
        return create_mcp_http_client(headers={"Authorization": f"Bearer {auth['key']}"})
    person = Person(**auth)
    metadata = OAuthClientMetadata(
        client_name="a library", redirect_uris=[AnyUrl(REDIRECT)], token_endpoint_auth_method="none"
    )
    return create_mcp_http_client(
        auth=OAuthClientProvider(url, metadata, Memory(), person.browse, person.answered)
    )


async def main() -> None:
    task = json.loads(sys.argv[1])
    mode = {"legacy": "legacy", "auto": "auto", "modern": "2026-07-28"}[task["era"]]
    http = http_client(task["url"], task["auth"])
    async with http, Client(streamable_http_client(task["url"], http_client=http), mode=mode) as client:
        await exercise(client, task["page"])
        await question(client)
        print(f"python negotiated {client.protocol_version}; all checks passed")


asyncio.run(main())
