"""Every routing client, against a server that says what it had done when it broke off."""

from collections.abc import AsyncIterator, Iterator
from itertools import product
from typing import Any

import pytest

from tenure import KeyTypeError, Lookup, UsageError
from tenure.errors import ConfigurationError, NoOwner, OutcomeUnknown
from tenure.routing.template import Templates
from tests.unit.routing.clients import CLIENTS, Client
from tests.unit.routing.scripted import (
    BEHAVIOURS,
    IN_DOUBT,
    ScriptedServer,
    Table,
    refused_port,
    scripted,
)

SCRIPTS = [
    *((each,) for each in BEHAVIOURS),
    *(("refuses", each) for each in BEHAVIOURS),
    *product(sorted(IN_DOUBT), ["refuses", "drops_done", "says_unknown"]),
]
KEYED = {"Idempotency-Key": "7"}
PATH = "/carts/ann?article=tea"


@pytest.fixture(params=list(CLIENTS))
def client(request: pytest.FixtureRequest) -> Client:
    return CLIENTS[request.param]


@pytest.fixture
def is_async(request: pytest.FixtureRequest, client: Client) -> bool:
    return client in (CLIENTS["aiohttp"], CLIENTS["httpx-async"], CLIENTS["httpx2-async"])


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[ScriptedServer, ScriptedServer]]:
    with scripted() as first, scripted() as second:
        yield first, second


@pytest.fixture
def server(servers: tuple[ScriptedServer, ScriptedServer]) -> ScriptedServer:
    for each in servers:
        each.play()
        each.hint = each.redirect = None
    return servers[0]


@pytest.fixture
def other(server: ScriptedServer, servers: tuple[ScriptedServer, ScriptedServer]) -> ScriptedServer:
    return servers[1]


def test_what_must_not_be_repeated_is_done_once_at_most(
    client: Client, server: ScriptedServer
) -> None:
    with client(Table(server.url)) as ask:
        for script in SCRIPTS:
            server.play(*script)
            doubts = [i for i, each in enumerate(script) if each in IN_DOUBT]
            if doubts:
                with pytest.raises(OutcomeUnknown, match="POST /carts/ann may have been"):
                    ask("POST", PATH, body=b"tea")
                assert len(server.asked) == doubts[0] + 1, script
            else:
                assert ask("POST", PATH, body=b"tea").status == 200
                assert server.acted == 1
                assert len(server.asked) == len(script) + ("answers" not in script)
            assert server.acted <= 1, script
            assert {each.body for each in server.asked} == {b"tea"}


@pytest.mark.parametrize(
    ("method", "headers"), [("PUT", {}), ("DELETE", {}), ("GET", {}), ("POST", KEYED)]
)
def test_what_may_be_repeated_gets_an_answer(
    client: Client, server: ScriptedServer, method: str, headers: dict[str, str]
) -> None:
    body = b"tea" if method in ("PUT", "POST") else None
    with client(Table(server.url)) as ask:
        for script in SCRIPTS:
            server.play(*script)
            assert ask(method, PATH, headers, body).status == 200, script
            assert server.acted >= 1
            assert {each.body for each in server.asked} == {body or b""}
            assert {each.target for each in server.asked} == {PATH}


def test_nothing_was_sent_where_nobody_listens_so_it_is_sent_when_the_table_changes(
    client: Client, server: ScriptedServer
) -> None:
    table = Table(refused_port())
    table.then = server.url
    with client(table) as ask:
        assert ask("POST", PATH, body=b"tea").status == 200
    assert (server.acted, len(server.asked)) == (1, 1)


def test_the_owner_that_refuses_may_know_better_than_the_lookup(
    client: Client, server: ScriptedServer, other: ScriptedServer
) -> None:
    server.play("refuses", "refuses", "refuses")
    server.hint = other.url
    with client(Table(server.url)) as ask:
        assert ask("POST", PATH, body=b"tea").status == 200
    assert (len(server.asked), other.acted) == (1, 1)


def test_a_refusal_that_breaks_off_is_one(client: Client, server: ScriptedServer) -> None:
    """Its first line says that nothing was begun."""
    server.play("refuses_and_drops", "refuses_and_drops")
    with client(Table(server.url)) as ask:
        assert ask("POST", PATH, body=b"tea").status == 200
    assert (len(server.asked), server.acted) == (3, 1)


def test_a_hint_that_is_wrong_is_not_followed_to_and_fro(
    client: Client, server: ScriptedServer, other: ScriptedServer
) -> None:
    server.play("refuses")
    other.play("refuses")
    server.hint, other.hint = other.url, server.url
    with client(Table(server.url)) as ask:
        assert ask("POST", PATH).status == 200
    assert (len(server.asked), len(other.asked)) == (2, 1)


def test_what_the_table_said_meanwhile_is_not_waited_for(
    client: Client, server: ScriptedServer, other: ScriptedServer
) -> None:
    class Moves(Table):
        def find(self, key: object, /) -> str:
            del key
            self.found += 1
            return server.url if self.found == 1 else other.url

    server.play("refuses")
    table = Moves(None)
    with client(table) as ask:
        assert ask("POST", PATH).status == 200
    assert (len(server.asked), other.acted, table.waiting) == (1, 1, [])


def test_the_host_is_the_service_and_the_caller_sees_its_url(
    client: Client, server: ScriptedServer
) -> None:
    with client(Table(server.url + "/behind")) as ask:
        assert ask("GET", PATH).url == "http://carts" + PATH
    assert server.asked[0].headers["host"] == "carts"
    assert server.asked[0].target == "/behind" + PATH


def error_within(deadline: float, client: Client, server: ScriptedServer) -> Exception:
    either = pytest.raises((NoOwner, OutcomeUnknown))
    with client(Table(server.url), deadline=deadline) as ask, either as said:
        ask("POST", PATH)
    return said.value


