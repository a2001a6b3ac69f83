"""Spans for OpenTelemetry, where its API is installed: `pip install 'tenure[otel]'`.

Only the API is used, never the SDK: who records, samples and exports is the application's choice,
and until it has chosen, the API's spans record nothing. Where the API is not installed, nothing is
made at all. It is looked for at the first span, so that `import tenure` does not load it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

Attribute: TypeAlias = str | int | float | bool
NAME = "tenure"


@cache
def _tracer() -> "Tracer | None":
    try:
        from opentelemetry.trace import get_tracer  # noqa: PLC0415  # of an extra
    except ImportError:
        return None
    tracer: Tracer = get_tracer(NAME)
    return tracer


@contextmanager
def span(
    name: str, attributes: Callable[[], Mapping[str, Attribute]]
) -> Iterator[Callable[[str, Attribute], None]]:
    """What happens in the block, as a span; what is yielded adds an attribute to it. What the block
    raises is recorded, and the span is an error.
    """
    tracer = _tracer()
    if tracer is None:
        yield _nothing
        return
    with tracer.start_as_current_span(name, attributes=dict(attributes())) as current:
        yield current.set_attribute


def _nothing(name: str, value: Attribute) -> None:
    """Nobody records."""
