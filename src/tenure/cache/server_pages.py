"""What a `CacheServer` shows at its own port, because no manager knows it.

`/` is a page for people, which reloads itself every two seconds; `/v1/status` has the same as JSON,
`/metrics` is for Prometheus, and `/healthz` for a supervisor of the process. The page has no script
and no style, and everything in it is text.
"""

from collections.abc import Iterable, Mapping
from html import escape

import msgspec

from tenure.observe.metrics import MetricFamily, counter
from tenure.observe.tier_families import volume_families
from tenure.protocol.lease.reports import VolumeReport, WaitingWrite

HTML = "text/html; charset=utf-8"
JSON = "application/json"
AGAIN_SECONDS = 2


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
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="refresh" content="{AGAIN_SECONDS}">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width">'
        "<title>tenure: cache server</title></head><body>"
        f"<h1>Cache server at {escape(answer.url)}</h1>"
        f"{_table('The volume', ('what', 'how many'), numbers.items())}"
        f"{_waiting(volume.waiting)}"
        f"{_table('What happened', ('event', 'how often'), sorted(answer.events.items()))}"
        "</body></html>"
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
    return _table("Writes that wait", ("objects", "for", "until these acknowledge"), rows)


def _table(caption: str, heads: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    named = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{named}</tr></thead>"
        f"<tbody>{lines}</tbody></table>"
    )
