"""An audit that looked nothing up does not pass, and one that found a weakness neither."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo.reading import ROOT
from tests.repo.test_ci import program
from tools.release.advisories import FINE, NOT_LOOKED_UP, WEAK, verdict


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


# --- the program ---

PYTHON = f"""
case "$*" in
-m\\ pip\\ freeze*) echo a==1 ;;
*) exec {sys.executable} "$@" ;;
esac
"""
WRITES = """
while [ "$1" != --output ]; do shift; done
cp report.json "$2"
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A place in which one package is installed, with the report of an audit from before."""
    for each in ("tools/audit", "tools/release/advisories.py"):
        (tmp_path / each).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / each, tmp_path / each)
    program(tmp_path / "tools/release-venv", ":")
    for venv in (".venv", ".venv-release", "build"):
        (tmp_path / venv).mkdir()
    program(tmp_path / ".venv/bin/python", PYTHON)
    (tmp_path / "build/audit.json").write_text(reported(a=[]))
    return tmp_path


@pytest.mark.parametrize(
    ("audit", "report", "status"),
    [
        (WRITES, reported(a=[]), FINE),
        (WRITES, reported(a=["X-1"]), WEAK),
        (WRITES, reported(a=None), NOT_LOOKED_UP),
        ("echo no service answers; exit 1", "", NOT_LOOKED_UP),
    ],
)
def test_the_program_ends_as_its_verdict_says(
    clone: Path, audit: str, report: str, status: int
) -> None:
    program(clone / ".venv-release/bin/pip-audit", audit)
    (clone / "report.json").write_text(report)
    done = subprocess.run([clone / "tools/audit"], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert ("NOT LOOKED UP" in done.stderr) == (status == NOT_LOOKED_UP)
