"""The thread that asks policies: one, in order, and no reason for a process to stay."""

import subprocess
import sys
from queue import SimpleQueue
from threading import Event, active_count

from tenure.base.rangemap import RangeMap
from tenure.manager.planning_thread import PlanningThread
from tenure.protocol.balance.planning import Planned, Planning
from tenure.protocol.balance.policy import NOBODY, Plan, Policy, Situation, forbidden
from tenure.protocol.lease.leader.events import PlanMade
from tenure.protocol.lease.records import Steering
from tenure.protocol.lease.table import Right
from tests.patience import DEADLINE_SECONDS

HANGS = """
from threading import Event
from tests.unit.manager.test_planning_thread import PlanningThread, work
reached = Event()
def policy(situation):
    reached.set()
    Event().wait()
thread = PlanningThread(print)
thread.ask(work(policy))
assert reached.wait(30)
thread.stop()
"""


def nothing(situation: Situation) -> Plan:
    return Plan(RangeMap(NOBODY), RangeMap(None), held_back=forbidden(situation))


def work(policy: Policy) -> Planning:
    return Planning("p", policy, Situation((), RangeMap(Right(NOBODY, 0, 0))), Steering(), 0)


def test_one_is_asked_at_a_time_in_order() -> None:
    made: SimpleQueue[PlanMade] = SimpleQueue()
    released, before = Event(), active_count()

    def waits(situation: Situation) -> Plan:
        assert released.wait(DEADLINE_SECONDS)
        return nothing(situation)

    thread = PlanningThread(made.put)
    works = [work(waits), work(nothing), work(nothing)]
    for each in works:
        thread.ask(each)
    assert active_count() == before + 1
    assert made.empty()
    released.set()
    told = [made.get(timeout=DEADLINE_SECONDS) for _ in works]
    assert [each.work for each in told] == works
    assert all(isinstance(each.made, Planned) for each in told)
    thread.stop()


def test_a_policy_that_never_returns_keeps_no_process_from_exiting() -> None:
    done = subprocess.run([sys.executable, "-c", HANGS], timeout=60, check=False)
    assert done.returncode == 0
