"""The programs in the guide to policies of one's own run as they are printed."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tenure.policies import Candidate, RangeMap, Situation
from tenure.testing.contracts.situations import EMPTY
from tests.repo.reading import ROOT
from tests.repo.test_prose import python_fences

GUIDE = ROOT / "docs" / "guides" / "your-own-policy.md"
POLICY, SUITE = (program for _, program in python_fences(GUIDE.read_text("utf-8")))


def test_the_policy_gives_everything_to_the_owner_that_was_there_first() -> None:
    names: dict[str, Any] = {}
    exec(POLICY, names)  # noqa: S102
    policy = names["ToFirst"]()
    assert policy(Situation([Candidate(2, "bob"), Candidate(1, "ann")], EMPTY)).owners == RangeMap(
        1
    )
    assert policy(Situation([], EMPTY)).owners == RangeMap(0)


def test_the_suite_tests_the_example(tmp_path: Path) -> None:
    (tmp_path / "test_steady.py").write_text(SUITE, "utf-8")
    few = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "every_key or pin", "test_steady.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "examples")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert few.returncode == 0, few.stdout + few.stderr
