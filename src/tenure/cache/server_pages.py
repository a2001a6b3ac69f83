"""What a `CacheServer` shows at its own port, because no manager knows it.

`/` is a page for people, which reloads itself every two seconds; `/v1/status` has the same as JSON,
`/metrics` is for Prometheus, and `/healthz` for a supervisor of the process. The page has no script
and no style, and everything in it is text.
"""

from collections.abc import Mapping

import msgspec

from tenure.observe.metrics import MetricFamily, counter
from tenure.observe.plain_pages import plain_page, plain_table
from tenure.observe.tier_families import volume_families
from tenure.protocol.lease.reports import VolumeReport, WaitingWrite

HTML = "text/html; charset=utf-8"
JSON = "application/json"


class VolumeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A cache server, as `/v1/status` shows it."""

    url: str
    volume: VolumeReport
    events: Mapping[str, int]
    """Counts of what happened, by name."""


def server_page(answer: VolumeAnswer, path: str, accept: str) -> tuple[bytes, str] | None:
    """The content at `path`, and its type; None if there is no such page."""
    match path:
        case "/":
            return _html(answer).encode(), HTML
        case "/v1/status":
            return msgspec.json.encode(answer) + b"\n", JSON
        case "/healthz":
            return b'{"status":"up"}\n', JSON
        case "/metrics":
            return _metrics(answer, accept)
        case _:
            return None


def _metrics(answer: VolumeAnswer, accept: str) -> tuple[bytes, str] | None:
    try:
        from tenure.observe.prometheus import exposition  # noqa: PLC0415  # of an extra
    except ImportError:
        return None
    families: list[MetricFamily] = [
        *volume_families("tenure_server", [({"url": answer.url}, answer.volume)]),
        counter("tenure_server_events", "What happened at a cache server.", "event", answer.events),
    ]
    return exposition(families, accept)


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
        return "<p>No write waits.</p>"
    rows = (
        (
            write.keys,
            f"{write.seconds:.1f} s",
            ", ".join(write.readers) or "its time: an earlier reader may still hit",
        )
        for write in writes
    )
    return plain_table("Writes that wait", ("objects", "for", "until these acknowledge"), rows)
