"""Spans for OpenTelemetry, where its API is installed: `pip install 'tenure[otel]'`.

Only the API is used, never the SDK: the application chooses what records, samples and exports
spans, and until it has chosen, the API's spans record nothing. Without the API no spans are made at
all. It is imported at the first span, so that `import tenure` does not load it.
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
    """Make a span of the block; yields a function that adds an attribute. An exception of the block
    is recorded, and makes the span an error.
    """
    tracer = _tracer()
    if tracer is None:
        yield _nothing
        return
    with tracer.start_as_current_span(name, attributes=dict(attributes())) as current:
        yield current.set_attribute


def _nothing(name: str, value: Attribute) -> None:
    """Add nothing, because nobody records."""
