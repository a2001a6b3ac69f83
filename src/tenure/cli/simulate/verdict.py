"""What came of simulated seeds, for people and for programs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from zlib import crc32

import msgspec

from tenure.sim.lease.canaries import NONE
from tenure.sim.lease.run import Outcome, total
from tenure.sim.lease.strikes import KINDS
from tenure.sim.lease.trial import Trial

WIDTH = 30
ATTESTATIONS = {
    "attested deaths": "owner attested dead",
    "refused attestations": "refused: attestation",
}
"""What managers note about them."""
BALANCE = {
    "planned for balance": "moved for balance",
    "keys given alone": "key given alone",
    "policies chosen": "policy chosen",
}
"""What the simulator notes about it: ranges, or points of a ring, that a policy put elsewhere."""
KEPT = "every promise was kept"


class Verdict:
    """Words for what came of a plan."""

    def __init__(self, plan: Trial, faults: str, canary: str) -> None:
        self.plan = plan
        self.faults = faults
        self.canary = canary

    def replay(self, seed: int) -> str:
        """The command that runs a seed again."""
        command = f"tenure simulate --seed {seed} --hours {self.plan.hours!r}"
        command += f" --preset {self.plan.timing.name}"
        if self.faults != "all":
            command += f' --faults "{self.faults}"'
        return command if self.canary == NONE.name else f"{command} --canary {self.canary}"

    def never_struck(self, faults: Counter[str]) -> list[str]:
        """The kinds of fault that were allowed and never happened."""
        return [kind for kind in self.plan.faults if not faults[kind]]

    def lines(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        """The summary, and the story of a failure."""
        yield from self._what_was_done(outcomes)
        last = outcomes[-1]
        yield ""
        if last.violation is None:
            yield f"{KEPT} ({_seeds(outcomes)}, fingerprint {fingerprint(outcomes):08x})"
            return
        yield f"BROKEN, by seed {last.seed}: {last.violation}"
        yield f"its mix of faults: {last.mix}"
        yield ""
        yield f"the last {len(last.story)} events, each at its simulated second:"
        yield from last.story
        yield ""
        yield f"fingerprint {fingerprint(outcomes):08x}. To see it again:"
        yield f"  {self.replay(last.seed)}"

    def _what_was_done(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        yield f"preset {self.plan.timing.name}, {_seeds(outcomes)}"
        if self.canary != NONE.name:
            yield f"with a rule left out: {self.canary}"
        faults, workload = total(outcomes, "faults"), total(outcomes, "workload")
        yield _row("simulated hours", f"{sum(each.simulated_hours for each in outcomes):,.1f}")
        yield _row("messages", f"{sum(each.messages for each in outcomes):,}")
        yield _row("takeovers", f"{sum(each.takeovers for each in outcomes):,}")
        notes = total(outcomes, "notes")
        for what, note in (ATTESTATIONS | BALANCE).items():
            yield _row(what, f"{notes[note]:,}")
        yield "what clients saw:"
        for what, count in workload.items():
            yield _row(f"  {what}", f"{count:,}")
        yield "faults:"
        for kind in KINDS:
            if faults[kind]:
                what = f"{kind} (seeds)" if kind == "skew" else kind
                yield _row(f"  {what}", f"{faults[kind]:,}")
        never = self.never_struck(faults)
        if never:
            yield f"  never: {', '.join(never)}"

    def as_json(self, outcomes: Sequence[Outcome]) -> str:
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
                "replay": self.replay(last.seed),
            }
        faults, notes = total(outcomes, "faults"), total(outcomes, "notes")
        summary = {
            "preset": self.plan.timing.name,
            "canary": self.canary,
            "first_seed": outcomes[0].seed,
            "seeds": len(outcomes),
            "simulated_hours": round(sum(each.simulated_hours for each in outcomes), 3),
            "messages": sum(each.messages for each in outcomes),
            "takeovers": sum(each.takeovers for each in outcomes),
            "attestations": {what: notes[note] for what, note in ATTESTATIONS.items()},
            "balance": {what: notes[note] for what, note in BALANCE.items()},
            "faults": {kind: faults[kind] for kind in KINDS},
            "never": self.never_struck(faults),
            "clients": total(outcomes, "workload"),
            "fingerprint": f"{fingerprint(outcomes):08x}",
            "failure": failure,
        }
        return msgspec.json.encode(summary).decode()


def fingerprint(outcomes: Sequence[Outcome]) -> int:
    """A checksum of everything that happened in all of them."""
    told = " ".join(f"{each.seed}:{each.fingerprint}" for each in outcomes)
    return crc32(told.encode())


def _seeds(outcomes: Sequence[Outcome]) -> str:
    first, last = outcomes[0].seed, outcomes[-1].seed
    return f"seed {first}" if first == last else f"seeds {first} to {last}"


def _row(what: str, figure: str) -> str:
    return f"{what:<{WIDTH}}{figure:>16}"
