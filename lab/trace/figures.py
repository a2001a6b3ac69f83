"""Figures 5 to 11 of the paper, as numbers: the replays, and the values read off them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from math import inf
from multiprocessing import get_context
from typing import Literal

import msgspec

from lab.trace.algorithms import Algorithm, Delayed, ObjectLease, Poll, VolumeLease
from lab.trace.replay import busiest, replay, without_needless_writes
from lab.trace.tally import Tally
from lab.trace.workload import Trace

Kind = Literal["poll", "lease", "volume", "delayed"]
Workload = Literal["default", "bursty"] | float
"""A number multiplies how often files are written."""

TIMEOUTS = (10.0, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7)
MULTIPLIERS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
TENTH = 9
"""The tenth busiest server's place (figure 8)."""
LONG = 1e7
"""The object leases of volume leases where only the volume's length matters (5.3, 5.4)."""


class Setting(msgspec.Struct, frozen=True):
    """An algorithm and its parameters; a timeout of None is the figure's variable."""

    kind: Kind
    timeout: float | None = None
    volume_term: float = inf
    patience: float = inf

    @property
    def name(self) -> str:
        """The name in the paper's legends: t stands for the variable."""
        timeout = "t" if self.timeout is None else f"{self.timeout:g}"
        match self.kind:
            case "poll":
                return f"Poll({timeout})"
            case "lease":
                return "Callback" if self.timeout == inf else f"Lease({timeout})"
            case "volume":
                return f"Volume({self.volume_term:g},{timeout})"
            case "delayed":
                patience = "inf" if self.patience == inf else f"{self.patience:g}"
                return f"Delay({self.volume_term:g},{timeout},{patience})"

    def make(self, trace: Trace, tally: Tally, x: float) -> Algorithm:
        """The algorithm, with the variable's value."""
        timeout = x if self.timeout is None else self.timeout
        match self.kind:
            case "poll":
                return Poll(trace, tally, timeout)
            case "lease":
                return ObjectLease(trace, tally, timeout)
            case "volume":
                return VolumeLease(trace, tally, self.volume_term, timeout)
            case "delayed":
                return Delayed(trace, tally, self.volume_term, timeout, self.patience)


CALLBACK = Setting("lease", inf)


def _volumes(*terms: float) -> tuple[Setting, ...]:
    return tuple(Setting("volume", None, term) for term in terms)


def _delayed(*terms: float, patience: float = inf) -> tuple[Setting, ...]:
    return tuple(Setting("delayed", None, term, patience) for term in terms)


BY_TIMEOUT = (Setting("poll"), Setting("lease"), CALLBACK, *_volumes(10, 100), *_delayed(10, 100))
BY_VOLUME_TERM = (Setting("lease"), *_volumes(10, 100, 1e3, 1e4), *_delayed(10, 100, 1e3, 1e4))
OF_STATE = (
    Setting("lease"),
    CALLBACK,
    *_volumes(10, 100),
    *_delayed(10, 100),
    *_delayed(10, 100, patience=1e4),
)
AT_100_SECONDS = (
    Setting("poll", 100),
    Setting("lease", 100),
    CALLBACK,
    Setting("volume", LONG, 100),
    Setting("delayed", LONG, 100),
)


class Run(msgspec.Struct, frozen=True):
    """One replay: every figure reads its values from it."""

    workload: Workload
    setting: Setting
    x: float


class Cost(msgspec.Struct, frozen=True):
    """The cost of a run."""

    messages: int
    stale: float
    """The part of all reads that were stale."""
    state: float
    """Bytes at the busiest server."""
    tenth_state: float
    periods: tuple[tuple[int, int], ...]
    """The loads of the busiest server: each, and in how many seconds it was at least that high."""


class Figure(msgspec.Struct, frozen=True):
    """One of the paper's figures."""

    number: int
    title: str
    x_name: str
    y_name: str
    settings: tuple[Setting, ...]
    xs: tuple[float, ...] = TIMEOUTS
    workload: Literal["default", "bursty", "multiplied"] = "default"
    read: Literal["messages", "state", "tenth_state", "periods"] = "messages"

    def runs(self) -> Iterator[Run]:
        """The runs that have to be replayed."""
        for setting in self.settings:
            for x in self.xs:
                known = setting.timeout is not None and self.workload != "multiplied"
                workload = x if self.workload == "multiplied" else self.workload
                yield Run(workload, setting, 0.0 if known or isinstance(workload, float) else x)

    def curves(self, costs: "dict[Run, Cost]") -> dict[str, list[tuple[float, float]]]:
        """The points of each curve, by the algorithm's name."""
        runs = list(self.runs())
        found: dict[str, list[tuple[float, float]]] = {}
        for n, run in enumerate(runs):
            cost, points = costs[run], found.setdefault(run.setting.name, [])
            if self.read == "periods":
                points[:] = [(float(load), float(seconds)) for load, seconds in cost.periods]
            else:
                points.append((self.xs[n % len(self.xs)], float(getattr(cost, self.read))))
        return found


