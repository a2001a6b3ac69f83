"""Arguments of users are accepted, or refused with the thing, the value and the way out."""

from functools import partial
from random import Random
from typing import Any

import pytest

from tenure import (
    Cache,
    Entities,
    Entity,
    KeyedState,
    KeyRange,
    Lease,
    Lookup,
    Member,
    Owner,
    Volume,
)
from tenure.client.arguments import checked_listening, drawn_name
from tenure.client.managers import manager_urls
from tenure.errors import ConfigurationError, UsageError

URL = "http://127.0.0.1:7400"


def owner(**changed: Any) -> Owner:  # noqa: ANN401  # wrong on purpose
    arguments: dict[str, Any] = {
        "managers": URL,
        "pool": "rooms",
        "address": "http://127.0.0.1:8000",
    }
    return Owner(**{**arguments, **changed})


class NarrowHandler:
    """A handler whose export does not take the mark."""

    def export_range(self, key_range: KeyRange) -> None: ...
    def import_chunk(self, key_range: KeyRange, chunk: bytes) -> None: ...
    def discard_range(self, key_range: KeyRange) -> None: ...


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"address": ""}, 'an owner needs an address: .* for example address="http://10'),
        ({"address": None}, "an owner needs an address"),
        ({"address": 80}, r"address is a str, not 80 \(int\)"),
        ({"address": "a" * 2001}, "address has at most 2000 characters, not 2001"),
        ({"address": "http://a\x00"}, r"address cannot be 'http://a.x00': .* leave it out"),
        ({"address": "http://\ud800"}, r"address cannot be 'http://.ud800': .* leave it out"),
        ({"pool": ""}, "pool cannot be '': it has 0 characters; choose a name of 1 to 200"),
        ({"pool": "p" * 201}, "pool cannot be 'pp*': it has 201 characters; choose a name of 1 to"),
        ({"pool": None}, "pool cannot be None: it is a NoneType; pass a str"),
        ({"pool": "\ud800x"}, r"pool cannot be '.ud800x': '.ud800' in it is not printable; choose"),
        ({"name": ""}, "name cannot be '': it has 0 characters"),
        ({"name": 3}, "name cannot be 3: it is a int; pass a str"),
        ({"name": "n\x00\n"}, r"name cannot be 'n.x00.n': '.x00' in it is not printable; choose"),
        ({"kind": "sorted"}, 'kind is "hashed" or "ordered", not \'sorted\''),
        ({"capacity": 0}, "capacity is a number above 0, not 0"),
        ({"capacity": float("nan")}, "capacity is a number above 0, not nan"),
        ({"capacity": "2"}, "capacity is a number above 0, not '2'"),
        ({"labels": {"zone": 3}}, "labels map str to str, not 'zone': 3"),
        ({"labels": {"zone": "b" * 201}}, "label 'zone' or its value is longer than 200"),
        ({"labels": {"zone": "b\n"}}, r"a label cannot be 'zone': 'b.n': .* leave it out"),
        ({"labels": {"\ud800": "b"}}, r"a label cannot be '.ud800': 'b': .* leave it out"),
        ({"labels": {str(i): "" for i in range(65)}}, "65 labels; at most 64 are allowed"),
        (
            {"lookup": Lookup},
            "lookup is a Lookup of the same pool, not <class .*; write it like look",
        ),
        (
            {"lookup": "rooms"},
            "lookup is a Lookup of the same pool, not 'rooms'; write it like look",
        ),
        (
            {"lookup": Lookup(URL, pool="others")},
            "lookup is of the pool 'others', and this owner is",
        ),
        ({"watchdog": 0}, "watchdog is a number of seconds above 0, not 0"),
        ({"watchdog": True}, "watchdog is a number of seconds above 0, not True"),
        ({"enter_timeout": -1}, "enter_timeout is a number of seconds above 0, not -1"),
        ({"enter_timeout": None}, "enter_timeout is a number of seconds above 0, not None"),
        ({"on_grant": 5}, "on_grant is called, so it must be a function .* not 5"),
        ({"on_revoke": "f"}, "on_revoke is called"),
        (
            {"on_grant": lambda: None},
            "on_grant is called with 1 argument, and .* takes .*: too many",
        ),
        ({"on_revoke": isinstance}, "on_revoke is called with 1 argument, .*: missing a re"),
        ({"labels": ["zone", "b"]}, r"labels are a dict from str to str, not \['zone', 'b'\]"),
        ({"hand_off": KeyedState}, "hand_off is an instance, not the class KeyedState: pass"),
        ({"hand_off": NarrowHandler()}, "hand_off.export_range is called with 2 arguments"),
        ({"address": "http://0.0.0.0:80"}, "0.0.0.0 stands for every address of this machine"),
        ({"address": "http://[::]:80"}, ":: stands for every address of this machine"),
        ({"address": "0.0.0.0:80"}, "0.0.0.0 stands for every address of this machine"),
        ({"address": "::"}, ":: stands for every address of this machine"),
        ({"address": "[::]:80"}, ":: stands for every address of this machine"),
        ({"address": " "}, "an owner needs an address"),
        ({"capacity": {"memory": 1}}, "a capacity by metric says that for requests, too"),
        (
            {"capacity": {"requests": 1, "memory": float("nan")}},
            "the capacity for memory is a number",
        ),
        (
            {"capacity": {"requests": 1, "memory": -1}},
            "the capacity for memory is a number above 0",
        ),
        ({"capacity": {"requests": 1, "memory": "8G"}}, "above 0, up to 1e[+]18, not '8G'"),
        ({"capacity": {"requests": 1, "Memory": 1}}, "a metric cannot be called 'Memory'"),
        ({"capacity": {"requests": 1, 2: 1}}, "a metric cannot be called 2"),
        ({"capacity": dict.fromkeys(["requests", "a", "b", "c"], 1)}, "4 metrics; the limit is 3"),
        ({"capacity": 10**400}, "capacity is a number above 0, not 1000"),
        ({"watchdog": 10**400}, "watchdog is a number of seconds above 0, not 1000"),
        (
            {"hand_off": KeyedState(), "hand_off_listen": "0.0.0.0:0"},
            "hand_off_listen='0.0.0.0:0' stands for every .* pass it with hand_off_address",
        ),
        (
            {"hand_off": KeyedState(), "hand_off_listen": "10.0.0.7:0"},
            "hand_off listens on 10.0.0.7, which other machines reach, .* hand_off_insecure=True",
        ),
        (
            {"hand_off": KeyedState(), "address": "http://rooms-1:80"},
            "hand_off listens on rooms-1, which other machines reach",
        ),
        (
            {
                "hand_off": KeyedState(),
                "hand_off_listen": "0.0.0.0:0",
                "hand_off_address": "http://10.0.0.7:1",
            },
            "hand_off listens on 0.0.0.0, which other machines reach",
        ),
        (
            {"hand_off": KeyedState(), "hand_off_bytes": 0},
            "hand_off_bytes is a number from 1 on, not 0",
        ),
        ({"hand_off_bytes": 10}, "without hand_off it accepts none: also pass hand_off"),
        ({"hand_off_insecure": True}, "without hand_off it accepts none: also pass hand_off"),
        (
            {"hand_off": KeyedState(), "hand_off_insecure": "false"},
            "hand_off_insecure is True or False, not 'false'",
        ),
        ({"volume": Volume}, "volume is a Volume, not <class .*; write it like volume=Volume"),
        ({"volume": "rooms"}, "volume is a Volume, not 'rooms'"),
        ({"probe": len, "watchdog": 10.0}, "probe is called with 0 arguments, and .* missing"),
        ({"credentials": "secret"}, r"credentials are Credentials\(.*, not str"),
        ({"credentials": ""}, r"credentials are Credentials\(.*, not str"),
        ({"managers": "127.0.0.1:7400"}, "'127.0.0.1:7400' is not the URL of a manager"),
        ({"managers": 7}, r"managers is a URL, or several .* not 7 \(int\); write it like"),
    ],
)
def test_an_owner_that_cannot_be(changed: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        owner(**changed)


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"pool": ""}, "pool cannot be '': it has 0 characters"),
        ({"pool": "\ud800x"}, "pool cannot be '.ud800x'"),
        ({"managers": 7}, r"managers is a URL, or several .* not 7 \(int\); write it like"),
        ({"on_loss": 5}, "on_loss is called"),
        ({"on_loss": lambda: None}, "on_loss is called with 1 argument"),
        ({"enter_timeout": 0}, "enter_timeout is a number of seconds above 0"),
        ({"managers": []}, "managers names no manager"),
        ({"credentials": "secret"}, r"credentials are Credentials\(.*, not str"),
    ],
)
def test_a_lookup_that_cannot_be(changed: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        Lookup(**{"managers": URL, "pool": "rooms", **changed})


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"managers": "127.0.0.1:7400"}, "'127.0.0.1:7400' is not the URL of a manager"),
        ({"on_loss": lambda: None}, "on_loss is called with 1 argument"),
        ({"insecure": "false"}, "insecure is True or False, not 'false'"),
        ({"credentials": "secret"}, r"credentials are Credentials\(.*, not str"),
    ],
)
def test_a_member_that_cannot_be(changed: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        Member(**{"managers": URL, "pool": "rooms", **changed})


@pytest.mark.parametrize(
    "said",
    [
        {"address": "http://10.0.0.7:80", "hand_off_insecure": True},
        {"address": "http://10.0.0.7:80", "hand_off_listen": "127.0.0.1:0"},
        {"address": "http://10.0.0.7:80", "hand_off_listen": "[::1]:0"},
        {"address": "http://localhost:80"},
        {"address": "http://127.3.2.1:80"},
        {"address": "rooms-1"},
    ],
)
def test_state_is_taken_on_loopback_or_where_everybody_is_trusted(said: dict[str, Any]) -> None:
    owner(hand_off=KeyedState(), **said)


def test_callbacks_of_all_kinds_are_taken() -> None:
    class Bound:
        def told(self, ranges: object, more: int = 0) -> None: ...

    callbacks: tuple[Any, ...] = ([].extend, print, Bound().told, partial(max, 1))
    for callback in callbacks:
        owner(on_grant=callback, on_revoke=callback)


def test_the_address_is_required_by_the_signature() -> None:
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'address'"):
        Owner(URL, pool="rooms")  # type: ignore[call-arg]


class Room(Entity[str]):
    """A class for each key, of which nothing is called here."""


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (Owner, {"pool": "rooms", "address": "http://127.0.0.1:8000"}),
        (Volume, {"load": {}.get}),
        (Cache, {"server": "http://127.0.0.1:7500"}),
        (Entities, {"entity": Room, "pool": "rooms"}),
    ],
)
def test_what_is_no_option_is_refused_as_python_does(make: Any, arguments: Any) -> None:  # noqa: ANN401
    wrong = f"{make.__name__}\\(\\) got an unexpected keyword argument 'colour'"
    with pytest.raises(TypeError, match=wrong):
        make(**arguments, colour="blue")


