"""Whatever the bytes are, a decoder returns a value or raises one of its refusals."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.decoders import DECODERS, outcome

EXAMPLES = 40  # for each; `make fuzz` looks longer
DEEP = (b"\x91" * 100_000, b"[" * 100_000, b'{"a":' * 50_000, b"\x81\xa1a" * 50_000)
ODD = (b"", b"\x00", b"\xff\xff\xff\xff", b'"\xff"', b'"\\ud800"', b"1e999", b"9" * 5_000, b"\xc1")


@pytest.mark.parametrize("name", DECODERS)
def test_what_is_meant_is_read_and_what_is_odd_is_refused(name: str) -> None:
    decoder = DECODERS[name]
    for data in (*decoder.samples, *ODD, *DEEP):
        outcome(decoder, data)
    for head in {sample[:1] for sample in decoder.samples}:
        for data in DEEP:
            outcome(decoder, head + data)


@pytest.mark.parametrize("name", DECODERS)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_any_bytes_are_read_or_refused(name: str, data: st.DataObject) -> None:
    decoder = DECODERS[name]
    sample = data.draw(st.sampled_from(decoder.samples))
    place, gone = data.draw(st.integers(0, len(sample))), data.draw(st.integers(0, 4))
    new = data.draw(st.binary(max_size=8))
    outcome(decoder, sample[:place] + new + sample[place + gone :])
    outcome(decoder, data.draw(st.binary(max_size=100)))
