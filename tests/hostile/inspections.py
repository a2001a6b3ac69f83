"""Inspections: the decoders of what looks into entities, with samples to change."""

import msgspec

from tenure.entities import inspector
from tenure.entities.arriving_state import arriving_state, read_arriving
from tenure.entities.entity_kind import EntityKind
from tenure.entities.entity_lines import UNFIT, GivenLines
from tenure.entities.plain_values import from_json, to_json
from tenure.errors import MALFORMED
from tenure.manager.entities_api import ItemsToken, KeysToken, _sealed, read_place
from tenure.manager.entity_answers import value_of
from tenure.manager.entity_files import GivenEntity, ImportBody
from tenure.manager.http_errors import HttpRefusal, decoded_body
from tenure.protocol.entity.export_lines import (
    AgainLine,
    AlarmLine,
    AnswerLine,
    AnyLine,
    CollectionLine,
    CutLine,
    EndLine,
    EntityLine,
    ExportLine,
    ItemLine,
    PartLine,
    read_entity_lines,
    read_line,
    written,
)
from tests.hostile.hostile_decoder import HostileDecoder
from tests.unit.entities.test_inspecting import Room

PLACES_IN_LISTS = (
    KeysToken("rooms", of_pool=False, start=b"12345678", after=b"x"),
    ItemsToken("rooms", "attic", "history", b"1"),
)
OF_AN_ENTITY: tuple[EntityLine | PartLine, ...] = (
    EntityLine(key="attic", state=msgspec.Raw(b'{"count":1}'), latest=1.5),
    AlarmLine(name="close", due=1.0, next_at=2.0, attempts=3),
    AnswerLine(call=b"id", at=1.0, data=b"x"),
    CollectionLine(name="history", last=3),
    ItemLine(at=1, added=1.0, value=msgspec.Raw(b'"hello"')),
    CollectionLine(name="members"),
    ItemLine(at="ann", value=msgspec.Raw(b"1")),
)
AROUND_THEM: tuple[AnyLine, ...] = (
    ExportLine(layout=1, pool="rooms", kind="Room"),
    AgainLine(key=7),
    EndLine(entities=1, lines=2, sha256="0" * 64),
    CutLine(why="it went", way_out="ask again"),
)
ODD = {"a": [b"x", 1.5, float("inf")], 7: None}
A_BODY = ImportBody(kind="Room", entities=[GivenEntity(key="attic", digest="0" * 64, lines="{}")])
INSPECTIONS: dict[str, HostileDecoder] = {
    "places in lists of entities": HostileDecoder(
        "manager/entities_api.py",
        lambda data: read_place(data.decode("latin-1")),
        tuple(_sealed(each).encode() for each in PLACES_IN_LISTS),
        (HttpRefusal,),
    ),
    "a key's place at its owner": HostileDecoder(
        "entities/inspector.py",
        inspector.read_place,
        (msgspec.msgpack.encode(inspector.OwnPlace(b"12345678", "attic")),),
        MALFORMED,
    ),
    "values that an owner shows": HostileDecoder(
        "manager/entity_answers.py",
        lambda data: value_of(data.decode("latin-1")),
        (b'{"count":1}', b""),
        MALFORMED,
    ),
    "lines of an export": HostileDecoder(
        "protocol/entity/export_lines.py",
        read_line,
        tuple(written(each) for each in (*OF_AN_ENTITY, *AROUND_THEM)),
        MALFORMED,
    ),
    "lines that an owner is to keep": HostileDecoder(
        "entities/entity_lines.py",
        lambda data: GivenLines(EntityKind(Room), "attic", read_entity_lines(data)),
        (b"".join(written(each) for each in OF_AN_ENTITY),),
        UNFIT,
    ),
    "values in an export": HostileDecoder(
        "entities/plain_values.py",
        lambda data: from_json(msgspec.Raw(data)),
        (bytes(to_json(msgspec.msgpack.encode(ODD))), b'{"$msgpack":"wA=="}'),
        MALFORMED,
    ),
    "what is arriving": HostileDecoder(
        "entities/arriving_state.py", read_arriving, (arriving_state(b"digest", 2),), MALFORMED
    ),
    "bodies of imports": HostileDecoder(
        "manager/entity_files.py",
        lambda data: decoded_body(data, ImportBody, "no way out"),
        (msgspec.json.encode(A_BODY),),
        (HttpRefusal,),
    ),
}
