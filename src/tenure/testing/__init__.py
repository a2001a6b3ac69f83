"""The tools with which tenure is tested, for your tests too."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenure.testing.simulation import ServiceWorld as World
    from tenure.testing.simulation import simulated
    from tenure.testing.users import Answer

__all__ = ["Answer", "World", "simulated"]


def __getattr__(name: str) -> object:
    """What the simulator needs is loaded when it is asked for: not by those who need a clock."""
    if name in __all__:
        from tenure.testing.simulation import ServiceWorld, simulated  # noqa: PLC0415
        from tenure.testing.users import Answer  # noqa: PLC0415

        return {"Answer": Answer, "World": ServiceWorld, "simulated": simulated}[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
