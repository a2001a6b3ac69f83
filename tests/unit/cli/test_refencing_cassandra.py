"""`tenure columns refence` of a keyspace: fences of a lost journal are listed, and stay."""

from collections.abc import Iterator

import pytest

from lab.contracts.entity_store import lease, put
from tenure import Fenced
from tenure.protocol.entity.envelope import Envelope
from tenure.stores.column_store import tables_of
from tenure.stores.opening import store_for
from tests.integration.cassandra.cql_server import small_server
from tests.unit.cli.test_columns_of_nodes import said
from tests.unit.entities.store_urls import cassandra_url

pytestmark = pytest.mark.asyncio
TABLE = tables_of("counters", is_by_clock=True)[0].name


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with small_server() as server:
        yield cassandra_url(server, monkeypatch)


async def test_the_error_of_a_lost_journal_names_the_command_and_numbers_go_on_above(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = await store_for(url)("counters", "hashed")
    for key, number in (("ann", 97), ("bob", 3)):
        await put(store, key, lease(number, journal=0xA), Envelope(number, 0xA, b"\1"))
    with pytest.raises(Fenced, match="refence") as refused:
        await store.load("ann", lease(1, journal=0xB))
    assert str(refused.value).endswith(f"tenure columns refence {url} {TABLE}")
    for _ in range(2):  # asking changes nothing
        listed = await said(capsys, "refence", url, TABLE)
        assert "000000000000000a\t2\t97" in listed
        assert "tenure restore --journal URL --above 97\n" in listed
    with pytest.raises(Fenced):
        await store.load("ann", lease(1, journal=0xB))
    assert (await store.load("ann", lease(98, journal=0xB))).state == b"\1"
    await store.close()
