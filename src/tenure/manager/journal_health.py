"""The health of a journal, for `tenure status`: its size, and which of its members answer."""

import asyncio

from tenure.errors import TenureError
from tenure.journals.contract import Journal
from tenure.journals.etcd.journal import EtcdJournal
from tenure.journals.sqlite.journal import SqliteJournal
from tenure.manager.answers import JournalAnswer
from tenure.protocol.lease.records import AnyRecord, State

PATIENCE_SECONDS = 1.5
"""Longer than an etcd member has to answer, shorter than whoever asks for the status waits."""


async def journal_answer(journal: Journal[AnyRecord, State]) -> JournalAnswer:
    """The state of `journal`. What is wrong with it is part of the answer, and not raised."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await _ask(journal)
    except (TenureError, OSError) as error:  # a TimeoutError is an OSError
        return JournalAnswer(error=str(error) or f"no answer within {PATIENCE_SECONDS:g} s")


async def _ask(journal: Journal[AnyRecord, State]) -> JournalAnswer:
    if isinstance(journal, SqliteJournal):
        return JournalAnswer(file_bytes=journal.file_bytes(), free_bytes=journal.free_bytes())
    if isinstance(journal, EtcdJournal):
        found = await journal.health()
        return JournalAnswer(members=found.members, alarms=found.alarms)
    return JournalAnswer()
