"""The journals that a manager can keep, each opened by its URL."""

from pathlib import Path

from leasehold.errors import ConfigurationError
from leasehold.manager.journals.contract import FATAL, History, Journal
from leasehold.manager.journals.memory import MemoryJournal
from leasehold.manager.journals.perform import perform
from leasehold.manager.journals.sqlite import SqliteJournal

__all__ = [
    "FATAL",
    "History",
    "Journal",
    "MemoryJournal",
    "SqliteJournal",
    "open_journal",
    "perform",
]


def open_journal(url: str) -> Journal:
    """The journal that `url` names: `memory`, or `sqlite:PATH`, made where there is none yet.

    Blocks until it is read through. The caller closes it. Raises ConfigurationError for any other
    URL or an impossible path, and JournalError where the journal cannot be used.
    """
    scheme, _, rest = url.partition(":")
    if url == "memory":
        return MemoryJournal()
    if scheme == "sqlite" and rest and "\0" not in rest:
        return SqliteJournal.open(Path(rest))
    raise ConfigurationError(
        f"no journal is called {url!r}: it is either memory, which is gone with its manager, "
        "or sqlite:PATH, such as sqlite:/var/lib/leasehold/journal.sqlite"
    )
