"""The experiments of `RESULTS.md`, each in a tiny form, with tenure alone: they run, and report.

Figures are not judged here: a busy machine has others. `make bench-quick` measures beside the
peers.
"""

from typing import Any

import pytest

from benchmarks.experiments import changes, check, cut, stopped
from benchmarks.peers import pool
from benchmarks.results import ORDER

TERM = 1.3
TINY: dict[str, tuple[Any, dict[str, int]]] = {
    "check": (check, {"rounds": 1}),
    "changes": (changes, {"members": 2}),
    "stopped": (stopped, {"rounds": 1}),
    "cut": (cut, {}),
}


def test_each_experiment_of_the_page_is_tried_here() -> None:
    assert set(TINY) == set(ORDER)


@pytest.mark.parametrize("name", TINY)
def test_an_experiment_runs_and_reports_what_tenure_did(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, size = TINY[name]
    for what, value in {"TERM": TERM, "WATCHED_SECONDS": 3 * TERM, "VARIANTS": {}}.items():
        monkeypatch.setattr(module, what, value, raising=False)
    monkeypatch.setattr(module, "there", lambda _: ["tenure"], raising=False)
    monkeypatch.setattr(pool, "QUIET_SECONDS", 0.1)
    section = module.run(lambda _: None, **size)
    assert any(row[0].startswith("tenure") for table in section.tables for row in table.rows)
    assert section.text
