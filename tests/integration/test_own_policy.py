"""A policy of one's own, in a manager process, by commands: chosen, in trouble, missing."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.processes import manager
from tests.integration.test_steering import Commands, owner
from tests.patience import DEADLINE_SECONDS
from tests.unit.manager import sample_policies

ROOT = Path(__file__).parents[2]
SAMPLES = sample_policies.__name__
FICKLE, ABSENT, RAISES = (f"{SAMPLES}:{name}" for name in ("Fickle", "Absent", "Raises"))


@pytest.fixture
def trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that makes policies fail while it is there."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv(sample_policies.TROUBLE, str(tmp_path))
    return tmp_path / "trouble"


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def allowed(*names: str) -> list[str]:
    return [word for name in names for word in ("--policies", name)]


def until(is_so: Callable[[], bool]) -> None:
    gives_up_at = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < gives_up_at


def owners_of(tenure: Commands) -> dict[str, int]:
    """How many ranges each owner of the pool has."""
    listed = json.loads(tenure.said("owners", "rooms", "--json"))["owners"]
    return {each["name"]: each["ranges"] for each in listed}


def test_a_pool_follows_it_and_a_manager_without_it_leaves_all_as_it_was(
    trouble: Path, tmp_path: Path, processes: ExitStack, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "journal.sqlite"
    with manager(
        "--first-start", *allowed(FICKLE, RAISES), journal=journal, preset="default"
    ) as first:
        url = first.wait_for("listening")["url"]
        tenure = Commands(url, capsys)
        for name in ("ann", "bob"):
            processes.enter_context(owner(url, name))
        assert "ann" in tenure.said("pool", "policy", "rooms", FICKLE, "--dry-run")
        assert f"rooms is planned by {FICKLE}" in tenure.said("pool", "policy", "rooms", FICKLE)
        # Moves within the budget go to ann, who was there first.
        until(lambda: "over the budget for moves" in tenure.said("plan", "rooms"))
        # A policy that cannot plan is not chosen, nor one that the manager was not started with.
        refused = tenure.said("pool", "policy", "rooms", RAISES, code=2)
        assert f"the policy {RAISES} for the pool 'rooms' failed: KeyError" in refused
        refused = tenure.said("pool", "policy", "rooms", ABSENT, code=2)
        assert f"start every manager with --policies {ABSENT}" in refused
        # In trouble the pool has its ranges, and says so.
        trouble.touch()
        tenure.said("freeze", "rooms")
        tenure.said("unfreeze", "rooms")
        until(lambda: "today is not my day" in tenure.said("why", "rooms", "some-key"))
        assert "today is not my day" in tenure.said("plan", "rooms", code=2)
        trouble.unlink()
        until(lambda: "today is not my day" not in tenure.said("why", "rooms", "some-key"))
        tenure.said("freeze", "rooms")
        until(lambda: "no range is to move" in tenure.said("plan", "rooms"))
        had = owners_of(tenure)
    port = int(url.rpartition(":")[2])
    with manager(journal=journal, preset="default", port=port) as second:
        second.wait_for("leading")
        missing = f"this manager does not know {FICKLE}"
        until(lambda: missing in tenure.said("why", "rooms", "some-key"))
        assert missing in tenure.said("plan", "rooms", code=2)
        until(lambda: owners_of(tenure) == had)
        assert "weighted" in tenure.said("pool", "policy", "rooms", "weighted")
        until(lambda: missing not in tenure.said("why", "rooms", "some-key"))
