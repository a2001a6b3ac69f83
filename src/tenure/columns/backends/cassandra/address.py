"""The address of a Cassandra: `cassandra:HOST[:PORT],HOST/KEYSPACE`."""

import re

import msgspec

from tenure.base.names import shown, shown_url
from tenure.errors import ConfigurationError

PORT = 9042
_KEYSPACE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,47}")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/,@\[\]]+)(?::(\d{1,5}))?")
_FORM = "a store on Cassandra is called cassandra:HOST[:PORT],HOST/KEYSPACE"


class CassandraAddress(msgspec.Struct, frozen=True):
    """Some of its nodes, and the keyspace in which the tables are."""

    hosts: tuple[str, ...]
    port: int
    keyspace: str

    def __str__(self) -> str:
        port = "" if self.port == PORT else f":{self.port}"
        return f"cassandra:{','.join(each + port for each in self.hosts)}/{self.keyspace}"


def parse_address(url: str) -> CassandraAddress:
    """Parse `url`. Raises ConfigurationError if it is not such an address."""
    nodes, slash, keyspace = url.removeprefix("cassandra:").partition("/")
    if not slash or not _KEYSPACE.fullmatch(keyspace):
        raise ConfigurationError(
            f"{_FORM}, and {shown_url(url)} names no keyspace: a letter, followed by letters, "
            "digits and _"
        )
    hosts, ports = [], set()
    for node in nodes.split(","):
        found = _HOST.fullmatch(node.strip())
        if found is None or not 0 < int(found[2] or PORT) < 1 << 16:
            which = "one" if "@" in url else shown(node)
            raise ConfigurationError(f"{_FORM}, and in {shown_url(url)} {which} is not HOST[:PORT]")
        hosts.append(found[1].strip("[]"))
        ports.add(int(found[2] or PORT))
    if len(ports) > 1:
        raise ConfigurationError(
            f"the nodes of a Cassandra listen on one port, and {shown_url(url)} names {len(ports)}"
        )
    return CassandraAddress(tuple(hosts), ports.pop(), keyspace)
