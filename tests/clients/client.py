"""The Python client, in each of its ways to agree on an era: python client.py TASK, where TASK is JSON as in exercise.mjs."""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

TOOLS = ["create_grab", "get_grab", "list_grabs", "get_usage", "get_pricing"]


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


async def main() -> None:
    task = json.loads(sys.argv[1])
    mode = {"legacy": "legacy", "auto": "auto", "modern": "2026-07-28"}[task["era"]]
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {task['auth']['key']}"})
    async with http, Client(streamable_http_client(task["url"], http_client=http), mode=mode) as client:
        await exercise(client, task["page"])
        print(f"python spoke {client.protocol_version} and is content")


asyncio.run(main())
