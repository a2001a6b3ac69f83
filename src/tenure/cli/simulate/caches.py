"""`tenure simulate --tier cache`: worlds of consistent caches, and what came of them."""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from zlib import crc32

import msgspec

from tenure.base.instants import SECOND_NS
from tenure.cli.output import say
from tenure.cli.simulate.progress import SimulationProgress
from tenure.cli.simulate.verdict import KEPT, WIDTH
from tenure.sim.volume.canaries import NONE, cache_canary
from tenure.sim.volume.run import CacheOutcome, run_many_caches
from tenure.sim.volume.strikes import KINDS, chosen_kinds
from tenure.sim.volume.trial import VolumeTrial


class CachePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked."""

    first: int
    count: int
    hours: float
    faults: str
    canary: str
    workers: int
    json: bool


def simulate_caches(plan: CachePlan) -> int:
    """Run the seeds up to the first that breaks a promise, and print what came of them."""
    cache_canary(plan.canary)
    faults = chosen_kinds(plan.faults)
    seeds = range(plan.first, plan.first + plan.count)
    trials = [VolumeTrial(seed=seed, hours=plan.hours, faults=faults) for seed in seeds]
    began = time.perf_counter()
    outcomes = []
    with SimulationProgress(round(plan.count * plan.hours * 3600 * SECOND_NS)) as progress:
        for outcome in run_many_caches(trials, plan.canary, plan.workers, progress.reached):
            outcomes.append(outcome)
            if outcome.violation:
                break
    if plan.json:
        print(as_json(plan, outcomes))
        return int(bool(outcomes[-1].violation))
    for line in lines(plan, outcomes):
        say(line)
    simulated = sum(outcome.simulated_ns for outcome in outcomes) / SECOND_NS
    seconds = time.perf_counter() - began
    speed = f"{simulated / seconds:,.0f} times as fast as real time"
    print(f"took {seconds:.1f} s, {speed}", file=sys.stderr)
    return int(bool(outcomes[-1].violation))


def replay(plan: CachePlan, seed: int) -> str:
    """The command that runs a seed again."""
    command = f"tenure simulate --tier cache --seed {seed} --hours {plan.hours!r}"
    if plan.faults != "all":
        command += f' --faults "{plan.faults}"'
    return command if plan.canary == NONE.name else f"{command} --canary {plan.canary}"


def lines(plan: CachePlan, outcomes: Sequence[CacheOutcome]) -> Iterator[str]:
    """The summary, and the story of a failure."""
    first, last = outcomes[0], outcomes[-1]
    seeds = f"seed {first.seed}" if len(outcomes) == 1 else f"seeds {first.seed} to {last.seed}"
    yield f"caches, {seeds}"
    if plan.canary != NONE.name:
        yield f"with a rule left out: {plan.canary}"
    yield _row("simulated hours", f"{sum(each.simulated_hours for each in outcomes):,.1f}")
    yield _row("messages", f"{sum(each.messages for each in outcomes):,}")
    yield "what applications saw:"
    for what, count in sorted(_total(each.workload for each in outcomes).items()):
        yield _row(f"  {what}", f"{count:,}")
    yield "faults:"
    faults = _total(each.faults for each in outcomes)
    for kind in KINDS:
        if faults[kind]:
            yield _row(f"  {kind} (seeds)" if kind == "skew" else f"  {kind}", f"{faults[kind]:,}")
    yield ""
    if last.violation is None:
        yield f"{KEPT} ({seeds}, fingerprint {_fingerprint(outcomes):08x})"
        return
    yield f"BROKEN, by seed {last.seed}: {last.violation}"
    yield f"its mix of faults: {last.mix}"
    yield ""
    yield f"the last {len(last.story)} events, each at its simulated second:"
    yield from last.story
    yield ""
    yield f"fingerprint {_fingerprint(outcomes):08x}. To see it again:"
    yield f"  {replay(plan, last.seed)}"


def as_json(plan: CachePlan, outcomes: Sequence[CacheOutcome]) -> str:
    """The summary as one JSON object."""
    last = outcomes[-1]
    failure = None
    if last.violation is not None:
        failure = {
            "promise": last.violation.partition(":")[0],
            "what": last.violation,
            "seed": last.seed,
            "mix": last.mix,
            "story": last.story,
            "replay": replay(plan, last.seed),
        }
    faults = _total(each.faults for each in outcomes)
    summary = {
        "tier": "cache",
        "canary": plan.canary,
        "first_seed": outcomes[0].seed,
        "seeds": len(outcomes),
        "simulated_hours": round(sum(each.simulated_hours for each in outcomes), 3),
        "messages": sum(each.messages for each in outcomes),
        "faults": {kind: faults[kind] for kind in KINDS},
        "applications": _total(each.workload for each in outcomes),
        "fingerprint": f"{_fingerprint(outcomes):08x}",
        "failure": failure,
    }
    return msgspec.json.encode(summary).decode()


def _total(counts: Iterator[dict[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


def _fingerprint(outcomes: Sequence[CacheOutcome]) -> int:
    return crc32(" ".join(f"{each.seed}:{each.fingerprint}" for each in outcomes).encode())


def _row(what: str, figure: str) -> str:
    return f"{what:<{WIDTH}}{figure:>16}"
