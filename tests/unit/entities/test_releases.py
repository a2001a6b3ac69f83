"""Old and new processes have the state of one key in turn, and neither loses what only the other
knows.
"""

from dataclasses import dataclass, field
from types import new_class
from typing import Annotated, Any

import attrs
import msgspec
import pydantic
import pytest

from tenure import (
    ConfigurationError,
    Entities,
    Entity,
    EntityError,
    NewerState,
    OutcomeUnknown,
    Series,
    ValueTypeError,
    refusal,
    upgrade,
    was,
)
from tenure.entities.entity_kind import EntityKind
from tenure.entities.state_versions import VERSION_FIELD
from tests.unit.entities.releases import (
    NewLine,
    NewLines,
    NewRoom,
    OldRoom,
    VersionedLines,
    VersionedRoom,
)
from tests.unit.entities.stage import Stage, on_stage

_decode = msgspec.msgpack.Decoder().decode


async def talk(stage: Stage, old: Entities[Any], new: Entities[Any]) -> None:
    """A room goes from one release to the other and back, again and again."""
    assert await stage.done(new["a"].say("one")) == 1
    await stage.done(new["a"].edit("tea"))
    await stage.move("a", old)
    assert await stage.done(new["a"].say("two")) == 2
    assert await stage.done(old["a"].count()) == 2
    await stage.move("a", new)
    await stage.done(new["a"].edit("coffee"))
    found = await stage.done(new["a"].everything())
    assert found == NewLines(
        2,
        "coffee",
        [NewLine("one", 2), NewLine("two", 1)],
        NewLine("", 2),
        {"one": NewLine("one", 2), "two": NewLine("two", 1)},
    )
    await stage.move("a", old)
    for text in ("three", "four"):  # "one" is removed, and the others have other places
        await stage.done(old["a"].say(text))
    await stage.done(old["a"].pin("pin"))
    await stage.move("a", new)
    found = await stage.done(new["a"].everything())
    assert found.last == [NewLine("two", 1), NewLine("three", 0), NewLine("four", 0)]
    assert found.pinned == NewLine("pin", 2)
    assert found.by["one"] == NewLine("one", 2)


@pytest.mark.asyncio
async def test_what_a_new_process_keeps_survives_an_old_one() -> None:
    async with on_stage(1, kind=OldRoom) as stage:
        new = await stage.enter(kind=NewRoom)
        await stage.move("a", new)
        await talk(stage, stage.members[0], new)


@pytest.mark.asyncio
async def test_so_it_does_in_every_store(shared_store_url: str) -> None:
    async with on_stage(1, kind=OldRoom, store=shared_store_url) as stage:
        new = await stage.enter(kind=NewRoom, store=shared_store_url)
        await stage.move("a", new)
        await talk(stage, stage.members[0], new)


@pytest.mark.asyncio
async def test_a_release_and_the_one_before_go_on_from_a_store(any_store_url: str) -> None:
    """A directory is open in one process at a time."""
    async with on_stage(1, kind=NewRoom, store=any_store_url) as stage:
        await stage.done(stage.members[0]["a"].say("one"))
        await stage.done(stage.members[0]["a"].edit("tea"))
        await stage.leave(stage.members[0])
        old = await stage.enter(kind=OldRoom, store=any_store_url)
        assert await stage.done(old["a"].say("two")) == 2
        await stage.leave(old)
        new = await stage.enter(kind=NewRoom, store=any_store_url)
        found = await stage.done(new["a"].everything())
        assert (found.topic, found.last) == ("tea", [NewLine("one", 1), NewLine("two", 0)])
        await stage.leave(new)
        third = await stage.enter(kind=VersionedRoom, store=any_store_url)
        assert await stage.done(third["a"].say("and three")) == 13
        assert await stage.done(third["a"].everything()) == VersionedLines(
            13, 4, [NewLine("one", 1), NewLine("two"), NewLine("and three")]
        )
        await stage.leave(third)
        late = await stage.enter(kind=NewRoom, store=any_store_url)
        with pytest.raises(NewerState, match="kept by version 3"):
            await stage.done(late["a"].say("late"))
        await stage.leave(late)
        third = await stage.enter(kind=VersionedRoom, store=any_store_url)
        assert (await stage.done(third["a"].everything())).total == 13


