"""The results of the demo."""

from collections.abc import Iterator

import msgspec


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The results that `--json` prints; `tenure docs start/demo` explains all of them."""

    requests: int
    failed: int
    rerouted: int
    double_owner: int
    losses_signalled: int
    keys_republished: int
    owner_kills: int = 0
    owner_stops: int = 0
    attempts: int
    refused: int
    refused_late: int
    voided: int
    served: int
    found_nothing: int = 0
    ranges_lost: int
    slowest_seconds: float
    seconds: float
    owners: int
    frontends: int
    preset: str
    contact_lost: int = 0
    leader_kills: int = 0
    leases_lost_to_failover: int = 0
    takeover_seconds: float = 0.0
    slowest_takeover_seconds: float = 0.0
    managers: int = 1
    journal: str = "sqlite"
    keys_lost: int = 0
    drains: int = 0
    drain_seconds: float = 0.0
    slowest_drain_seconds: float = 0.0
    moves_per_key: float = 0.0
    dark_seconds: float = 0.0
    slowest_dark_seconds: float = 0.0
    crowds: int = 0
    uneven: float = 0.0
    even_seconds: float = 0.0
    slowest_even_seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether no two owners ever served one key at once."""
        return self.double_owner == 0


def lines(summary: Summary) -> Iterator[str]:
    """The summary for people."""
    for count, what in _counts(summary):
        yield f"{count:>9}  {what}"
    if summary.is_good:
        yield "One owner for every key, all the time."
    else:
        yield "Two owners served one key at once: that must never be."


def _counts(it: Summary) -> Iterator[tuple[str, str]]:
    yield f"{it.requests:,}", f"requests in {it.seconds:.0f} s, from {it.frontends} frontends"
    yield f"{it.failed:,}", "failed: not done within twice the hold, retries included"
    yield f"{it.rerouted:,}", "rerouted: done by another owner than the one asked first"
    yield f"{it.slowest_seconds:.2f}", "seconds at most for a request, retries included"
    yield f"{it.owner_kills:,}", "owners killed with kill -9"
    yield f"{it.owner_stops:,}", "owners stopped past their term"
    if it.leader_kills:
        yield from _failovers(it)
    if it.drains:
        yield from _drains(it)
    if it.dark_seconds:
        yield from _crashes(it)
    if it.crowds:
        yield from _crowds(it)
    yield f"{it.refused:,}", "answers 421 from owners that did not have the key"
    yield f"{it.refused_late:,}", "of these to requests that had waited in a stopped owner"
    yield f"{it.voided:,}", "answers 503 at the last check: the lease had ended in the middle"
    yield f"{it.losses_signalled:,}", "losses signalled to frontends"
    yield f"{it.keys_republished:,}", "keys republished by them"
    yield f"{it.double_owner:,}", f"keys that two owners served at once, in {it.served:,} entries"


def _failovers(it: Summary) -> Iterator[tuple[str, str]]:
    yield f"{it.leader_kills:,}", f"leaders of {it.managers} managers killed with kill -9"
    yield f"{it.takeover_seconds:.2f}", "seconds until another led, in the median"
    yield f"{it.slowest_takeover_seconds:.2f}", "seconds at most"
    yield f"{it.leases_lost_to_failover:,}", "leases lost to that"
    yield f"{it.contact_lost:,}", "times that a frontend was out of contact with all managers"


def _drains(it: Summary) -> Iterator[tuple[str, str]]:
    yield f"{it.drains:,}", f"restarts of {it.owners} owners, two at a time"
    yield f"{it.drain_seconds:.2f}", "seconds for one to hand everything over and end: median"
    yield f"{it.slowest_drain_seconds:.2f}", "seconds at most"
    yield f"{it.moves_per_key:.2f}", "moves of a key, on average"
    yield f"{it.keys_lost:,}", "keys whose state was lost"


def _crashes(it: Summary) -> Iterator[tuple[str, str]]:
    yield f"{it.dark_seconds:.2f}", "seconds until all keys of the dead were served again: median"
    yield f"{it.slowest_dark_seconds:.2f}", "seconds at most"
    yield f"{it.keys_lost:,}", "keys whose state was lost"


def _crowds(it: Summary) -> Iterator[tuple[str, str]]:
    yield f"{it.crowds:,}", "crowds that asked for a few keys of one owner"
    yield f"{it.uneven:.2f}", "times the mean was asked of one owner, at the worst"
    yield f"{it.even_seconds:.2f}", "seconds until the load was even again: median"
    yield f"{it.slowest_even_seconds:.2f}", "seconds at most"
    yield f"{it.keys_lost:,}", "keys whose state was lost"
