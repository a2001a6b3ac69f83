"""The key in a request's path."""

import pytest

from tenure import ConfigurationError, KeyTypeError, UsageError
from tenure.base.keys import UserKey
from tenure.routing.template import Templates


@pytest.mark.parametrize(
    ("template", "path", "key"),
    [
        ("/carts/{user}", "/carts/ann", "ann"),
        ("/carts/{user}", "/carts/ann/items/3", "ann"),
        ("/carts/{user}", "/carts/ann/", "ann"),
        ("/carts/{user}", "/carts/a%2Fb", "a/b"),
        ("/carts/{user}", "/carts/%C3%A4nn", "änn"),
        ("/ca%72ts/{user}", "/ca%2572ts/ann", "ann"),
        ("/carts/{user}", "/c%61rts/ann", "ann"),
        ("/{tenant}/rooms", "/blue/rooms/7", "blue"),
        ("/rooms/{room:int}", "/rooms/42", 42),
        ("/rooms/{room:str}", "/rooms/42", "42"),
        ("/carts/{user}", "/carts", None),
        ("/carts/{user}", "/carts/", None),
        ("/carts/{user}", "/carts//x", None),
        ("/carts/{user}", "/Carts/ann", None),
        ("/carts/{user}", "/cartsx/ann", None),
        ("/carts/{user}", "/carts/%ff", "\udcff"),  # which `find` and `check` refuse
        ("/carts/{user}", "/files/%ff", None),
        ("/carts/{user}", "carts/ann", None),
        ("/rooms/{room:int}", "/rooms/x", None),
        ("/rooms/{room:int}", "/rooms/-1", None),
        ("/rooms/{room:int}", "/rooms/٣", None),
        ("/{tenant}/rooms", "/blue/halls/7", None),
    ],
)
def test_a_template_finds_its_key(template: str, path: str, key: UserKey | None) -> None:
    assert Templates(template).find_raw(path) == key


def test_of_several_the_first_that_fits_and_a_function_may_do_it() -> None:
    several = Templates(["/carts/{user}", "/users/{user}/cart"])
    assert several.find("/users/bob/cart") == "bob"
    assert several.find("/users/bob") is None
    last = Templates(lambda path: path.rpartition("/")[2] or None)
    assert last.find_raw("/a/b%20c") == "b c"
    assert last.find_raw("/a/") is None


@pytest.mark.parametrize("wrong", [1.5, True, ["ann"], object()])
def test_a_function_that_returns_no_key_is_an_error(wrong: object) -> None:
    with pytest.raises(KeyTypeError, match="returned"):
        Templates(lambda _: wrong).need_raw("/carts/ann")  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "carts/{user}",
        "/carts",
        "/carts/{}",
        "/carts/{user}/{item}",
        "/carts/x{user}",
        "/carts/{user",
        "/carts/{user:path}",
        5,
        None,
        [],
        ["/carts/{user}", 5],
        {"/carts/{user}"},
    ],
)
def test_a_template_that_names_no_key_is_refused_at_once(wrong: object) -> None:
    with pytest.raises(ConfigurationError, match=r'key="/carts/\{user\}"'):
        Templates(wrong)  # type: ignore[arg-type]


def test_a_path_that_must_have_a_key_says_so() -> None:
    with pytest.raises(UsageError, match=r"'/health'.*origin="):
        Templates("/carts/{user}").need_raw("/health")
