"""A service of entities under all faults of the simulator, as its users would test it."""

from contextlib import suppress

from lab.mutants.catalogue import mutant
from lab.mutants.running import run_without
from tenure.sim.app.strikes import FAULTS
from tenure.sim.app.world import AppTrial
from tenure.testing import World, simulated
from tenure.testing.simulation import SeedFailed, run_seed

APP = "tests.unit.testing.rooms.entities:app"
SEEDS = 24
HEARD: list[str] = []


async def chats(world: World) -> None:
    """Two talk in a room: while a socket is open, it hears each line once."""
    ann, bob = await world.clients("/rooms/attic?name={}", "ann", "bob")
    async for number in world.until_healed():
        await (ann, bob)[number % 2].send(str(number))
        with suppress(ConnectionError, TimeoutError):
            answer = await world.get("/rooms/attic", timeout=5)
            if answer.status == 200:
                said = answer.json()
                assert len({*said}) == len(said)
    assert ann.gaps_while_open == []
    assert bob.gaps_while_open == []
    assert bob.repeats == []
    HEARD.extend(line for frames in bob.connections for line in frames)


def test_a_room_that_is_an_entity_is_clean() -> None:
    HEARD.clear()
    simulated(APP, key="", seeds=3, minutes=3)(chats)()
    assert len(HEARD) > 20


def test_a_room_whose_library_is_broken_is_caught() -> None:
    """A client takes again what it has."""
    assert run_without(mutant("entity", "frames-taken-again"), is_broken_by_a_seed)


def is_broken_by_a_seed() -> bool:
    for seed in range(SEEDS):
        trial = AppTrial(seed=seed, hours=3 / 60, faults=FAULTS.kinds)
        try:
            run_seed(trial, APP, chats, "")
        except SeedFailed:
            return True
    return False
