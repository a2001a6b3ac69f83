"""The kinds of journals that a manager can keep, each opened by its URL."""

from pathlib import Path

from tenure.base.file_urls import path_in
from tenure.base.names import shown_url
from tenure.errors import ConfigurationError
from tenure.journals.contract import FATAL, Journal, Restorable, Tail, WholeLog
from tenure.journals.etcd.journal import EtcdJournal
from tenure.journals.etcd.url import EXAMPLE
from tenure.journals.memory import MemoryJournal
from tenure.journals.perform import perform
from tenure.journals.sqlite.journal import SqliteJournal
from tenure.protocol.log.journal import R, S
from tenure.wire.journal_codec import JournalCodec

__all__ = [
    "FATAL",
    "EtcdJournal",
    "Journal",
    "MemoryJournal",
    "Restorable",
    "SqliteJournal",
    "Tail",
    "WholeLog",
    "open_copy",
    "open_journal",
    "perform",
]


def open_journal(url: str, codec: JournalCodec[R, S]) -> Journal[R, S]:
    """The journal that `url` names: `memory`, `sqlite:PATH`, or `etcd:URL,...`.

    `codec` says what its records and snapshots are.

    A missing journal is made. A file is read through before this returns; etcd is asked nothing
    before the first call. The caller closes it. Raises ConfigurationError for any other URL or an
    impossible path, and JournalError where the journal cannot be used.
    """
    scheme, _, rest = url.partition(":")
    if url == "memory":
        return MemoryJournal(codec)
    if scheme == "sqlite" and rest and "\0" not in rest:
        return SqliteJournal.open(Path(path_in(url)), codec)
    if scheme == "etcd":
        return EtcdJournal.open(url, codec)
    raise _unknown(url)


def open_copy(url: str, codec: JournalCodec[R, S]) -> Restorable[R, S]:
    """The journal that `url` names and that is there already, to be restored.

    Raises as `open_journal`; and ConfigurationError where no file is, or for `memory`.
    """
    scheme, _, rest = url.partition(":")
    if url == "memory":
        raise ConfigurationError(
            "the journal memory is gone with its manager, so there is no copy of it to restore; "
            "name sqlite:PATH or etcd:URL,URL,..."
        )
    if scheme == "etcd":
        return EtcdJournal.open(url, codec, makes=False)
    if scheme != "sqlite" or not rest or "\0" in rest:
        raise _unknown(url)
    path = Path(path_in(url))
    if not path.expanduser().exists():
        raise ConfigurationError(
            f"there is no file {path.expanduser()} to restore: put the copy of the journal there "
            "first, without any -wal or -shm of another one beside it"
        )
    return SqliteJournal.open(path, codec)


def _unknown(url: str) -> ConfigurationError:
    return ConfigurationError(
        f"no journal is called {shown_url(url)}: it is either memory, which is gone with its "
        "manager, or sqlite:PATH, such as sqlite:/var/lib/tenure/journal.sqlite, or "
        "etcd:URL,URL,..., "
        f"such as {EXAMPLE}"
    )
