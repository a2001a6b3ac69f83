"""The answer of a manager about itself."""

import importlib.metadata
import time

from tenure.base.instants import in_seconds
from tenure.manager.answers import JournalAnswer, RivalAnswer, StatusAnswer, SuccessionAnswer
from tenure.manager.engine import ManagerEngine
from tenure.transport.peers import Peers
from tenure.wire.versions import NEWEST, OLDEST

VERSION = importlib.metadata.version("tenure")


def status_of(
    engine: ManagerEngine, peers: Peers, journal_url: str, health: JournalAnswer, oldest_token: str
) -> StatusAnswer:
    """The state of the manager, as it sees itself."""
    view = engine.view
    rivals = view.rivals
    return StatusAnswer(
        url=view.url,
        version=VERSION,
        role=view.role,
        proven=view.is_proven,
        leader=view.leader,
        leadership=view.leadership,
        lsn=view.lsn,
        grants_in_seconds=round(in_seconds(view.grants_in_ns), 3),
        preset=view.preset,
        journal=journal_url,
        connections=len(peers),
        events=dict(sorted(engine.observer.counters.items())),
        beat=view.beat,
        journal_health=health,
        protocols=tuple(range(OLDEST, NEWEST + 1)),
        connections_by_protocol={
            str(version): count for version, count in sorted(peers.versions().items())
        },
        troubles=dict(view.troubles),
        lookups=engine.metrics.lookups,
        lookup_lag=engine.metrics.lookup_lag(view.lsn),
        journal_id=f"{view.journal:016x}" if view.journal else "",
        realm=rivals.realm,
        granted=rivals.granted,
        is_over=rivals.is_over,
        rivals=tuple(
            RivalAnswer(f"{each.journal:016x}", each.manager, each.pool, each.granted)
            for each in rivals.rivals
        ),
        over=tuple(f"{each:016x}" for each in rivals.over),
        succeeds=tuple(
            SuccessionAnswer(f"{each.journal:016x}", each.proof.hex()) for each in rivals.succeeds
        ),
        clock=round(time.time(), 3),
        oldest_token=oldest_token,
        store_troubles=dict(view.store_troubles),
    )
