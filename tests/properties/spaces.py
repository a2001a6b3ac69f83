"""A key space small enough to be written out, and what Hypothesis draws in it."""

from hypothesis import strategies as st

from tenure.base.ranges import KeyRange

KEYS: tuple[bytes, ...] = (b"", *(bytes([i]) for i in range(1, 12)), b"\x0b\x00", b"\xff\xff")
"""The keys in order. Between two neighbours nothing changes, as long as nothing is cut
elsewhere.
"""

cuts = st.sampled_from(KEYS)


@st.composite
def ranges(draw: st.DrawFn) -> KeyRange:
    """Any range that begins at one key and ends at another, or has no end."""
    begin = draw(st.integers(0, len(KEYS) - 1))
    end = draw(st.integers(begin + 1, len(KEYS)))
    return KeyRange(KEYS[begin], KEYS[end] if end < len(KEYS) else None)


def keys_in(key_range: KeyRange) -> list[bytes]:
    return [key for key in KEYS if key in key_range]
