"""What a gateway makes of the paths that members tell."""

from collections.abc import Mapping

import pytest

from tenure.base.instants import SECOND_NS, Instant
from tenure.gateway.routes import MOST_ROUTES, GatewayRoutes
from tenure.gateway.routes_file import RouteSources
from tenure.gateway.told_paths import KEPT_NS, MOST_OF_ALL, MOST_PATHS, ToldPaths, chosen


def heard(**pools: list[str]) -> dict[str, list[list[str]]]:
    """One owner in each pool, which tells these paths."""
    return {pool: [told] for pool, told in pools.items()}


def hear(paths: ToldPaths, heard: Mapping[str, list[list[str]]] | None, now: int) -> bool:
    """Whether that changed something."""
    return paths.hear(heard, Instant(now))


def test_the_longest_path_comes_first_and_nonsense_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = {"shops": frozenset(("/a/{a}", "/a/{a}/b", "nonsense")), "parts": frozenset(("/c/{c}",))}
    assert chosen(told) == ["/a/{a}/b=shops", "/a/{a}=shops", "/c/{c}=parts"]
    assert "'nonsense=shops' is no route" in caplog.text


@pytest.mark.parametrize("other", ["/a/{a}", "/a/{b}", "/a/{a:str}", "/a/{a:int}"])
def test_a_path_of_two_pools_leads_to_neither_whatever_its_place_is_called(
    other: str, caplog: pytest.LogCaptureFixture
) -> None:
    told = {"old": frozenset(("/a/{a}",)), "new": frozenset((other, "/b/{b}"))}
    assert chosen(told) == ["/b/{b}=new"]
    assert "pools ['new', 'old'] tell the path /a/{}" in caplog.text


def test_numbers_of_a_pool_come_before_what_fits_them_too() -> None:
    told = {"rooms": frozenset(("/a/{a}", "/a/{z:int}"))}
    assert chosen(told) == ["/a/{z:int}=rooms", "/a/{a}=rooms"]


def test_a_pool_with_too_many_paths_keeps_those_that_most_owners_tell(
    caplog: pytest.LogCaptureFixture,
) -> None:
    paths, many = ToldPaths(), [f"/a{n:04}/{{a}}" for n in range(1001)]
    owners = {"rooms": [["/rooms/{room}"]] * 2 + [many], "parts": [["/parts/{part}"]]}
    for second in range(3):
        assert hear(paths, owners, second * SECOND_NS) == (second == 0)
    assert len(paths.told["rooms"]) == MOST_PATHS
    lines = chosen(paths.told)
    assert {"/rooms/{room}=rooms", "/parts/{part}=parts"} <= set(lines)
    assert caplog.text.count("pool rooms tells 1002 paths") == 1


def test_many_pools_share_what_there_is(caplog: pytest.LogCaptureFixture) -> None:
    many = {f"p{n}": frozenset(f"/p{n}/{at}/{{a}}" for at in range(MOST_PATHS)) for n in range(100)}
    lines = chosen({**many, "small": frozenset(("/small/{a}",))})
    assert len(lines) <= MOST_OF_ALL
    assert "/small/{a}=small" in lines
    assert "paths of pool p99 are left out" in caplog.text


def test_what_an_operator_gives_has_room_whatever_members_bring(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = [f"/given{n}/{{a}}=given" for n in range(MOST_ROUTES - 2)]
    sources = RouteSources(given, None, "http://10.0.0.1")
    sources.brought = ["/a/{a}=a", "/b/{b}=b"]
    routes: GatewayRoutes = sources.read()
    assert routes.pools == {"given", "a"}
    assert routes.servers == {"http://10.0.0.1"}
    assert "1 of the routes that members bring" in caplog.text


def test_a_pool_without_owners_keeps_its_paths_for_a_reload_and_not_for_ever() -> None:
    paths = ToldPaths()
    both = heard(rooms=["/rooms/{room}"], parts=["/parts/{part}"])
    parts = heard(parts=["/parts/{part}"])
    hear(paths, both, 0)
    assert not hear(paths, parts, SECOND_NS)
    assert not hear(paths, parts, KEPT_NS)
    assert not hear(paths, both, KEPT_NS + SECOND_NS), "they have come back"
    since = KEPT_NS + 2 * SECOND_NS
    assert not hear(paths, parts, since)
    assert not hear(paths, parts, since + KEPT_NS - 1)
    assert hear(paths, parts, since + KEPT_NS)
    assert set(paths.told) == {"parts"}


def test_while_no_manager_answers_nothing_is_forgotten() -> None:
    paths = ToldPaths()
    hear(paths, heard(rooms=["/rooms/{room}"]), 0)
    hear(paths, {}, 1)
    assert not hear(paths, None, 10 * KEPT_NS)
    assert not hear(paths, {}, 20 * KEPT_NS), "its owners have had no time to come back"
    assert hear(paths, {}, 21 * KEPT_NS)
    assert paths.told == {}
