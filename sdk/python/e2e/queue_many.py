"""Queues fifty pages and waits for all of them, with both clients: python queue_many.py TASK, where TASK is JSON.

Each client has a key of a team of its own, with the limits that a service has by default.
"""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor

from grabd import AsyncGrabd, Batch, Grab, Grabd

task: dict[str, str] = json.loads(sys.argv[1])
PAGES = [f"{task['page']}?page={number}" for number in range(50)]


def ids(batch: Batch) -> list[str]:
    return [result.grab.id for result in batch.results if result.grab]


def check(way: str, grabs: list[Grab]) -> None:
    targets = [grab.target_url for grab in grabs if grab.status == "done"]
    if targets != PAGES:
        raise AssertionError(f"{way}: {len(targets)} of {len(PAGES)}: {grabs}")


def threads() -> None:
    with Grabd(task["key"], task["base_url"]) as client, ThreadPoolExecutor(50) as pool:
        check("wait", list(pool.map(client.wait, ids(client.create_batch(PAGES)))))


async def tasks() -> None:
    async with AsyncGrabd(task["other_key"], task["base_url"]) as client:

        async def last(id: str) -> Grab:
            return [grab async for grab in client.watch(id)][-1]

        created = ids(await client.create_batch(PAGES))
        check("watch", await asyncio.gather(*map(last, created)))


def one_connection() -> None:
    with Grabd(task["third_key"], task["base_url"]) as client:
        check("wait_all", client.wait_all(ids(client.create_batch(PAGES))))


threads()
asyncio.run(tasks())
one_connection()
print("all fifty arrived, three times")
