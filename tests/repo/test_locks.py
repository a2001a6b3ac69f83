"""The locks are of this pyproject.toml: what it names is in them, with hashes, and nothing says
from where it is fetched. What is installed for development, tests, images and floors is from them.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.repo.reading import ROOT, report
from tools.release import distribution

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {
    "ci": ("server", "uvloop", "dev"),
    "start": ("server", "chat", "columns"),
    "image": ("server", "columns", "uvloop"),
    "docs": ("docs",),
    "release": ("release",),
    "peers": ("peers",),
    "floors": distribution.extras(),
}
PINNED = re.compile(r"^([a-z0-9-]+)==(\S+)((?:.*\\\n +--hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)

FETCHES = re.compile(r"\bpip (?:install|wheel) [^&\n]+")


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


@pytest.mark.parametrize(
    ("program", "lock"),
    [
        ("tools/setup", "locks=ci extras=server,uvloop,dev"),
        ("tools/docs", "--requirement locks/docs.txt"),
        ("tools/release-venv", "--requirement locks/release.txt"),
        ("tools/test-floors", "--requirement locks/floors.txt"),
    ],
)
def test_each_program_installs_its_own_lock(program: str, lock: str) -> None:
    assert lock in (ROOT / program).read_text("utf-8")


def test_an_image_is_made_of_what_locks_say() -> None:
    """The part that is shipped fetches nothing."""
    text = (ROOT / "deploy/Containerfile").read_text("utf-8").replace("\\\n", " ")
    _, built, shipped = re.split(r"^FROM ", text, flags=re.MULTILINE)
    made = [each for each in re.findall(FETCHES, built) if "--no-deps" not in each]
    assert [each for each in made if "--require-hashes" not in each] == []
    assert re.findall(r"/source/locks/(\w+)\.txt", " ".join(made)) == ["build", "image"]
    assert [each for each in re.findall(FETCHES, shipped) if "--no-index" not in each] == []
