"""Frames of clients are taken apart one by one, whatever the pieces in which they come."""

import tracemalloc
from itertools import cycle

import pytest
from aiohttp import WSCloseCode
from hypothesis import given
from hypothesis import strategies as st

from tenure.transport.websocket_frames import (
    BINARY,
    CLOSE,
    MOST_PIECES,
    PIECE,
    PING,
    FrameError,
    FrameReader,
    close_frame,
    frame,
    masked_frame,
    unmasked,
)

LAST = 0x80
MASKS = st.binary(min_size=4, max_size=4)


def sent(
    payload: bytes, opcode: int = BINARY, mask: bytes = b"\x00\x01\xfe\xff", first: int = LAST
) -> bytes:
    """A frame as a client sends it."""
    plain = frame(payload)
    head = bytes((first | opcode, plain[1] | 0x80)) + plain[2 : len(plain) - len(payload)]
    return (
        head + mask + bytes(byte ^ over for byte, over in zip(payload, cycle(mask), strict=False))
    )


def taken(reader: FrameReader) -> list[tuple[int, bytes]]:
    found = []
    while (each := reader.take()) is not None:
        if each[0] != PIECE:
            found.append(each)
    return found


@pytest.mark.parametrize(
    ("size", "header"),
    [
        (0, b"\x82\x00"),
        (125, b"\x82\x7d"),
        (126, b"\x82\x7e\x00\x7e"),
        (65_535, b"\x82\x7e\xff\xff"),
        (65_536, b"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00"),
    ],
)
def test_a_frame_is_as_rfc_6455_has_it(size: int, header: bytes) -> None:
    payload = b"x" * size
    assert frame(payload) == header + payload


def test_a_reason_is_cut_between_two_characters() -> None:
    written = close_frame(1002, "ä" * 100)
    assert written[:4] == bytes((0x88, 124)) + (1002).to_bytes(2, "big")
    assert written[4:].decode() == "ä" * 61


@given(mask=MASKS, data=st.binary(max_size=600))
def test_a_mask_is_repeated_over_the_data(mask: bytes, data: bytes) -> None:
    expected = bytes(byte ^ over for byte, over in zip(data, cycle(mask), strict=False))
    assert unmasked(mask, data) == expected


@given(
    messages=st.lists(
        st.tuples(st.lists(st.binary(max_size=300), min_size=1, max_size=4), MASKS, st.booleans()),
        max_size=5,
    ),
    cuts=st.lists(st.integers(1, 400), min_size=1, max_size=20),
)
def test_messages_come_as_they_were_sent_whatever_the_pieces(
    messages: list[tuple[list[bytes], bytes, bool]], cuts: list[int]
) -> None:
    stream, expected = b"", []
    for pieces, mask, is_pinged in messages:
        for number, piece in enumerate(pieces):
            is_last = number == len(pieces) - 1
            stream += sent(piece, BINARY if number == 0 else PIECE, mask, LAST * is_last)
            if is_pinged and not is_last:
                stream += sent(b"there?", PING, mask)
                expected.append((PING, b"there?"))
        expected.append((BINARY, b"".join(pieces)))
    reader, found, sizes = FrameReader(2_000), [], cycle(cuts)
    while stream:
        size = next(sizes)
        reader.feed(stream[:size])
        stream = stream[size:]
        found += taken(reader)
    assert found == expected
    assert len(reader) == 0, "at rest there is no buffer"


def test_frames_are_left_until_they_are_taken() -> None:
    reader = FrameReader(100)
    reader.feed(sent(b"a") + sent(b"b") + sent(b"c")[:3])
    assert reader.take() == (BINARY, b"a")
    reader.feed(sent(b"c")[3:])
    assert taken(reader) == [(BINARY, b"b"), (BINARY, b"c")]


