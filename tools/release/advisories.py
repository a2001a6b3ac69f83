"""What is known of the weaknesses of packages, from pip-audit's report; `tools/audit` calls it.

A package that was not looked up is not a package without weaknesses. So there are three outcomes,
and three exit statuses: all were looked up and nothing is known of them, something is known, or
some were not looked up, which says nothing.
"""

import json
import sys
from pathlib import Path
from typing import Any

FINE, WEAK, NOT_LOOKED_UP = 0, 1, 3


def verdict(report: str, wanted: list[str]) -> tuple[int, list[str]]:
    """The exit status, and what to say, of a report about the packages that were wanted."""
    try:
        said: list[dict[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError):
        said = []
    answered = {each["name"]: each for each in said if "vulns" in each}
    weak = [
        f"{name} {each['version']}: {weakness['id']}, mended in "
        f"{', '.join(weakness.get('fix_versions', ())) or 'no version yet'}"
        for name, each in sorted(answered.items())
        for weakness in each["vulns"]
    ]
    known = {_plain(name) for name in answered}
    missing = sorted(name for name in wanted if _plain(name) not in known)
    if missing:
        shown = ", ".join(missing[:5]) + (" ..." if len(missing) > 5 else "")  # noqa: PLR2004
        weak.append(f"NOT LOOKED UP: {len(missing)} of {len(wanted)} packages: {shown}")
    if len(weak) > bool(missing):
        return WEAK, weak
    if missing or not wanted:
        return NOT_LOOKED_UP, weak or ["NOT LOOKED UP: there are no packages to look up"]
    return FINE, [f"no known weakness in {len(wanted)} packages"]


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def main() -> int:
    """Judge the report in the first file about the packages in the second."""
    report, installed = (Path(each) for each in sys.argv[1:])
    lines = installed.read_text("utf-8").splitlines()
    wanted = [line.partition("==")[0] for line in lines if "==" in line]
    status, said = verdict(report.read_text("utf-8") if report.exists() else "", wanted)
    for line in said:
        print(f"audit: {line}", file=sys.stderr if status else sys.stdout)
    return status


if __name__ == "__main__":
    sys.exit(main())
