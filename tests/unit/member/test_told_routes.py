"""The routes that members tell, and what a gateway makes of them."""

import pytest

from tenure.cli.gateway_options import GatewayOptions
from tenure.cli.member_routes import chosen
from tenure.member.told_routes import LABEL, read_told, told_routes
from tenure.protocol.lease.limits import LABELS_PER_OWNER


def test_paths_are_a_label_beside_those_of_the_user() -> None:
    told = told_routes(["/a/{a}", "/b/{b:int}"], {"zone": "b"})
    assert told == {LABEL: "/a/{a} /b/{b:int}", "zone": "b"}
    assert read_told(told) == ["/a/{a}", "/b/{b:int}"]
    assert told_routes([], None) == {}


def test_what_is_no_label_is_not_told() -> None:
    many = {str(n): "" for n in range(LABELS_PER_OWNER)}
    assert told_routes(["/a/{a}"], many) == many
    assert told_routes(["/" + "a" * 200 + "/{a}"], None) == {}
    assert told_routes(["/two words/{a}", "/b/{b}"], None) == {LABEL: "/b/{b}"}


def test_the_longest_path_comes_first_and_nonsense_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = {"shops": frozenset(("/a/{a}", "/a/{a}/b", "nonsense")), "parts": frozenset(("/c/{c}",))}
    assert chosen(told) == ["/a/{a}/b=shops", "/a/{a}=shops", "/c/{c}=parts"]
    assert "'nonsense=shops' is no route" in caplog.text


def test_a_path_of_two_pools_leads_to_neither(caplog: pytest.LogCaptureFixture) -> None:
    told = {"old": frozenset(("/a/{a}",)), "new": frozenset(("/a/{a}", "/b/{b}"))}
    assert chosen(told) == ["/b/{b}=new"]
    assert "pools ['new', 'old'] tell the path /a/{a}" in caplog.text


def test_options_go_to_the_process_of_the_gateway_as_they_were_given() -> None:
    options = GatewayOptions(route=("/a/{a}=b", "/c/{c}=d"), deadline=2.5, access_log=True)
    assert list(options.arguments()) == [
        *("--route=/a/{a}=b", "--route=/c/{c}=d", "--deadline=2.5", "--access-log")
    ]
    assert list(GatewayOptions().arguments()) == []
