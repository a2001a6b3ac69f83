"""A visitor of a web service: it has no token, and spells what it asks for oddly."""

import asyncio
from contextlib import suppress

from benchmarks._attacks.attempt import UPGRADE, Attempt, Family
from benchmarks._attacks.ears import ear

COOKIE = "Cookie: session=secret\r\n"
KEYS = 8
ANSWERED_SECONDS = 2.0
SPELLED = ("/carts%2F{key}", "/%63arts%2f{key}", "/carts/{key}%2Fx", "//carts/{key}")


async def elsewhere(it: Attempt) -> None:
    """S10: targets that name another host, for a member to relay there."""
    async with ear(it) as port:
        for number in range(2 * KEYS):
            path = f"/carts/%{0x61 + number // 2:x}/ws"  # %61 is "a"
            before = it.random.choice(("@", "", "http://", "//"))
            more = (COOKIE, UPGRADE) if number % 2 else (COOKIE,)
            await it.open()
            await it.send(it.head("GET", f"{before}127.0.0.1:{port}{path}", *more))
            with suppress(TimeoutError, EOFError):
                async with asyncio.timeout(ANSWERED_SECONDS):
                    await it.reader.readuntil(b"\r\n\r\n")
            it.abort()


async def slashes(it: Attempt) -> None:
    """S11: a key behind a slash that is spelled so that the router alone sees it."""
    await it.open()
    for key in map(str, range(KEYS)):
        for spelled in SPELLED:
            there = await _served_by(it, spelled.format(key=key))
            owner = await _served_by(it, f"/carts/{key}")
            if there not in (owner, None) and owner == await _served_by(it, f"/carts/{key}"):
                it.reach()


async def _served_by(it: Attempt, path: str) -> str | None:
    """Which member has served the key of this path; None if none has."""
    await it.send(it.head("GET", path))
    head, _ = await it.hear_answer()
    _, has_served, member = head.partition("served-by: ")
    return member.split()[0] if has_served and " 200 " in head.partition("\r\n")[0] else None


FAMILIES = (
    Family(elsewhere, "shop", 4),
    Family(elsewhere, "member", 2),
    Family(slashes, "shop", 4),
)
