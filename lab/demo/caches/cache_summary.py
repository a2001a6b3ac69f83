"""The results of the demo with caches."""

from collections.abc import Iterator

import msgspec


class CacheSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The results that `--json` prints; `tenure docs start/demo` explains them."""

    reads: int
    hits: int
    stale: int
    writes: int
    slowest_write_ms: float
    owner_kills: int
    moves: int
    judged: int
    failed: int
    unknown: int
    not_written: int
    slowest_read_ms: float
    loads: int
    owner_stops: int
    owner_restarts: int
    frontend_stops: int
    slowest_dark_seconds: float
    products: int
    owners: int
    frontends: int
    preset: str
    seconds: float

    @property
    def is_good(self) -> bool:
        """Whether no read was stale."""
        return self.stale == 0


def cache_lines(it: CacheSummary) -> Iterator[str]:
    """The summary for people."""
    for count, what in _counts(it):
        yield f"{count:>9}  {what}"
    if it.is_good:
        yield "No read returned less than what was written before."
    else:
        yield "Reads returned less than what was written before: that must never be."


def _counts(it: CacheSummary) -> Iterator[tuple[str, str]]:
    yield f"{it.reads:,}", f"reads in {it.seconds:.0f} s, at {it.frontends} frontends"
    yield f"{it.hits:,}", "of these answered from memory"
    yield f"{it.loads:,}", "times that an owner was asked"
    yield f"{it.failed:,}", "reads without an answer"
    yield f"{it.slowest_read_ms:,.0f}", "milliseconds at most for a read"
    yield f"{it.writes:,}", "writes that were answered"
    yield f"{it.slowest_write_ms:,.0f}", "milliseconds at most for a write"
    yield f"{it.unknown:,}", "writes whose outcome is unknown: their owner was gone"
    yield f"{it.owner_kills:,}", "owners killed with kill -9"
    yield f"{it.owner_stops:,}", "owners stopped past their term"
    yield f"{it.owner_restarts:,}", "owners restarted, which handed over what they had"
    yield f"{it.moves:,}", "ranges that moved with their state"
    yield f"{it.frontend_stops:,}", "frontends stopped past their volume lease"
    yield f"{it.stale:,}", f"stale reads, in a record of {it.judged:,}"