@pytest.mark.parametrize("drain", [-1, "x", float("nan"), 10**400, True])
@pytest.mark.parametrize("hand_off", [None, KeyedState()])
def test_a_drain_that_cannot_be_is_refused_at_once(drain: Any, hand_off: Any) -> None:  # noqa: ANN401
    with pytest.raises(ConfigurationError, match="drain is a number of seconds, 0 or more, not"):
        _ = owner(hand_off=hand_off).close(drain)


@pytest.mark.parametrize("amount", ["x", None, -1, float("inf"), float("nan"), 10**400, [1], 1j])
def test_a_load_that_cannot_be_is_refused_at_once(amount: Any) -> None:  # noqa: ANN401
    with pytest.raises(UsageError, match=r"a load of .*; it must be a number from 0"):
        owner().record_load("k", amount)


def test_what_owners_lookups_and_leases_look_like() -> None:
    assert repr(owner(name="one")) == (
        "<Owner 'one' of pool 'rooms' at http://127.0.0.1:8000: not entered>"
    )
    assert repr(Lookup(URL, pool="rooms")) == "<Lookup of pool 'rooms': not entered>"
    assert repr(Lease(b"room-42", 7, 255)) == "<Lease of key 'room-42', number 7, journal ff>"
    assert repr(Lease(b"\x00\xab", 7, 255)) == "<Lease of key 00ab, number 7, journal ff>"


