"""What each manager said, or why it could not be reached: for the error when none helps."""

from collections.abc import Sequence

from tenure.errors import NoManager

SILENT = "no answer"


class Reachability:
    """The last that is known of each manager."""

    def __init__(self, managers: Sequence[str]) -> None:
        self._last = dict.fromkeys(managers, SILENT)

    def name(self, managers: Sequence[str]) -> None:
        """These are the managers from here on."""
        self._last = {manager: self._last.get(manager, SILENT) for manager in managers}

    def note(self, manager: str, what: str) -> None:
        """This is what came of the last attempt with `manager`."""
        if manager in self._last:
            self._last[manager] = what

    def stands_by(self, manager: str, leader: str | None) -> None:
        """The manager said that it does not lead."""
        where = f"{leader} leads" if leader else "it knows of no leader"
        unknown = "" if leader is None or leader in self._last else ", which is not in the list"
        self.note(manager, f"stands by; {where}{unknown}")

    def __str__(self) -> str:
        return "; ".join(f"{manager}: {last}" for manager, last in self._last.items())

    def error(self, what: str, timeout_seconds: float) -> NoManager:
        """No manager helped in time."""
        return NoManager(
            f"{what} within {timeout_seconds:g} s. Tried {self}. See that a manager runs there "
            "(`tenure manager`), or name others with managers= or TENURE_MANAGERS"
        )
