"""Names: one rule for pools and owners."""

import pytest

from tenure.base.names import (
    SHOWN_CHARACTERS,
    SHOWN_URL_CHARACTERS,
    error_shown,
    shown,
    shown_url,
    wrong_with_name,
    wrong_with_text,
)


@pytest.mark.parametrize("name", ["a", "n" * 200, "räume/5 %", "房间"])
def test_what_can_be_seen_can_be_a_name(name: str) -> None:
    assert wrong_with_name(name) is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it has 0 characters; choose a name of 1 to 200"),
        ("n" * 201, "it has 201 characters; choose a name of 1 to 200"),
        ("n\x00\n", "'\\x00' in it is not printable; choose a name without it"),
        ("\ud800x", "'\\ud800' in it is not printable; choose a name without it"),
        ("a\u200bb", "'\\u200b' in it is not printable; choose a name without it"),
        (b"n", "it is a bytes; pass a str"),
    ],
)
def test_what_cannot_is_refused_with_the_way_out(name: object, why: str) -> None:
    assert wrong_with_name(name) == why


def test_a_text_may_be_empty_and_have_any_character_but_half_ones_and_controls() -> None:
    assert [wrong_with_text(text) for text in ("", "a\u00a0b", "😀")] == [None] * 3
    for text in ("a\n", "\x7f", "\x85", "\udfff"):
        assert wrong_with_text(text) is not None


def test_what_is_refused_is_shown_in_short() -> None:
    assert shown("x" * 100_000) == repr("x" * SHOWN_CHARACTERS)
    assert shown(b"x" * 100_000) == repr(b"x" * SHOWN_CHARACTERS)


class SaysNothing(Exception):
    def __str__(self) -> str:
        raise KeyError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("it broke"), "OSError: it broke"),
        (SaysNothing(), "SaysNothing: it cannot be shown"),
        (ValueError("half \ud800"), "ValueError: half \\ud800"),
    ],
)
def test_an_error_is_shown_whatever_it_is(error: Exception, said: str) -> None:
    assert error_shown(error) == said
    assert said.encode()


SECRETS = [
    ("postgresql://app:hunter2@db:5432/chat", "'postgresql://...@db:5432/chat'"),
    ("postgresql://app:p@hunter2@db/chat", "'postgresql://...@db/chat'"),
    ("postgresql://app:a/hunter2?b@db/chat", "'postgresql://...@...'"),
    ("postgresql://db/chat?user=a&password=p@hunter2", "'postgresql://...@...'"),
    (
        "postgresql://db/chat?user=a&sslpassword=hunter2",
        "'postgresql://db/chat?user=...&sslpassword=...'",
    ),
    ("cassandra:app:hunter2@db/chat", "'cassandra:...@db/chat'"),
    ("app:hunter2@db", "'...@db'"),
    ("http://db/a=b", "'http://db/a=b'"),
]


@pytest.mark.parametrize(("url", "said"), SECRETS)
def test_a_url_is_shown_without_its_password(url: str, said: str) -> None:
    assert shown_url(url) == said


def test_a_url_is_shown_in_short_too() -> None:
    assert shown_url("x" * 100_000) == repr("x" * SHOWN_URL_CHARACTERS)
    assert shown_url(b"x" * 100_000) == shown(b"x" * 100_000)
