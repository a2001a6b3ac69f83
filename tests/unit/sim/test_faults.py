"""Faults: which may be asked for, and what they do to messages and clocks of a world."""

import re
from random import Random

import pytest

from lab.worlds.lease.processes import OwnerProcess
from lab.worlds.lease.strikes import FAULTS
from lab.worlds.lease.trial import Trial
from lab.worlds.lease.world import LeaseWorld
from tenure.base.instants import FAR_FUTURE, SECOND_NS
from tenure.errors import ConfigurationError
from tenure.protocol.lease.messages import Hello
from tenure.sim.journal import JOURNAL
from tenure.sim.kernel.faults import MESSAGE_FAULTS, Mix
from tenure.sim.lease.faults import LeaseFaults
from tenure.sim.lease.processes import ManagerProcess
from tenure.sim.lease.strikes import CUTS
from tenure.wire.lease import decode_to_manager
from tenure.wire.versions import NEWEST

SENT = 300


def test_names_and_aliases_choose_kinds_in_one_order() -> None:
    assert FAULTS.chosen("all") == FAULTS.kinds
    assert FAULTS.chosen("none") == ()
    assert FAULTS.chosen("suspend, cut,drop") == ("suspend", *(each.name for each in CUTS), "drop")
    assert FAULTS.chosen("drop,cut,suspend") == FAULTS.chosen("suspend,cut,drop")
    assert set(FAULTS.aliases["message"]) == set(MESSAGE_FAULTS)


@pytest.mark.parametrize("names", ["earthquake", "drop,,cut", ""])
def test_an_unknown_fault_is_refused_with_the_names_there_are(names: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape("crash, pause, cut")):
        FAULTS.chosen(names)


def test_a_mix_draws_the_same_whatever_may_happen() -> None:
    """So leaving a kind out of a failing seed leaves the other kinds as they were."""
    whole, part = (
        Mix(Random(1), FAULTS, FAULTS.kinds),
        Mix(Random(1), FAULTS, ("drop", "skew", "suspend")),
    )
    assert part.rates.items() <= whole.rates.items()


class Wire:
    """One owner that says hello many times, and in which order the hellos arrive."""

    def __init__(self, rates: dict[str, float]) -> None:
        self.world = LeaseWorld(Trial(seed=1, faults=()))
        self.world.mix.rates.update(rates)
        self.world.faults = LeaseFaults(self.world, self.world.mix, self.world.timing.term_ns)
        self.world.faults.is_on = True
        owner = self.world.make("o0")
        assert isinstance(owner, OwnerProcess)
        self.owner = owner

    def send(self) -> list[int]:
        network = self.world.network
        for token in range(SENT):
            self.world.now = token * SECOND_NS // 100
            network.to_address(self.owner, "m0", Hello(pool="pool", token=token))
        queue = sorted(self.world._queue)
        return [decode(item[3][2], NEWEST).token for item in queue]


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
    world = LeaseWorld(Trial(seed=1, faults=()))
    world.network.cut("o0", "m0", 5 * SECOND_NS, both_ways=False)
    assert {*world.network.cuts} == {("o0", "m0")}
    world.network.cut("m0", "l0", 9 * SECOND_NS, both_ways=True)
    world.run_until(6 * SECOND_NS)
    assert {*world.network.cuts} == {("m0", "l0"), ("l0", "m0")}
    world.end_faults()
    assert world.network.cuts == {}


def test_a_cut_lasts_as_long_as_the_longest_of_those_that_overlap() -> None:
    world = LeaseWorld(Trial(seed=1, faults=()))
    for lasts in (5, 9, 2):
        world.network.cut("o0", "m0", lasts * SECOND_NS, both_ways=False)
    world.run_until(8 * SECOND_NS)
    assert ("o0", "m0") in world.network.cuts
    world.network.cuts.clear()  # all is healed
    world.network.cut("o0", "m0", 5 * SECOND_NS, both_ways=False)
    world.run_until(10 * SECOND_NS)
    assert ("o0", "m0") in world.network.cuts
    world.run_until(13 * SECOND_NS)
    assert world.network.cuts == {}


@pytest.mark.parametrize(
    ("one", "other", "heard"), [("m0", JOURNAL, (False, False)), (JOURNAL, "m0", (True, False))]
)
def test_what_a_manager_asks_of_a_journal_it_is_cut_from_is_lost_on_its_way(
    one: str, other: str, heard: tuple[bool, bool]
) -> None:
    world = LeaseWorld(Trial(seed=1, faults=()))
    world.faults.is_on = True
    manager, another = world.make("m0"), world.make("m1")
    assert isinstance(manager, ManagerProcess)
    assert isinstance(another, ManagerProcess)
    world.network.cut(one, other, SECOND_NS, both_ways=False)

    def heard_of(process: ManagerProcess) -> tuple[int, bool, bool]:
        return world.faults.of_a_journal_call(process.slot, world.network.cuts)

    assert heard_of(manager) == (0, *heard)
    assert heard_of(another) == (0, True, True)
    world.run_until(2 * SECOND_NS)
    assert heard_of(manager) == (0, True, True)


def test_wall_clocks_that_are_set_back_leave_the_time_that_counts_alone() -> None:
    world = LeaseWorld(Trial(seed=1, faults=()))
    clock = world.clock_at("m0")
    before, wall = clock.local(SECOND_NS), clock.wall(SECOND_NS)
    world.strikes.wall_clocks_set_back()
    assert clock.local(SECOND_NS) == before
    assert clock.wall(SECOND_NS) < wall


def test_nothing_is_called_in_the_far_future() -> None:
    world = LeaseWorld(Trial(seed=1, faults=()))
    world.at(FAR_FUTURE, world.run_until, 0)
    assert world._queue == []
