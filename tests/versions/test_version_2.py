"""The release before short requests, and connections of its version, are understood and understand.

A peer that speaks version 2 is asked and told everything with lists; nobody asks it in short,
however new both ends are.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar

import pytest

from tenure.errors import LocalProtocolError, RemoteProtocolError
from tenure.protocol.lease import load_report, messages
from tenure.protocol.lease.fingerprints import fingerprint
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster
from tenure.transport.contract import Role
from tenure.transport.in_process import MemoryTransport
from tenure.wire import lease as codec
from tenure.wire.versions import NEWEST
from tests.versions.old import HERE, Release, environment

RELEASE = Release("tenure", (HERE / "tenure-2.zip",))
GOLDEN = json.loads((HERE / "golden-2.json").read_text("utf-8"))
NAMES: dict[str, Any] = {**vars(load_report), **vars(messages)}
SHORT_REQUEST = messages.ShortRequest(
    pool="rooms",
    incarnation=1,
    owner_nonce=2,
    manager_nonce=3,
    sequence=4,
    journal=5,
    leadership=6,
    fingerprint=b"0123456789abcdef",
    load=load_report.LoadReport(span_ns=7, ranges=()),
    receipt=b"sealed",
)
SHORT_RESPONSE = messages.ShortResponse(
    incarnation=1,
    owner_nonce=2,
    sequence=3,
    manager_nonce=4,
    journal=5,
    leadership=6,
    term_ns=7,
    renew_ns=8,
    receipt=b"sealed",
)
GOLDEN_3 = {
    SHORT_REQUEST: (
        "039cac53686f727452657175657374a5726f6f6d73010203040506c4103031323334353637383961"
        "626364656696079090909090c4067365616c6564c0"
    ),
    SHORT_RESPONSE: "039aad53686f7274526573706f6e73650102030405060708c4067365616c6564",
}
WITHOUT_LEVELS = GOLDEN_3[SHORT_REQUEST].replace("96079090909090", "950790909090")
"""The bytes that owners wrote before they told what keys take up by other metrics."""
WITHOUT_SAMPLE = WITHOUT_LEVELS.replace("950790909090", "9407909090")
"""The bytes that owners wrote before they told a sample of their keys."""
WITHOUT_NAMES = WITHOUT_SAMPLE.replace("9407909090", "93079090")
"""The bytes that owners wrote before they named the hottest keys."""
WITHOUT_REPORT = "039b" + WITHOUT_NAMES[4:-2]
"""The bytes that they wrote before they reported on their caches and entities."""


def meant(sample: dict[str, str]) -> Any:  # noqa: ANN401 - whatever it is
    """Return what a golden line stands for, in the words of today."""
    return eval(sample["is"], {"__builtins__": {}}, NAMES)  # noqa: S307 - a file of ours


def said_by_version_2(command: str, lines: Iterable[tuple[str, bytes]] = ()) -> str:
    ran = subprocess.run(
        [sys.executable, str(HERE / "version_2.py"), command],
        input="".join(json.dumps([reader, data.hex()]) + "\n" for reader, data in lines),
        capture_output=True,
        check=False,
        text=True,
        encoding="utf-8",
        timeout=60,
        env=environment(RELEASE),
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def receiver(message: object) -> str:
    return "manager" if isinstance(message, messages.LeaseRequest | messages.Attested) else "owner"


def test_the_golden_file_is_what_that_release_writes() -> None:
    assert json.loads(said_by_version_2("write")) == GOLDEN


@pytest.mark.parametrize("sample", GOLDEN, ids=lambda it: it["is"][:20])
def test_what_it_writes_is_understood(sample: dict[str, str]) -> None:
    message = meant(sample)
    read = codec.decode_to_manager if receiver(message) == "manager" else codec.decode_to_owner
    assert read(bytes.fromhex(sample["hex"]), 2) == message


def test_it_reads_what_is_written_today_and_is_told_no_fingerprint() -> None:
    told = [meant(sample) for sample in GOLDEN]
    with_more = [
        messages.LeaseResponse(**{**vars_of(each), "fingerprint": b"0123456789abcdef"})
        if isinstance(each, messages.LeaseResponse)
        else each
        for each in told
    ]
    lines = [(receiver(each), codec.encode(each, 2)) for each in with_more]
    assert lines == [(receiver(each), codec.encode(each, 2)) for each in told]
    said = [json.loads(line) for line in said_by_version_2("read", lines).splitlines()]
    assert said == [sample["is"] for sample in GOLDEN]


def vars_of(message: messages.LeaseResponse) -> dict[str, Any]:
    return {name: getattr(message, name) for name in message.__struct_fields__}


def test_short_messages_are_of_version_3_and_neither_sent_nor_taken_before() -> None:
    for message, read in (
        (SHORT_REQUEST, codec.decode_to_manager),
        (SHORT_RESPONSE, codec.decode_to_owner),
    ):
        with pytest.raises(LocalProtocolError, match="is of protocol version 3"):
            codec.encode(message, 2)
        data = codec.encode(message, 3)
        assert read(data, 3) == message
        with pytest.raises(RemoteProtocolError, match="is of protocol version 3"):
            read(b"\x02" + data[1:], 2)


@pytest.mark.parametrize("message", GOLDEN_3, ids=lambda it: type(it).__name__)
def test_the_bytes_of_short_messages_stay_the_same(message: messages.AnyMessage) -> None:
    assert codec.encode(message, 3).hex() == GOLDEN_3[message]


@pytest.mark.parametrize("written", [WITHOUT_LEVELS, WITHOUT_SAMPLE, WITHOUT_NAMES, WITHOUT_REPORT])
def test_a_short_request_with_less_in_it_is_the_same_request(written: str) -> None:
    assert codec.decode_to_manager(bytes.fromhex(written), 3) == SHORT_REQUEST


def test_a_fingerprint_stays_the_same() -> None:
    """Managers and owners of different releases must come to the same bytes."""
    held = (
        messages.Held(start=b"", end=b"m", number=1),
        messages.Held(start=b"m", end=None, number=1 << 40),
    )
    assert fingerprint(held, 1, 2).hex() == FINGERPRINT
    assert fingerprint(held[:1], 1, 2).hex() != FINGERPRINT
    assert len({fingerprint(held, 2, 1), fingerprint(held, 1, 3), fingerprint(held, 2, 2)}) == 3


FINGERPRINT = "7e6a9a2753bfd05c5f7e74fc99f4c960"


class Recording(InProcessCluster):
    """A cluster whose clients speak versions up to one, and that counts what they say."""

    newest = NEWEST
    said: ClassVar[Counter[str]] = Counter()

    def transport(self, role: Role[Any]) -> Any:  # noqa: ANN401 - as the cluster's own
        def encode(message: Any, version: int) -> bytes:  # noqa: ANN401 - any message
            data = role.encode(message, version)
            self.said[type(message).__name__] += 1
            return data

        return MemoryTransport(self.network, role._replace(encode=encode), self.newest)


@pytest.mark.asyncio
@pytest.mark.parametrize(("newest", "kind"), [(2, "LeaseRequest"), (3, "ShortRequest")])
async def test_an_owner_keeps_its_keys_in_either_version(newest: int, kind: str) -> None:
    """Both ends are of today; what is between them may let through an older version only."""
    clock = TurnedClock()
    cluster = Recording(["rooms"], clock=clock)
    cluster.newest = newest
    async with cluster, cluster.owner() as owner:
        await cluster.turn(10)
        lease = owner.check("k")
        assert lease is not None
        cluster.said.clear()
        await cluster.turn(60)
        assert owner.holds(lease)
    asked = {each for each in cluster.said if each.endswith("Request")}
    assert kind in asked
    assert "ShortRequest" not in asked or newest == NEWEST
