"""The lease as a header: what goes in comes out, and any other header is refused with
the reason.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure import Lease, UsageError
from tenure.base.keys import KEY_BYTES
from tenure.base.names import NAME_CHARACTERS, wrong_with_name
from tenure.client.lease_header import HEADER_CHARACTERS, LEASE_HEADER, MOST_NUMBER
from tenure.errors import RemoteProtocolError

NUMBERS = st.integers(1, MOST_NUMBER)
JOURNALS = st.integers(0, 2**64 - 1)
POOLS = st.text(min_size=1, max_size=NAME_CHARACTERS).filter(lambda it: not wrong_with_name(it))


def test_it_can_be_read() -> None:
    lease = Lease(b"room-42", 17, 0x0C9E6679A1B24D3F, "carts")
    value = "carts;journal=0c9e6679a1b24d3f;number=17;key=cm9vbS00Mg"
    assert lease.headers() == {"Tenure-Lease": value}


@given(st.binary(max_size=KEY_BYTES), NUMBERS, JOURNALS, POOLS)
def test_every_lease_goes_through_a_header(
    key: bytes, number: int, journal: int, pool: str
) -> None:
    lease = Lease(key, number, journal, pool)
    [(name, value)] = lease.headers().items()
    assert name == LEASE_HEADER
    assert value.isascii()
    assert value.isprintable()
    assert len(value) <= HEADER_CHARACTERS
    assert Lease.of({name: value}) == lease
    assert Lease.of({name.lower(): f" {value} "}) == lease


@given(st.text() | st.from_regex(r"\w+;journal=\w*;number=\w*;key=\w*"))
def test_whatever_else_comes_is_read_or_refused(value: str) -> None:
    try:
        lease = Lease.of({LEASE_HEADER: value})
    except RemoteProtocolError:
        return
    assert Lease.of(lease.headers()) == lease


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("", "it is not POOL;journal=HEX"),
        ("carts;number=1", "it is not POOL;journal=HEX"),
        ("carts;journal=0;number=0;key=", "its number is not from 1"),
        ("carts;journal=0;number=9999999999999999999;key=", "its number is not from 1"),
        ("carts;journal=0;number=1;key=a", "cannot be read"),
        ("%00;journal=0;number=1;key=", "its pool"),
        ("%ff;journal=0;number=1;key=", "cannot be read"),
        ("c;journal=0;number=1;key=" + "a" * HEADER_CHARACTERS, "the limit is 8000"),
    ],
)
def test_what_is_no_lease_is_refused_with_why(value: str, says: str) -> None:
    with pytest.raises(RemoteProtocolError, match=says):
        Lease.of({LEASE_HEADER: value})


def test_headers_without_a_lease_are_refused() -> None:
    with pytest.raises(RemoteProtocolError, match=r"no header Tenure-Lease: send lease\.headers"):
        Lease.of({"Accept": "*/*"})


def test_a_lease_that_fits_no_header_is_refused() -> None:
    with pytest.raises(UsageError, match="a key of 1025 bytes does not fit into a header"):
        Lease(b"x" * 1025, 1, 1, "carts").headers()
    with pytest.raises(UsageError, match="names no pool"):
        Lease(b"x", 1, 1).headers()
