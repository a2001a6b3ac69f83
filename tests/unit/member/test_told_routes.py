"""The routes that members tell, and what a gateway makes of them."""

from tenure.cli.gateway_options import GatewayOptions
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


def test_options_go_to_the_process_of_the_gateway_as_they_were_given() -> None:
    options = GatewayOptions(route=("/a/{a}=b", "/c/{c}=d"), deadline=2.5, access_log=True)
    assert list(options.arguments()) == [
        *("--route=/a/{a}=b", "--route=/c/{c}=d", "--deadline=2.5", "--access-log")
    ]
    assert list(GatewayOptions().arguments()) == []
