"""What is a host, and what may only look like one."""

import pytest

from tenure.services.hosts import parsed_host


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("example.org", None),
        ("example.org.", None),
        ("xn--bcher-kva.example", None),
        ("a_b.example", None),
        ("localhost", None),
        ("1.example", None),
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_a_host_is_a_name_or_an_address_in_its_usual_form(host: str, address: str | None) -> None:
    found = parsed_host(host)
    assert (None if found is None else str(found)) == address


@pytest.mark.parametrize(
    "host",
    [
        *("2130706433", "0x7f000001", "0x", "0", "127.1", "127.0.1", "0177.0.0.1", "127.0.0.1."),
        *("1.2.3.4.5", "256.1.1.1", "a.1", "a.0x1", "1.2.3.04", "", ".", "a..b", "-a.example"),
        *("a-.example", "a b", "a/b", "a" * 64, ".".join(["a" * 60] * 5), "bücher.example", "::g"),
        *("١٢٧.0.0.1", "127.0.0.1%eth0"),  # digits that are not ours
    ],
)
def test_what_one_reads_as_a_name_and_another_as_an_address_is_neither(host: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parsed_host(host)
