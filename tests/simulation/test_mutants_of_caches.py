"""Every mutant of caches is caught, and its twin is not.

Each has a mix of faults and a seed that find it within seconds, as in `test_mutants_of_leases.py`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from lab.mutants.catalogue import mutant, mutants
from lab.mutants.running import first_broken, run_without
from lab.worlds.volume.owned_strikes import OWNED
from lab.worlds.volume.run import run_caches
from lab.worlds.volume.strikes import ALONE
from lab.worlds.volume.trial import VolumeTrial

TRIED = 40
STALE = ("C1", "C2", "C4", "C5")


class Soon(NamedTuple):
    """How a mutant is found soon."""

    seed: int
    promises: tuple[str, ...] = STALE
    faults: str = "all"
    rate: float = 1.0
    owners: bool = False
    world: Mapping[str, Any] = {}
    """How large it is."""
    fixed: Mapping[str, Any] = {}
    """The parts of the world that are not drawn."""


CUTS = "one-way cut,two-way cut"
PARTED = f"{CUTS},pause past the term"
SMALL = {"keys": 1, "clients": 2}
"""If everybody wants the same key, they meet more often."""
ONE = {"keys": 1}
EVERY = {"has_all_faults": True}
STRONG = {"mode": "strong"}
BUSY = STRONG | {
    "reads_apart": 0.1,
    "writes_apart": 0.3,
    "own_writes_apart": 3.0,
    "keep_terms": 2,
    "lease_terms": 20,
    "most_leases": 1_000,
    "retries": 30,
}
"""Readers are everywhere, and what a silent client has missed is remembered."""
GOING = "leaving,steering,load,burst of joins,cut from a client,one-way cut from a client"
"""Ranges go, and caches are slow to let go of them."""
SOON = {
    "acknowledged-before-applied": Soon(4, STALE, "stopped at a point", 8),
    "older-answer-taken": Soon(0),
    "counted-from-receipt": Soon(1),
    "no-margin": Soon(1),
    "bare-lease": Soon(1),
    "nobody-waited-for": Soon(1),
    "half-the-wait": Soon(1),
    "granted-during-a-write": Soon(1),
    "waits-for-the-mute": Soon(1, ("C3", "C7", "L1")),
    "late-fills-kept": Soon(1, STALE, "message", 3),
    "suspects-not-compared": Soon(0),
    "unknown-and-unimpressed": Soon(0, (*STALE, "invariant")),
    "writers-never-waited-for": Soon(17),
    "own-entry-outlives-the-write": Soon(0),
    "joined-any-answer": Soon(7),
    "overtaken-load-kept": Soon(0),
    "overtaken-load-joined": Soon(9),
    "no-fence": Soon(21, STALE, "slow store,quick restart,crash of a server", 3, world={"keys": 2}),
    "floors-stay": Soon(1, STALE, "cut,eviction", 2),
    "writes-not-known": Soon(0),
    "known-writes-stay-behind": Soon(1, ("V15",), owners=True),
    "starts-at-once": Soon(1),
    "instant-of-another-boot": Soon(
        4,
        STALE,
        "quick restart,crash of a server,cut",
        3,
        world={"keys": 1},
        fixed=STRONG | {"remembers": "latest end", "boots": "told"},
    ),
    "old-memory-believed": Soon(2, (*STALE, "L1"), "memory put back,crash", 5),
    "forgotten-while-active": Soon(1),
    "never-forgotten": Soon(0, ("C6",)),
    "no-limit": Soon(1, ("C6",)),
    "never-renewed": Soon(2, ("C7",)),
    "held-and-fetched-anew": Soon(
        0, ("C7",), "none", world={"hours": 0.3}, fixed={"lease_terms": 2, "known_writes": 1}
    ),
    "held-whatever-it-has": Soon(
        8, STALE, "drop,cut", 4, world=EVERY | {"keys": 2}, fixed=STRONG | {"lease_terms": 0.5}
    ),
    "lease-before-items": Soon(2, STALE, "cut,drop", 4, world=EVERY | SMALL, fixed=STRONG),
    "live-before-lease": Soon(2, STALE, "stopped reader,cut", 3, world=EVERY | ONE, fixed=BUSY),
    "reconnects-in-any-order": Soon(17, STALE, "message", 3),
    "written-twice": Soon(22, STALE, "message", 3),
    "quiet-without-margin": Soon(4, STALE, "quick restart,cut,drop", 4, world={"keys": 1}),
    "deaf-to-what-others-saw": Soon(
        0, STALE, "reader,cut,message", 2, world=EVERY, fixed={"mode": "best effort"}
    ),
    "last-request-remembered": Soon(9, STALE, "reorder,straggler,delay", 6, world=SMALL),
    "lease-beyond-the-term": Soon(0, ("V11",), PARTED, 5, owners=True),
    "answer-before-the-end-of-the-term": Soon(
        0, ("V11", "invariant"), "pause past the term,stopped at a point", 4, owners=True
    ),
    "leased-while-draining": Soon(
        2, ("invariant",), GOING, 3, owners=True, world=EVERY, fixed=STRONG | {"reads_apart": 0.1}
    ),
    "no-quiet-after-death": Soon(2, STALE, f"quick restart,lookup away,{CUTS}", 2, owners=True),
    "read-as-lost-at-once": Soon(
        7, STALE, f"quick restart,lookup away,{CUTS}", 2, owners=True, fixed={"durable": False}
    ),
    "as-of-by-count-alone": Soon(1, owners=True),
    "grant-without-a-floor": Soon(3, owners=True),
    "skew-over-the-bound": Soon(1),
}


def trial(name: str, seed: int) -> VolumeTrial:
    """A seed of the mix by which the mutant is found soon."""
    soon = SOON[name]
    table = OWNED if soon.owners else ALONE
    return VolumeTrial(
        owners=soon.owners,
        seed=seed,
        faults=table.chosen(soon.faults),
        fault_rate=soon.rate,
        fixed=soon.fixed,
        **soon.world,
    )


@pytest.mark.parametrize("name", SOON)
def test_a_mutant_of_caches_is_caught_and_its_twin_is_not(name: str) -> None:
    soon = SOON[name]
    trials = [trial(name, seed) for seed in range(soon.seed, soon.seed + TRIED)]
    caught = run_without(mutant("cache", name), first_broken, run_caches, trials)
    assert caught is not None
    assert caught.violation is not None
    assert caught.violation.startswith(soon.promises)
    assert caught.story
    twin = run_caches(trial(name, caught.seed))
    assert twin.violation is None, (twin.violation, *twin.story)


def test_every_mutant_of_caches_is_hunted() -> None:
    by_seeds = {each.name for each in mutants("cache").values() if each.by == "seeds"}
    assert SOON.keys() == by_seeds
