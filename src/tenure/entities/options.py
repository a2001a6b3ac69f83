"""How entities are treated: the options of `Entities`, checked."""

import msgspec

from tenure.client.arguments import checked_seconds
from tenure.errors import ConfigurationError

MOST_SECONDS = 86_400.0 * 365


class EntityOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, and counts."""

    idle: float = 300.0
    """After which an instance that nobody uses is dropped."""
    limit: int = 100_000
    """How many instances there are at a time, but for those in use."""
    turn: float = 30.0
    """For a call."""
    wait: float = 10.0
    """For its turn."""
    most_waiting: int = 1000
    """For one key."""
    deadline: float | None = None
    """For all attempts of a call; two holds, and a turn, unless given."""

    def checked(self) -> "EntityOptions":
        """Itself. Raises ConfigurationError for what cannot be used."""
        for name in ("idle", "turn", "wait", *(("deadline",) if self.deadline else ())):
            checked_seconds(name, getattr(self, name))
        for name in ("limit", "most_waiting"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigurationError(f"{name} is a number from 1 on, not {value!r}")
        return self
