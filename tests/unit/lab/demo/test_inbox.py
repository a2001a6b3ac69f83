"""`python -m lab demo inbox` prints the paper's table beside what it measured."""

import json
from pathlib import Path

import pytest

from lab.commands import run
from lab.demo import inbox
from tests.unit.columns.node.ringed import form_ring, running, settings_of


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "MESSAGES", 200)
    monkeypatch.setattr(inbox, "SEARCHES", 20)


def test_the_papers_table_is_printed_beside_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "inbox"]) == 0
    text = capsys.readouterr().out
    assert "search by person\tpaper\t7.69 ms\t15.69 ms\t26.13 ms\t2.0\t3.4" in text
    assert "search by word\tpaper\t7.78 ms\t18.27 ms\t44.41 ms\t2.3\t5.7" in text
    assert text.count("\there\t") == 2


def test_as_json_it_has_all_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "inbox", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    for low, middle, high in found["measured"].values():
        assert 0 < low <= middle <= high


@pytest.mark.asyncio
async def test_on_three_nodes_both_indexes_are_searched_at_quorum(tmp_path: Path) -> None:
    nodes = settings_of(tmp_path)
    form_ring(nodes, inbox.INBOX)
    async with running(nodes) as services:
        found = await inbox.measured(f"columns:{services[0].url}", 10)
    assert found.keys() == {"interactions", "terms"}
    for low, middle, high in found.values():
        assert 0 < low <= middle <= high
