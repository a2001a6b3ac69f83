"""GatewayRoutes: which processes a request is for."""

from pathlib import Path

import pytest

from tenure.errors import ConfigurationError
from tenure.gateway.routes import GatewayRoutes, RoutedTo
from tenure.gateway.routes_file import RouteSources


def routes(*texts: str) -> GatewayRoutes:
    return GatewayRoutes.read(("here", each) for each in texts)


SHOP = routes(
    "/rooms/{room} X-Canary:yes=rooms-next",
    "/rooms/{room}=rooms",
    "/parts/{part:int}/price=parts",
    "/ask X-Room:{room}=rooms",
    "/count X-Count:{n:int}=counts",
    "/static=http://10.0.0.7:9000",
    "/=http://10.0.0.7:8000",
)
REST = RoutedTo("http://10.0.0.7:8000", None)


@pytest.mark.parametrize(
    ("path", "headers", "found"),
    [
        ("/rooms/attic", [], RoutedTo("rooms", "attic")),
        ("/rooms/attic/lines/7", [], RoutedTo("rooms", "attic")),
        ("/rooms/the%20attic", [], RoutedTo("rooms", "the attic")),
        ("/rooms/a%2Fb", [], RoutedTo("rooms", "a")),
        ("/rooms/%C3%A4", [], RoutedTo("rooms", "ä")),
        ("/rooms/", [], REST),
        ("/rooms", [], REST),
        ("/rooms/attic", [(b"x-canary", b"yes")], RoutedTo("rooms-next", "attic")),
        ("/rooms/attic", [(b"x-canary", b"no")], RoutedTo("rooms", "attic")),
        ("/parts/7/price", [], RoutedTo("parts", 7)),
        ("/parts/seven/price", [], REST),
        ("/ask", [(b"x-room", b"attic")], RoutedTo("rooms", "attic")),
        ("/ask/more", [(b"x-room", b"\xc3\xa4")], RoutedTo("rooms", "ä")),
        ("/asks", [(b"x-room", b"attic")], REST),
        ("/ask", [], REST),
        ("/ask", [(b"x-room", b"")], REST),
        ("/ask", [(b"x-room", b"a"), (b"x-room", b"b")], REST),
        ("/count", [(b"x-count", b"12")], RoutedTo("counts", 12)),
        ("/count", [(b"x-count", b"-1")], REST),
        ("/static/a.css", [], RoutedTo("http://10.0.0.7:9000", None)),
        ("/statics", [], REST),
    ],
)
def test_the_first_route_that_fits_is_taken(
    path: str, headers: list[tuple[bytes, bytes]], found: RoutedTo
) -> None:
    assert SHOP.find(path, headers) == found


def test_a_path_that_no_route_fits_leads_nowhere() -> None:
    assert routes("/rooms/{room}=rooms").find("/carts/ann", []) is None


def test_bytes_that_are_no_text_are_a_key_that_is_refused_and_not_another_key() -> None:
    found = SHOP.find("/rooms/%FF", [])
    assert found == RoutedTo("rooms", "\udcff")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no route"),
        ("rooms", "is no route"),
        ("/rooms/{room}", "is no route"),
        ("rooms/{room}=rooms", "is no route"),
        ("/rooms/{room}=", "is no route"),
        ("/rooms=rooms", "names 0 keys"),
        ("/rooms/{room} X-Room:{room}=rooms", "names 2 keys"),
        ("/rooms/{room}=http://10.0.0.7:8000", "names 1 keys"),
        ("/rooms/{room}/{other}=rooms", "key cannot be"),
        ("/rooms/{room:float}=rooms", "key cannot be"),
        ("/rooms X-Room:{room:float}=rooms", "is written"),
        ("/rooms/{room} X-Canary=rooms", "is no header"),
        ("/=ftp://10.0.0.7", "not the URL of an HTTP server"),
        ("/rooms/{room}=" + "x" * 300, "cannot be a pool"),
    ],
)
def test_a_route_that_cannot_be_used_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        routes(text)


def test_a_mistake_in_the_file_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "routes"
    file.write_text("# where rooms are\n\n/rooms/{room}=rooms # all of them\n/carts=carts\n")
    with pytest.raises(ConfigurationError, match=r"routes:4: .* names 0 keys"):
        RouteSources((), file, None).read()
    file.write_text("# where rooms are\n/rooms/{room}=rooms # all of them\n")
    found = RouteSources(("/rooms/{room}/first=firsts",), file, None).read()
    assert found.find("/rooms/a/first", []) == RoutedTo("firsts", "a")
    assert found.find("/rooms/a", []) == RoutedTo("rooms", "a")


def test_no_routes_and_a_file_that_is_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="needs a route"):
        RouteSources((), None, None).read()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        RouteSources((), tmp_path / "none", None).read()
    file = tmp_path / "routes"
    file.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(ConfigurationError, match="more than 1048576 bytes"):
        RouteSources((), file, None).read()
    file.write_text("/=http://10.0.0.7:8000\n" * 1001)
    with pytest.raises(ConfigurationError, match="at most 1000"):
        RouteSources((), file, None).read()


def test_what_is_written_comes_before_what_members_bring_and_then_the_rest(tmp_path: Path) -> None:
    sources = RouteSources(("/a/{a}=given",), None, "http://10.0.0.7:80")
    sources.brought = ["/a/{a}=brought", "/b/{b}=brought"]
    found = sources.read()
    assert found.find("/a/x", []) == RoutedTo("given", "x")
    assert found.find("/b/x", []) == RoutedTo("brought", "x")
    assert found.find("/c", []) == RoutedTo("http://10.0.0.7:80", None)
    with pytest.raises(ConfigurationError, match=r"--rest: "):
        RouteSources((), None, "nowhere").read()
