"""The directory of a node: its identity, what it keeps, and what is refused."""

from pathlib import Path
from random import Random

import msgspec
import pytest

from tenure.cli.node import NodeOptions, seeds_of, settings_of
from tenure.columns.node.manager_link import refusal
from tenure.columns.node.node_directory import NodeDirectory, read_secret
from tenure.columns.node.node_service import NodeService, NodeSettings
from tenure.errors import ConfigurationError, StoreDamaged
from tenure.protocol.gossip.messages import NodeDigest
from tenure.protocol.topology.messages import NodeRefused
from tenure.protocol.topology.records import PROOF_BYTES, Placement, Topology
from tenure.transport.credentials import NOTHING, Credentials
from tests.certificates import Authority

TOPOLOGY = Topology(cluster="mail", id=1, version=2, placement=Placement(), first_nodes=3)


def opened(path: Path, cluster: str = "mail", seed: int = 1) -> NodeDirectory:
    directory = NodeDirectory.open(path, cluster, Random(seed))
    directory.begin_life()
    return directory


def test_a_node_is_its_directory_and_each_start_a_later_life(tmp_path: Path) -> None:
    first = opened(tmp_path / "a").identity
    again = opened(tmp_path / "a", seed=2).identity
    assert (again.node, again.token) == (first.node, first.token)
    assert again.generation > first.generation
    assert opened(tmp_path / "b", seed=2).identity.node != first.node


def test_a_node_has_a_secret_of_its_own_from_its_first_life_on_that_has_one(tmp_path: Path) -> None:
    directory = NodeDirectory.open(tmp_path / "a", "mail", Random(1))
    assert directory.identity.proof == b""  # as an earlier release has left it
    directory.begin_life()
    proof = directory.identity.proof
    assert len(proof) == PROOF_BYTES
    assert opened(tmp_path / "a").identity.proof == proof
    assert opened(tmp_path / "b").identity.proof != proof