@pytest.mark.asyncio
async def test_another_state_in_its_place_keeps_the_fields_of_the_key() -> None:
    async with on_stage(1, kind=OldRoom) as stage:
        (old,) = stage.members
        new = await stage.enter(kind=NewRoom)
        await stage.move("a", new)
        await stage.done(new["a"].say("one"))
        await stage.done(new["a"].edit("tea"))
        await stage.move("a", old)
        await stage.done(old["a"].renew())
        await stage.move("a", new)
        assert await stage.done(new["a"].everything()) == NewLines(1, "tea", pinned=NewLine("", 1))


@pytest.mark.asyncio
async def test_a_call_that_raises_loses_no_unknown_field() -> None:
    class Failing(OldRoom, name="Room"):
        async def fail(self) -> None:
            self.state.last.clear()
            raise ValueError("on purpose")

    async with on_stage(1, kind=Failing) as stage:
        (old,) = stage.members
        new = await stage.enter(kind=NewRoom)
        await stage.move("a", new)
        await stage.done(new["a"].say("one"))
        await stage.done(new["a"].edit("tea"))
        await stage.move("a", old)
        with pytest.raises(ValueError, match="on purpose"):
            await stage.done(old["a"].fail())
        assert await stage.done(old["a"].say("two")) == 2
        await stage.move("a", new)
        found = await stage.done(new["a"].everything())
        assert (found.topic, found.last) == ("tea", [NewLine("one", 1), NewLine("two", 0)])


# --- versions ---


@pytest.mark.asyncio
async def test_a_state_is_upgraded_where_it_is_loaded_and_kept_with_the_next_change() -> None:
    async with on_stage(1, kind=NewRoom) as stage:
        (before,) = stage.members
        await stage.done(before["a"].say("one word"))
        after = await stage.enter(kind=VersionedRoom)
        await stage.move("a", after)
        found = await stage.done(after["a"].everything())
        assert found == VersionedLines(11, 2, [NewLine("one word")])
        kept = after.station.host.gate.envelopes["a"].state
        assert VERSION_FIELD.encode() not in kept  # nothing was changed
        await stage.move("a", before)
        assert await stage.done(before["a"].say("two")) == 2
        await stage.move("a", after)
        assert await stage.done(after["a"].say("three")) == 13
        kept = _decode(after.station.host.gate.envelopes["a"].state)
        assert (kept[VERSION_FIELD], kept["total"], "count" in kept) == (3, 13, False)
        assert kept["topic"] == "none"  # nobody has said that it shall go


@pytest.mark.asyncio
async def test_an_older_process_refuses_the_state_of_a_newer_version_and_begins_nothing() -> None:
    async with on_stage(1, kind=VersionedRoom) as stage:
        (new,) = stage.members
        await stage.done(new["a"].say("one"))
        old = await stage.enter(kind=NewRoom)
        await stage.move("a", old)
        kept = old.station.host.gate.envelopes["a"]
        for member in (old, new):
            with pytest.raises(NewerState, match=r"kept by version 3.* has version 1") as raised:
                await stage.done(member["a"].say("two"))
            answer = refusal(raised.value)
            assert answer is not None
            assert (answer.status, answer.headers["Tenure-Outcome"]) == (503, "not-begun")
        assert old.station.host.gate.envelopes["a"] is kept
        await stage.move("a", new)
        assert await stage.done(old["a"].say("two")) == 2


@pytest.mark.asyncio
async def test_a_call_on_behalf_of_another_was_begun() -> None:
    class Asking(Entity[NewLines], name="Room"):
        async def ask(self, other: Any) -> int:  # noqa: ANN401  # a text
            return await there[other].say("one")  # type: ignore[no-any-return]

        say: Any = NewRoom.say

    async with on_stage(1, kind=VersionedRoom) as stage:
        (new,) = stage.members
        await stage.done(new["a"].say("one"))
        there = await stage.enter(kind=Asking)
        await stage.move("a", there)
        await stage.move("b", there)
        with pytest.raises(OutcomeUnknown, match="was begun, and has raised NewerState"):
            await stage.done(there["b"].ask("a"))


@pytest.mark.asyncio
async def test_an_upgrade_that_raises_leaves_the_key_untouched(any_store_url: str) -> None:
    async with on_stage(1, kind=NewRoom, store=any_store_url) as stage:
        await stage.done(stage.members[0]["a"].say("poison"))
        await stage.leave(stage.members[0])
        new = await stage.enter(kind=VersionedRoom, store=any_store_url)
        for _ in range(2):
            with pytest.raises(EntityError, match="version 1: ValueError: nobody can count that"):
                await stage.done(new["a"].say("two"))
        assert await stage.done(new["b"].say("another key")) == 1
        await stage.leave(new)
        old = await stage.enter(kind=NewRoom, store=any_store_url)
        assert (await stage.done(old["a"].everything())).last == [NewLine("poison")]
        assert await stage.done(old["a"].say("two")) == 2


