"""Carrying out what the manager machine asks of its journal."""

from typing import assert_never

from tenure.errors import JournalError
from tenure.journals.contract import FATAL, Journal, Tail
from tenure.protocol.log.journal import (
    Append,
    Appended,
    Beat,
    Beaten,
    Campaign,
    Campaigned,
    Compact,
    Followed,
    JournalFailed,
    Load,
    Loaded,
    LogAction,
    LogEvent,
    R,
    ReadSeat,
    Resign,
    S,
    SeatRead,
    Unknown,
)


async def perform(journal: Journal[R, S], action: LogAction[R, S]) -> LogEvent[R, S] | None:
    """Carry out `action` and return its result, if it is answered.

    A passing failure becomes `Unknown` for an append, otherwise JournalFailed. Raises what does not
    pass: JournalDamaged, JournalTooNew or JournalWentBack, with which no manager can go on.
    """
    try:
        return await _perform(journal, action)
    except FATAL:
        raise
    except JournalError as error:
        if isinstance(action, Append):
            return Appended(action.mandate.leadership, action.after_lsn, Unknown(str(error)))
        return JournalFailed(action, str(error))


async def _perform(journal: Journal[R, S], action: LogAction[R, S]) -> LogEvent[R, S] | None:
    match action:
        case ReadSeat():
            return SeatRead(await journal.read_seat())
        case Campaign(seen, taken):
            return Campaigned(taken.leadership, await journal.campaign(seen, taken))
        case Beat(mandate, beat):
            return Beaten(mandate.leadership, beat, await journal.beat(mandate, beat))
        case Resign(mandate):
            await journal.resign(mandate)
            return None
        case Load(leadership, known, after_lsn):
            found = await journal.load_after(known, after_lsn)
            if isinstance(found, Tail):
                return Followed(leadership, known, after_lsn, found.records)
            return Loaded(leadership, found.journal, found.state, found.state_lsn, found.records)
        case Append(mandate, after_lsn, records):
            result = await journal.append(mandate, after_lsn, records)
            return Appended(mandate.leadership, after_lsn, result)
        case Compact(mandate, lsn, state):
            await journal.compact(mandate, lsn, state)
            return None
        case _:
            assert_never(action)
