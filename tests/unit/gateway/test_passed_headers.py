"""Which headers a gateway passes on."""

import pytest

from tenure.errors import ConfigurationError
from tenure.gateway.passed_headers import (
    MOST_FORWARDED_BYTES,
    ClientSeen,
    TrustedProxies,
    for_client,
    for_owner,
)
from tenure.gateway.targets import said_of_client

STRANGER = ClientSeen("10.0.0.9", "https", is_trusted=False)
BALANCER = ClientSeen("10.0.0.9", "http", is_trusted=True)
HOST = (b"host", b"shop")


def test_a_token_and_all_that_goes_from_end_to_end_is_passed_on() -> None:
    given = [HOST, (b"authorization", b"Bearer x"), (b"x-thing", b"\xff"), (b"cookie", b"a=b")]
    assert for_owner(given, STRANGER) == [
        *given,
        (b"x-forwarded-for", b"10.0.0.9"),
        (b"x-forwarded-proto", b"https"),
        (b"x-forwarded-host", b"shop"),
    ]


@pytest.mark.parametrize(
    "name",
    [
        b"tenure-relayed",
        b"tenure-proof",
        b"tenure-lease",
        b"tenure_relayed",
        b"x-forwarded-for",
        b"x_forwarded_for",
        b"x-forwarded-port",
        b"forwarded",
        b"x-real-ip",
        b"connection",
        b"keep-alive",
        b"te",
        b"upgrade",
        b"transfer-encoding",
        b"proxy-authorization",
        b"proxy-connection",
    ],
)
def test_what_a_stranger_may_not_say_is_dropped(name: bytes) -> None:
    assert for_owner([HOST, (name, b"evil")], STRANGER) == for_owner([HOST], STRANGER)


def test_headers_that_connection_names_end_here() -> None:
    given = [HOST, (b"connection", b"close, x-thing"), (b"x-thing", b"1")]
    assert for_owner(given, STRANGER) == for_owner([HOST], STRANGER)


def test_a_load_balancer_is_believed() -> None:
    given = [
        HOST,
        (b"x-forwarded-for", b"192.0.2.1"),
        (b"x-forwarded-for", b"192.0.2.2"),
        (b"x-forwarded-proto", b"https"),
        (b"x-forwarded-host", b"shop.example"),
        (b"tenure-relayed", b"evil"),
    ]
    assert for_owner(given, BALANCER) == [
        HOST,
        (b"x-forwarded-for", b"192.0.2.1, 192.0.2.2, 10.0.0.9"),
        (b"x-forwarded-proto", b"https"),
        (b"x-forwarded-host", b"shop.example"),
    ]


def test_an_address_before_that_of_a_load_balancer_counts_for_nothing() -> None:
    """HAProxy puts a header of its own behind that of a client."""
    said = [(b"x-forwarded-for", b"6.6.6.6"), (b"x-forwarded-for", b"192.0.2.1, 192.0.2.2")]
    scope = {"client": ("10.0.0.9", 1), "scheme": "http", "headers": [HOST, *said]}
    assert said_of_client(scope, is_trusted=True) == b"gateway 192.0.2.2 0 http"
    assert said_of_client(scope, is_trusted=False) == b"gateway 10.0.0.9 1 http"


def test_a_client_cannot_have_a_load_balancers_word_dropped() -> None:
    """Some pass a client's Connection header on."""
    said = [(b"x-forwarded-for", b"192.0.2.1"), (b"connection", b"x-forwarded-for, close")]
    passed = dict(for_owner([HOST, *said], BALANCER))
    assert passed[b"x-forwarded-for"] == b"192.0.2.1, 10.0.0.9"


def test_of_many_addresses_those_are_kept_that_were_said_last() -> None:
    """Those before may be what a client has made up."""
    made_up = b"6.6.6.6, " * MOST_FORWARDED_BYTES
    passed = dict(for_owner([HOST, (b"x-forwarded-for", made_up + b"192.0.2.1")], BALANCER))
    before, *said = passed[b"x-forwarded-for"].rsplit(b", ", 2)
    assert said == [b"192.0.2.1", b"10.0.0.9"]
    assert before.startswith(b"6.6.6.6, ")
    assert len(before) < MOST_FORWARDED_BYTES


def test_who_is_trusted_is_said_by_address_or_network() -> None:
    trusted = TrustedProxies(("10.0.0.0/8", "::1"))
    assert trusted.has("10.1.2.3")
    assert trusted.has("::1")
    assert not trusted.has("192.0.2.1")
    assert not trusted.has("-")
    assert not TrustedProxies(()).has("10.1.2.3")
    with pytest.raises(ConfigurationError, match="trusted by its address or network"):
        TrustedProxies(("balancer",))


def test_clients_learn_nothing_of_the_inside() -> None:
    kept = [(b"content-type", b"text/plain"), (b"tenure-outcome", b"unknown")]
    inside = [(b"tenure-owner", b"http://10.0.0.7:9000"), (b"connection", b"close")]
    assert for_client([*kept, *inside]) == kept
