"""A path is laid below an origin, and never leads to another."""

import pytest

from tenure.base.origin import parse


def test_a_path_is_laid_below_the_prefix() -> None:
    assert parse("http://shop:80/under", "address").path_to("/carts/ann") == "/under/carts/ann"


@pytest.mark.parametrize("path", ["", "@elsewhere/carts", "http://elsewhere/", ".elsewhere", "*"])
def test_what_begins_with_no_slash_is_no_path(path: str) -> None:
    """Joined to an authority as text, it would lead to another host, with the visitor's cookies."""
    with pytest.raises(ValueError, match="does not begin with /"):
        parse("http://shop", "address").path_to(path)
