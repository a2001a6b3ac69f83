"""What a `CacheServer` shows at its own port, because no manager knows it.

`plain_pages` says what is where.
"""

from collections.abc import Iterator, Mapping

import msgspec

from tenure.observe.metrics import MetricFamily, counter
from tenure.observe.plain_pages import page_at, plain_page, plain_table
from tenure.observe.tier_families import volume_families
from tenure.protocol.lease.reports import VolumeReport, WaitingWrite


class VolumeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A cache server, as `/v1/status` shows it."""

    url: str
    volume: VolumeReport
    events: Mapping[str, int]
    """Counts of what happened, by name."""


def server_page(answer: VolumeAnswer, path: str, accept: str) -> tuple[bytes, str] | None:
    """The content at `path`, and its type; None if there is no such page."""
    return page_at(path, accept, lambda: _html(answer), answer, lambda: _families(answer))


def _families(answer: VolumeAnswer) -> Iterator[MetricFamily]:
    yield from volume_families("tenure_server", [({"url": answer.url}, answer.volume)])
    yield counter(
        "tenure_server_events", "What happened at a cache server.", "event", answer.events
    )


def _html(answer: VolumeAnswer) -> str:
    volume = answer.volume
    numbers = {
        "readers": volume.readers,
        "object leases": volume.leases,
        "invalidations not acknowledged": volume.unacknowledged,
        "writes not done": volume.writes,
        "loads under way": volume.loads,
    }
    return plain_page(
        "tenure: cache server",
        f"Cache server at {answer.url}",
        plain_table("The volume", ("what", "how many"), numbers.items()),
        _waiting(volume.waiting),
        plain_table("What happened", ("event", "how often"), sorted(answer.events.items())),
    )


def _waiting(writes: tuple[WaitingWrite, ...]) -> str:
    if not writes:
        return "<p>No write is waiting.</p>"
    rows = (
        (
            write.keys,
            f"{write.seconds:.1f} s",
            ", ".join(write.readers) or "its time: an earlier reader may still hit",
        )
        for write in writes
    )
    return plain_table("Writes that wait", ("objects", "for", "until these acknowledge"), rows)
