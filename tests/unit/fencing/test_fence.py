"""The fence in memory."""

import asyncio
import threading
from typing import Any

import pytest

from tenure import ConfigurationError, Fence, Fenced, Lease, UsageError
from tenure.errors import RemoteProtocolError
from tenure.fencing.admission import Claim


def lease(number: int, key: bytes = b"ann", journal: int = 1, pool: str = "carts") -> Lease:
    return Lease(key, number, journal, pool)


def write(fence: Fence, claim: Claim) -> None:
    with fence.admit(claim):
        pass


def test_what_is_older_than_seen_is_refused() -> None:
    fence = Fence()
    for number in (3, 3, 5):
        write(fence, lease(number).headers())
    with pytest.raises(Fenced, match="lease number 3 of the pool 'carts' is older than number 5"):
        write(fence, lease(3))
    write(fence, lease(5))


def test_other_keys_and_pools_have_numbers_of_their_own() -> None:
    fence = Fence()
    write(fence, lease(5))
    write(fence, lease(1, key=b"bob"))
    write(fence, lease(1, pool="rooms", journal=9))


def test_another_history_is_refused_until_it_is_declared() -> None:
    fence = Fence()
    write(fence, lease(5, journal=1))
    with pytest.raises(Fenced, match=r"say so with declare\('carts', '0000000000000002'\)"):
        write(fence, lease(9, journal=2))
    fence.declare("carts", 2)
    write(fence, lease(1, journal=2))
    with pytest.raises(Fenced, match="which was replaced"):
        write(fence, lease(9, journal=1))
    with pytest.raises(ConfigurationError, match="was replaced before"):
        fence.declare("carts", "0000000000000001")
    fence.declare("carts", 2)
    write(fence, lease(1, journal=2))


def test_a_history_may_be_declared_before_anything_is_written() -> None:
    fence = Fence()
    fence.declare("carts", "ff")
    with pytest.raises(Fenced):
        write(fence, lease(1, journal=1))
    write(fence, lease(1, journal=255))


@pytest.mark.parametrize("journal", ["", "x", -1, 2**64, None, True, 1.5])
def test_what_is_no_history_is_refused(journal: Any) -> None:  # noqa: ANN401  # it is none
    with pytest.raises(ConfigurationError, match="a journal is its identity"):
        Fence().declare("carts", journal)


def test_what_is_no_lease_is_refused() -> None:
    with pytest.raises(RemoteProtocolError):
        Fence().admit({"Tenure-Lease": "carts"})
    with pytest.raises(UsageError, match="names no pool"):
        Fence().admit(Lease(b"a", 1, 1))


@pytest.mark.asyncio
async def test_a_newer_owner_waits_for_a_body_that_was_admitted() -> None:
    fence, told, go_on = Fence(), list[int](), asyncio.Event()

    async def write_slowly(number: int) -> None:
        async with fence.admit(lease(number)) as admitted:
            await go_on.wait()
            told.append(admitted.number)

    writing = [asyncio.create_task(write_slowly(number)) for number in (1, 2, 1)]
    await asyncio.sleep(0)
    go_on.set()
    results = await asyncio.gather(*writing, return_exceptions=True)
    assert told == [1, 2]
    assert [type(each) for each in results] == [type(None), type(None), Fenced]


def test_threads_never_write_late() -> None:
    fence, written = Fence(), list[int]()
    numbers = iter(range(1, 10_000))

    def act() -> None:
        for _ in range(200):
            number = next(numbers)
            try:
                with fence.admit(lease(number)):
                    written.append(number)
            except Fenced:
                pass

    threads = [threading.Thread(target=act) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert written == sorted(written)
    assert written
