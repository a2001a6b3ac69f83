"""Keys of etcd, read and written as somebody else would."""

from base64 import b64decode, b64encode

from tenure.journals.etcd.wire import after_prefix
from tests.integration.etcd.servers import Cluster


def _text(data: bytes) -> str:
    return b64encode(data).decode()


async def put(etcd: Cluster, key: str, value: bytes) -> None:
    await etcd.call("/kv/put", {"key": _text(key.encode()), "value": _text(value)})


async def delete(etcd: Cluster, prefix: str) -> None:
    """Delete all keys that begin so."""
    start = prefix.encode()
    end = after_prefix(start)
    await etcd.call("/kv/deleterange", {"key": _text(start), "range_end": _text(end)})


async def keys_under(etcd: Cluster, prefix: str) -> list[str]:
    """All keys that begin so, in order."""
    start = prefix.encode()
    body = {"key": _text(start), "range_end": _text(after_prefix(start)), "keys_only": True}
    found = await etcd.call("/kv/range", body)
    return [b64decode(kv["key"]).decode() for kv in found.get("kvs", [])]


async def key_of(etcd: Cluster, prefix: str) -> str:
    """The first key that begins so."""
    return (await keys_under(etcd, prefix))[0]
