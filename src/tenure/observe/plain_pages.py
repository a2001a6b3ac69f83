"""Pages of servers without a dashboard: text in tables, without a script or a style.

A page reloads itself every two seconds. Everything in it is escaped.
"""

from collections.abc import Iterable
from html import escape

AGAIN_SECONDS = 2


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
