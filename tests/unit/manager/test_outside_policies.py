"""The policies with which a manager is started: by module and class, or by an entry point."""

from pathlib import Path

import pytest

from tenure.base.rangemap import RangeMap
from tenure.errors import ConfigurationError
from tenure.manager.outside_policies import OutsidePolicies, targets_of
from tenure.protocol.balance.policy import Candidate, Situation
from tenure.protocol.lease.records import PoolCreated
from tenure.protocol.lease.table import LeaseTable
from tenure.testing.contracts.situations import EMPTY
from tests.unit.manager.sample_policies import ToFirst
from tests.unit.manager.serving import serving

TO_FIRST = f"{ToFirst.__module__}:{ToFirst.__qualname__}"


@pytest.fixture
def _entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with the entry point `first`."""
    info = tmp_path / "own_policies-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-policies\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[tenure.policies]\nfirst = {TO_FIRST}\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("_entry_point")
def test_a_name_is_a_module_and_a_class_or_an_entry_point() -> None:
    assert targets_of([TO_FIRST, "first"]) == {TO_FIRST: TO_FIRST, "first": TO_FIRST}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("weighted", "the policy weighted is tenure's own"),
        ("deal", "the policy deal is tenure's own"),
        ("", "neither module:Class nor an entry point"),
        ("second", "installed are: first"),
        ("module", "neither module:Class nor an entry point"),
        ("module:", "neither module:Class nor an entry point"),
        (":Class", "neither module:Class nor an entry point"),
        ("../module:Class", "neither module:Class nor an entry point"),
        ("module:Class()", "neither module:Class nor an entry point"),
        ("-c:Class", "neither module:Class nor an entry point"),
        ("m:" + "C" * 200, "neither module:Class nor an entry point"),
    ],
)
@pytest.mark.usefixtures("_entry_point")
def test_what_is_neither_is_refused_at_the_start(name: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        targets_of([name])


def test_each_pool_has_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    policies = OutsidePolicies({"first": TO_FIRST})
    rooms, carts = (
        LeaseTable(PoolCreated(pool=name, kind="hashed")) for name in ("rooms", "carts")
    )
    situation = Situation([Candidate(1, "ann")], EMPTY)
    for table in (rooms, carts, rooms):
        assert policies.makers["first"](table)(situation).owners == RangeMap(1)
    assert len({process._process for process in policies._processes.values()}) == 2
    policies.close()
    assert [process._process for process in policies._processes.values()] == [None, None]


@pytest.mark.asyncio
async def test_a_manager_with_a_name_that_is_none_does_not_start() -> None:
    with pytest.raises(ConfigurationError, match="policies has 'no policy'"):
        async with serving(policies=("no policy",)):
            raise AssertionError("it started")
