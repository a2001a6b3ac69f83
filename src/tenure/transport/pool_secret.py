"""The secrets of its pool that a process was told by managers. Any thread may ask and tell."""

from tenure.base.challenges import id_of
from tenure.protocol.lease.port_proof import PortProof

MOST_KEPT = 3
"""A process that hears of a new journal first still proves itself to those that have not heard."""


class PoolSecret:
    """What this process can show at the ports of its pool, and whether it asks others for it."""

    def __init__(self) -> None:
        self.is_wanted = False
        """Whether to refuse a process that does not prove that it belongs to the pool."""
        self._by_id: dict[str, bytes] = {}

    def told(self, proof: PortProof | None) -> None:
        """A manager has told this; None from a manager whose version tells no secret."""
        if proof is None:
            self.is_wanted = False
            return
        mine = id_of(proof.secret)
        kept = {id_: each for id_, each in self._by_id.items() if id_ != mine}
        self._by_id = {mine: proof.secret, **dict(list(kept.items())[: MOST_KEPT - 1])}
        self.is_wanted = proof.is_wanted

    @property
    def ids(self) -> tuple[str, ...]:
        """Which secrets it has, the latest first."""
        return tuple(self._by_id)

    def get(self, id_: str) -> bytes | None:
        """The secret of that id."""
        return self._by_id.get(id_)
