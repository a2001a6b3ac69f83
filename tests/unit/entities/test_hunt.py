"""Seeds of a world under trouble come out clean; with a rule left out, the oracle says so."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tenure.client.lease import Lease
from tenure.entities.caller import Caller
from tenure.entities.entity_turn import EntityTurn
from tenure.entities.gate import EntityGate
from tenure.entities.live_entity import LiveEntity
from tenure.protocol.entity import envelope
from tenure.protocol.entity.envelope import Envelope, SocketEntry
from tenure.protocol.entity.key_line import Begin, EntityCall, KeyLine
from tenure.protocol.entity.socket_end import SocketEnd
from tenure.runtime.agenda import Agenda
from tests.unit.entities.hunt import Hunt

pytestmark = pytest.mark.asyncio

SEEDS = 12
SEEDS_OF_A_CANARY = 40
Patch = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_seed_is_clean(seed: int) -> None:
    await Hunt(seed).run()


def replaced(where: object, name: str, new: object) -> Patch:
    return lambda patch: patch.setattr(where, name, new)


def no_turns(self: KeyLine, now: float, call: EntityCall) -> Begin:
    if self.running is None:
        self._begin(now, call)
    return Begin()


def takes_again(
    self: SocketEnd, lease: tuple[int, int], first: int, frames: tuple[Any, ...]
) -> tuple[Any, ...]:
    self.received = max(self.received, first + len(frames) - 1)
    return frames


def passes_gaps(
    self: SocketEnd, lease: tuple[int, int], first: int, frames: tuple[Any, ...]
) -> tuple[Any, ...]:
    new = frames[max(self.received + 1 - first, 0) :]
    self.received = max(self.received, first + len(frames) - 1)
    return new


def forgets_frames(self: SocketEntry, frames: tuple[Any, ...]) -> SocketEntry:
    return msgspec.structs.replace(self, sent=self.sent + len(frames), unread=())


def new_ids(patch: pytest.MonkeyPatch) -> None:
    attempt = Caller._attempt

    async def anew(self: Caller, call: EntityCall, address: str, deadline: float) -> Any:  # noqa: ANN401
        call.id = self.new_id()
        return await attempt(self, call, address, deadline)

    patch.setattr(Caller, "_attempt", anew)


def sends_at_once(patch: pytest.MonkeyPatch) -> None:
    send = EntityTurn.send

    def at_once(self: EntityTurn, sockets: Any, frame: str, **_: bool) -> None:  # noqa: ANN401
        send(self, sockets, frame, early=True)

    patch.setattr(EntityTurn, "send", at_once)


def rings_early(patch: pytest.MonkeyPatch) -> None:
    arm, due = Agenda.arm, Envelope.due_alarm
    patch.setattr(Agenda, "arm", lambda s, key, at: arm(s, key, at and at - 0.2))
    patch.setattr(Envelope, "due_alarm", lambda s, now: due(s, now + 0.2))


def not_put(patch: pytest.MonkeyPatch) -> None:
    def put(self: EntityGate, turn: EntityTurn, new: Envelope) -> None:
        turn.live.envelope = new

    patch.setattr(EntityGate, "_put", put)


def no_answers(*_: object) -> tuple[tuple[()], int]:
    return (), 0


def forgets_on_confirm(self: Envelope, received: dict[bytes, int]) -> Envelope:
    sockets = {each: msgspec.structs.replace(it, unread=()) for each, it in self.sockets.items()}
    return msgspec.structs.replace(self, sockets=sockets)


def keeps_old_instances(self: LiveEntity, lease: Lease) -> bool:
    return self._lease is not None


CANARIES: dict[str, Patch] = {
    "no turns": replaced(KeyLine, "ask", no_turns),
    "no answers are kept": replaced(envelope, "with_answer", no_answers),
    "a new id for each attempt": new_ids,
    "nothing is taken back": replaced(EntityTurn, "roll_back", lambda *_: None),
    "what was kept does not count": replaced(Envelope, "counts", lambda *_: False),
    "kept, and not for the hand-off": not_put,
    "an instance of an older lease": replaced(LiveEntity, "is_active", keeps_old_instances),
    "frames before the commit": sends_at_once,
    "frames that came are taken again": replaced(SocketEnd, "take", takes_again),
    "a gap is passed over": replaced(SocketEnd, "take", passes_gaps),
    "frames that are sent are forgotten": replaced(SocketEntry, "sending", forgets_frames),
    "all frames are confirmed by one": replaced(Envelope, "confirmed", forgets_on_confirm),
    "alarms ring early": rings_early,
}


@pytest.mark.parametrize("name", CANARIES)
async def test_a_rule_left_out_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    CANARIES[name](monkeypatch)
    for seed in range(SEEDS_OF_A_CANARY):
        try:
            await Hunt(seed).run()
        except AssertionError:
            return
    pytest.fail(f"{SEEDS_OF_A_CANARY} seeds are clean without this rule")
