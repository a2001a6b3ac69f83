"""What the demo came to."""

from collections.abc import Iterator

import msgspec

from leasehold.cli.demo.reports import FrontendReport


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What the demo came to; `--json` prints it as it is. docs/start/demo.md explains each."""

    requests: int
    failed: int
    rerouted: int
    double_owner: int
    losses_signalled: int
    keys_republished: int
    owner_kills: int
    owner_stops: int
    attempts: int
    refused: int
    refused_late: int
    voided: int
    served: int
    found_nothing: int
    ranges_lost: int
    slowest_seconds: float
    seconds: float
    owners: int
    frontends: int
    preset: str

    @property
    def is_good(self) -> bool:
        """Whether no two owners ever served one key at once."""
        return self.double_owner == 0


class Ours(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the summary that the frontends do not know."""

    double_owner: int
    served: int
    voided: int
    owner_kills: int
    owner_stops: int
    seconds: float
    owners: int
    frontends: int
    preset: str


def summary_of(totals: FrontendReport, ours: Ours) -> Summary:
    """What the frontends have counted, and what the demo has."""
    counted = msgspec.structs.asdict(totals)
    del counted["has_published"]
    slowest = round(counted.pop("slowest_ns") / 1e9, 3)
    return Summary(slowest_seconds=slowest, **counted, **msgspec.structs.asdict(ours))


def lines(summary: Summary) -> Iterator[str]:
    """The summary for people."""
    each = summary
    yield f"{each.requests:>9,}  requests in {each.seconds:.0f} s, from {each.frontends} frontends"
    yield f"{each.failed:>9,}  failed: not done within twice the hold, retries included"
    yield f"{each.rerouted:>9,}  rerouted: done by another owner than the one asked first"
    yield (
        f"{each.refused:>9,}  answers 421 from owners without the lease, {each.refused_late:,} of "
        "them to requests that had waited in a stopped owner"
    )
    yield f"{each.voided:>9,}  operations under way when the lease ended: refused at the last check"
    yield f"{each.owner_kills:>9,}  owners killed (kill -9), and {each.owner_stops} stopped past their term"
    yield (
        f"{each.losses_signalled:>9,}  losses signalled to frontends, which republished "
        f"{each.keys_republished:,} keys"
    )
    yield f"{each.slowest_seconds:>9.2f}  seconds at most for a request, retries included"
    yield f"{each.double_owner:>9,}  times two owners served one key at once, in {each.served:,} entries"
    if each.is_good:
        yield "One owner for every key, all the time."
    else:
        yield "Two owners served one key: that must never be."
