"""Each service does what its OpenAPI document says, whatever it is asked."""

import asyncio
import sys
from pathlib import Path

import pytest

from tenure.services.catalogue import PLACES
from tests.patience import DEADLINE_SECONDS
from tests.unit.manager.serving import serving
from tests.unit.services.stage import on_service_stage

pytestmark = pytest.mark.asyncio

OF_REFUSALS = "positive_data_acceptance,negative_data_rejection"
"""A schema cannot say which version or which reader exists, so these two checks do not count."""


@pytest.mark.parametrize("name", PLACES)
async def test_a_service_does_what_its_document_says(name: str, tmp_path: Path) -> None:
    async with (
        serving(preset="default", patience=10 * DEADLINE_SECONDS) as serves,  # it asks a lot
        on_service_stage(name, manager=serves.service.url) as stage,
    ):
        process = await asyncio.create_subprocess_exec(
            *(str(Path(sys.executable).parent / "schemathesis"), "run"),
            *(stage.url + "/openapi.json", "--phases=coverage"),
            *("--seed=1", f"--exclude-checks={OF_REFUSALS}", "--suppress-health-check=all"),
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        assert process.returncode == 0, said.decode()
        assert " passed" in said.decode()