def test_lives_are_counted_on_where_the_clock_was_put_back(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    ahead = 1 << 60
    directory.keep(msgspec.structs.replace(directory.identity, generation=ahead))
    assert opened(tmp_path).identity.generation == ahead + 1


def test_what_is_kept_is_there_in_the_next_life(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    assert (directory.topology(), directory.known()) == (None, ())
    known = (NodeDigest(1, 2, 3, 0, 4),)
    directory.keep_topology(TOPOLOGY)
    directory.keep_known(known)
    again = opened(tmp_path)
    assert (again.topology(), again.known()) == (TOPOLOGY, known)
    assert not list(tmp_path.glob("*.new"))


@pytest.mark.parametrize("name", ["node.json", "topology", "known"])
def test_a_file_that_is_damaged_is_named(tmp_path: Path, name: str) -> None:
    directory = opened(tmp_path)
    directory.keep_topology(TOPOLOGY)
    directory.keep_known(())
    (tmp_path / name).write_bytes(b"\xc1 no")

    def read() -> None:
        opened(tmp_path)
        directory.topology()
        directory.known()

    with pytest.raises(StoreDamaged, match=name):
        read()


def test_other_directories_are_refused(tmp_path: Path) -> None:
    opened(tmp_path / "a")
    with pytest.raises(ConfigurationError, match="cluster 'mail', not of 'chat'"):
        opened(tmp_path / "a", "chat")
    (tmp_path / "letter").write_text("dear")
    with pytest.raises(ConfigurationError, match=r"no node\.json in it"):
        opened(tmp_path)


def test_a_secret_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_secret(tmp_path / "none")
    (tmp_path / "short").write_text("hunter2\n")
    with pytest.raises(ConfigurationError, match="openssl"):
        read_secret(tmp_path / "short")


def test_a_node_must_know_somebody(tmp_path: Path) -> None:
    settings = NodeSettings(cluster="mail", data=tmp_path, secret=tmp_path)
    with pytest.raises(ConfigurationError, match="--manager"):
        NodeService(settings)


def test_seeds_come_from_an_argument_and_a_file(tmp_path: Path) -> None:
    file = tmp_path / "seeds"
    file.write_text("n2:7500 # the second\n\nn3:7500\n")
    assert seeds_of("n1:7500, n2:7500", file) == ("n1:7500", "n2:7500", "n3:7500")
    with pytest.raises(ConfigurationError, match="HOST:PORT"):
        seeds_of("n1", None)
    with pytest.raises(ConfigurationError, match="is not HOST:PORT"):
        seeds_of("http://n1:7500", None)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        seeds_of("", tmp_path / "none")


def options(**more: object) -> NodeOptions:
    given = {"cluster": "mail", "data": Path("d"), "secret": Path("s"), "seeds": "n1:1", **more}
    return NodeOptions(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cluster": ""}, "the cluster is '': it has 0 characters"),
        ({"rack": ""}, "the rack is '': it has 0 characters"),
        ({"datacentre": "d" * 201}, "the datacentre is 'ddd.*it has 201 characters"),
        ({"name": "n\0"}, r"the name is .*is not printable"),
        ({"port": 99_999}, "no port 99999; they go from 1 to 65535"),
        ({"port": -1}, "no port -1;"),
        ({"host": "", "insecure": True}, "the host is ''"),
        ({"advertise": "n1:7500"}, "the advertised host is 'n1:7500', and .*without a port"),
        ({"advertise": "http://n1"}, "the advertised host is 'http://n1'"),
        ({"advertise": "two words"}, "the advertised host is 'two words'"),
        ({"manager": ["foo"]}, "'foo' is not the URL of a manager"),
    ],
)
def test_what_no_manager_would_take_is_refused_at_once(given: dict[str, object], said: str) -> None:
    """Otherwise the manager closes the connection, again and again, and the node waits for ever."""
    with pytest.raises(ConfigurationError, match=said):
        settings_of(options(**given), NOTHING)


def test_several_managers_may_stand_in_one_argument() -> None:
    urls = "http://m1:7400", "http://m2:7400"
    assert settings_of(options(manager=[",".join(urls)]), NOTHING).managers == urls


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_ipv6_address_stands_in_brackets_in_urls(host: str) -> None:
    settings = NodeSettings(cluster="mail", data=Path("d"), secret=Path("s"), host=host)
    assert settings.reached_at == "[::1]"


def test_a_node_that_others_reach_wants_certificates(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigurationError, match="TENURE_MUTUAL_TLS"):
        settings_of(options(host="10.0.0.1"), NOTHING)
    assert caplog.messages == []
    assert settings_of(options(host="10.0.0.1", insecure=True), NOTHING).host == "10.0.0.1"
    assert caplog.messages[0].startswith("insecure: 10.0.0.1 can be reached"), "at every start"
    with pytest.raises(ConfigurationError, match="--advertise"):
        settings_of(options(host="::", insecure=True), NOTHING)
    assert settings_of(options(), NOTHING).seeds == ("n1:1",)


def test_a_certificate_and_tokens_are_enough_and_either_alone_is_not(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = authority.sign("n1")
    tls = Credentials(cert=server.cert, key=server.key)
    tokens = tmp_path / "tokens"
    assert settings_of(options(host="10.0.0.1", tokens=tokens), tls).tokens == tokens
    for more, credentials in (({}, tls), ({"tokens": tokens}, NOTHING)):
        with pytest.raises(ConfigurationError, match="--tokens"):
            settings_of(options(host="10.0.0.1", **more), credentials)


def test_a_refusal_says_what_to_do() -> None:
    past = NodeRefused(sequence=1, node=1, reason="past", detail="the disk was put back")
    assert isinstance(refusal(past), StoreDamaged)
    taken = NodeRefused(sequence=1, node=1, reason="taken", detail="node-1 has that address")
    assert "node-1 has that address" in str(refusal(taken))
