"""Writers that are stopped with SIGSTOP, in and outside of their transactions, never write late."""

from pathlib import Path

import pytest

from benchmarks._late import run
from tests.unit.fencing.databases import postgres_programs, postgres_server

ROUNDS = 12


def test_no_write_is_late_in_sqlite(tmp_path: Path) -> None:
    found = run(f"sqlite:{tmp_path / 'store'}", ROUNDS, seed=2)
    assert found.late == 0
    assert found.outcomes.total() == ROUNDS


def test_without_a_fence_some_are(tmp_path: Path) -> None:
    found = run(f"sqlite:{tmp_path / 'store'}", 3 * ROUNDS, seed=2, is_fenced=False)
    assert found.late > 0


def test_no_write_is_late_in_postgresql() -> None:
    if postgres_programs() is None:
        pytest.skip("no PostgreSQL is installed")
    with postgres_server() as url:
        found = run(url, ROUNDS, seed=2)
    assert found.late == 0
    assert found.outcomes.total() == ROUNDS
