# One redis-py client a node, and locks over them.
from __future__ import annotations

import asyncio
import re

from pottery import AIORedlock
from pottery.exceptions import PrimitiveError
from redis.asyncio import BlockingConnectionPool, Redis

TTL_SECONDS = 10
CONNECT_SECONDS = 10.0
AGAIN_SECONDS = 0.02

Masters = tuple[Redis, ...]


class ConnectError(Exception):
    """No lock could be had of these nodes."""


def lock(resource: str, masters: Masters) -> AIORedlock:
    return AIORedlock(key=resource, masters=masters, auto_release_time=TTL_SECONDS)


def _client(address: str) -> Redis:
    """Each outstanding command has a connection of its own. redis-py's usual pool refuses the
    101st, which pottery takes for a vote against; so this is its pool that lets a command wait,
    with its default of 50 connections."""
    return Redis.from_pool(BlockingConnectionPool.from_url(f"redis://{address}", timeout=None))


async def _take_one(masters: Masters) -> None:
    probe = lock("bench-connect", masters)
    while not await probe.acquire(blocking=False):
        await asyncio.sleep(AGAIN_SECONDS)
    await probe.release()


async def connect(addresses: list[str]) -> Masters:
    if not addresses or not all(re.fullmatch(r".+:\d{1,5}", address) for address in addresses):
        raise ConnectError("connect needs HOST:PORT …")
    masters = tuple(_client(address) for address in addresses)
    try:
        await asyncio.wait_for(_take_one(masters), CONNECT_SECONDS)
    except (asyncio.TimeoutError, PrimitiveError) as error:
        await cancel_others()
        await close(masters)
        raise ConnectError(f"no lock could be taken and released in {CONNECT_SECONDS:.0f} s") from error
    return masters


async def close(masters: Masters) -> None:
    for master in masters:
        await master.aclose()


async def cancel_others() -> None:
    """What a cancelled acquire leaves behind: its exchanges with single nodes."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
