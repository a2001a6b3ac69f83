"""Spans for OpenTelemetry, where its API is installed: `pip install 'tenure[otel]'`.

Only the API is used, never the SDK: the application chooses what records, samples and exports
spans. Until it has chosen, and without the API, no spans are made at all: one that records nothing
would cost a request more than all of the routing. The API is imported at the first span, so that
`import tenure` does not load it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

Attribute: TypeAlias = str | int | float | bool
Note: TypeAlias = Callable[[str, Attribute], None]
"""A function that adds an attribute."""
NAME = "tenure"


@cache
def _api() -> ModuleType | None:
    try:
        from opentelemetry import trace  # noqa: PLC0415  # of an extra
    except ImportError:
        return None
    return trace


@lru_cache(1)
def _tracer_of(provider: "TracerProvider") -> "Tracer":
    return provider.get_tracer(NAME)


def span(
    name: str, attributes: Callable[[], Mapping[str, Attribute]]
) -> AbstractContextManager[Note]:
    """Make a span of the block, which gets a function that adds an attribute. An exception of the
    block is recorded, and makes the span an error.
    """
    api = _api()
    if api is None:
        return NO_SPAN
    provider = api.get_tracer_provider()
    if isinstance(provider, api.ProxyTracerProvider):  # nobody has chosen one yet
        return NO_SPAN
    return _recorded(_tracer_of(provider), name, attributes)


@contextmanager
def _recorded(
    tracer: "Tracer", name: str, attributes: Callable[[], Mapping[str, Attribute]]
) -> Iterator[Note]:
    with tracer.start_as_current_span(name, attributes=dict(attributes())) as current:
        yield current.set_attribute


def _nothing(name: str, value: Attribute) -> None:
    """Add nothing, because nobody records."""


NO_SPAN: AbstractContextManager[Note] = nullcontext(_nothing)
