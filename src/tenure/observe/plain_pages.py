"""Pages of servers without a dashboard, which no manager shows.

`/` is a page for people, text in tables without a script or a style, which reloads itself every two
seconds; everything in it is escaped. `/v1/status` has the same as JSON, `/metrics` is for
Prometheus, and `/healthz` for a supervisor of the process.
"""

from collections.abc import Callable, Iterable
from html import escape

import msgspec

from tenure.observe.metrics import MetricFamily

AGAIN_SECONDS = 2
HTML = "text/html; charset=utf-8"
JSON = "application/json"


def page_at(
    path: str,
    accept: str,
    html: Callable[[], str],
    status: msgspec.Struct,
    families: Callable[[], Iterable[MetricFamily]],
) -> tuple[bytes, str] | None:
    """The content at `path`, and its type; None if there is no such page."""
    match path:
        case "/":
            return html().encode(), HTML
        case "/v1/status":
            return msgspec.json.encode(status) + b"\n", JSON
        case "/healthz":
            return b'{"status":"up"}\n', JSON
        case "/metrics":
            return _metrics(families(), accept)
        case _:
            return None


def _metrics(families: Iterable[MetricFamily], accept: str) -> tuple[bytes, str] | None:
    try:
        from tenure.observe.prometheus import exposition  # noqa: PLC0415  # of an extra
    except ImportError:
        return None
    return exposition(families, accept)


def plain_page(title: str, heading: str, *parts: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="refresh" content="{AGAIN_SECONDS}">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title></head><body>"
        f"<h1>{escape(heading)}</h1>{''.join(parts)}</body></html>"
    )


def plain_table(caption: str, heads: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    named = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{named}</tr></thead>"
        f"<tbody>{lines}</tbody></table>"
    )
