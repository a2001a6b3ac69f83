"""The standing of a key, for processes elsewhere that rely on the key's state."""

import msgspec


class KeyStanding(msgspec.Struct, frozen=True, array_like=True):
    """The lease of a key, and since when its state is unbroken, as far as a lookup knows.

    Keep one, and compare it with a later one: state that was made in between does not count as lost
    by mistake, and no loss is missed, however long nobody looked.
    """

    journal: int
    number: int
    since: int

    def has_lost(self, before: "KeyStanding") -> bool:
        """Whether state that existed, or was made, under `before` is gone."""
        return before.journal != self.journal or self.since > before.number
