"""`versions.py SITE`: writes the list of versions into the site, and makes it open the newest
release.

`versions.json` is what the theme reads to let its reader choose; its form is that of `mike`.
"""

import json
import re
import sys
from pathlib import Path

RELEASE = re.compile(r"\d+(?:\.\d+)+")


def versions(site: Path) -> list[str]:
    """Those that the site has, the newest release first, and what is no release behind them."""
    found = [each.name for each in site.iterdir() if (each / "index.html").is_file()]
    releases = [name for name in found if RELEASE.fullmatch(name)]
    ordered = sorted(releases, key=lambda name: [int(n) for n in name.split(".")], reverse=True)
    return [*ordered, *sorted(set(found) - set(releases))]


def write(site: Path) -> None:
    """The list, and a first page that leads to the newest."""
    names = versions(site)
    told = [
        {"version": name, "title": name, "aliases": ["latest"] if name == names[0] else []}
        for name in names
    ]
    (site / "versions.json").write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    (site / "index.html").write_text(
        "<!doctype html>\n<title>tenure</title>\n"
        f'<meta http-equiv="refresh" content="0; url={names[0]}/index.html">\n'
        f'<a href="{names[0]}/index.html">The documents of tenure {names[0]}</a>\n',
        "utf-8",
    )


if __name__ == "__main__":
    write(Path(sys.argv[1]))
