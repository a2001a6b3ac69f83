"""A journal to begin with."""

from pathlib import Path

import pytest

from tenure.protocol.lease.records import State
from tenure.protocol.log.journal import Committed, Seat
from tenure.testing.contracts.records import numbered
from tests.unit.journals.sqlite.disk import SEAT, first, opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with a snapshot of LSN 2, records up to 5, and no process that has it open."""
    path = tmp_path / "journal.sqlite"
    with opened(path) as store:
        assert store.campaign(Seat(), SEAT)
        assert store.append(first(store), 0, numbered(0, 5)) == Committed(5)
        assert store.compact(first(store), 2, State(leadership=1))
    return path
