"""What is kept of messages that a library reads is counted, and bounded as everywhere else."""

import asyncio
import random
from functools import partial

import pytest

from tenure.transport import message_watch, unfinished_messages
from tenure.transport.message_watch import FRAMES_A_PASS, IDLE_AT_ONCE, MessageMeter, MessageWatch
from tenure.transport.unfinished_messages import FREE_BYTES, KEPT_BYTES, UnfinishedMessages
from tenure.transport.websocket_frames import (
    BINARY,
    CLOSE,
    MOST_PIECES,
    PIECE,
    PING,
    FrameError,
    FrameReader,
)
from tests.patience import DEADLINE_SECONDS

MIB = 1 << 20


def frame(payload: bytes, opcode: int = BINARY, *, is_last: bool = True) -> bytes:
    """A frame of a client, whose mask changes nothing."""
    size, first = len(payload), (0x80 if is_last else 0) | opcode
    if size < 126:
        head = bytes((first, 0x80 | size))
    elif size < 1 << 16:
        head = bytes((first, 0xFE)) + size.to_bytes(2, "big")
    else:
        head = bytes((first, 0xFF)) + size.to_bytes(8, "big")
    return head + bytes(4) + payload


@pytest.mark.parametrize("seed", range(30))
def test_the_meter_counts_what_a_reader_keeps(seed: int) -> None:
    """Whatever the frames are, and wherever the bytes are cut."""
    draw = random.Random(seed)
    data = b""
    for _ in range(12):
        pieces = [
            b"x" * draw.choice((0, 1, 125, 126, 300, 70_000)) for _ in range(draw.randint(1, 4))
        ]
        for at, piece in enumerate(pieces):
            if draw.random() < 0.3:
                data += frame(b"still there", PING)
            data += frame(piece, PIECE if at else BINARY, is_last=at == len(pieces) - 1)
    meter, reader, at = MessageMeter(), FrameReader(MIB), 0
    while at < len(data):
        some = data[at : at + draw.choice((1, 7, 1000, 50_000))]
        at += len(some)
        meter.feed(some)
        reader.feed(some)
        while reader.take() is not None:
            pass
        # A reader has the head of a frame until all of it is there; the meter has those of pieces.
        assert abs(meter.kept - reader.unfinished) <= 14 * 5
    assert meter.kept == reader.unfinished == 0


def test_a_message_has_no_more_pieces_than_elsewhere() -> None:
    meter = MessageMeter()
    first, piece = frame(b"x", is_last=False), frame(b"x", PIECE, is_last=False)
    meter.feed(first + piece * (MOST_PIECES - 2) + frame(b"x", PIECE))
    meter.feed(first + piece * (MOST_PIECES - 1))
    with pytest.raises(FrameError, match=f"in more than {MOST_PIECES} pieces") as refused:
        meter.feed(piece)
    assert refused.value.code == 1008


@pytest.mark.parametrize("nothing", [frame(b"", PING), frame(b"", PIECE, is_last=False)])
def test_frames_that_carry_nothing_have_a_rate_and_then_end_the_socket(nothing: bytes) -> None:
    watch = MessageWatch(UnfinishedMessages(), ("a",), lambda: None)
    watch.feed(frame(b"x") * 5000)
    watch.feed(frame(b"x", is_last=False) + nothing * (IDLE_AT_ONCE - 1))
    with pytest.raises(FrameError, match="too many frames that carry nothing") as refused:
        watch.feed(nothing * 40_000)
    assert refused.value.code == 1008


def test_some_frames_are_taken_at_a_time_however_long_they_are() -> None:
    meter, small = MessageMeter(), frame(b"")
    assert meter.take(small * 1000, 0) == FRAMES_A_PASS * len(small)
    large = frame(b"x" * MIB)
    assert MessageMeter().take(large, 0) == len(large)


def test_a_close_frame_in_the_middle_ends_no_message() -> None:
    meter = MessageMeter()
    meter.feed(frame(b"x" * 500, is_last=False))
    meter.feed(frame(b"", CLOSE))
    assert meter.kept >= 500
    meter.feed(frame(b"", PIECE))
    assert meter.kept == 0


@pytest.mark.asyncio
async def test_of_many_sockets_of_one_client_the_message_that_began_first_gives_way() -> None:
    unfinished = UnfinishedMessages()
    ended: list[int] = []
    watches = [
        MessageWatch(unfinished, (f"10.0.0.{at}", "token"), partial(ended.append, at))
        for at in range(200)
    ]
    begun = frame(b"x" * (4 * MIB))[:-1]
    for each in watches:
        each.feed(begun)
    kept = KEPT_BYTES // len(begun)
    assert ended == list(range(200 - kept))
    for each in watches[-kept:]:
        each.feed(b"x")
    assert len(unfinished) == 0, "what is whole is not counted, unless it waits"
    watches[-1].hold(KEPT_BYTES)
    watches[-2].hold(FREE_BYTES + 1)
    assert ended[-1] == 199
    watches[-2].hold(0)
    assert len(unfinished) == 0


@pytest.mark.asyncio
async def test_a_message_that_does_not_go_on_ends_its_socket_and_one_that_waits_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(message_watch, "LOOKS_SECONDS", 0.01)
    monkeypatch.setattr(unfinished_messages, "GRACE_NS", 0)
    monkeypatch.setattr(unfinished_messages, "BYTES_A_SECOND", 100 * MIB)
    unfinished, ended = UnfinishedMessages(), asyncio.Event()
    waits = MessageWatch(unfinished, ("a",), lambda: pytest.fail("it is whole"))
    waits.hold(MIB)
    stuck = MessageWatch(unfinished, ("a",), ended.set)
    stuck.feed(frame(b"x" * MIB)[:-1])
    async with asyncio.timeout(DEADLINE_SECONDS):
        await ended.wait()
    assert len(unfinished) == 1
    waits.end()
    assert len(unfinished) == 0
