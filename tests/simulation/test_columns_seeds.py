"""Some seeds of the store: every promise is kept, and everything that may go wrong does."""

from collections import Counter
from functools import partial

import pytest

from lab.worlds.columns import world
from lab.worlds.columns.run import run_columns
from lab.worlds.columns.strikes import FAULTS
from lab.worlds.columns.trial import ColumnsTrial
from tenure.protocol.replication import request_room
from tenure.protocol.replication.node_events import NodeConfig
from tests.simulation.test_mutants_of_the_store import BACK


@pytest.mark.parametrize("seed", range(10))
def test_every_promise_of_the_store_is_kept(seed: int) -> None:
    outcome = run_columns(ColumnsTrial(seed=seed, hours=0.5))
    assert outcome.violation is None, (outcome.violation, *outcome.story)
    assert outcome.simulated_hours >= 0.5


def test_every_promise_is_kept_where_reads_wait_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows here are small. With a little of two bytes all are asked for twice, and wait."""
    grown: Counter[str] = Counter()

    class Watched(request_room.Portion):
        def grown(self, size: request_room.Size) -> None:
            grown[size] += self.is_waiting
            super().grown(size)

    monkeypatch.setattr(request_room, "LITTLE_BYTES", 2)
    monkeypatch.setattr(request_room.RequestPlaces, "are_many_left", False)
    monkeypatch.setattr(request_room, "_MOST", {"page": 300, "whole": 1 << 30})
    monkeypatch.setattr(request_room, "Portion", Watched)
    monkeypatch.setattr(world, "NodeConfig", partial(NodeConfig, most_large_reads=2))
    for seed in range(4):
        outcome = run_columns(ColumnsTrial(seed=seed, hours=0.2))
        assert outcome.violation is None, (outcome.violation, *outcome.story)
    assert grown["page"] > 100
    assert grown["whole"] > 0


def test_every_kind_of_fault_of_the_store_happens_within_thirty_seeds() -> None:
    counts: Counter[str] = Counter()
    workload: Counter[str] = Counter()
    for seed in range(30):
        outcome = run_columns(ColumnsTrial(seed=seed, hours=0.1))
        counts.update(outcome.faults)
        workload.update(outcome.workload)
    assert [kind for kind in FAULTS.kinds if not counts[kind]] == []
    shapes = {name.partition(",")[0] for name in workload if name.startswith("rings")}
    assert shapes == {"rings rack unaware", "rings rack aware", "rings datacentre aware"}
    wanted = {"reads at quorum", "writes at quorum", "writes at one", "writes repeated"}
    wanted |= {"rows adopted", "owners' writes of former owners refused", "reads of owned rows"}
    wanted |= {f"changes done: {kind}" for kind in ("add", "remove", "replace", "move")}
    wanted |= {"changes taken back", "removed nodes refused", "reads at local_quorum"}
    wanted |= {"reads at each_quorum", "writes drawn anew", "writes too far ahead"}
    assert wanted | {"writes not begun", "writes unknown"} <= set(workload)


def test_a_disk_that_is_put_back_is_refused_and_no_promise_is_broken() -> None:
    refused = 0
    for seed in range(6):
        outcome = run_columns(ColumnsTrial(seed=seed, hours=0.3, faults=FAULTS.chosen(BACK)))
        assert outcome.violation is None, (outcome.violation, *outcome.story)
        refused += outcome.workload.get("nodes refused whose disks were put back", 0)
    assert refused > 0


def test_the_same_seed_is_the_same_world_of_the_store() -> None:
    one, other = (run_columns(ColumnsTrial(seed=3, hours=0.2)) for _ in range(2))
    assert one == other


def test_where_nothing_goes_wrong_the_store_refuses_nothing() -> None:
    outcome = run_columns(ColumnsTrial(seed=1, hours=0.2, faults=FAULTS.chosen("none")))
    assert (outcome.violation, outcome.faults) == (None, {})
    assert not {"reads failed", "writes unknown", "writes not begun"} & set(outcome.workload)
