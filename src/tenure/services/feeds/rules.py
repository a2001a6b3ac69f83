"""Rules, which users write as functions, change items on their way through a feed.

    rules = FeedRules()

    @rules.item
    def shorten(item): ...      # an item instead of this one; several; or None to drop it

    @rules.event
    def came_online(event): ... # an item, or several, for an event of another service; or None

If a rule raises, the error is logged and counted, and the item goes on unchanged.
"""

import logging
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import islice
from typing import Any, TypeAlias

import msgspec

from tenure.errors import ConfigurationError
from tenure.services.feeds.parsing import FeedItem

Made: TypeAlias = FeedItem | Iterable[FeedItem] | None
ItemRule: TypeAlias = Callable[[FeedItem], Made]
EventRule: TypeAlias = Callable[[dict[str, Any]], Made]
Joining: TypeAlias = Callable[[list[FeedItem]], FeedItem]
MOST_MADE = 100
"""The most items that one rule makes of one."""
logger = logging.getLogger("tenure.services")


class FeedRules:
    """The rules of one service."""

    def __init__(self) -> None:
        self._items: list[ItemRule] = []
        self._events: list[EventRule] = []
        self.join: Joining = joined
        self.failures = 0
        """How often a rule has raised."""

    def item(self, rule: ItemRule) -> ItemRule:
        """Add a rule for items. They are applied in the order in which they were added."""
        self._items.append(rule)
        return rule

    def event(self, rule: EventRule) -> EventRule:
        """Add a rule that makes items of events."""
        self._events.append(rule)
        return rule

    def coalesce(self, join: Joining) -> Joining:
        """Use this function to make one item of several of one user."""
        self.join = join
        return join

    def transformed(self, items: list[FeedItem]) -> list[FeedItem]:
        """The items that the rules make of these."""
        for rule in self._items:
            items = [made for each in items for made in self._made(rule, each, (each,))]
        return items

    def items_of(self, event: dict[str, Any]) -> list[FeedItem]:
        """The items that the rules make of an event, themselves transformed by the rules for
        items.
        """
        found = [made for rule in self._events for made in self._made(rule, event, ())]
        return self.transformed(found)

    def one_of(self, items: list[FeedItem]) -> FeedItem:
        """The item that several items of one user become."""
        made = self._made(self.join, items, ())
        return made[0] if len(made) == 1 else joined(items)

    def _made(
        self, rule: Callable[[Any], Made], given: object, otherwise: tuple[FeedItem, ...]
    ) -> tuple[FeedItem, ...]:
        try:
            made = rule(given)
            found = () if made is None else (made,) if isinstance(made, FeedItem) else made
            # A user's function may return anything: check that it can be kept.
            some = tuple(islice(found, MOST_MADE))
            kept = msgspec.convert(some, tuple[FeedItem, ...], from_attributes=True)
            msgspec.msgpack.encode(kept)
        except Exception:
            self.failures += 1
            logger.exception("the rule %s failed", getattr(rule, "__name__", rule))
            return otherwise
        return kept


def rules_named(name: str | None) -> FeedRules:
    """The rules that a module has, named as "module:name". Raises ConfigurationError."""
    if not name:
        return FeedRules()
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute or "rules")
    except Exception as error:  # the module may raise anything
        raise ConfigurationError(
            f"the rules {name!r} cannot be loaded: {type(error).__name__}: {error}. Name them as "
            "module:name, from a directory on PYTHONPATH"
        ) from error
    if not isinstance(found, FeedRules):
        raise ConfigurationError(f"{name!r} is {found!r:.100}, and not FeedRules")
    return found


def joined(items: list[FeedItem]) -> FeedItem:
    """One item that says what several items of one user say: "Alice updated her profile" and "Alice
    added Bob as a friend" become "Alice updated her profile and added Bob as a friend".
    """
    last = max(items, key=lambda each: each.at)
    parts = tuple(dict.fromkeys(part for each in items for part in each.parts or (each.id,)))
    first, *rest = dict.fromkeys(each.title.rstrip(".") for each in items)
    without = [each.removeprefix(last.user).strip() for each in rest]
    title = " and ".join((", ".join((first, *without[:-1])), *without[-1:]))
    return FeedItem(
        id=f"{parts[0]}+{len(parts) - 1}" if len(parts) > 1 else parts[0],
        title=title,
        user=last.user,
        link=last.link,
        text="\n".join(dict.fromkeys(each.text for each in items if each.text)),
        at=last.at,
        parts=parts,
    )
