"""Simulated tests, which `tenure simulate` is tried with."""

from tenure.testing import World, simulated

ROOMS = "tests.unit.testing.rooms"


@simulated(f"{ROOMS}.chat:app", minutes=1, faults="none")
async def greets(world: World) -> None:
    """A guest of a room that is right."""
    (ann,) = await world.clients("/rooms/attic?name={}", "ann")
    async for number in world.until_healed():
        await ann.send(str(number))
    assert ann.repeats == []


@simulated(f"{ROOMS}.no_check:app", minutes=3, key="/rooms/{room}")
async def unchecked(world: World) -> None:
    """A guest of a room that asks nobody whether it holds its key."""
    ann, _ = await world.clients("/rooms/attic?name={}", "ann", "bob")
    async for number in world.until_healed():
        await ann.send(str(number))


@simulated(f"{ROOMS}.chat:app", minutes=1, faults="none")
async def silent(world: World) -> None:
    """A guest who asks for nothing, so that nothing can be judged."""
    async for _ in world.until_healed():
        pass
