"""The devices of the Live Mesh demo take each message once, and say what they are told."""

from pathlib import Path
from typing import Any

import pytest

from lab.demo.mesh.device_disk import DeviceDisk
from lab.demo.mesh.mesh_clients import POOL_HEADER, mesh_clients
from lab.demo.mesh.mesh_devices import ADDRESS, HOME, WorkDevice, WorkKept, put, read, told_by
from lab.demo.mesh.mesh_troubles import FIRST, planned
from tenure.services.documents.client import DocumentsClient
from tenure.services.queues.client import ReceivedEntry
from tenure.services.queues.entries import QueueLoss
from tests.unit.services.stage import on_service_stage


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (ReceivedEntry(1, 0.0, message={"data": {"address": "10.0.0.1"}}), ""),
        (ReceivedEntry(1, 0.0, message={"missed": [1, 4]}), "messages of the topic were dropped"),
        (
            ReceivedEntry(1, 0.0, loss=QueueLoss(began=True)),
            "its queue begins anew, and what an earlier one had is gone",
        ),
        (
            ReceivedEntry(
                1, 0.0, loss=QueueLoss(dropped=3, pools={"devices": ("a", "b"), "topics": ("a",)})
            ),
            (
                "its queue was full, and 3 entries were dropped; "
                "what 'devices' kept of a, b is lost; what 'topics' kept of a is lost"
            ),
        ),
    ],
)
def test_a_device_is_told_in_words_what_it_may_have_missed(entry: ReceivedEntry, told: str) -> None:
    assert told_by(entry) == told


def message(number: int, version: str) -> ReceivedEntry:
    data = {"version": version, "values": {ADDRESS: f"at {version}"}}
    return ReceivedEntry(number, 0.0, message={"data": data})


async def work_pc(disk: Path, reported: list[str]) -> WorkDevice:
    async with mesh_clients(["http://127.0.0.1:1"]) as clients:
        return WorkDevice(
            clients, DeviceDisk(disk, WorkKept), lambda event, **_: reported.append(event)
        )


@pytest.mark.asyncio
async def test_what_a_former_life_has_taken_is_not_taken_again_unless_its_queue_begins_anew(
    tmp_path: Path,
) -> None:
    disk, reported = tmp_path / "work", list[str]()
    first = await work_pc(disk, reported)
    assert [first._take(each) for each in (message(1, "a"), message(2, "b"))] == [True, True]
    first._disk.save()
    second = await work_pc(disk, reported)
    assert [second._take(each) for each in (message(2, "b"), message(3, "c"))] == [False, True]
    assert (second._disk.kept.address, reported) == ("at c", [])
    began = ReceivedEntry(1, 0.0, loss=QueueLoss(began=True))
    assert [second._take(each) for each in (began, message(2, "d"))] == [False, True]
    assert second._disk.kept.address == "at d"
    second._take(message(3, "d"))
    assert reported == ["doubled"]


@pytest.mark.asyncio
async def test_what_comes_late_of_a_former_life_does_not_undo_what_a_later_one_has_said() -> None:
    async with (
        on_service_stage("documents") as stage,
        DocumentsClient(stage.url, headers={POOL_HEADER: "devices"}) as documents,
    ):
        reported: list[Any] = []
        before, _ = await read(documents, HOME, ADDRESS)
        assert await put(documents, HOME, ADDRESS, "new", reported.append)
        assert not await put(documents, HOME, ADDRESS, "new", reported.append)
        late = await stage.ask(
            "PUT", f"/documents/{HOME}/sections/{ADDRESS}", "old", If_None_Match="*"
        )
        assert (before, late.status) == ("", 412)
        assert (await read(documents, HOME, ADDRESS))[1] == "new"
        assert reported == []


def test_rounds_begin_with_one_of_each_kind_and_come_to_everything() -> None:
    rounds = planned()
    first = [next(rounds) for _ in FIRST]
    assert {(each.part, each.trouble) for each in first} == {
        *[(part, "kill") for part in ("client", "frontend", "worker", "manager")],
        ("worker", "stop"),
    }
    everything = [next(rounds) for _ in range(1000)]
    assert len({*everything}) == everything.index(everything[0], 1)
    assert {each.who for each in everything} >= {each.who for each in first}