def kind_of(new: Any, version: int = 1, **functions: Any) -> EntityKind:  # noqa: ANN401  # a class
    given = {"version": version}
    room = new_class("Room", (Entity[new],), given, lambda names: names.update(functions))
    return EntityKind(room)


def same(fields: dict[str, Any]) -> dict[str, Any]:
    return fields


class Renamed(msgspec.Struct):
    title: Annotated[str, was("name")] = ""


class Taken(msgspec.Struct):
    title: Annotated[str, was("name")] = ""
    name: str = ""


class Inside(msgspec.Struct):
    inside: list[Renamed] = []


class ByPlace(msgspec.Struct, array_like=True):
    title: str = ""


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: kind_of(Renamed), r"write `class Room\(..., version=2\)`"),
        (lambda: kind_of(Taken, 2), "give the new field another name"),
        (lambda: kind_of(Inside, 2), "rename it in an @upgrade"),
        (lambda: kind_of(ByPlace, 2), "leave out array_like"),
        (lambda: kind_of(NewLines, 0), "a number from 1 on, not 0"),
        (lambda: kind_of(NewLines, True), "a number from 1 on, not True"),
        (lambda: kind_of(NewLines, 2, a=upgrade(from_version=2)(same)), "never lowered"),
        (
            lambda: kind_of(
                NewLines, 2, a=upgrade(from_version=1)(same), b=upgrade(from_version=1)(same)
            ),
            "two upgrades from version 1",
        ),
        (lambda: upgrade(from_version=0), "the number of a version"),
        (lambda: upgrade(from_version=1)(7), "@upgrade is for a function"),
        (was, "earlier names"),
        (lambda: was(""), "earlier names"),
    ],
)
def test_what_cannot_be_meant_is_refused(make: Any, why: str) -> None:  # noqa: ANN401  # a function
    with pytest.raises(ConfigurationError, match=why):
        make()


@pytest.mark.parametrize("result", [None, [1], {"last": object()}])
def test_an_upgrade_returns_the_fields(result: object) -> None:
    kind = kind_of(NewLines, 2, a=upgrade(from_version=1)(lambda _: result))
    with pytest.raises(EntityError, match="could not be upgraded from version 1: TypeError"):
        kind.codec.current("a", msgspec.msgpack.encode({"count": 1}))


@pytest.mark.parametrize("version", ["2", -1 << 70, None, 2.5])
def test_a_version_that_is_none_is_told(version: object) -> None:
    if isinstance(version, int):
        version = [version > 0]
    kept = msgspec.msgpack.encode({VERSION_FIELD: version})
    with pytest.raises(ValueTypeError, match="the version of the state of Room 'a'"):
        kind_of(NewLines).codec.current("a", kept)


# --- kinds of classes ---


@dataclass
@dataclass
class InData:
    text: str = ""


@dataclass
class DataState:
    count: int = 0
    last: list[InData] = field(default_factory=list)


@attrs.define
class InAttrs:
    text: str = ""


@attrs.define
class AttrsState:
    count: int = 0
    last: list[InAttrs] = attrs.field(factory=list)


class InModel(pydantic.BaseModel):
    text: str = ""


class ModelState(pydantic.BaseModel):
    count: int = 0
    last: list[InModel] = []


class StrictModel(pydantic.BaseModel, extra="allow"):
    count: int = 0
    last: list[InModel] = []


class Tagged(msgspec.Struct, tag="line"):
    text: str = ""


class TaggedState(msgspec.Struct, tag="lines", rename="camel"):
    count: int = 0
    last: list[Tagged] = []


@pytest.mark.parametrize("new", [DataState, AttrsState, ModelState, StrictModel])
@pytest.mark.parametrize("version", [1, 2])
def test_unknown_fields_are_kept_of_any_class(new: Any, version: int) -> None:  # noqa: ANN401  # a class
    codec = kind_of(new, version).codec
    line = {"text": "one", "edited": 3}
    kept = {"more": [1], "count": 1, "last": [line, {"text": "two"}]}
    if version > 1:
        kept[VERSION_FIELD] = version
    data = msgspec.msgpack.encode(kept)
    state, unknown = codec.opened("a", codec.current("a", data))
    state.count += 1
    state.last.reverse()
    found = _decode(codec.encode("a", state, unknown))
    assert found == {**kept, "count": 2, "last": [{"text": "two"}, line]}


