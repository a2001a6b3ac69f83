"""Decides what a store refuses, and why.

A lease protects what its owner has in memory. A write that the owner sends elsewhere may arrive
after the lease has ended: the process was stopped, or the packet was late. So the owner sends the
lease along, and the store refuses any lease older than one that it has seen for the same key. The
store must decide in the very transaction in which it writes, or the write itself could be late.

**Histories.** Lease numbers grow within one journal of the managers. If the journal is replaced,
restored from a backup, or lost with the memory that kept it, another history begins, and the
numbers do not show which of two histories is the later one. A store that believed any unknown
history would admit a late writer of an old history that it had not met yet. So the store knows one
history for each pool: the first that it meets. It refuses another one until that is *declared*, by
the person who replaced the journal. A history that was replaced never comes back.
"""

from collections.abc import Generator, Mapping
from typing import Any, TypeAlias

from tenure.client.lease import Lease
from tenure.errors import ConfigurationError, Fenced, UsageError

Claim: TypeAlias = Lease | Mapping[str, str]
"""A lease, or the headers of a request that name one."""
Row: TypeAlias = Any
Statement: TypeAlias = tuple[str, tuple[object, ...]]
Steps: TypeAlias = Generator[Statement, Row, None]
"""Statements, each answered with its first row, or None."""

HISTORY_DIGITS = 16
_MOST_HISTORY = (1 << 64) - 1

READ = "SELECT journal, past FROM tenure_fence_history WHERE pool = ?"
BEGIN = (
    "INSERT INTO tenure_fence_history (pool, journal, past) VALUES (?, ?, '') "
    "ON CONFLICT (pool) DO NOTHING RETURNING pool"
)
REPLACE = "UPDATE tenure_fence_history SET journal = ?, past = ? WHERE pool = ? RETURNING pool"
ADMIT = (
    "INSERT INTO tenure_fence (pool, key, journal, number) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (pool, key) DO UPDATE SET journal = excluded.journal, number = excluded.number "
    "WHERE tenure_fence.journal <> excluded.journal OR tenure_fence.number <= excluded.number "
    "RETURNING number"
)
SEEN = "SELECT number FROM tenure_fence WHERE pool = ? AND key = ?"


def lease_of(claim: Claim) -> Lease:
    """The claimed lease. Raises RemoteProtocolError if the headers do not name one."""
    lease = claim if isinstance(claim, Lease) else Lease.of(claim)
    if not lease.pool:
        raise UsageError("this Lease names no pool: use one that check() returned")
    return lease


def name_of(journal: object) -> str:
    """The name of a history, as it is stored and shown. Raises ConfigurationError if it is not
    one.
    """
    if isinstance(journal, str):
        try:
            journal = int(journal, 16)
        except ValueError:
            journal = None
    if (
        not isinstance(journal, int)
        or isinstance(journal, bool)
        or not 0 <= journal <= _MOST_HISTORY
    ):
        raise ConfigurationError(
            "a journal is its identity: a number of 64 bits, or its hexadecimal digits, as in "
            "`lease.journal` and in the error of the fence"
        )
    return f"{journal:0{HISTORY_DIGITS}x}"


def admission(lease: Lease, lock: str) -> Steps:
    """Admit `lease`, or raise Fenced. `lock` keeps others from declaring a history meanwhile."""
    journal = name_of(lease.journal)
    history = yield READ + lock, (lease.pool,)
    if history is None:
        yield BEGIN, (lease.pool, journal)
        history = yield READ + lock, (lease.pool,)
    check_history(lease.pool, journal, history[0], history[1].split())
    admitted = yield ADMIT, (lease.pool, lease.key, journal, lease.number)
    if admitted is None:
        seen = yield SEEN, (lease.pool, lease.key)
        raise too_old(lease, seen[0])


def declaration(pool: str, journal: object, lock: str) -> Steps:
    """Let `journal` be the history of `pool` from here on."""
    new = name_of(journal)
    history = yield READ + lock, (pool,)
    if history is None:
        yield BEGIN, (pool, new)
        return
    current, past = history[0], history[1].split()
    if current != new:
        check_declared(pool, new, past)
        yield REPLACE, (new, " ".join([*past, current]), pool)


def check_history(pool: str, journal: str, current: str, past: list[str]) -> None:
    """Raise Fenced if `journal` is not the history that counts."""
    if journal == current:
        return
    if journal in past:
        raise Fenced(
            f"the lease is of the journal {journal} of the pool {pool!r}, which was replaced: its "
            "owner must have lost the key long ago. Nothing was written"
        )
    raise Fenced(
        f"the lease is of the journal {journal} of the pool {pool!r}, and this store knows "
        f"{current}. If the journal was replaced or restored on purpose, say so with "
        f"declare({pool!r}, {journal!r}). Nothing was written"
    )


def check_declared(pool: str, journal: str, past: list[str]) -> None:
    """Raise ConfigurationError if `journal` was replaced before."""
    if journal in past:
        raise ConfigurationError(
            f"the journal {journal} of the pool {pool!r} was replaced before, and its numbers no "
            "longer count: declare the journal that the managers use now"
        )


def too_old(lease: Lease, seen: int) -> Fenced:
    """The error if the store has seen a newer owner."""
    return Fenced(
        f"lease number {lease.number} of the pool {lease.pool!r} is older than number {seen}, with "
        f"which the key {lease.key.hex() or '-'} was written: another owner has it. Nothing was "
        "written"
    )
