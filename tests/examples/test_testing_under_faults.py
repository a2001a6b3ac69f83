"""The guide to testing under faults: its service and its tests, as a user would have them."""

import subprocess
import sys
from pathlib import Path

from tests.repo.reading import ROOT
from tests.repo.test_prose import python_fences

GUIDE = ROOT / "docs" / "guides" / "testing-under-faults.md"
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:tenure", "-p", "tenure.testing.plugin")


def test_the_programs_of_the_guide_pass(tmp_path: Path) -> None:
    service, beside, under_faults = (text for _, text in python_fences(GUIDE.read_text("utf-8")))
    (tmp_path / "chat.py").write_text(service, "utf-8")
    (tmp_path / "test_beside.py").write_text(beside, "utf-8")
    fewer = under_faults.replace("seeds=100, minutes=5", "seeds=2, minutes=2")
    assert fewer != under_faults
    (tmp_path / "test_under_faults.py").write_text(fewer, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n", "utf-8")
    came = subprocess.run(
        [*PYTEST, "-o", "asyncio_mode=auto"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert "2 passed" in came.stdout, came.stdout
