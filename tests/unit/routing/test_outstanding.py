"""The cap on requests that wait for one owner."""

from contextlib import ExitStack

import pytest

from tenure import ConfigurationError
from tenure.errors import Overloaded
from tenure.routing.outstanding import Outstanding


def test_more_than_the_cap_fails_at_once_and_other_owners_are_not_concerned() -> None:
    outstanding = Outstanding(2)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(outstanding.at("http://slow"))
        with pytest.raises(Overloaded, match="2 requests of this client wait for http://slow"):
            stack.enter_context(outstanding.at("http://slow"))
        stack.enter_context(outstanding.at("http://other"))
    with outstanding.at("http://slow"):
        pass


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "3", True, None])
def test_a_cap_is_a_number(wrong: object) -> None:
    with pytest.raises(ConfigurationError, match="outstanding"):
        Outstanding(wrong)  # type: ignore[arg-type]
