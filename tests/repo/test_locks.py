"""The locks are of this pyproject.toml: what it names is in them, with hashes, and nothing says
from where it is fetched. And an audit that looked nothing up does not pass.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.repo.reading import ROOT, report
from tools.release import distribution
from tools.release.advisories import FINE, NOT_LOOKED_UP, WEAK, verdict

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {
    "ci": ("server", "uvloop", "dev"),
    "start": ("server", "chat"),
    "image": ("server", "columns", "uvloop"),
    "docs": ("docs",),
    "release": ("release",),
    "peers": ("peers",),
    "floors": distribution.extras(),
}
PINNED = re.compile(r"^([a-z0-9-]+)==(\S+)((?:.*\\\n +--hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


def wanted(name: str) -> Iterator[Requirement]:
    groups = PROJECT["optional-dependencies"]
    for each in (*PROJECT["dependencies"], *(line for of in EXTRAS[name] for line in groups[of])):
        yield Requirement(each)


def pinned(name: str) -> dict[str, str]:
    text = (ROOT / f"locks/{name}.txt").read_text("utf-8")
    found = PINNED.findall(text)
    assert len(found) == len(re.findall(r"^\w", text, re.MULTILINE)), "each has hashes"
    return {which: version for which, version, _ in found}


def complaints(name: str, versions: dict[str, str]) -> list[str]:
    found = []
    for each in wanted(name):
        version = versions.get(plain(each.name))
        if version is None:
            found.append(f"locks/{name}.txt lacks {each.name}; run make lock")
        elif version not in each.specifier:
            found.append(f"locks/{name}.txt has {each.name} {version}; run make lock")
    return found


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("name", EXTRAS)
def test_a_lock_has_what_is_wanted_in_a_version_that_is_admitted(name: str) -> None:
    found = complaints(name, pinned(name))
    assert found == [], report(found)


def test_a_lock_that_is_too_old_is_found() -> None:
    versions = pinned("ci")
    assert complaints("ci", {**versions, "aiohttp": "3.0.0"}) == [
        "locks/ci.txt has aiohttp 3.0.0; run make lock"
    ]
    del versions["msgspec"]
    assert complaints("ci", versions) == ["locks/ci.txt lacks msgspec; run make lock"]


def test_the_oldest_versions_are_those_that_are_tested() -> None:
    """Where an index has no file of that very version, the next one stands for it."""
    versions = pinned("floors")
    floors = {plain(each.name): lowest(each) for each in wanted("floors")}
    newer = {name for name, lowest in floors.items() if not is_of(versions[name], lowest)}
    assert newer <= {"pytest", "psycopg"}, "pytest is the one of ci, which runs the tests"


def lowest(wanted: Requirement) -> str:
    (bound,) = (each.version for each in wanted.specifier if each.operator == ">=")
    return bound


def is_of(version: str, lowest: str) -> bool:
    """Whether it is that version, with or without zeros at its end."""
    return re.sub(r"(\.0)+$", "", version) == re.sub(r"(\.0)+$", "", lowest)


def test_no_lock_says_from_where_its_packages_come() -> None:
    for path in sorted((ROOT / "locks").iterdir()):
        assert not re.search(r"://|--(extra-)?index|--find-links|@ ", path.read_text("utf-8")), path


@pytest.mark.parametrize(
    "program", ["tools/setup", "tools/docs", "tools/release-venv", "tools/test-floors"]
)
def test_what_is_installed_is_what_a_lock_says(program: str) -> None:
    text = (ROOT / program).read_text("utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if re.search(r"(pip|^ *) install ", line) and "()" not in line:
            is_ours = "--no-deps" in line or "UNLOCKED" in line or ".[$extras]" in line
            assert "--require-hashes" in line or is_ours, f"{program}: {line}"


# --- the audit ---


def reported(**packages: list[str] | None) -> str:
    said: list[dict[str, object]] = []
    for name, weaknesses in packages.items():
        if weaknesses is None:
            said.append({"name": name, "skip_reason": "not found"})
        else:
            vulns = [{"id": each, "fix_versions": ["9"]} for each in weaknesses]
            said.append({"name": name, "version": "1", "vulns": vulns})
    return json.dumps({"dependencies": said, "fixes": []})


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (reported(a=[], b_c=[]), FINE, "no known weakness in 2 packages"),
        (reported(a=[], b_c=["X-1"]), WEAK, "b_c 1: X-1, mended in 9"),
        (reported(a=["X-1"], b_c=None), WEAK, "a 1: X-1, mended in 9"),
        (reported(a=None, b_c=None), NOT_LOOKED_UP, "NOT LOOKED UP: 2 of 2 packages: a, b-c"),
        (reported(a=[]), NOT_LOOKED_UP, "NOT LOOKED UP: 1 of 2 packages: b-c"),
        ("", NOT_LOOKED_UP, "NOT LOOKED UP: 2 of 2 packages: a, b-c"),
        ("{}", NOT_LOOKED_UP, "NOT LOOKED UP: 2 of 2 packages: a, b-c"),
    ],
)
def test_an_audit_passes_only_if_every_package_was_looked_up(
    text: str, status: int, said: str
) -> None:
    found, lines = verdict(text, ["a", "b-c"])
    assert (found, lines[0]) == (status, said)


def test_an_audit_of_nothing_does_not_pass(tmp_path: Path) -> None:
    assert verdict(reported(), [])[0] == NOT_LOOKED_UP