def test_tags_and_other_names_are_known() -> None:
    codec = kind_of(TaggedState).codec
    kept = codec.encode("a", TaggedState(1, [Tagged("one")]))
    shuffled = msgspec.msgpack.encode(dict(reversed(_decode(kept).items())))
    state, unknown = codec.opened("a", shuffled)
    assert unknown is None
    assert codec.encode("a", state) == kept


def test_fields_that_follow_by_place_are_kept() -> None:
    codec = kind_of(ByPlace).codec
    state, unknown = codec.opened("a", msgspec.msgpack.encode(["title", 7, [8]]))
    state.title = "other"
    assert _decode(codec.encode("a", state, unknown)) == ["other", 7, [8]]


def test_a_class_that_forbids_unknown_fields_refuses_them() -> None:
    class Strict(msgspec.Struct, forbid_unknown_fields=True):
        count: int = 0

    codec = kind_of(Strict, 2).codec
    assert codec.decode("a", codec.encode("a", Strict(7))) == Strict(7)
    with pytest.raises(ValueTypeError, match="unknown field"):
        codec.opened("a", msgspec.msgpack.encode({"count": 1, "more": 2}))


def test_what_is_put_where_something_was_removed_is_new() -> None:
    codec = kind_of(NewLines).codec
    kept = {"by": {"ann": {"text": "one", "color": "red"}}}
    state, unknown = codec.opened("a", msgspec.msgpack.encode(kept))
    removed = state.by.pop("ann")
    assert "color" not in repr(_decode(codec.encode("a", state, unknown)))
    state.by["ann"] = NewLine("another")
    assert "color" not in repr(_decode(codec.encode("a", state, unknown)))
    state.by["bob"] = removed
    assert _decode(codec.encode("a", state, unknown))["by"]["bob"]["color"] == "red"


def test_a_state_of_the_class_itself_is_not_searched() -> None:
    """Most loads find what this very class has kept."""
    codec = kind_of(NewLines).codec
    assert codec.opened("a", codec.encode("a", NewLines(3)))[1] is None
    assert codec.opened("a", b"") == (NewLines(), None)


@pytest.mark.asyncio
async def test_what_was_at_a_newer_process_never_moves_to_an_older_one() -> None:
    """A release that raises the version is deployed process by process, and nobody is refused."""
    async with on_stage(2, kind=NewRoom) as stage:
        keys = [f"key-{i}" for i in range(24)]

        async def all_say() -> None:
            for key in keys:
                await stage.done(stage.members[-1][key].say("one"))

        await all_say()
        while (old := stage.members[0]).station.kind.version == 1:
            await stage.enter(kind=VersionedRoom)
            await all_say()
            await stage.leave(old)
            await stage.until(lambda: all(map(stage.owner_of, keys)))
            await all_say()
        found = [(await stage.done(stage.members[0][key].everything())).total for key in keys]
        assert found == [15] * len(keys)


@pytest.mark.asyncio
async def test_an_older_process_has_what_nobody_else_is_there_for() -> None:
    async with on_stage(1, kind=VersionedRoom) as stage:
        (new,) = stage.members
        old = await stage.enter(kind=NewRoom)
        assert await stage.done(old["a"].say("one")) == 1
        assert not old.station.owner.ranges
        await stage.leave(new)
        await stage.until(lambda: stage.owner_of("b"))
        assert await stage.done(old["b"].say("one")) == 1
        with pytest.raises(NewerState):
            await stage.done(old["a"].say("two"))


@pytest.mark.asyncio
async def test_what_is_kept_beside_an_empty_state_has_a_version_too() -> None:
    class Diary(Entity[VersionedLines], version=3, name="Room"):
        pages = Series(NewLine)

        async def write(self, text: str) -> None:
            self.pages.add(NewLine(text))

    async with on_stage(1, kind=Diary) as stage:
        (new,) = stage.members
        await stage.done(new["a"].write("one"))
        old = await stage.enter(kind=NewRoom)
        await stage.move("a", old)
        with pytest.raises(NewerState, match="kept by version 3"):
            await stage.done(old["a"].say("two"))
