"""The cap on requests that wait for one owner."""

import asyncio

import pytest

from tenure import ConfigurationError
from tenure.errors import OutcomeUnknown, Overloaded, TenureError
from tenure.routing.outstanding import Outstanding
from tenure.routing.router import Router
from tenure.routing.trying import InDoubt, Wanted
from tests.unit.routing.scripted import Table


def test_more_than_the_cap_fails_at_once_and_other_owners_are_not_concerned() -> None:
    outstanding = Outstanding(2)
    for _ in range(2):
        outstanding.begin("http://slow")
    with pytest.raises(Overloaded, match="2 requests of this client wait for http://slow"):
        outstanding.begin("http://slow")
    outstanding.begin("http://other")
    outstanding.end("http://slow")
    outstanding.begin("http://slow")
    for address in ("http://slow", "http://slow", "http://other"):
        outstanding.end(address)
    assert not outstanding._waiting


@pytest.mark.parametrize("is_blocking", [True, False])
@pytest.mark.parametrize(
    ("method", "expected"),
    [("PUT", OutcomeUnknown), ("DELETE", OutcomeUnknown), ("GET", Overloaded)],
)
def test_what_an_earlier_attempt_may_have_done_is_not_denied(
    method: str, expected: type[TenureError], *, is_blocking: bool
) -> None:
    """Its owner fails, and the next one has all the requests that it may have."""
    table = Table("http://first")
    router = Router(table, "/carts/{user}", deadline=10, outstanding=1, origin=None)
    router.outstanding.begin("http://next")
    wanted = Wanted("ann", method, "/carts/ann", has_idempotency_key=False)

    def attempt(_: str, __: float) -> InDoubt:
        table.address = "http://next"
        return InDoubt("the connection broke")

    async def attempt_in_loop(address: str, by: float) -> InDoubt:
        with router.limit_of(wanted, address, by):
            return attempt(address, by)

    def ask() -> InDoubt:
        if is_blocking:
            return router.ask_blocking(wanted, attempt, lambda _: True)
        return asyncio.run(router.ask(wanted, attempt_in_loop, lambda _: True))

    with pytest.raises(expected):
        ask()


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "3", True, None])
def test_a_cap_is_a_number(wrong: object) -> None:
    with pytest.raises(ConfigurationError, match="outstanding"):
        Outstanding(wrong)  # type: ignore[arg-type]