TIMEOUT = "object timeout (s)"
FIGURES = {
    each.number: each
    for each in (
        Figure(5, "Messages by timeout", TIMEOUT, "messages", BY_TIMEOUT),
        Figure(6, "Messages by timeout and volume term", TIMEOUT, "messages", BY_VOLUME_TERM),
        Figure(
            7, "State of the busiest server", TIMEOUT, "bytes on average", OF_STATE, read="state"
        ),
        Figure(
            8,
            "State of the tenth busiest server",
            TIMEOUT,
            "bytes on average",
            OF_STATE,
            read="tenth_state",
        ),
        Figure(
            9,
            "Load of the busiest server",
            "messages in a second",
            "seconds with at least so many",
            AT_100_SECONDS,
            (0.0,),
            read="periods",
        ),
        Figure(
            10,
            "Load of the busiest server when writes come in bursts",
            "messages in a second",
            "seconds with at least so many",
            AT_100_SECONDS,
            (0.0,),
            "bursty",
            "periods",
        ),
        Figure(
            11,
            "Messages by how often files are written",
            "writes, beside the default",
            "messages",
            AT_100_SECONDS,
            MULTIPLIERS,
            "multiplied",
        ),
    )
}

AT_ONCE = 8
"""Replays of the default workload that a process does before it asks for more."""
Draw = Callable[[Workload], Trace]


def cost_of(trace: Trace, run: Run) -> Cost:
    """Replay it."""
    order = busiest(trace)
    tally = replay(trace, lambda trace, tally: run.setting.make(trace, tally, run.x), order[0])
    seconds = trace.ends_at or 1.0
    return Cost(
        tally.all_messages,
        tally.stale_reads / len(trace.read_at),
        tally.state_bytes(order[0], seconds),
        tally.state_bytes(order[min(TENTH, len(order) - 1)], seconds),
        tuple(tally.periods()),
    )


class _Worker:
    """A process that replays: it keeps the trace of the workload that it was last asked about."""

    draw: Draw
    workload: Workload | None = None
    trace: Trace

    @classmethod
    def cost(cls, run: Run) -> Cost:
        if run.workload != cls.workload:
            cls.workload = run.workload
            cls.trace = without_needless_writes(cls.draw(run.workload))
        return cost_of(cls.trace, run)


def _begin(draw: Draw) -> None:
    _Worker.draw = draw


def _costs(runs: Sequence[Run]) -> list[Cost]:
    return [_Worker.cost(run) for run in runs]


def costs_of(
    runs: Iterable[Run], draw: Draw, processes: int, tell: Callable[[int, int], None]
) -> dict[Run, Cost]:
    """Replay all of `runs`, each once; `tell` hears how many are done, of how many."""
    parts = list(_parts(dict.fromkeys(runs)))
    wanted = sum(map(len, parts))
    costs: dict[Run, Cost] = {}
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin, (draw,)) as pool:
        for part, found in zip(parts, pool.map(_costs, parts), strict=True):
            costs |= zip(part, found, strict=True)
            tell(len(costs), wanted)
    return costs


def _parts(runs: Iterable[Run]) -> Iterator[Sequence[Run]]:
    """The parts that one process does one after another: a workload is drawn by one of them, since
    drawing the largest takes as long as replaying it; the default one by each, because most replays
    are of it.
    """
    by_workload: dict[Workload, list[Run]] = {}
    for run in runs:
        by_workload.setdefault(run.workload, []).append(run)
    several = by_workload.pop("default", [])
    yield from sorted(by_workload.values(), key=lambda part: _weight(part[0]), reverse=True)
    for begun in range(0, len(several), AT_ONCE):
        yield several[begun : begun + AT_ONCE]


def _weight(run: Run) -> float:
    """How many writes its workload has, beside the default."""
    return run.workload if isinstance(run.workload, float) else 1.0


class Saving(msgspec.Struct, frozen=True):
    """How many fewer messages volume leases send than leases, if writes wait equally long."""

    write_delay: float
    volume: float
    delayed: float


def savings(costs: dict[Run, Cost]) -> list[Saving]:
    """The savings for write delays of 10 and 100 s, at the best object timeout (5.1)."""

    def fewest(kind: Kind, term: float) -> int:
        return min(
            cost.messages
            for run, cost in costs.items()
            if run.setting.kind == kind
            and run.setting.volume_term == term
            and run.setting.patience == inf
            and run.workload == "default"
        )

    found = []
    for delay in (10.0, 100.0):
        lease = costs[Run("default", Setting("lease"), delay)].messages
        volume, delayed = fewest("volume", delay), fewest("delayed", delay)
        found.append(Saving(delay, 1 - volume / lease, 1 - delayed / lease))
    return found
