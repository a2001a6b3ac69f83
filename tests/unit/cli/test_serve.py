"""`tenure serve`: its port admits only the right clients, and mistakes are named before
it listens.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSCloseCode, WSMsgType

from tenure.cli.serve import ServeOptions, _guarded, serve
from tenure.cli.service_gate import ServiceGate
from tenure.errors import ConfigurationError, ServiceRefusal, StoreFailed
from tenure.manager.access.pages import OwnNames
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.services.documents.client import DocumentsClient
from tenure.services.pubsub.service import PubSub
from tenure.services.service import ServiceSettings
from tenure.transport.credentials import Credentials
from tenure.transport.tls import ServerTls
from tests.certificates import Authority
from tests.unit.services.stage import on_service_stage

LOOPBACK = OwnNames("service", "http://127.0.0.1:1", (), is_loopback=True)


class Tokens:
    """A file of tokens, and their texts by holder."""

    def __init__(self, path: Path) -> None:
        self.file = TokenFile(path)
        self.text = {
            "ours": self._new(AccessRole.LOOKUP, "documents"),
            "owner": self._new(AccessRole.OWNER, "documents"),
            "theirs": self._new(AccessRole.LOOKUP, "others"),
            "viewer": self._new(AccessRole.VIEWER),
            "store": self._new(AccessRole.STORE),
            "admin": self._new(AccessRole.ADMIN),
            "stranger": "tenure_00000000_x",
        }

    def take_away(self, who: str) -> None:
        self.file.remove(self.text[who].split("_")[1])

    def _new(self, role: AccessRole, pool: str = "") -> str:
        made = new_token(role, pool)
        self.file.add(made.entry)
        return made.text


READS = {"ours": 200, "owner": 200, "viewer": 200, "admin": 200, "theirs": 403, "store": 403}
WRITES = {"ours": 201, "owner": 200, "viewer": 403, "admin": 200, "theirs": 403, "store": 403}


@pytest.mark.asyncio
async def test_each_role_may_ask_what_it_is_for_and_strangers_nothing(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens")
    gate = ServiceGate("documents", LOOPBACK, tokens.file)
    async with on_service_stage("documents", check=gate) as stage:
        shown = {who: f"Bearer {text}" for who, text in tokens.text.items()}
        for who, status in WRITES.items():
            wrote = await stage.ask(
                "PUT", "/documents/a", {"sections": {}}, Authorization=shown[who]
            )
            assert (who, wrote.status) == (who, status)
        for who, status in READS.items():
            read = await stage.ask("GET", "/documents/a", Authorization=shown[who])
            assert (who, read.status) == (who, status)
        for headers in ({}, {"Authorization": shown["stranger"]}, {"Authorization": "Basic x"}):
            refused = await stage.ask("GET", "/documents/a", **headers)
            assert (refused.status, refused.body["error"]) == (401, "token")
            assert refused.headers["WWW-Authenticate"] == "Bearer"
        tokens.take_away("ours")
        assert (await stage.ask("GET", "/limits", Authorization=shown["ours"])).status == 401


@pytest.mark.asyncio
async def test_a_token_that_is_taken_away_ends_its_sockets_and_no_others(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens")
    gate = ServiceGate("documents", LOOPBACK, tokens.file)
    async with on_service_stage("queues", pool="documents", check=gate) as stage:
        connected = {}
        for who in ("ours", "owner"):
            shown = {"Authorization": f"Bearer {tokens.text[who]}"}
            socket = await stage.session.ws_connect(
                f"{stage.url}/queues/{who}/socket", headers=shown
            )
            assert (await socket.receive_json())["loss"] == {"began": True}
            connected[who] = socket
        tokens.take_away("ours")
        assert (await connected["ours"].receive(timeout=60)).type is WSMsgType.CLOSE
        assert connected["ours"].close_code == WSCloseCode.POLICY_VIOLATION
        await connected["owner"].send_json({"acknowledge": 1})
        shown = {"Authorization": f"Bearer {tokens.text['admin']}"}
        await stage.ask("POST", "/queues/owner/entries", {"message": "hello"}, **shown)
        assert (await connected["owner"].receive_json(timeout=60))["message"] == "hello"


@pytest.mark.asyncio
async def test_a_poll_whose_token_is_taken_away_brings_nothing(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens")
    gate = ServiceGate("documents", LOOPBACK, tokens.file)
    async with on_service_stage("queues", pool="documents", check=gate) as stage:
        ours = {"Authorization": f"Bearer {tokens.text['ours']}"}
        begun = await stage.ask("POST", "/queues/a/drain", {}, **ours)
        polling = {"reader": begun.body["reader"], "acknowledge": 1, "wait": 20}
        poll = asyncio.create_task(stage.ask("POST", "/queues/a/drain", polling, **ours))
        admin = {"Authorization": f"Bearer {tokens.text['admin']}"}
        async with asyncio.timeout(60):
            while (await stage.ask("GET", "/queues/a", **admin)).body["entries"]:  # noqa: ASYNC110  # at a port
                await asyncio.sleep(0.01)  # until the poll has come, and waits
        tokens.take_away("ours")
        await stage.ask("POST", "/queues/a/entries", {"message": "secret"}, **admin)
        refused = await poll
        assert (refused.status, refused.body["error"]) == (401, "token")


@pytest.mark.asyncio
async def test_a_page_of_another_site_is_refused_and_so_is_a_name_that_is_not_ours() -> None:
    gate = ServiceGate("documents", LOOPBACK, None)
    async with on_service_stage("documents", check=gate) as stage:
        assert (await stage.ask("GET", "/limits", Origin=stage.url)).status == 200
        assert (await stage.ask("GET", "/limits", Host="localhost")).status == 200
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Host": "evil.example"},
            {"Host": "evil.example", "Origin": "http://evil.example"},
        ):
            refused = await stage.ask("PUT", "/documents/a", {"sections": {}}, **headers)
            assert (refused.status, refused.body["error"]) == (403, "page")


@pytest.mark.asyncio
async def test_a_client_shows_its_token_over_tls(tmp_path: Path) -> None:
    authority, tokens = Authority(tmp_path), Tokens(tmp_path / "tokens")
    own = authority.sign("own")
    names = LOOPBACK._replace(url="https://127.0.0.1:1")
    gate = ServiceGate("documents", names, tokens.file)
    tls = ServerTls(own.cert, own.key).context()
    async with on_service_stage("documents", check=gate, tls=tls) as stage:
        assert stage.url.startswith("https://")
        shown = Credentials(token=tokens.text["ours"], ca=authority.file)
        async with DocumentsClient(stage.url, credentials=shown) as documents:
            written = await documents.write("a", {"n": 1})
            assert (await documents.read("a")).version == written.version
        nothing = Credentials(ca=authority.file)
        async with DocumentsClient(stage.url, credentials=nothing) as documents:
            with pytest.raises(ServiceRefusal, match="wants a token"):
                await documents.read("a")


def test_pubsub_shows_queues_the_token_that_it_was_given_for_them(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("tenure_of_queues\n")
    there = ServiceSettings(
        pool="p", managers="http://127.0.0.1:1", queues=("http://127.0.0.1:2",), queues_token=file
    )
    writer = PubSub(there)._queue_writer()
    assert writer._credentials.headers(writer.url) == {"Authorization": "Bearer tenure_of_queues"}


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("documents", {"ttl": float("nan")}, "--ttl"),
    ("documents", {"ttl": -5.0}, "--ttl"),
    ("feeds", {"ttl": 0.0}, "--ttl"),
    ("queues", {"ttl": 1e12}, "31622400"),
    ("documents", {"pool": "a\n"}, "cannot be a pool's name"),
    ("feeds", {"pool": "p" * 300}, "cannot be a pool's name"),
    ("documents", {"store": "redis"}, "store is"),
    ("feeds", {"store": "sqlite:f"}, "no use for --store"),
    ("pubsub", {"watch": ("x",)}, "no use for --watch"),
    ("documents", {"queues": ("http://127.0.0.1:1",)}, "no use for --queues"),
    ("queues", {"rules": "a:b"}, "no use for --rules"),
    ("documents", {"inward": True}, "no use for --inward"),
    ("feeds", {"rules": "nothing:here"}, "module:name"),
    ("feeds", {"members": "10.0.0.1"}, '--members is "HOST:PORT"'),
    ("queues", {"address": "nonsense"}, "not the URL of an HTTP server"),
    ("feeds", {"members": "10.0.0.1:1"}, "other machines reach"),
    ("feeds", {"members": "0.0.0.0:1"}, "--members='0.0.0.0:1' stands for every address"),
    ("feeds", {"listen": "7"}, "HOST:PORT"),
    ("pubsub", {"listen": "10.0.0.1:1"}, "give --tls-cert and --tls-key and --tokens"),
    ("pubsub", {"tls_cert": Path("x")}, "--tls-key"),
    ("pubsub", {"tls_cert": Path("x"), "tls_key": Path("y")}, "cannot be used"),
    ("pubsub", {"tokens": Path("/nowhere/tokens")}, "tenure token new"),
]


def test_rules_that_raise_are_named_with_what_they_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rules_that_raise.py").write_text("raise RuntimeError('no such list')")
    monkeypatch.syspath_prepend(tmp_path)
    options = ServeOptions(manager=["http://127.0.0.1:1"], rules="rules_that_raise:rules")
    with pytest.raises(ConfigurationError, match="RuntimeError: no such list"):
        serve("feeds", options=options)


def test_a_store_that_cannot_be_opened_has_kept_nothing(tmp_path: Path) -> None:
    options = ServeOptions(manager=["http://127.0.0.1:1"], store=f"sqlite:{tmp_path}/nowhere/d.db")
    with pytest.raises(StoreFailed, match="cannot be opened: unable to open"):
        serve("documents", options=options)


@pytest.mark.parametrize(("name", "said", "named"), WRONG)
def test_a_mistake_is_named_before_anything_listens(
    name: Any,  # noqa: ANN401  # one of the services' names
    said: dict[str, Any],
    named: str,
) -> None:
    options = ServeOptions(**{"manager": ["http://127.0.0.1:1"], **said})
    with pytest.raises(ConfigurationError) as raised:
        serve(name, options=options)
    assert named in str(raised.value)


def test_tokens_without_tls_do_not_open_the_port_to_other_machines(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens")
    options = ServeOptions(listen="10.0.0.1:1", tokens=tokens.file.path)
    with pytest.raises(ConfigurationError, match="give --tls-cert and --tls-key, listen on"):
        serve("pubsub", options=options)


def test_a_service_that_trusts_everybody_says_so_at_every_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = ServeOptions(listen="10.0.0.1:1", insecure=True)
    for _ in range(2):
        caplog.clear()
        _guarded(options, "10.0.0.1", 1, "pubsub")
        assert "give --tls-cert and --tls-key and --tokens" in caplog.messages[0]
    caplog.clear()
    _guarded(options, "127.0.0.1", 1, "pubsub")
    assert caplog.messages == []
