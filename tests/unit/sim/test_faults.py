"""Faults: which may be asked for, and what they do to messages and clocks of a world."""

import re
from random import Random

import pytest

from leasehold.base.instants import FAR_FUTURE, SECOND_NS
from leasehold.errors import ConfigurationError
from leasehold.protocol.lease.messages import Hello
from leasehold.sim.faults import ALIASES, KINDS, MESSAGE_FAULTS, Mix, chosen_kinds
from leasehold.sim.process import OwnerProcess
from leasehold.sim.world import Plan, World
from leasehold.wire.codec import decode_to_manager

SENT = 300


def test_names_and_aliases_choose_kinds_in_one_order() -> None:
    assert chosen_kinds("all") == KINDS
    assert chosen_kinds("none") == ()
    assert chosen_kinds("suspend, cut,drop") == ("suspend", "one-way cut", "two-way cut", "drop")
    assert chosen_kinds("drop,cut,suspend") == chosen_kinds("suspend,cut,drop")
    assert set(ALIASES["message"]) == set(MESSAGE_FAULTS)


@pytest.mark.parametrize("names", ["earthquake", "drop,,cut", ""])
def test_an_unknown_fault_is_refused_with_the_names_there_are(names: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape("crash, pause, cut")):
        chosen_kinds(names)


def test_a_mix_draws_the_same_whatever_may_happen() -> None:
    """So that leaving a kind out of a failing seed leaves the other kinds as they were."""
    whole, part = Mix(Random(1), KINDS), Mix(Random(1), ("drop", "skew", "suspend"))
    assert part.rates.items() <= whole.rates.items()


class Wire:
    """One owner that says hello many times, and in which order the hellos arrive."""

    def __init__(self, rates: dict[str, float]) -> None:
        self.world = World(Plan(seed=1, faults=()))
        self.world.mix.rates.update(rates)
        self.world.faults = type(self.world.faults)(self.world, self.world.mix)
        self.world.faults.is_on = True
        owner = self.world._make("o0")
        assert isinstance(owner, OwnerProcess)
        self.owner = owner

    def send(self) -> list[int]:
        network = self.world.network
        for token in range(SENT):
            self.world.now = token * SECOND_NS // 100
            network.to_manager(self.owner, "m0", Hello("pool", token))
        queue = sorted(self.world._queue)
        return [network._decode(item[3][2], decode).token for item in queue]


def decode(data: bytes, version: int) -> Hello:
    message = decode_to_manager(data, version)
    assert isinstance(message, Hello)
    return message


def test_without_faults_every_message_arrives_once_and_in_order() -> None:
    assert Wire({}).send() == list(range(SENT))


def test_a_dropped_message_does_not_arrive() -> None:
    tokens = Wire({"drop": 0.2}).send()
    assert tokens == sorted(set(tokens))
    assert SENT * 0.6 < len(tokens) < SENT


def test_a_doubled_message_arrives_twice() -> None:
    tokens = Wire({"duplicate": 0.2}).send()
    assert set(tokens) == set(range(SENT))
    assert len(tokens) > SENT


def test_a_delayed_message_holds_up_those_behind_it() -> None:
    assert Wire({"delay": 0.2}).send() == list(range(SENT))


@pytest.mark.parametrize("kind", ["reorder", "straggler"])
def test_a_straggler_is_overtaken(kind: str) -> None:
    tokens = Wire({kind: 0.2}).send()
    assert sorted(tokens) == list(range(SENT))
    assert tokens != sorted(tokens)


def test_a_cut_lets_nothing_pass_until_it_is_mended() -> None:
    world = World(Plan(seed=1, faults=()))
    world.network.cut("o0", "m0", 5 * SECOND_NS, both_ways=False)
    assert world.network.cuts == {("o0", "m0")}
    world.network.cut("m0", "l0", 9 * SECOND_NS, both_ways=True)
    world.run_until(6 * SECOND_NS)
    assert world.network.cuts == {("m0", "l0"), ("l0", "m0")}
    world.faults.end()
    assert world.network.cuts == set()


def test_nothing_is_called_in_the_far_future() -> None:
    world = World(Plan(seed=1, faults=()))
    world.at(FAR_FUTURE, world.run_until, 0)
    assert world._queue == []
