"""The outcome of simulated seeds, for people and for programs."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar
from zlib import crc32

import msgspec

from lab.worlds.columns import strikes as of_columns
from lab.worlds.entity import faults as of_entities
from lab.worlds.entity.trial import EntityTrial
from lab.worlds.lease import strikes as of_leases
from lab.worlds.lease.trial import Trial
from lab.worlds.run import Outcome, total
from lab.worlds.services import faults as of_services
from lab.worlds.services.trial import ServicesTrial
from lab.worlds.volume import faults as of_caches
from tenure.sim.kernel.faults import FaultTable
from tenure.sim.kernel.world import AnyTrial
from tenure.sim.lease.managed_world import TAKEOVERS

WIDTH = 30
ATTESTATIONS = {
    "attested deaths": "owner attested dead",
    "refused attestations": "refused: attestation",
}
"""The notes of managers about attestations, by their names in a verdict."""
BALANCE = {
    "planned for balance": "moved for balance",
    "keys given alone": "key given alone",
    "policies chosen": "policy chosen",
}
"""The notes about ranges, or points of a ring, that a policy put elsewhere, by name."""
KEPT = "every promise was kept"


class Verdict(ABC):
    """How the outcome of a plan is told. Each tier adds what is special to it."""

    table: ClassVar[FaultTable]

    def __init__(self, plan: AnyTrial, faults: str) -> None:
        self.plan = plan
        self.faults = faults

    @property
    @abstractmethod
    def about(self) -> str:
        """The words for what was simulated."""

    @property
    @abstractmethod
    def options(self) -> str:
        """The options that repeat the simulation, besides those that all tiers have."""

    def rows(self, notes: Counter[str]) -> Iterator[tuple[str, int]]:
        """Yield the other things that managers and servers did, each with its number."""
        yield from ()

    @abstractmethod
    def as_mapping(self, notes: Counter[str]) -> Mapping[str, Any]:
        """Return the same figures for programs."""

    def replay(self, seed: int) -> str:
        """The command that runs a seed again."""
        command = f"python -m lab simulate --seed {seed} --hours {self.plan.hours!r} {self.options}"
        if self.faults != "all":
            command += f' --faults "{self.faults}"'
        return command

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
        yield f"{self.about}, {_seeds(outcomes)}"
        yield _row("simulated hours", f"{sum(each.simulated_hours for each in outcomes):,.1f}")
        yield _row("messages", f"{sum(each.messages for each in outcomes):,}")
        for what, count in self.rows(total(outcomes, "notes")):
            yield _row(what, f"{count:,}")
        yield "what clients saw:"
        for what, count in sorted(total(outcomes, "workload").items()):
            yield _row(f"  {what}", f"{count:,}")
        yield "faults:"
        faults = total(outcomes, "faults")
        for kind in self.table.kinds:
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
        faults = total(outcomes, "faults")
        summary = {
            **self.as_mapping(total(outcomes, "notes")),
            "first_seed": outcomes[0].seed,
            "seeds": len(outcomes),
            "simulated_hours": round(sum(each.simulated_hours for each in outcomes), 3),
            "messages": sum(each.messages for each in outcomes),
            "faults": {kind: faults[kind] for kind in self.table.kinds},
            "never": self.never_struck(faults),
            "clients": total(outcomes, "workload"),
            "fingerprint": f"{fingerprint(outcomes):08x}",
            "failure": failure,
        }
        return msgspec.json.encode(summary).decode()


class LeaseVerdict(Verdict):
    """The outcome for owners and their leases."""

    table = of_leases.FAULTS
    plan: Trial

    @property
    def about(self) -> str:
        """The words for what was simulated."""
        return f"preset {self.plan.timing.name}"

    @property
    def options(self) -> str:
        """The option for the preset."""
        return f"--preset {self.plan.timing.name}"

    def rows(self, notes: Counter[str]) -> Iterator[tuple[str, int]]:
        """Yield what managers did, each with its number."""
        yield TAKEOVERS, notes[TAKEOVERS]
        for what, note in (ATTESTATIONS | BALANCE).items():
            yield what, notes[note]

    def as_mapping(self, notes: Counter[str]) -> Mapping[str, Any]:
        """The same, for programs."""
        return {
            "tier": "lease",
            "preset": self.plan.timing.name,
            TAKEOVERS: notes[TAKEOVERS],
            "attestations": {what: notes[note] for what, note in ATTESTATIONS.items()},
            "balance": {what: notes[note] for what, note in BALANCE.items()},
        }


class EntityVerdict(Verdict):
    """The outcome for entities."""

    tier: ClassVar[str] = "entity"
    what: ClassVar[str] = "entities"
    table = of_entities.FAULTS
    plan: EntityTrial | ServicesTrial

    @property
    def about(self) -> str:
        """The words for what was simulated."""
        return f"{self.what}, preset {self.plan.timing.name}"

    @property
    def options(self) -> str:
        """The options for the tier and the preset."""
        return f"--tier {self.tier} --preset {self.plan.timing.name}"

    def as_mapping(self, notes: Counter[str]) -> Mapping[str, Any]:
        """Which tier it is."""
        return {"tier": self.tier, "preset": self.plan.timing.name}


class ServicesVerdict(EntityVerdict):
    """The outcome for services over entities."""

    tier = what = "services"
    table = of_services.FAULTS


class CacheVerdict(Verdict):
    """The outcome for consistent caches."""

    table = of_caches.FAULTS
    about = "caches"
    options = "--tier cache"

    def as_mapping(self, notes: Counter[str]) -> Mapping[str, Any]:
        """Which tier it is."""
        return {"tier": "cache"}


class ColumnsVerdict(Verdict):
    """The outcome for the store on several machines."""

    table = of_columns.FAULTS
    about = "columns"
    options = "--tier columns"

    def as_mapping(self, notes: Counter[str]) -> Mapping[str, Any]:
        """Which tier it is."""
        return {"tier": "columns"}


def fingerprint(outcomes: Sequence[Outcome]) -> int:
    """A checksum of everything that happened in all of them."""
    told = " ".join(f"{each.seed}:{each.fingerprint}" for each in outcomes)
    return crc32(told.encode())


def _seeds(outcomes: Sequence[Outcome]) -> str:
    first, last = outcomes[0].seed, outcomes[-1].seed
    return f"seed {first}" if first == last else f"seeds {first} to {last}"


def _row(what: str, figure: str) -> str:
    return f"{what:<{WIDTH}}{figure:>16}"
