"""The cap on requests that wait for one owner."""

import pytest

from tenure import ConfigurationError
from tenure.errors import Overloaded
from tenure.routing.outstanding import Outstanding


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


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "3", True, None])
def test_a_cap_is_a_number(wrong: object) -> None:
    with pytest.raises(ConfigurationError, match="outstanding"):
        Outstanding(wrong)  # type: ignore[arg-type]
