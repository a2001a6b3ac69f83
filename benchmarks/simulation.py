"""How fast the simulator is: a small pool for long, and one of the paper's size.

Bounds: 1,000 simulated hours (3 owners, 2 managers in turn, 2 lookups, every kind of fault, preset
`paper`) in at most five minutes on two cores; and 130 owners with 64 virtual nodes each and 1,000
lookups, the size of the paper's system, at least 20 times as fast as real time, on one core.

There faults strike a fifth as often as drawn: rates are for the whole world, and each takeover has
a thousand lookups ask for what they missed.
"""

import sys
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter, process_time

from benchmarks._quick import QUICK, at_least, at_most, sized
from benchmarks._rounds import line
from lab.worlds.lease.run import run_seed, run_seeds
from lab.worlds.lease.trial import Trial
from lab.worlds.run import Outcome, total
from tenure.base.instants import SECOND_NS

HOURS = sized(1_000, 4)
CORES = 2
MINUTES_AT_MOST = at_most(5.0)
TIMES_AT_LEAST = at_least(20.0)
LARGE = Trial(
    seed=3,
    hours=0.1 if QUICK else 1,
    owners=sized(130, 13),
    spare_owners=sized(10, 1),
    lookups=sized(1_000, 100),
    managers=2,
    virtual_nodes=64,
    journal="durable",
    fault_rate=0.2,
)


def main() -> int:
    """Measure both, and print; return 1 if a bound was not kept, or a promise broken."""
    small, seconds = many_hours()
    minutes = seconds / 60
    is_quick = minutes <= MINUTES_AT_MOST
    what = f"{HOURS:,} hours, 3 owners, 2 lookups, {CORES} cores"
    print(line(what, f"{minutes:.2f} min", f"<= {MINUTES_AT_MOST:g} min", is_kept=is_quick))
    large, times = the_papers_size()
    is_fast = times >= TIMES_AT_LEAST
    what = f"{LARGE.hours:g} hours, {LARGE.owners} owners, {LARGE.lookups:,} lookups, to real time"
    print(line(what, f"{times:.1f}", f">= {TIMES_AT_LEAST:.3g}", is_kept=is_fast))
    broken = [each.violation for each in (*small, large) if each.violation]
    print("\n".join(broken))
    return 0 if is_quick and is_fast and not broken else 1


def many_hours() -> tuple[list[Outcome], float]:
    """The small pool: its outcomes, and how long they took."""
    plans = [Trial(seed=seed, hours=1) for seed in range(HOURS)]
    began = perf_counter()
    outcomes = list(run_seeds(plans, workers=CORES))
    seconds = perf_counter() - began
    simulated = sum(outcome.simulated_ns for outcome in outcomes) / SECOND_NS
    messages = sum(outcome.messages for outcome in outcomes)
    used = getrusage(RUSAGE_CHILDREN)
    print(
        f"small: {simulated / seconds:,.0f} times real time, {messages / seconds:,.0f} messages/s; "
        f"{(used.ru_utime + used.ru_stime) / 60:.1f} min of CPU"
    )
    return outcomes, seconds


def the_papers_size() -> tuple[Outcome, float]:
    """The large pool: its outcome, and how many times as fast as real time it was."""
    began, began_cpu = perf_counter(), process_time()
    outcome = run_seed(LARGE)
    seconds, cpu = perf_counter() - began, process_time() - began_cpu
    faults = sum(total([outcome], "faults").values())
    print(
        f"large: {outcome.simulated_ns / SECOND_NS:,.0f} s in {seconds:.0f} s, {cpu:.0f} of CPU; "
        f"{outcome.messages:,} messages, {outcome.notes['takeovers']} takeovers, {faults:,} faults"
    )
    return outcome, outcome.simulated_ns / SECOND_NS / seconds


if __name__ == "__main__":
    sys.exit(main())