@pytest.mark.parametrize(
    ("stream", "code", "why"),
    [
        (b"\xf3\xff", 1002, "a frame with reserved bits"),
        (sent(b"", 3), 1002, "a frame of the unknown kind 3"),
        (sent(b"", 11), 1002, "a frame of the unknown kind 11"),
        (frame(b"a"), 1002, "a frame of a client that is not masked"),
        (sent(b"a", PING, first=0), 1002, "a control frame that is long, or in pieces"),
        (sent(b"a" * 126, CLOSE), 1002, "a control frame that is long, or in pieces"),
        (sent(b"a", PIECE), 1002, "pieces of messages that do not belong together"),
        (sent(b"a", first=0) + sent(b"b"), 1002, "pieces of messages that do not belong together"),
        (sent(b"a", 1), 1003, "a text frame, where messages are binary"),
        (sent(b"a" * 11), 1009, "a message of more than 10 bytes"),
        (sent(b"a" * 6, first=0) + sent(b"a" * 5, PIECE), 1009, "a message of more than 10 bytes"),
        (b"\x82\xff" + bytes([255] * 8), 1009, "a message of more than 10 bytes"),
    ],
)
def test_what_is_not_taken_is_said_with_its_code(stream: bytes, code: int, why: str) -> None:
    reader = FrameReader(10)
    reader.feed(stream)
    with pytest.raises(FrameError, match=why) as raised:
        taken(reader)
    assert raised.value.code == code


def test_a_message_in_pieces_is_put_together_once() -> None:
    """Whoever sends much, and then nothing many times, has none of it copied again."""
    reader = FrameReader(16 << 20)
    reader.feed(sent(bytes(15 << 20), mask=bytes(4), first=0))
    assert taken(reader) == []
    tracemalloc.start()
    try:
        reader.feed(sent(b"", PIECE, first=0) * 500)
        assert taken(reader) == []
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1 << 20
    assert reader.unfinished == 15 << 20
    reader.feed(sent(b"end", PIECE))
    assert taken(reader) == [(BINARY, bytes(15 << 20) + b"end")]
    assert reader.unfinished == 0


def test_what_arrives_of_a_frame_is_added_to_what_came_before_and_not_copied_with_it() -> None:
    whole, packet = sent(bytes(15 << 20), mask=bytes(4)), 4 << 10
    reader = FrameReader(16 << 20)
    tracemalloc.start()
    try:
        reader.feed(whole[:-packet])
        reader.feed(b"")  # from here on the buffer can grow
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        for each in range(len(whole) - packet, len(whole), 32):
            reader.feed(whole[each : each + 32])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most - before < 4 << 20
    assert taken(reader) == [(BINARY, bytes(15 << 20))]


def test_a_ping_may_come_between_the_pieces_of_the_longest_message() -> None:
    reader = FrameReader(8)
    reader.feed(sent(b"12345678", first=0) + sent(b"a ping", PING) + sent(b"", PIECE))
    assert taken(reader) == [(PING, b"a ping"), (BINARY, b"12345678")]


def test_a_message_has_only_so_many_pieces() -> None:
    reader = FrameReader(100)
    reader.feed(sent(b"", first=0) + sent(b"", PIECE, first=0) * (MOST_PIECES - 1))
    assert taken(reader) == []
    reader.feed(sent(b"", PIECE, first=0))
    with pytest.raises(FrameError, match="in more than 1024 pieces") as raised:
        reader.take()
    assert raised.value.code == WSCloseCode.POLICY_VIOLATION


@given(data=st.binary(max_size=70_000))
def test_what_a_client_sends_is_what_a_server_reads(data: bytes) -> None:
    reader = FrameReader(len(data))
    reader.feed(masked_frame(data) + masked_frame(b"", PING))
    assert taken(reader) == [(BINARY, data), (PING, b"")]


def test_a_client_reads_frames_of_a_server_only() -> None:
    reader = FrameReader(10, is_masked=False)
    reader.feed(frame(b"a") + frame(b"b" * 10) + masked_frame(b"c"))
    assert [reader.take(), reader.take()] == [(BINARY, b"a"), (BINARY, b"b" * 10)]
    with pytest.raises(FrameError, match="a masked frame"):
        reader.take()
