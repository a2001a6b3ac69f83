"""`.ci/run` fails if one of the two versions of etcd is missing, unless it is told to go on. So it
does if weaknesses of the packages were not looked up.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.repo.reading import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="an sdist has no .ci")

HAS_ANOTHER = 'echo "$PWD/.ci/etcd"'
HAS_NONE = "exit 1"
MAKES = 'echo "$*, with ${TENURE_TEST_ETCD:-the usual etcd}" >>made'
"""A `make` that only notes what it was asked for."""


def program(path: Path, body: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a place with the script and nothing else, in which everything passes at once."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    program(tmp_path / ".ci/etcd", "echo etcd Version: 3.4.0")
    program(tmp_path / "tools/audit", ":")
    program(tmp_path / "bin/make", MAKES)
    program(tmp_path / "bin/chromium", ":")
    return tmp_path


def run(clone: Path, **said: str) -> tuple[int, str, list[str]]:
    """How it ended, what it complained about, and what was made."""
    around = {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")}
    around["PATH"] = f"{clone / 'bin'}:{around['PATH']}"
    done = subprocess.run(
        [clone / ".ci/run"], env={**around, **said}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr, (clone / "made").read_text().splitlines()


def run_with_failing(stage: str, clone: Path) -> tuple[int, str, list[str]]:
    """The same, with a test that fails at this stage each time."""
    (clone / ".pytest_cache/v/cache").mkdir(parents=True)
    failed = """echo '  "t": true' >.pytest_cache/v/cache/lastfailed"""
    program(clone / "bin/make", f'{MAKES}\nif [ "$1" = {stage} ]; then {failed}; exit 1; fi')
    return run(clone)


def test_it_refuses_where_the_other_etcd_is_missing(clone: Path) -> None:
    program(clone / ".ci/other-etcd", HAS_NONE)
    code, complaint, made = run(clone)
    assert code == 1
    assert "no etcd of another version" in complaint
    assert "TENURE_ONE_ETCD=1" in complaint
    assert made == ["setup, with the usual etcd"]


@pytest.mark.parametrize("found", [HAS_NONE, HAS_ANOTHER])
def test_it_goes_on_with_one_where_that_is_said(clone: Path, found: str) -> None:
    program(clone / ".ci/other-etcd", found)
    code, _, made = run(clone, TENURE_ONE_ETCD="1")
    assert code == 0
    assert made[1].startswith("lint types, ")
    assert all(each.endswith("with the usual etcd") for each in made)


def test_it_runs_the_tests_of_etcd_once_more_with_the_other_one(clone: Path) -> None:
    program(clone / ".ci/other-etcd", HAS_ANOTHER)
    code, _, made = run(clone)
    assert code == 0
    again = [each for each in made if each.endswith(f"with {clone / '.ci/etcd'}")]
    assert [each.split()[0] for each in again] == ["test", "test-failover"]
    assert "tests/integration/etcd" in again[0]


@pytest.mark.parametrize("told", [None, "1"])
def test_what_was_not_looked_up_is_said_where_it_is_seen(clone: Path, told: str | None) -> None:
    program(clone / ".ci/other-etcd", HAS_ANOTHER)
    program(clone / "tools/audit", "exit 3")
    code, complaint, _ = run(clone, **({} if told is None else {"TENURE_NO_ADVISORIES": told}))
    assert code == 0
    assert complaint.count("NO AUDIT WAS DONE") == 2, "where it happens, and at the end"
    assert "TENURE_NO_ADVISORIES=1" in complaint


@pytest.mark.parametrize(("found", "told"), [(1, "1"), (1, "0"), (3, "0"), (2, "1")])
def test_what_is_known_or_was_to_be_looked_up_refuses_the_change(
    clone: Path, found: int, told: str
) -> None:
    program(clone / ".ci/other-etcd", HAS_ANOTHER)
    program(clone / "tools/audit", f"exit {found}")
    code, complaint, _ = run(clone, TENURE_NO_ADVISORIES=told)
    assert code == found
    assert "NO AUDIT WAS DONE" not in complaint


def test_what_fails_beside_the_others_and_alone_refuses_the_change(clone: Path) -> None:
    program(clone / ".ci/other-etcd", HAS_ANOTHER)
    code, complaint, made = run_with_failing("test", clone)
    assert code != 0
    assert "UNSTEADY" in complaint
    assert made[-1] == "test WORKERS=0 ARGS=--last-failed, with the usual etcd"


@pytest.mark.parametrize("stage", ["test-simulation", "test-failover", "bench"])
def test_no_other_stage_is_tried_a_second_time(clone: Path, stage: str) -> None:
    program(clone / ".ci/other-etcd", HAS_ANOTHER)
    code, complaint, made = run_with_failing(stage, clone)
    assert code != 0
    assert "UNSTEADY" not in complaint
    assert [each.split()[0].rstrip(",") for each in made].count(stage) == 1
    assert made[-1].startswith(stage)


def test_there_is_no_other_etcd_where_none_is_there_and_none_can_be_fetched(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/other-etcd", tmp_path / ".ci/other-etcd")
    (tmp_path / "bin").mkdir()
    for name in ("bash", "dirname", "mkdir"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or pytest.fail(name))
    said = subprocess.run(
        [tmp_path / ".ci/other-etcd"],
        env={"PATH": str(tmp_path / "bin")},
        capture_output=True,
        check=False,
    )
    assert said.returncode == 1
    assert not said.stdout
