"""Every mutant of leases is caught, and its twin is not, on the same seed.

Each has a seed that finds it within seconds. A change to the protocol, or to what is drawn, shifts
the seeds; a few more are tried before the test fails, and `python -m lab hunt --tier lease NAME`
finds a new one to write down here. `make canaries` is the long form: any first seed will do.
"""

from typing import NamedTuple

import pytest

from lab.mutants.catalogue import mutant, mutants
from lab.mutants.running import first_broken, run_without
from lab.worlds.lease.run import run_seed
from lab.worlds.lease.strikes import FAULTS
from lab.worlds.lease.trial import Trial

TRIED = 40
FREED, TWO, AGAIN = "freed too early", "S1: two owners", "S3: a number came again"
TOLD, FORGOTTEN = "S4: told before it was durable", "S4: forgotten"
UNSIGNALLED, INVARIANT = "S2: a loss was not signalled", "invariant"
ALL = "all"
NONCES = "leadership revoked,straggler,burst of joins,leaving"


class Known(NamedTuple):
    """How a mutant is found soon: rare ones by a mix that is made for them."""

    seed: int
    promises: tuple[str, ...]
    """It must be seen to break one of these."""
    faults: str = ALL
    rate: float = 1.0


KNOWN = {
    "renumbered-with-since": Known(
        3, ("S2: what was lost came back", "S2: signalled in vain", "S2: a loss was not signalled")
    ),
    "no-hold-margin": Known(4, (FREED, TWO)),
    "term-from-receipt": Known(60, (FREED, TWO), "skew,delay,one-way cut", 3),
    "requests-in-any-order": Known(6, (FREED, TWO)),
    "answer-to-an-older-request": Known(0, (FREED, TWO, AGAIN)),
    "no-nonce-check": Known(8, (FREED, TWO, AGAIN, INVARIANT), NONCES, 5),
    "nonce-kept-across-leaderships": Known(135, (FREED, TWO, AGAIN, INVARIANT), NONCES, 5),
    "incarnations-not-ordered": Known(
        31, (FREED, TWO), "two of one name,pause,skew,cut,burst of joins", 3
    ),
    "lapsed-lease-revived": Known(0, (AGAIN,)),
    "lapsed-lease-not-disclaimed": Known(1, (INVARIANT, "L1", UNSIGNALLED)),
    "fingerprint-not-compared": Known(4, ("L1",)),
    "answer-before-expiry": Known(72, (AGAIN, INVARIANT), "late timer,drop,delay,one-way cut", 3),
    "answer-before-commit": Known(0, (TOLD, AGAIN)),
    "recall-outlives-nothing": Known(
        47, (FREED, TWO), "one-way cut,load,leaving,crash of an owner", 3
    ),
    "plan-is-a-grant": Known(0, (FREED, TWO)),
    "numbers-begin-anew-with-a-pool": Known(3, (AGAIN, INVARIANT, TOLD), "steering,leaving", 5),
    "counter-not-in-snapshot": Known(5, (FORGOTTEN, AGAIN, INVARIANT)),
    "takeover-does-not-wait": Known(
        7,
        (FREED, TWO),
        "leadership revoked,pause past the term,crash of an owner,skew,drop",
        3,
    ),
    "leads-by-wall-clock": Known(5, (FREED, TWO), "cut from the journal,wall clocks set back", 3),
    "contact-from-receipt": Known(
        6, ("S2: finds without contact",), "delay,straggler,reorder,cut,drop", 3
    ),
    "nothing-published-on-return": Known(0, ("L1",), "cut"),
    "old-table-told-as-the-present": Known(21, ("L1",), "crash of a lookup,leaving,load", 8),
    "change-log-begins-too-early": Known(0, ("L1", UNSIGNALLED)),
    "append-not-guarded": Known(19, (FREED, TWO, AGAIN)),
    "loss-by-last-flag": Known(0, (UNSIGNALLED,)),
    "loss-signalled-in-vain": Known(0, ("S2: signalled in vain",)),
    "handed-over-while-served": Known(0, ("S2: a write was forgotten",)),
    "moved-before-it-has-settled": Known(0, ("P13: moved before it had settled",)),
    "granted-without-the-import": Known(48, ("S2: a write was forgotten",)),
    "import-of-an-earlier-number": Known(0, ("S2: what was lost came back",)),
    "import-without-its-grant": Known(
        7004, ("S2: what was lost came back",), "hand-off,message,leaving", 3
    ),
    "granted-before-let-go": Known(5, ("S2: what was lost came back", "S2: a write was forgotten")),
    # The evicted are told at once, so it takes a message that does not arrive.
    "evicts-the-living": Known(6, (FREED, TWO), "steering,cut,drop,delay,pause", 5),
    "clock-stops-in-suspend": Known(6, (FREED, TWO), "suspend,drop"),
    "skew-over-the-bound": Known(
        19, (FREED, TWO), "skew,crash of an owner,one-way cut,two-way cut"
    ),
    "old-copy-not-noticed": Known(9, ("L1",), "journal put back,crash of a manager", 8),
    "closed-socket-is-death": Known(0, (FREED, TWO)),
    "attested-across-hosts": Known(0, (FREED, TWO)),
    "attested-across-pid-namespaces": Known(3, (FREED, TWO)),
    "attested-across-time-namespaces": Known(3, (FREED, TWO)),
    "attested-by-pid-alone": Known(3, (FREED, TWO)),
    "unread-taken-for-gone": Known(0, (FREED, TWO)),
    "first-thread-taken-for-all": Known(0, (FREED, TWO)),
}


def trial(name: str, seed: int) -> Trial:
    """A seed of the mix by which the mutant is found soon."""
    known = KNOWN[name]
    return Trial(seed=seed, faults=FAULTS.chosen(known.faults), fault_rate=known.rate)


@pytest.mark.parametrize("name", KNOWN)
def test_a_mutant_is_caught_and_its_twin_is_not(name: str) -> None:
    known = KNOWN[name]
    trials = [trial(name, seed) for seed in range(known.seed, known.seed + TRIED)]
    caught = run_without(mutant("lease", name), first_broken, run_seed, trials)
    assert caught is not None
    assert caught.violation is not None
    assert caught.violation.startswith(known.promises)
    assert caught.story
    twin = run_seed(trial(name, caught.seed))
    assert twin.violation is None, (twin.violation, *twin.story)


def test_every_mutant_of_leases_is_hunted() -> None:
    by_seeds = {each.name for each in mutants("lease").values() if each.by == "seeds"}
    assert KNOWN.keys() == by_seeds
