"""Gossip in simulated networks: how soon the dead are convicted, and that the living are not.

`tests/unit/protocol/gossip` has the reference values of the detector. The bounds are those of the
issue that asked for them; a run of a hundred seeds gave 11.4 s on five nodes, and 12.8 s on forty.
"""

import pytest

from lab.mutants.catalogue import mutant, mutants
from lab.mutants.running import run_without
from lab.worlds.gossip.world import GossipTrial, GossipWorld, quiet
from lab.worlds.run import Outcome, outcome_of
from tenure.base.instants import MILLISECOND_NS, SECOND_NS
from tenure.sim.kernel.checkers import Violation
from tests.unit.protocol.gossip import test_gossiper

FAST_NS = 300 * MILLISECOND_NS


def run(seed: int) -> Outcome:
    return outcome_of(seed, GossipWorld(GossipTrial(seed=seed, hours=0.1)), lambda _: None)


# --- figures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_a_node_that_is_killed_is_convicted_by_all_of_five_within_12_seconds(seed: int) -> None:
    world = quiet(seed, 5)
    world.run_quietly(60)
    assert world.seconds_until_convicted("n3", 20) < 12


def test_a_node_that_is_killed_is_convicted_by_all_of_forty_within_15_seconds() -> None:
    world = quiet(1, 40)
    world.run_quietly(30)
    assert world.seconds_until_convicted("n3", 20) < 15


def test_nobody_is_convicted_in_ten_minutes_in_which_every_fifth_datagram_is_lost() -> None:
    world, highest = quiet(1, 5, loss=0.2), 0.0
    for _ in range(600):
        world.run_quietly(1)
        highest = max(highest, world.highest_phi())
    assert world.convictions == {}
    assert 0.5 < highest < 2.5


@pytest.mark.parametrize(("nodes", "loss", "most"), [(20, 0, 10), (20, 0.5, 15), (40, 0.5, 15)])
def test_with_300_ms_between_rounds_a_death_is_seen_soon(
    nodes: int, loss: float, most: int
) -> None:
    world = quiet(1, nodes, loss=loss, interval_ns=FAST_NS)
    world.run_quietly(20)
    assert world.seconds_until_convicted("n3", 20) < most


def stopped_for_a_minute(seed: int = 1) -> int:
    """How many the stopped one convicts when it goes on."""
    world = quiet(seed, 5)
    world.run_quietly(30)
    stopped = world.slots["n3"]
    stopped.freeze(60 * SECOND_NS)
    world.run_quietly(65)
    return sum(slot == "n3" for slot, _ in world.convictions) + world.notes["node convicted"] - 4


def test_a_process_that_was_stopped_convicts_nobody_when_it_goes_on() -> None:
    assert stopped_for_a_minute() == 0


# --- everything goes wrong ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_all_come_to_know_all_once_everything_is_mended(seed: int) -> None:
    outcome = run(seed)
    assert outcome.violation is None, (outcome.violation, *outcome.story)


def test_the_same_seed_gives_the_same_run() -> None:
    assert run(0) == run(0)


def test_a_refusal_that_is_kept_to_itself_is_caught_by_its_schedule() -> None:
    """A life asks all to vouch for it, so seeds hardly ever have one that has not heard itself."""
    story = test_gossiper.test_a_node_that_is_refused_stays_so_however_much_it_promises
    story()
    with pytest.raises(AssertionError):
        run_without(mutant("gossip", "refusal-kept-to-itself"), story)


SOON = {"gaps-taken": (0, "G2"), "lives-are-one": (0, "G2"), "vouched-by-nobody": (1, "G6")}


@pytest.mark.parametrize("name", SOON)
def test_a_mutant_of_gossip_is_caught_and_its_twin_is_not(name: str) -> None:
    seed, promise = SOON[name]
    caught = run_without(mutant("gossip", name), run, seed).violation
    assert caught is not None
    assert caught.startswith(promise)
    assert run(seed).violation is None


def test_the_mutant_of_an_own_pause_is_caught() -> None:
    blaming = mutant("gossip", "own-pause-blamed-on-others")
    assert run_without(blaming, stopped_for_a_minute) >= 4


def test_every_mutant_of_gossip_is_hunted() -> None:
    by_seeds = {each.name for each in mutants("gossip").values() if each.by == "seeds"}
    assert SOON.keys() == by_seeds


def test_a_conviction_that_never_comes_is_a_violation() -> None:
    world = quiet(1, 3)
    world.run_quietly(20)
    with pytest.raises(Violation, match="not everybody convicts n2"):
        world.seconds_until_convicted("n2", 5)
