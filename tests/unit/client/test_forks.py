"""In a forked child an Owner and a Lookup are dead, and say so; the parent's go on."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, traceback, warnings
from tenure import ForkedError
from tenure.protocol.lease.timing import DEFAULT
from tenure.testing.cluster import InProcessCluster

warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads, which is the point

def child(owner, lookup, lease, guard):
    uses = {
        "check": lambda: owner.check("a"),
        "holds": lambda: owner.holds(lease),
        "guard": lambda: owner.guard("a"),
        "entered guard": lambda: guard.__exit__(None, None, None),
        "ready": owner.ready,
        "alive": owner.alive,
        "ranges": lambda: owner.ranges,
        "enter": owner.__enter__,
        "find": lambda: lookup.find("a"),
        "watch": lambda: lookup.watch("a", print),
        "table": lookup.table,
    }
    for name, use in uses.items():
        try:
            use()
        except ForkedError as error:
            assert "belongs to the parent process" in str(error), error
            assert "Make another after the fork" in str(error), error
        else:
            print(name, "did not raise")
            return 1
    owner.close()
    return 0

with InProcessCluster(["rooms"], timing=DEFAULT) as cluster:
    with cluster.owner() as owner, cluster.lookup() as lookup:
        owner.ready()
        lease = owner.check("a")
        guard = owner.guard("a")
        with guard:
            pid = os.fork()
            if pid == 0:
                code = 2
                try:
                    code = child(owner, lookup, lease, guard)
                except BaseException:
                    traceback.print_exc()
                finally:
                    sys.stdout.flush()
                    os._exit(code)
            _, status = os.waitpid(pid, 0)
        assert owner.holds(lease)
        print("child", os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_cannot_use_what_its_parent_entered() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout, ran.returncode) == ("child 0\n", 0), ran.stderr
    assert "Traceback" not in ran.stderr  # a busy machine's owner may warn of silence


LEAVING = """
import os, sys, warnings
from tenure.protocol.lease.timing import DEFAULT
from tenure.testing.cluster import InProcessCluster

warnings.simplefilter("ignore", DeprecationWarning)
cluster = InProcessCluster(["rooms"], timing=DEFAULT).__enter__()
with cluster.owner() as owner:
    owner.ready()
    pid = os.fork()
if pid == 0:
    os._exit(0)  # it left the block, as a copy does, without a word to anybody
_, status = os.waitpid(pid, 0)
print("child", os.waitstatus_to_exitcode(status))
cluster.__exit__(None, None, None)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_that_leaves_the_block_returns_nothing_of_its_parents() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LEAVING], check=False, capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout, ran.returncode) == ("child 0\n", 0), ran.stderr
    assert "Traceback" not in ran.stderr  # a busy machine's owner may warn of silence
