"""Rows inside `sim/`: its kernel knows no protocol, and no files import each other in a circle."""

import pytest

from tests.repo.reading import Import, Module, imports, modules, report, sample

SIM = "tenure.sim"
KERNEL = f"{SIM}.kernel"
KERNEL_MAY_IMPORT = (KERNEL, "tenure.base", "tenure.errors")


def complaints(module: Module) -> list[str]:
    """Return what a module of the kernel imports although it may not."""
    return [
        f"{module.path}:{each.line} the kernel may not import {each.module}"
        for each in imports(module)
        if each.module.split(".")[0] == "tenure" and not is_below(each)
    ]


def is_below(each: Import) -> bool:
    return any(each.module == row or each.module.startswith(f"{row}.") for row in KERNEL_MAY_IMPORT)


def in_a_circle(known: dict[str, set[str]]) -> list[str]:
    """The modules that are left when those are taken away, again and again, that need no other."""
    left = dict(known)
    while free := [name for name, needs in left.items() if not needs & left.keys() - {name}]:
        for name in free:
            del left[name]
    return sorted(left)


def test_the_kernel_knows_no_protocol() -> None:
    kernel = [module for module in modules() if module.name.startswith(KERNEL)]
    assert len(kernel) > 5
    found = [line for module in kernel for line in complaints(module)]
    assert found == [], report(found)


def test_no_files_of_the_simulator_import_each_other_in_a_circle() -> None:
    known = {
        module.name: {each.module for each in imports(module)}
        for module in modules()
        if module.name.startswith(SIM)
    }
    assert in_a_circle(known) == []


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


def test_a_circle_is_found() -> None:
    assert in_a_circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c", "d"]
    assert in_a_circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
