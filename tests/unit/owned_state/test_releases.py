"""Owners of two releases of a class beside each other: the earlier one keeps what it does not
know.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lab.contracts.stored_state import StoredStateContract
from tenure import OwnedState
from tenure.testing.clock import TurnedClock
from tests.unit.owned_state.stage import Holder, holder, put, stored
from tests.unit.owned_state.test_state import move


class OldItem(msgspec.Struct):
    name: str


class NewItem(msgspec.Struct):
    name: str
    price: int = 0


class OldCart(msgspec.Struct):
    items: list[OldItem] = []
    who: OldItem | None = None


class NewCart(msgspec.Struct):
    items: list[NewItem] = []
    who: NewItem | None = None
    coupon: str = ""


@dataclass
class OldBasket:
    items: list[OldItem] = field(default_factory=list)


@dataclass
class NewBasket:
    items: list[NewItem] = field(default_factory=list)
    coupon: str = ""


CART = NewCart([NewItem("tea", 3), NewItem("cup", 7)], NewItem("ann", 1), "ten")


def two(old: Any, new: Any) -> tuple[Holder, Holder]:  # noqa: ANN401  # types of values
    """An owner of the new release, which has everything, and one of the old release."""
    clock = TurnedClock()
    later = holder(OwnedState(value_type=new), clock, number=1)
    return later, Holder("of the old release", clock, OwnedState(value_type=old))


def changed_by_the_old(change: Callable[[Any], None]) -> NewCart:
    """The cart as the new release finds it when one of the old release has had it."""
    later, earlier = two(OldCart, NewCart)
    put(later.state, "ann", CART)
    move(later, earlier, number=2)
    with earlier.state.at("ann") as it:
        change(it)
    move(earlier, later, number=3)
    found: NewCart = stored(later.state, "ann")
    return found


def test_what_is_changed_in_place_keeps_what_a_later_release_has_put_in() -> None:
    def change(it: Any) -> None:  # noqa: ANN401  # a turn
        it.value.items.append(OldItem("pot"))
        it.value.items[0].name = "green tea"

    items = [NewItem("green tea", 3), NewItem("cup", 7), NewItem("pot", 0)]
    assert changed_by_the_old(change) == NewCart(items, NewItem("ann", 1), "ten")


def test_an_item_that_is_removed_takes_its_own_along_and_no_other_gets_it() -> None:
    def change(it: Any) -> None:  # noqa: ANN401  # a turn
        del it.value.items[0]

    assert changed_by_the_old(change) == NewCart([NewItem("cup", 7)], NewItem("ann", 1), "ten")


@pytest.mark.parametrize("reads", [True, False])
def test_who_replaces_the_value_replaces_what_it_knows(reads: bool) -> None:
    def change(it: Any) -> None:  # noqa: ANN401  # a turn
        items = it.value.items if reads else []
        it.value = OldCart(items, OldItem("bob"))

    items = CART.items if reads else []
    assert changed_by_the_old(change) == NewCart(items, NewItem("bob", 1), "ten")


def test_a_value_that_is_removed_leaves_nothing() -> None:
    later, earlier = two(OldCart, NewCart)
    put(later.state, "ann", CART)
    move(later, earlier, number=2)
    put(earlier.state, "ann", None)
    put(earlier.state, "ann", OldCart())
    move(earlier, later, number=3)
    assert stored(later.state, "ann") == NewCart()


def test_so_do_dataclasses() -> None:
    later, earlier = two(OldBasket, NewBasket)
    put(later.state, "ann", NewBasket([NewItem("tea", 3)], "ten"))
    move(later, earlier, number=2)
    with earlier.state.at("ann") as it:
        assert it.value is not None
        it.value.items.append(OldItem("cup"))
    move(earlier, later, number=3)
    found = stored(later.state, "ann")
    assert found == NewBasket([NewItem("tea", 3), NewItem("cup", 0)], "ten")


def test_what_is_only_looked_at_stays_as_it_came() -> None:
    later, earlier = two(OldCart, NewCart)
    put(later.state, "ann", CART)
    move(later, earlier, number=2)
    assert stored(earlier.state, "ann").items[0] == OldItem("tea")
    move(earlier, later, number=3)
    assert stored(later.state, "ann") == CART


@pytest.mark.asyncio
async def test_a_store_has_both(tmp_path: Path) -> None:
    url, holding = f"sqlite:{tmp_path / 'carts'}", StoredStateContract().holding
    async with holding(url, 1, value_type=NewCart) as later:
        await later.put("ann", CART)
    async with holding(url, 2, value_type=OldCart) as earlier, earlier.state.at("ann") as it:
        assert it.value is not None
        it.value.items.pop()
    async with holding(url, 3, value_type=NewCart) as later:
        found = await later.get("ann")
    assert found == NewCart([NewItem("tea", 3)], NewItem("ann", 1), "ten")
