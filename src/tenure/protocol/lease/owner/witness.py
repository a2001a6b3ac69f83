"""An owner as a witness: what it looks at for its manager, and what it reports (P14)."""

from tenure.base.noted import Noted
from tenure.protocol.lease.attestation import may_attest
from tenure.protocol.lease.client_events import TellManager
from tenure.protocol.lease.messages import Attest, Attested
from tenure.protocol.lease.owner.events import Look, Looked, OwnerAction, OwnerConfig
from tenure.protocol.lease.owner.noted import OwnerKind


def look(config: OwnerConfig, manager: str, question: Attest) -> list[OwnerAction]:
    """Look at a neighbour's process, where that shows anything."""
    return [Look(manager, question)] if may_attest(config.process, question.process) else []


def testify(
    config: OwnerConfig, looked: Looked, owner_nonce: int, manager_nonce: int
) -> list[OwnerAction]:
    """Say that the process is gone, where the look has shown that; otherwise nothing."""
    witness, question = config.process, looked.question
    suspect = question.process
    seen_from = looked.sight.seen_from
    if witness is None or seen_from != witness or not looked.sight.shows_gone(suspect):
        return []
    said = Attested(
        pool=question.pool,
        incarnation=question.incarnation,
        process=suspect,
        witness=witness,
        owner_nonce=owner_nonce,
        manager_nonce=manager_nonce,
    )
    return [
        Noted(OwnerKind.ATTESTED, config.pool, f"attested that process {suspect.pid} is gone"),
        TellManager(looked.manager, said),
    ]
