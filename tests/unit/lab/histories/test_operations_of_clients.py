"""What recorded clients do, with a store in this process: everything is noted, nothing is wrong."""

import time
from pathlib import Path
from random import Random

import pytest

from lab.histories.operations_of_clients import OWNED, TABLE, ClientOperations
from lab.histories.outages import Stretch
from lab.histories.verdicts import first_judge
from lab.judges.operations import AnyRecord, WriteOperation
from tenure import open_store


@pytest.mark.asyncio
async def test_a_store_on_one_host_keeps_every_promise() -> None:
    said: list[AnyRecord | Stretch] = []
    began = time.monotonic_ns()
    clients = [ClientOperations(f"c{n}", Random(n), began, said.append) for n in range(3)]
    async with open_store("memory:", TABLE, OWNED) as store:
        for number in range(400):
            await clients[number % 3].one(store)
    noted = [each for each in said if not isinstance(each, Stretch)]
    kinds = {each.key.partition("-")[0] for each in noted}
    assert kinds == {"hot", "even", "set", "owned"}
    verdict = first_judge(sorted(noted, key=lambda each: each.ended))
    assert (verdict.complaints, verdict.undecided) == ([], 0)
    assert verdict.counts["written"] > 100
    assert verdict.counts["reads"] > 50
    assert verdict.counts["pages"] > 10
    assert verdict.counts["unknown"] == verdict.counts["not written"] == 0
    values = [
        (each.key, value)
        for each in noted
        if isinstance(each, WriteOperation)
        for value in set(each.columns.values())
        if value is not None
    ]
    assert len(values) == len(set(values))


@pytest.mark.asyncio
async def test_a_client_notes_for_how_long_it_had_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.histories.outages.SHORT_NS", 0)
    noted: list[AnyRecord | Stretch] = []
    client = ClientOperations("c0", Random(1), time.monotonic_ns(), noted.append)
    async with open_store(f"rocksdb:{tmp_path}", TABLE, OWNED) as store:
        await client.one(store)
    closed = time.monotonic_ns()
    await client.one(store)
    await client.one(store)
    since = client.failed_since
    client.end()
    last = noted[-1]
    assert isinstance(last, Stretch)
    assert since is not None
    assert closed <= last.began < since < last.ended
    assert "not open" in last.said
