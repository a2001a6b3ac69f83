"""The orders and the reports of processes with caches, beside those of the demo's owners."""

import msgspec


class CacheOwnerOrders(msgspec.Struct, frozen=True):
    """The orders that an owner of products gets at its start."""

    manager: str
    name: str
    directory: str
    """The directory of the products."""
    term_seconds: float
    """The term of volume leases."""


class CacheFrontendOrders(msgspec.Struct, frozen=True):
    """The orders that a frontend with a cache gets at its start."""

    manager: str
    name: str
    directory: str
    """The directory of the frontend's record."""
    products: int
    written: tuple[int, ...]
    """The products that only this frontend writes."""
    reads_per_second: float
    writes_per_second: float
    hold_ns: int
    passes_by: bool = False
    """Whether the frontend writes into the database, past the owners, so that no cache is told."""


class CacheFrontendReport(msgspec.Struct, frozen=True, tag="cache frontend"):
    """How a frontend with a cache is."""

    is_warm: bool = False
    """Whether it has read everything once."""
    reads: int = 0
    hits: int = 0
    failed: int = 0
    """Reads without an answer."""
    writes: int = 0
    unknown: int = 0
    """Writes without an answer: they may have been done or not."""
    not_written: int = 0
    """Writes that were not begun."""
    slowest_read_ns: int = 0
    slowest_write_ns: int = 0

    def plus(self, other: "CacheFrontendReport") -> "CacheFrontendReport":
        """The two as one."""
        counts = ("reads", "hits", "failed", "writes", "unknown", "not_written")
        return CacheFrontendReport(
            is_warm=self.is_warm and other.is_warm,
            slowest_read_ns=max(self.slowest_read_ns, other.slowest_read_ns),
            slowest_write_ns=max(self.slowest_write_ns, other.slowest_write_ns),
            **{name: getattr(self, name) + getattr(other, name) for name in counts},
        )


decode_cache_report = msgspec.json.Decoder(CacheFrontendReport).decode