def test_what_an_owner_says_of_itself() -> None:
    mine = owner(name="one")
    assert (mine.name, mine.pool, mine.address) == ("one", "rooms", "http://127.0.0.1:8000")
    assert Lookup(URL, pool="rooms").pool == "rooms"


def test_a_name_is_drawn_for_each_process() -> None:
    one, two = owner().name, owner().name
    assert one != two
    assert one.startswith("127.0.0.1:8000-")


@pytest.mark.parametrize(
    ("address", "begins"),
    [
        ("http://10.0.0.7:8000/rooms?x=1", "10.0.0.7:8000-rooms-x-1-"),
        ("unix:///run/rooms.sock", "run-rooms.sock-"),
        ("[::1]:80", "::1-:80-"),
        ("///", ""),
        ("x" * 2000, "x" * 191 + "-"),
    ],
)
def test_a_drawn_name_can_stand_in_urls_and_file_names(address: str, begins: str) -> None:
    name = drawn_name(address, Random(1))
    assert name.startswith(begins)
    assert len(name) == len(begins) + 8
    assert "/" not in name


# --- managers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "urls"),
    [
        (URL, (URL,)),
        ("http://a:1/, https://b ,http://a:1,", ("http://a:1", "https://b")),
        (["http://a:1", "http://b:2/"], ("http://a:1", "http://b:2")),
        ("http://proxy/tenure/", ("http://proxy/tenure",)),
        ("http://[::1]:7400", ("http://[::1]:7400",)),
    ],
)
def test_managers_as_they_can_be_given(given: str | list[str], urls: tuple[str, ...]) -> None:
    assert manager_urls(given) == urls


