"""The tools with which tenure is tested, for your tests too."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenure.testing.simulation import ServiceWorld as World
    from tenure.testing.simulation import simulated

__all__ = ["World", "simulated"]


def __getattr__(name: str) -> object:
    """What the simulator needs is loaded when it is asked for: not by those who need a clock."""
    if name in __all__:
        from tenure.testing.simulation import ServiceWorld, simulated  # noqa: PLC0415

        return ServiceWorld if name == "World" else simulated
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
