"""A small world of the toy protocol: what may go wrong does, in every place, and is limited."""

from collections.abc import Mapping
from typing import Any

import pytest

from lab.search.exhaustive import Found, search
from lab.search.small import ANYBODY, Packet, SmallWorld
from tenure.base.instants import Instant
from tenure.base.machine import Output
from tenure.sim.kernel.checkers import Violation
from tests.unit.sim.kernel.toy import PERIOD_NS, Gone, Got, Ping, Pinger, Ponger, Send

SERVER, CLIENT = 0, 1
TICKS = 3


class Hasty(Pinger):
    """Mistakes the answer to an older number for that to its newest: a rule left out."""

    def handle(self, now: Instant, event: Got | Gone) -> Output[Send]:
        if isinstance(event, Got):
            self.answered, self.sent = self.sent, self.sent + 1
        return self.advance(now)


class Twice(Ponger):
    """Answers twice at once."""

    def handle(self, now: Instant, event: Got | Gone) -> Output[Send]:
        output = super().handle(now, event)
        return Output(output.actions * 2, output.wake_at)


class SmallToy(SmallWorld):
    """A client and a server; nothing may count as answered that was not."""

    slots = ("server", "client")
    clients = (CLIENT,)
    dies_before = (Send,)

    def __init__(self, limits: Mapping[str, int], pinger: type[Pinger] = Pinger) -> None:
        super().__init__(limits, TICKS)
        self.pinger = pinger
        self.answered = 0

    def begin(self) -> None:
        self.start(SERVER)
        self.start(CLIENT)

    def now(self, slot: int) -> Instant:
        del slot
        return Instant(self.tick * PERIOD_NS)

    def make(self, slot: int, uid: int) -> Pinger | Ponger:
        del uid
        return Ponger() if slot == SERVER else self.pinger()

    def crash_of(self, slot: int) -> str:
        return "crash" if slot == SERVER else ""

    def keep(self) -> int:
        return self.answered

    def bring_back(self, kept: int) -> None:
        self.answered = kept

    def act(self, slot: int, action: Send) -> None:
        to, uid = (SERVER, ANYBODY) if slot == CLIENT else (CLIENT, self.lives[CLIENT].uid)
        if slot == SERVER:
            self.answered = max(self.answered, action.message.number)
        event = self.event_of(action, 0, lambda: Got(slot, action.message))
        self.send(Packet(slot, to, uid, event), "lose", "late", "double")

    def check(self) -> None:
        client = self.memory.thing(self.lives[CLIENT].machine)
        if client.answered > self.answered:
            raise Violation("answers", f"{client.answered} was never answered")

    def in_words(self, packet: Packet) -> str:
        message = self.memory.thing(packet.event).message
        return f"{'a ping' if isinstance(message, Ping) else 'a pong'}, {message.number}"


@pytest.mark.parametrize("kind", ["lose", "late", "double", "crash", "freeze"])
def test_each_fault_leads_to_more_states_and_to_nothing_wrong(kind: str) -> None:
    none, found = search(SmallToy({})), search(SmallToy({kind: 1, "starts": 1}))
    assert none.violation is None
    assert found.violation is None
    assert found.complete
    assert found.states > none.states
    assert search(SmallToy({kind: 2, "starts": 1})).states > found.states


def told(found: Found) -> list[str]:
    return [line.strip() for line in found.story]


def test_a_rule_left_out_is_found_with_the_one_fault_that_it_takes() -> None:
    assert search(SmallToy({"lose": 2}, Hasty)).violation is None
    found = search(SmallToy({"double": 1}, Hasty))
    assert found.violation == "answers: 2 was never answered"
    assert "will come twice: a pong, 1" in told(found)
    assert told(found)[-1].startswith("tick 0: late, client gets a pong, 1")


def test_who_is_killed_between_two_actions_has_taken_the_first_only() -> None:
    class World(SmallToy):
        def make(self, slot: int, uid: int) -> Pinger | Ponger:
            return Twice() if slot == SERVER else super().make(slot, uid)

        def check(self) -> None:
            there = [each for each in self.flying if each.to == CLIENT]
            if len(there) == 1 and not self.is_there(SERVER):
                raise Violation("found", "between")

    found = search(World({"crash": 1}))
    assert found.violation == "found: between"
    assert told(found)[-1] == "server is killed before Send"


def test_what_was_on_its_way_to_a_dead_process_does_not_reach_its_successor() -> None:
    world: Any = SmallToy({"late": 1, "crash": 1, "starts": 1})
    world.first()
    uid = world.lives[CLIENT].uid
    world.flying = [Packet(SERVER, CLIENT, uid, 0), Packet(CLIENT, SERVER, ANYBODY, 0)]
    world.aside = [Packet(SERVER, CLIENT, uid, 0)]
    world.kill(CLIENT)
    assert world.flying == [Packet(CLIENT, SERVER, ANYBODY, 0)]
    assert world.aside == []
    world.left = [0] * len(world.left)
    world.start(CLIENT)
    assert world.lives[CLIENT].uid > uid
