"""Rivals: living leaders of different journals, as messages and records name them (P25).

Two managers on two journals know nothing of each other, and both grant every key. Whoever hears of
both says so. A rival that goes on from an old copy of a journal (`tenure restore`) proves that it
is the rightful successor with the secret of the journal that was copied: nobody else knows it, so
the proof is true whoever shows it.
"""

import re
from hashlib import blake2b
from hmac import compare_digest
from typing import Annotated, TypeAlias

import msgspec

from tenure.base.numbers import JournalId
from tenure.errors import ConfigurationError

PREDECESSORS_KEPT = 8
"""How many restorations one after the other are remembered; managers of the earliest are long gone.
"""
RIVALS_KEPT = 1_000
"""How many rivals a journal remembers: one for each pool, and then some."""
OVER_KEPT = 64
"""How many journals that an operator has declared over are remembered."""
REALM_CHARACTERS = 100
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NUMBER_BYTES = 8
_PROOF_BYTES = 16

ManagerUrl: TypeAlias = Annotated[str, msgspec.Meta(max_length=2000)]
Realm: TypeAlias = Annotated[
    str, msgspec.Meta(max_length=REALM_CHARACTERS, pattern=r"^[^\x00-\x1f\x7f]*\Z")
]
"""The name of a fleet of managers and its clients; empty if it has none. It stands in logs."""
Proof: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=64)]


class Succession(msgspec.Struct, frozen=True, array_like=True):
    """A journal that this one goes on from, and the proof of that."""

    journal: JournalId
    proof: Proof


Successions: TypeAlias = Annotated[
    tuple[Succession, ...], msgspec.Meta(max_length=PREDECESSORS_KEPT)
]


JournalsOver: TypeAlias = Annotated[tuple[JournalId, ...], msgspec.Meta(max_length=OVER_KEPT)]
"""The journals that an operator has declared over: their leaders are no rivals."""


class Predecessor(msgspec.Struct, frozen=True, array_like=True):
    """A journal that this one was restored from, with the secret that its managers know."""

    journal: JournalId
    secret: Proof


class Rival(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A living leader of another journal, as somebody who was answered by both tells of it."""

    manager: ManagerUrl
    journal: JournalId
    succeeds: Successions = ()


class Rivalry(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A rival that a leader has learned of. It stops granting until an operator decides."""

    journal: JournalId
    manager: ManagerUrl
    pool: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """The pool that is stopped, on the word of one of its owners; empty for all pools, where the
    leader has asked the rival itself."""
    granted: bool = True
    """Whether the rival may have granted anything. If it has not, it has stopped as well, and what
    this journal has granted may be renewed."""


def check_realm(realm: object) -> str:
    """Return the name of a realm; raise ConfigurationError if it cannot be one."""
    if isinstance(realm, str) and len(realm) <= REALM_CHARACTERS and not _CONTROL.search(realm):
        return realm
    raise ConfigurationError(
        f"a realm cannot be called {realm!r}: it has at most {REALM_CHARACTERS} characters, "
        "none of them a control character"
    )


def proof_of(predecessor: Predecessor, journal: int) -> bytes:
    """The proof that `journal` goes on from a copy of its predecessor."""
    body = b"".join(n.to_bytes(_NUMBER_BYTES, "big") for n in (predecessor.journal, journal))
    return blake2b(b"succeeds" + body, key=predecessor.secret, digest_size=_PROOF_BYTES).digest()


def is_proven_successor(rival: Rival, journal: int, secret: bytes) -> bool:
    """Whether the rival's journal goes on from a copy of `journal`, whose secret this is."""
    if not secret:
        return False
    expected = proof_of(Predecessor(journal, secret), rival.journal)
    return any(
        each.journal == journal and compare_digest(each.proof, expected) for each in rival.succeeds
    )
