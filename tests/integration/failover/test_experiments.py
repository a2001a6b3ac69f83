"""The experiments of `RESULTS.md`, each in a tiny form, with tenure alone: they run, and report.

Figures are not judged here: a busy machine has others. `make bench-quick` measures beside the
peers.
"""

from typing import Any

import pytest

from benchmarks import renewal, tables
from benchmarks.experiments import (
    at_rest,
    cached,
    calls,
    changes,
    check,
    coordinator,
    cut,
    durable,
    entity,
    inbox,
    limits,
    memory,
    propagation,
    rack,
    renewals,
    restarts,
    rotation,
    scale,
    skew,
    stopped,
    volumes,
)
from benchmarks.peers import pool
from benchmarks.results import ORDER

TERM = 1.3
FEW = {
    "TERM": TERM,
    "WATCHED_SECONDS": 3 * TERM,
    "VARIANTS": {},
    "OWNERS": 10,
    "LOOKUPS": 10,
    "RETURNING": 2,
    "FRONTENDS": 5,
    "STEPS": (10,),
    "RENEWALS": 20,
    "REPEATS": 1,
    "PRESET": "test",
    "SECONDS": 1.0,
    "REST_SECONDS": 1.0,
    "DATABASES": {name: durable.DATABASES[name] for name in ("tenure's store, embedded", "SQLite")},
}
TINY: dict[str, tuple[Any, dict[str, Any]]] = {
    "check": (check, {"rounds": 1}),
    "changes": (changes, {"members": 2}),
    "stopped": (stopped, {"rounds": 1}),
    "cut": (cut, {}),
    "coordinator": (coordinator, {"owners": 10, "seconds": 1.0}),
    "cached": (cached, {"frontends": (2,)}),
    "entity": (entity, {"rounds": 2}),
    "durable": (durable, {"turns": 1, "seconds": 0.1}),
    "propagation": (propagation, {"changes": 2, "lookups": 50}),
    "at_rest": (at_rest, {"seconds": 1.0}),
    "restarts": (restarts, {"minutes": 0.05}),
    "rotation": (rotation, {}),
    "scale": (scale, {"seconds": 1.0, "nodes": (10,)}),
    "limits": (limits, {"sizes": ((20, 50),)}),
    "memory": (memory, {}),
    "renewals": (renewals, {}),
    "rack": (rack, {}),
    "skew": (skew, {"minutes": 1}),
    "calls": (calls, {"calls": 20 * 2 * 64 * 10}),
    "volumes": (volumes, {"scale": 0.002}),
    "inbox": (inbox, {"nodes": (5,)}),
}


def test_each_experiment_of_the_page_is_tried_here() -> None:
    assert set(TINY) == set(ORDER)


@pytest.mark.parametrize("name", TINY)
def test_an_experiment_runs_and_reports_what_tenure_did(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, size = TINY[name]
    for what in FEW.keys() & vars(module).keys():
        monkeypatch.setattr(module, what, FEW[what])
    for what in ("RENEWALS", "REPEATS"):
        monkeypatch.setattr(renewal, what, FEW[what])
    monkeypatch.setattr(tables, "REPEATS", 1)
    monkeypatch.setattr(tables, "LOOKUPS", 10)
    monkeypatch.setattr(module, "there", lambda _: ["tenure"], raising=False)
    monkeypatch.setattr(pool, "QUIET_SECONDS", 0.1)
    section = module.run(lambda _: None, **size)
    assert any(row[0].startswith("tenure") for table in section.tables for row in table.rows)
    assert section.text