def test_managers_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_MANAGERS", "http://a:1,http://b:2")
    assert manager_urls(None) == ("http://a:1", "http://b:2")
    assert manager_urls("http://c:3") == ("http://c:3",)
    monkeypatch.setenv("TENURE_MANAGERS", "nowhere")
    with pytest.raises(ConfigurationError, match="TENURE_MANAGERS: 'nowhere' is not the URL"):
        manager_urls(None)


def test_no_manager_is_named_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    complaint = r"no manager is named: .* or set TENURE_MANAGERS.*let `tenure run COMMAND` start"
    monkeypatch.setenv("TENURE_MANAGERS", " ")
    with pytest.raises(ConfigurationError, match=complaint):
        manager_urls(None)
    monkeypatch.delenv("TENURE_MANAGERS")
    with pytest.raises(ConfigurationError, match=complaint):
        manager_urls(None)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("", "names no manager: ''"),
        (" , ", "names no manager"),
        ("ftp://a", "does not begin with http:// or https://"),
        ("http://", "it has no host"),
        ("http://a:0", "it has no host, or port 0"),
        ("http://a:99999", "its host or its port is none"),
        ("http://a?b", "it has a query or a fragment"),
        ("http://a#b", "it has a query or a fragment"),
        ([5], "5 is not the URL of a manager: it is a int, not a str"),
        (7, r"managers is a URL, or several .* not 7 \(int\); write it like"),
    ],
)
def test_managers_that_cannot_be(given: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        manager_urls(given)


@pytest.mark.parametrize(
    ("given", "address", "expected"),
    [
        (None, "http://10.0.0.7:8000", "10.0.0.7:0"),
        (None, "https://[fd00::7]:8000/path", "[fd00::7]:0"),
        (None, "http://Host.example", "host.example:0"),
        (None, "10.0.0.7:8000", "127.0.0.1:0"),
        (None, "worker-3", "127.0.0.1:0"),
        (None, "unix:///run/app.sock", "127.0.0.1:0"),
        ("10.0.0.7:8400", "http://10.0.0.9:8000", "10.0.0.7:8400"),
        ("[::]:0", "http://10.0.0.9:8000", "[::]:0"),
        ("0.0.0.0:65535", "http://10.0.0.9:8000", "0.0.0.0:65535"),
    ],
)
def test_state_is_taken_where_that_is_said_or_on_the_host_of_the_address(
    given: str | None, address: str, expected: str
) -> None:
    told = "http://10.0.0.9:8400"
    assert checked_listening(given, address, told, insecure=True) == expected


@pytest.mark.parametrize(
    "given", ["10.0.0.7", ":8400", "10.0.0.7:", "10.0.0.7:http", "10.0.0.7:65536", "a:-1", "", 8400]
)
def test_a_place_that_cannot_be_listened_at_is_refused_with_an_example(given: object) -> None:
    with pytest.raises(ConfigurationError, match=r'not .*; write it like .*="10\.0\.0\.7:0"'):
        checked_listening(given, "http://10.0.0.9:8000")


@pytest.mark.parametrize("name", ["kind", "labels", "leave_on", "on_grant", "hand_off", "probe"])
def test_of_a_long_value_a_refusal_shows_the_beginning(name: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        owner(**{name: "é" * 100_000})
    assert len(str(raised.value)) < 400
