"""Rules left out bluntly, for stories that a subtle break would not show.

The canaries of `make canaries` break as little as their rule says. A short story has no room for a
coincidence, so what breaks here is the whole rule.
"""

from typing import Any

from tenure.base.instants import Instant
from tenure.protocol.lease.leader.leader import Leader
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.pool import Pool
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.records import PoolState
from tenure.protocol.lease.table import FIRST_NUMBER, LeaseTable
from tenure.sim.lease.canaries import Canary

_from_state = LeaseTable.__dict__["from_state"].__func__


def _unseat(self: Pool, now: Instant, connection: int, message: Any, holder: Any) -> None:  # noqa: ANN401
    ranges = [held.range for held in self.table.held_by(holder.incarnation)]
    self._remove(now, holder, ranges, LeaderKind.EVICTED)
    self.on_join(now, connection, message)


def _answers_any(self: OwnerMachine, message: Any) -> bool:  # noqa: ANN401
    return self.request is not None and bool(message.owner_nonce == self.owner_nonce)


def _forget_the_counter(cls: type[LeaseTable], state: PoolState) -> LeaseTable:
    table: LeaseTable = _from_state(cls, state)
    table.next_number = FIRST_NUMBER + 1
    return table


def _no_wait(now: Instant, inherited_ns: int) -> Instant:
    del inherited_ns
    return now


NO_WAIT = Canary("", patches=((Leader, "wait_until", staticmethod(_no_wait)),))
A_NAME_IS_TAKEN = Canary("", patches=((Pool, "_refuse_name", _unseat),))
ANY_ANSWER = Canary("", patches=((OwnerMachine, "is_answer_to_newest", _answers_any),))
NO_COUNTER = Canary(
    "",
    patches=((LeaseTable, "from_state", classmethod(_forget_the_counter)),),
)
