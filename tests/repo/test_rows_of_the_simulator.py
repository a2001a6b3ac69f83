"""Rows of the simulator: its kernel, and the search beside it, know no protocol."""

import pytest

from tests.repo.reading import Import, Module, imports, lab_modules, modules, report, sample

KERNEL, SEARCH = "tenure.sim.kernel", "lab.search"
KERNEL_MAY_IMPORT = (KERNEL, SEARCH, "tenure.base", "tenure.errors")


def complaints(module: Module) -> list[str]:
    """Return what a module of the kernel imports although it may not."""
    return [
        f"{module.path}:{each.line} the kernel may not import {each.module}"
        for each in imports(module)
        if each.module.split(".")[0] in ("tenure", "lab") and not is_below(each)
    ]


def is_below(each: Import) -> bool:
    return any(each.module == row or each.module.startswith(f"{row}.") for row in KERNEL_MAY_IMPORT)


def test_the_kernel_knows_no_protocol() -> None:
    kernel = [each for each in modules() if each.name.startswith(KERNEL)]
    search = [each for each in lab_modules() if each.name.startswith(SEARCH)]
    assert len(kernel) > 5
    assert len(search) > 3
    found = [line for module in (*kernel, *search) for line in complaints(module)]
    assert found == [], report(found)


@pytest.mark.parametrize(
    "text",
    [
        "from tenure.sim.lease import world",
        "from tenure.protocol.lease.messages import Process",
        "from tenure.wire.lease import encode",
    ],
)
def test_a_kernel_that_knows_a_lease_is_found(text: str) -> None:
    assert len(complaints(sample(f"{KERNEL}.world", text))) == 1
