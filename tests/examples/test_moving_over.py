"""The programs of the page on moving over: beside an old lock, and taking over an old database."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tenure import NotOwner
from tenure.cli.export_file import ExportFile
from tenure.entities.entity_kind import EntityKind
from tenure.entities.entity_lines import GivenLines
from tenure.protocol.entity.export_lines import read_entity_lines
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster
from tests.repo.reading import ROOT
from tests.repo.test_prose import python_fences
from tests.unit.entities.stage import on_stage

pytestmark = pytest.mark.asyncio
PAGE = ROOT / "docs" / "guides" / "moving-over.md"


def programs() -> list[dict[str, Any]]:
    found = []
    for line, program in python_fences(PAGE.read_text("utf-8")):
        names: dict[str, Any] = {"__name__": "carts"}
        exec(compile(program, f"{PAGE.name}:{line}", "exec"), names)  # noqa: S102
        found.append(names)
    return found


async def test_old_processes_and_two_new_ones_lose_no_article() -> None:
    beside, _, _ = programs()
    database: dict[str, list[str]] = {}
    locks = {"ann": asyncio.Lock()}

    async def old(article: str) -> None:
        async with locks["ann"]:
            cart = database.get("ann", [])
            await asyncio.sleep(0)
            database["ann"] = [*cart, article]

    async def new(carts: list[Any], article: str) -> None:
        for each in carts:
            try:
                await each.add("ann", article)
            except NotOwner:
                continue
            return
        raise AssertionError("nobody has the cart")

    async with InProcessCluster(["carts"], clock=TurnedClock()) as cluster:
        carts = [beside["Carts"](database, locks) for _ in range(2)]
        owners = [cluster.owner(hand_off=each.turns) for each in carts]
        async with owners[0], owners[1]:
            await cluster.turn(2)
            added = [f"article-{i}" for i in range(20)]
            work = [old(each) if i % 2 else new(carts, each) for i, each in enumerate(added)]
            await asyncio.gather(*work)
    assert sorted(database["ann"]) == sorted(added)


async def test_an_entity_takes_an_old_row_over_once() -> None:
    _, after, _ = programs()
    async with on_stage(1, kind=after["Cart"]) as stage:
        (first,) = stage.members
        assert await stage.done(first["ann"].add("milk")) == 2
        after["OLD_DATABASE"]["ann"] = ["too late"]
        second = await stage.enter(kind=after["Cart"])
        await stage.move("ann", second)
        assert await stage.done(first["ann"].add("bread")) == 3
        assert await stage.done(first["bob"].add("milk")) == 1


async def test_a_file_of_old_rows_is_imported(tmp_path: Path) -> None:
    _, after, all_at_once = programs()
    file = tmp_path / "carts.jsonl"
    all_at_once["write_carts"]({"ann": ["tea", "milk"], "bob": []}, file)
    with file.open("rb") as opened:
        carts = ExportFile(opened, file)
        carts.check()
        found = [(each.key, [*carts.parts(each)]) for each in carts.each()]
    assert [key for key, _ in found] == ["ann", "bob"]
    kind = EntityKind(after["Cart"])
    [part] = found[0][1]
    given = GivenLines(kind, "ann", read_entity_lines(part.lines))
    assert given.state is not None
    assert kind.codec.decode("ann", given.state).names == ["tea", "milk"]
