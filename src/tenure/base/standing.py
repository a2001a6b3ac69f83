"""How a key stands: what somebody elsewhere keeps who relies on the key's state."""

import msgspec


class KeyStanding(msgspec.Struct, frozen=True, array_like=True):
    """Under which lease a key is, and since when its state is unbroken, as far as a lookup knows.

    Keep one, and compare it with a later one: state that was made in between is not taken for lost
    by mistake, and none that was lost is missed, however long nobody looked.
    """

    journal: int
    number: int
    since: int

    def has_lost(self, before: "KeyStanding") -> bool:
        """Whether state that was there, or made, under `before` is gone."""
        return before.journal != self.journal or self.since > before.number
