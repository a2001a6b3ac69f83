"""Every module that decodes something is tried with hostile bytes, or says why not."""

import re
from collections.abc import Iterator

import pytest

from tests.hostile.decoders import DECODERS
from tests.repo.reading import SRC, modules

DECODES = re.compile(
    r"msgspec\.(?:json|msgpack|toml|yaml)\.(?:decode|Decoder)\b|(?<!\.)\bDecoder\(|msgspec\.convert\("
    r"|\btomllib\.loads?\(|\bjson\.loads?\(|\.unpack(?:_from)?\(|\bReader\(|\bParserCreate\("
)
NOT_HOSTILE = {
    "transport/same_user.py": "what the kernel answers",
    "cli/": "a person's own terminal, and answers of the manager that this person named",
    "testing/": "tests of users read what these users' programs say",
    "client/hand_off/": "state in the form of the application's type: chunks of it are in wire/",
    "columns/tables.py": "values in the type that the application declared, from its own store",
    "columns/replica.py": "the store's own records, behind RocksDB's checksums",
    "columns/range_sums.py": "as columns/replica.py",
    "columns/range_horizons.py": "as columns/replica.py",
    "columns/backends/cassandra/": "tables that tenure made in Cassandra",
    "stores/column_store.py": "keys of rows in its own store",
    "entities/shown_values.py": "as entities/state_codec.py",
    "entities/state_codec.py": "state of the application's type, from its own store",
    "entities/item_codec.py": "as entities/state_codec.py",
    "entities/state_versions.py": "as entities/state_codec.py",
    "entities/series.py": "times and numbers of items, from its own store",
    "entities/methods.py": "arguments in the application's types, of members behind mutual TLS",
    "stores/sql_store.py": "an envelope from its own store",
    "stores/alarm_index.py": "names of an index in its own store",
    "protocol/entity/envelope_columns.py": "columns of a row in its own store",
    "fencing/fenced_rows.py": "keys, from its own store",
    "services/documents/document.py": "an event that it has just encoded",
    "services/documents/client.py": "answers of a service that this program named",
    "services/feeds/client.py": "as services/documents/client.py",
    "services/pubsub/client.py": "as services/documents/client.py",
    "services/queues/client.py": "as services/documents/client.py",
    "services/client.py": "as services/documents/client.py",
    "services/pubsub/targets.py": "a message that the service encoded when it took it",
    "services/feeds/parser_processes.py": "what a child process of its own says, in bounded bytes",
    "manager/policy_process.py": "what a child process of its own says, in bounded bytes",
    "manager/policy_child.py": "what the manager says that began it",
    "services/feeds/rules.py": "what a rule of the operator returned",
    "protocol/replication/row/names.py": "names that the same table's type has encoded",
    "protocol/replication/row/versions.py": "cells of rows that are kept, in records.py",
    "wire/frame.py": "the reader itself, which all others in wire/ are made of",
    "journals/sqlite/rows.py": "one row of SQLite; what it holds is a snapshot or a record",
    "journals/etcd/url.py": "a URL that the operator gives on the command line",
    "journals/etcd/health.py": "answers of etcd, read by journals/etcd/gateway.py",
}


def is_not_hostile(path: str) -> bool:
    """Whether what the module decodes comes from nobody outside."""
    folders = tuple(each for each in NOT_HOSTILE if each.endswith("/"))
    return path in NOT_HOSTILE or path.startswith(folders)


def undeclared(decoding: set[str], tried: set[str]) -> Iterator[str]:
    for path in sorted(decoding - tried):
        if not is_not_hostile(path):
            yield f"{path} decodes something: name it in tests/hostile/decoders.py"


def test_every_decoder_is_tried_or_says_why_not() -> None:
    paths = {module.path.removeprefix("src/tenure/"): module.text for module in modules()}
    decoding = {path for path, text in paths.items() if DECODES.search(text)}
    tried = {path for each in DECODERS.values() for path in each.of.split()}
    assert tried <= set(paths)
    assert list(undeclared(decoding, tried)) == []


def test_what_is_excused_is_there_and_decodes() -> None:
    for place in NOT_HOSTILE:
        path = SRC / "tenure" / place
        files = [path] if path.is_file() else list(path.rglob("*.py"))
        assert any(DECODES.search(each.read_text("utf-8")) for each in files), place


@pytest.mark.parametrize(
    "text",
    ["_x = msgspec.msgpack.Decoder(int)", "a = json.loads(b)", "r = Reader(one, 1, check)"],
)
def test_a_decoder_that_nobody_tries_is_found(text: str) -> None:
    assert DECODES.search(text)
    assert len(list(undeclared({"manager/new.py"}, set()))) == 1
