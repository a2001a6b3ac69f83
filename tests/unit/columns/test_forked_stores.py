"""A forked child has a copy of what its parent has opened, but none of its threads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table
from tests.patience import DEADLINE_SECONDS

TABLE = Table("t", f=Family(columns=str))

STORE_IS_LEFT = """
import os, sys
from tenure import Family, Table, open_store
table = Table("t", f=Family(columns=str))
try:
    with open_store(sys.argv[1], table) as store:
        child = os.fork()
        if not child:
            raise KeyError
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        store.insert(table, "after", {"f": {"x": b""}})
except KeyError:
    os._exit(3)
"""

ENGINE_IS_DROPPED = """
import gc, os, sys
from pathlib import Path
from tenure.columns.engines.rocksdb import RocksEngine
path = Path(sys.argv[1].removeprefix("rocksdb:"))
engine = RocksEngine.open(path)
before = {each.name: each.stat().st_size for each in path.iterdir()}
child = os.fork()
if not child:
    del engine
    gc.collect()
    os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
assert {each.name: each.stat().st_size for each in path.iterdir()} == before
engine.close()
"""

CHILD_ENDS_AS_ANY_PROGRAM = """
import os, sys
from tenure import Family, Table, open_store
table = Table("t", f=Family(columns=str))
with open_store(sys.argv[1], table) as store:
    store.insert(table, "after", {"f": {"x": b""}})
    child = os.fork()
    if not child:
        print("said by the child")
        sys.exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    store.insert(table, "after", {"f": {"x": b""}})
"""

CHILD_OPENS_ITS_OWN = """
import os, sys
from tenure import Family, ForkedError, Table, open_store
table = Table("t", f=Family(columns=str))
with open_store(sys.argv[1], table) as store:
    store.insert(table, "after", {"f": {"x": b""}})
child = os.fork()
if not child:
    try:
        open_store(sys.argv[1] + "-2", table).__enter__()
    except ForkedError as error:
        assert "before the first store is opened" in str(error)
        sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
"""

FORKED_BEFORE = """
import os, sys
import tenure.columns.engines.rocksdb
from tenure import Family, Table, open_store
child = os.fork()
table = Table("t", f=Family(columns=str))
if not child:
    with open_store(sys.argv[1], table) as store:
        store.insert(table, "after", {"f": {"x": b""}})
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
"""


@pytest.mark.parametrize(
    "program",
    [
        STORE_IS_LEFT,
        ENGINE_IS_DROPPED,
        pytest.param(
            CHILD_ENDS_AS_ANY_PROGRAM,
            marks=pytest.mark.skipif(
                sys.platform != "linux", reason="the end of such a child is mended for glibc alone"
            ),
        ),
        CHILD_OPENS_ITS_OWN,
        FORKED_BEFORE,
    ],
)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_harms_neither_the_store_nor_itself(tmp_path: Path, program: str) -> None:
    url = f"rocksdb:{tmp_path / 'store'}"
    with open_store(url, TABLE) as store:
        store.insert(TABLE, "before", {"f": {"x": b""}})
    command = [sys.executable, "-c", program, url]
    found = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS
    )
    assert found.returncode == 0, found.stderr
    assert ("said by the child" in found.stdout) == (program is CHILD_ENDS_AS_ANY_PROGRAM)
    with open_store(url, TABLE) as store:
        kept = [row.key for row in store.scan(TABLE)]
    assert kept == (["before"] if program is ENGINE_IS_DROPPED else ["after", "before"])
