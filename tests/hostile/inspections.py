"""Inspections: the decoders of what looks into entities, with samples to change."""

import msgspec

from tenure.entities import inspector
from tenure.errors import MALFORMED
from tenure.manager.entities_api import ItemsToken, KeysToken, _sealed, read_place
from tenure.manager.entity_answers import value_of
from tenure.manager.http_errors import HttpRefusal
from tests.hostile.hostile_decoder import HostileDecoder

PLACES_IN_LISTS = (
    KeysToken("rooms", of_pool=False, start=b"12345678", after=b"x"),
    ItemsToken("rooms", "attic", "history", b"1"),
)
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
}
