"""Questions about entities that ask an owner for more than it can read, or for many looks into its
store.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tenure.base.keys import KEY_BYTES
from tenure.entities.inspector import LOOK_KEYS
from tenure.fencing.fenced_rows import StoredKeys
from tenure.manager import entities_api
from tenure.protocol.entity.inspection import PLACE_BYTES, WALKED_KEYS
from tenure.stores.sql_store import SqlEntityStore
from tests.unit.entities.test_inspecting import rooms

pytestmark = pytest.mark.asyncio


def items_after(place: bytes) -> str:
    """A token that somebody has made up, for the items behind this place."""
    return entities_api._sealed(entities_api.ItemsToken("rooms", "room-0", "history", place))


async def test_no_question_that_an_owner_cannot_read_costs_it_its_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever may read the pool could disconnect any owner, as often as it liked."""
    async with rooms() as it:
        await it.rooms["room-0"].say("hello")
        forged = items_after(bytes(PLACE_BYTES))
        for asked in (
            f"entity?key={'x' * (KEY_BYTES + 1)}",
            f"entity?key=room-0&collection=history&after={forged}",
        ):
            status, refused = await it.get(asked)
            assert (status, refused["error"][:26]) == (400, "no owner can be asked that")
        assert (await it.get("entity?key=room-0"))[0] == 200
        assert "malformed" not in caplog.text


async def test_who_wants_one_key_that_is_not_there_costs_few_looks_into_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    look = SqlEntityStore.keys

    async def counted(store: SqlEntityStore, after: bytes, most: int, /) -> StoredKeys:
        nonlocal looks
        looks += 1
        return await look(store, after, most)

    monkeypatch.setattr(SqlEntityStore, "keys", counted)
    monkeypatch.setattr(entities_api, "MOST_PARTS", 1)
    async with rooms(f"sqlite:{tmp_path / 'rooms'}") as it:
        await it.rooms["room-0"].say("hello")
        with closing(sqlite3.connect(tmp_path / "rooms")) as database, database:
            database.executemany(
                "INSERT INTO tenure_entity SELECT ?, place, number, step, data, alarm "
                "FROM tenure_entity WHERE data != '' LIMIT 1",
                [(msgspec.msgpack.encode(f"room-{i}"),) for i in range(1, WALKED_KEYS)],
            )
        status, page = await it.get("entities?most=1&prefix=hall")
        assert (status, page["keys"]) == (200, [])
        assert page["next"] is not None
        assert 1 < looks <= WALKED_KEYS / LOOK_KEYS + 1
