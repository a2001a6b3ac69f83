"""A manager does what its OpenAPI document says, whatever it is asked."""

import subprocess
import sys
from pathlib import Path

from tests.integration.processes import manager, run
from tests.unit.manager.test_openapi import OF_REFUSALS


def test_a_manager_does_what_its_document_says(tmp_path: Path) -> None:
    with manager("--first-start") as started:
        url = started.wait_for("listening")["url"]
        for name in ("0", "rooms"):  # some requests find a pool
            run("pool", "create", name, "--kind", "ordered", "--manager", url)
        done = subprocess.run(
            [
                *(str(Path(sys.executable).parent / "schemathesis"), "run"),
                *(f"{url}/v1/openapi.json", "--phases=coverage", "--seed=1"),
                *(f"--exclude-checks={OF_REFUSALS}", "--suppress-health-check=all"),
            ],
            cwd=tmp_path,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        assert " passed" in done.stdout