def test_no_owner_in_time_is_an_error_that_says_the_last_try(
    client: Client, server: ScriptedServer
) -> None:
    server.play(*["refuses"] * 1000)
    # The deadline grows until the machine leaves time for an answer.
    errors = (error_within(deadline, client, server) for deadline in (0.1, 1, 10))
    says = f"{server.url} answered 421"
    assert any(isinstance(each, NoOwner) and says in str(each) for each in errors)
    with client(Table(None), deadline=0.05) as ask, pytest.raises(NoOwner, match="'ann'"):
        ask("PUT", PATH)
    assert server.acted == 0


def test_an_owner_that_stands_still_is_given_up_at_the_deadline(
    client: Client, server: ScriptedServer
) -> None:
    for method, error in {"GET": NoOwner, "PUT": OutcomeUnknown, "POST": OutcomeUnknown}.items():
        server.play(*["stands_still"] * 50)
        with client(Table(server.url), deadline=0.3) as ask, pytest.raises(error):
            ask(method, PATH)


def test_an_owner_that_stands_still_is_left_when_the_key_moves(
    client: Client, is_async: bool, server: ScriptedServer, other: ScriptedServer
) -> None:
    """A blocking client cannot be told, and leaves at half of its time."""
    server.play("stands_still")
    table = Table(server.url)
    table.then = other.url
    with client(table, deadline=60 if is_async else 1) as ask:
        assert ask("PUT", PATH).status == 200
    assert (len(server.asked), other.acted) == (1, 1)
    assert table.watching == []


def test_a_body_that_is_a_stream_is_sent_once(client: Client, is_async: bool) -> None:
    def stream() -> Iterator[bytes]:
        yield b"te"
        yield b"a"

    async def astream() -> AsyncIterator[bytes]:
        for each in stream():
            yield each

    def body() -> object:
        return astream() if is_async else stream()

    with scripted() as server, client(table := Table(server.url)) as ask:
        assert ask("POST", PATH, body=body()).status == 200
        assert server.asked[0].body == b"tea"
        server.play("refuses")
        with pytest.raises(NoOwner, match="its body is a stream"):
            ask("POST", PATH, body=body())
        assert server.acted == 0
        server.play("drops")
        with pytest.raises(OutcomeUnknown):
            ask("PUT", PATH, body=body())
        table.address, table.then = refused_port(), server.url
        server.play()
        assert ask("POST", PATH, body=body()).status == 200
        assert server.asked[0].body == b"tea"


def test_a_redirect_within_the_service_is_routed_again(
    client: Client, server: ScriptedServer, other: ScriptedServer
) -> None:
    class ByKey(Table):
        def find(self, key: object, /) -> str:
            return {"ann": server.url, "bob": other.url}[str(key)]

    for place in ("/carts/bob", "http://carts/carts/bob"):
        server.play()
        other.play()
        server.redirect = place
        with client(ByKey(None)) as ask:
            assert ask("POST", "/carts/ann", body=b"tea").url == "http://carts/carts/bob"
        assert [each.target for each in other.asked] == ["/carts/bob"]
        assert other.asked[0].body == b"tea"


def test_a_redirect_to_another_service_is_not_an_owners(
    client: Client, server: ScriptedServer, other: ScriptedServer
) -> None:
    server.redirect = f"{other.url}/login"
    with client(Table(server.url)) as ask, pytest.raises(UsageError, match="origin="):
        ask("GET", "/carts/ann")
    with client(Table(server.url), origin="http://carts") as ask:
        assert ask("GET", "/carts/ann").status == 200
    assert [each.target for each in other.asked] == ["/login"]


def test_a_path_without_a_key_is_not_sent(client: Client, server: ScriptedServer) -> None:
    with client(Table(server.url)) as ask:
        for path in ("/", "/carts", "/carts/", "/other/ann"):
            with pytest.raises(UsageError, match=r"no key in the path .*/carts/\{user\}"):
                ask("GET", path)
    assert server.asked == []


def test_a_busy_owner_is_for_the_caller(client: Client, server: ScriptedServer) -> None:
    server.play("is_busy")
    with client(Table(server.url)) as ask:
        assert ask("PUT", PATH).status == 503
    assert len(server.asked) == 1


def test_an_address_that_is_no_url_is_said(client: Client) -> None:
    with client(Table("10.0.0.7:8000")) as ask, pytest.raises(UsageError, match=r"10\.0\.0\.7"):
        ask("GET", PATH)


def test_arguments_that_cannot_be_used(client: Client) -> None:
    wrong: list[dict[str, Any]] = [
        {"deadline": 0},
        {"deadline": "5"},
        {"outstanding": 0},
        {"outstanding": 1.5},
        {"origin": "carts"},
        {"origin": 5},
    ]
    for options in wrong:
        with (
            pytest.raises(ConfigurationError, match=next(iter(options))),
            client(Table(None), **options),
        ):
            pass


@pytest.mark.parametrize("wrong", [None, "http://127.0.0.1:7400", Lookup, b"x" * 100_000])
def test_what_is_no_lookup_is_refused_in_short(client: Client, wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(ConfigurationError, match="lookup is a Lookup") as raised, client(wrong):
        pass
    assert len(str(raised.value)) < 200


def test_a_key_of_a_wrong_type_is_not_sent(server: ScriptedServer) -> None:
    """Whatever the client: the function that finds the key returned no key."""
    with pytest.raises(KeyTypeError, match=r"returned 1\.5"):
        Templates(lambda _: 1.5).need_raw("/carts/ann")  # type: ignore[arg-type,return-value]
    assert server.asked == []
