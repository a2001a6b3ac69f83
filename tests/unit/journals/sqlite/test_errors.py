"""Each error of SQLite has its meaning for a journal, even one that no test can bring about."""

import sqlite3
from pathlib import Path

import pytest

from tenure.errors import JournalDamaged, JournalError, JournalUnwritable
from tenure.journals.sqlite.errors import translated, translation

PATH = Path("/var/lib/tenure/journal.sqlite")

MEANINGS = {
    "SQLITE_BUSY": JournalError,
    "SQLITE_BUSY_RECOVERY": JournalError,
    "SQLITE_BUSY_SNAPSHOT": JournalError,
    "SQLITE_LOCKED": JournalError,
    "SQLITE_PROTOCOL": JournalError,
    "SQLITE_FULL": JournalUnwritable,
    "SQLITE_IOERR_WRITE": JournalUnwritable,
    "SQLITE_IOERR_SHMSIZE": JournalUnwritable,
    "SQLITE_READONLY": JournalUnwritable,
    "SQLITE_READONLY_DIRECTORY": JournalUnwritable,
    "SQLITE_CANTOPEN": JournalUnwritable,
    "SQLITE_PERM": JournalUnwritable,
    "SQLITE_READONLY_DBMOVED": JournalDamaged,
    "SQLITE_CORRUPT": JournalDamaged,
    "SQLITE_NOTADB": JournalDamaged,
    "SQLITE_ERROR": JournalDamaged,
    "SQLITE_IOERR_READ": JournalDamaged,
    "SQLITE_IOERR_SHORT_READ": JournalDamaged,
    "SQLITE_IOERR_FSYNC": JournalDamaged,
    "SQLITE_IOERR_DIR_FSYNC": JournalDamaged,
}


def failure(name: str) -> sqlite3.Error:
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorcode = getattr(sqlite3, name)
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(("name", "kind"), MEANINGS.items())
def test_a_meaning(name: str, kind: type[JournalError]) -> None:
    with pytest.raises(JournalError) as caught, translated(PATH):
        raise failure(name)
    assert type(caught.value) is kind
    assert str(PATH) in str(caught.value)
    assert isinstance(caught.value.__cause__, sqlite3.Error)


@pytest.mark.parametrize(
    "error", [failure("SQLITE_MISUSE"), sqlite3.ProgrammingError("of the module itself")]
)
def test_a_mistake_of_ours_stays_what_it_is(error: sqlite3.Error) -> None:
    assert translation(error, PATH) is None
    with pytest.raises(type(error), match=str(error)), translated(PATH):
        raise error
