"""The address of a manager: bound, or refused with a way out; and the URL that others are told."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tenure.errors import ConfigurationError
from tenure.manager.config import ManagerSettings
from tenure.manager.listening import Listening, listen


@contextmanager
def listening(**said: object) -> Iterator[Listening]:
    found = listen(ManagerSettings(**{"port": 0, **said}))  # type: ignore[arg-type]
    try:
        yield found
    finally:
        found.socket.close()


def test_a_free_port_is_taken_and_told() -> None:
    with listening() as found:
        port = found.socket.getsockname()[1]
        assert found.url == f"http://127.0.0.1:{port}"
        assert found.is_loopback


def test_an_advertised_url_without_a_port_gets_the_one_that_was_taken() -> None:
    with listening(advertise="http://manager.example") as found:
        assert found.url == f"http://manager.example:{found.socket.getsockname()[1]}"
    with listening(advertise="http://manager.example:80") as found:
        assert found.url == "http://manager.example:80"


def test_localhost_is_ipv4_where_it_is_both() -> None:
    with listening(host="localhost") as found:
        assert found.socket.family is socket.AF_INET


def test_a_port_in_use_is_named_with_the_way_out() -> None:
    with listening() as found:
        port = found.socket.getsockname()[1]
        expected = f"port {port} on 127.0.0.1 is in use: .* another with --port"
        with pytest.raises(ConfigurationError, match=expected):
            listen(ManagerSettings(port=port))


def test_an_address_that_others_reach_needs_the_operators_word() -> None:
    with pytest.raises(ConfigurationError, match=r"0\.0\.0\.0 can be reached .* --insecure"):
        listen(ManagerSettings(host="0.0.0.0", port=0))  # noqa: S104
    with listening(host="0.0.0.0", insecure=True, advertise="http://a") as found:  # noqa: S104
        assert not found.is_loopback


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        ({}, "give --tls-cert and --tls-key and --tokens"),
        ({"tls_cert": Path("a"), "tls_key": Path("b")}, "give --tokens, listen on"),
        ({"tokens": Path("c")}, "give --tls-cert and --tls-key, listen on"),
    ],
)
def test_what_other_machines_reach_needs_tls_and_tokens(
    more: dict[str, Path], missing: str
) -> None:
    with pytest.raises(ConfigurationError, match=missing):
        listen(ManagerSettings(host="0.0.0.0", port=0, **more))  # type: ignore[arg-type]  # noqa: S104


def test_with_tls_and_tokens_it_listens_and_its_url_says_so() -> None:
    guarded = {"tls_cert": Path("a"), "tls_key": Path("b"), "tokens": Path("c")}
    with listening(host="0.0.0.0", advertise="https://a:1", **guarded) as found:  # noqa: S104
        assert not found.is_loopback
    with listening(**guarded) as found:
        assert found.url.startswith("https://127.0.0.1:")


@pytest.mark.parametrize("half", ["tls_cert", "tls_key", "tls_client_ca"])
def test_half_of_tls_is_refused(half: str) -> None:
    with pytest.raises(ConfigurationError, match="tls_"):
        ManagerSettings(**{half: Path("a")})  # type: ignore[arg-type]


def test_an_address_that_is_all_of_them_needs_one_to_advertise() -> None:
    with pytest.raises(ConfigurationError, match="name it with --advertise"):
        listen(ManagerSettings(host="0.0.0.0", port=0, insecure=True))  # noqa: S104


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"cannot listen on port .* of 192\.0\.2\.1"):
        listen(ManagerSettings(host="192.0.2.1", port=0, insecure=True))


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"'no\.\.where' is not an address"):
        listen(ManagerSettings(host="no..where"))
