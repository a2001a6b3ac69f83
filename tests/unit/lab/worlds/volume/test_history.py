"""The checker of linearizability: what can have happened one after another, and what cannot."""

from itertools import permutations
from random import Random

import pytest

from lab.worlds.volume.history import KeyHistory

Read = tuple[bytes, int, int]


def history(*done: tuple[str, bytes, int, int]) -> KeyHistory:
    made = KeyHistory(b"0")
    for kind, value, began, ended in done:
        if kind == "write":
            made.wrote(value, began)
            made.ended(value, began, ended)
    for kind, value, began, ended in done:
        if kind == "read":
            made.read(value, began, ended)
    return made


def test_one_after_another() -> None:
    assert history(("write", b"a", 1, 2), ("read", b"a", 3, 4)).check() is None


def test_a_read_after_a_later_write_is_stale_at_first_sight() -> None:
    made = history(("write", b"a", 1, 2), ("write", b"b", 3, 4))
    assert made.read(b"a", 5, 6) is not None
    assert made.read(b"b", 5, 6) is None


def test_a_read_beside_a_write_may_return_either() -> None:
    for value in (b"0", b"a"):
        assert history(("write", b"a", 1, 9), ("read", value, 2, 3)).check() is None


def test_new_and_then_old_is_no_order() -> None:
    made = history(("write", b"a", 1, 9), ("read", b"a", 2, 3), ("read", b"0", 4, 5))
    assert made.check() is not None


def test_a_value_that_nobody_wrote() -> None:
    assert KeyHistory(b"0").read(b"?", 1, 2) is not None


def naive(done: list[tuple[str, bytes, int, int]]) -> bool:
    """Try every order, as Wing and Gong would."""
    for order in permutations(range(len(done))):
        if any(
            done[later][3] < done[earlier][2]
            for i, earlier in enumerate(order)
            for later in order[i + 1 :]
        ):
            continue
        value, is_one = b"0", True
        for at in order:
            kind, each, _, _ = done[at]
            if kind == "write":
                value = each
            is_one = is_one and value == each
        if is_one:
            return True
    return False


@pytest.mark.parametrize("seed", range(8))
def test_it_says_what_trying_every_order_says(seed: int) -> None:
    random = Random(seed)
    seen = {True: 0, False: 0}
    for _ in range(60):
        instants = random.sample(range(100), 10)
        done: list[tuple[str, bytes, int, int]] = []
        for i in range(5):
            began, ended = sorted(instants[2 * i : 2 * i + 2])
            value = random.choice((b"0", b"1", b"2"))
            kind = "write" if i < 2 else "read"
            done.append((kind, b"%d" % (i + 1) if i < 2 else value, began, ended))
        expected = naive(done)
        made = KeyHistory(b"0")
        for kind, value, began, ended in done:
            if kind == "write":
                made.wrote(value, began)
                made.ended(value, began, ended)
        wrong = [made.read(*each[1:]) for each in done if each[0] == "read"]
        assert (made.check() is None and not any(wrong)) == expected, done
        seen[expected] += 1
    assert min(seen.values()) > 0
