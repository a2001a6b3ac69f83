"""Keys derived from one, and a quorum of the calls for them (PRS 2.4)."""

import asyncio
from threading import Event

import pytest

from tenure import ConfigurationError, KeyTypeError, NoQuorum, blocking_quorum, derived_keys, quorum

pytestmark = pytest.mark.asyncio


async def gives(value: int) -> int:
    return value


async def fails() -> int:
    raise ConnectionError("gone")


async def hangs(ended: list[str]) -> int:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("cancelled")
    return 0


async def test_derived_keys_are_always_the_same_and_begin_with_the_key() -> None:
    assert derived_keys("ann", 3) == ("ann", "ann~1", "ann~2")
    assert derived_keys(b"ann", 2) == (b"ann", b"ann~1")
    numbers = derived_keys(42, 3)
    assert numbers == derived_keys(42, 3)
    assert numbers[0] == 42
    assert len(set(numbers)) == 3
    assert all(0 <= each < 2**64 for each in numbers)
    assert derived_keys("ann", 1) == ("ann",)


@pytest.mark.parametrize("copies", [0, 101, 2.0, True, "3"])
async def test_a_number_of_copies_is_checked(copies: int) -> None:
    with pytest.raises(ConfigurationError, match="copies"):
        derived_keys("ann", copies)


async def test_a_key_is_checked() -> None:
    with pytest.raises(KeyTypeError, match=r"1\.5"):
        derived_keys(1.5, 2)  # type: ignore[type-var]


async def test_a_quorum_is_enough_and_the_rest_is_cancelled() -> None:
    ended: list[str] = []
    assert sorted(await quorum([gives(1), hangs(ended), gives(2)])) == [1, 2]
    assert ended == ["cancelled"]
    assert await quorum([fails(), gives(2), gives(3)]) == [2, 3]
    assert await quorum([gives(1), fails()], of=1) == [1]


async def test_without_a_quorum_it_raises_as_soon_as_that_is_certain() -> None:
    ended: list[str] = []
    with pytest.raises(NoQuorum, match="2 of 3 calls failed, where 2 must succeed") as raised:
        await quorum([fails(), fails(), hangs(ended)])
    assert [type(each) for each in raised.value.causes] == [ConnectionError] * 2
    assert ended == ["cancelled"]


async def test_a_quorum_is_of_the_calls_that_there_are() -> None:
    for wrong in (0, 3, 1.5, True, "1"):
        with pytest.raises(ConfigurationError, match="must be between 1 and"):
            await quorum([gives(1), gives(2)], of=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="must be between 1 and"):
        await quorum([])


async def test_the_blocking_form_does_the_same_in_threads() -> None:
    stop = Event()

    def gives_one() -> int:
        return 1

    def fails_at_once() -> int:
        raise ConnectionError("gone")

    def hangs_on() -> int:
        stop.wait(60)
        return 0

    def program() -> None:
        assert blocking_quorum([gives_one, hangs_on, gives_one]) == [1, 1]
        assert blocking_quorum([gives_one, fails_at_once], of=1) == [1]
        with pytest.raises(NoQuorum, match="2 of 3 calls failed") as raised:
            blocking_quorum([fails_at_once, fails_at_once, hangs_on])
        assert [type(each) for each in raised.value.causes] == [ConnectionError] * 2
        for wrong in (0, 3, 1.5):
            with pytest.raises(ConfigurationError, match="must be between 1 and"):
                blocking_quorum([gives_one, gives_one], of=wrong)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="must be between 1 and"):
            blocking_quorum([])

    try:
        await asyncio.to_thread(program)
    finally:
        stop.set()
