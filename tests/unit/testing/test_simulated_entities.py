"""A service of entities under all faults of the simulator, as its users would test it."""

from contextlib import suppress

import pytest

from tenure.entities.entity_turn import EntityTurn
from tenure.protocol.entity.socket_end import SocketEnd
from tenure.sim.app.strikes import FAULTS
from tenure.sim.app.world import AppTrial
from tenure.sim.entity import breaks
from tenure.testing import World, simulated
from tenure.testing.simulation import SeedFailed, run_seed

APP = "tests.unit.testing.rooms.entities:app"
SEEDS = 30


async def chats(world: World) -> None:
    """Two talk in a room: while a socket is open, it hears each line once."""
    ann, bob = await world.clients("/rooms/attic?name={}", "ann", "bob")
    async for number in world.until_healed():
        await ann.send(str(number))
        with suppress(ConnectionError, TimeoutError):
            answer = await world.get("/rooms/attic", timeout=5)
            if answer.status == 200:
                said = answer.json()
                assert len({*said}) == len(said)
    assert ann.gaps_while_open == []
    assert bob.gaps_while_open == []
    assert bob.repeats == []
    assert bob.received


test_a_room_that_is_an_entity_is_clean = simulated(APP, key="", seeds=3, minutes=3)(chats)


@pytest.mark.parametrize(
    ("where", "name", "broken"),
    [(SocketEnd, "take", breaks.over_gaps), (EntityTurn, "send", breaks.sent_at_once)],
)
def test_a_room_whose_library_is_broken_is_caught(
    where: type, name: str, broken: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, broken)
    for seed in range(SEEDS):
        trial = AppTrial(seed=seed, hours=3 / 60, faults=FAULTS.kinds)
        try:
            run_seed(trial, APP, chats, "")
        except SeedFailed:
            return
    pytest.fail(f"{SEEDS} seeds are clean")
