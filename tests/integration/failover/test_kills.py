"""The short form of `python -m lab kills`: owners, readers, nodes and managers are killed and
stopped while clients add to entities that are read everywhere, and nothing that was answered is
lost or forgotten.

`TENURE_TEST_SEED` draws the same trouble again.
"""

import os
from pathlib import Path
from random import SystemRandom

import pytest

from lab.histories.entities.kill_run import judge, main
from lab.histories.entities.log_system import LogSystem

COUNT = 8


def test_what_is_answered_is_neither_lost_nor_forgotten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = os.environ.get("TENURE_TEST_SEED") or str(SystemRandom().randrange(1000))
    said = main(["--count", str(COUNT), "--seed", seed, "--place", str(tmp_path)])
    assert said == 0, capsys.readouterr().out


def test_a_run_in_which_nothing_was_done_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "calls-c1.jsonl").touch()
    assert not judge(tmp_path)


def test_processes_are_started_as_members_or_with_the_commands_of_users(tmp_path: Path) -> None:
    system = LogSystem(tmp_path, {"clients-1": {"name": "c1"}})
    assert "--others=" + system.managers[0] in system.command("manager-2")
    assert system.command("node-1")[-2:] == ["--manager", system.managers[1]]
    environment = system.environment("owner-1")
    assert environment is not None
    assert environment["TENURE_STORE"] == system.url
