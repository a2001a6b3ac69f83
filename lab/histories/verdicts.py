"""Verdicts: the judges of the library over recorded files, and Porcupine over the same files."""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from lab.histories.operations_of_clients import OWNED_KEYS
from lab.judges.fenced import FencedJudge
from lab.judges.judging import HistoryJudge
from lab.judges.operations import (
    NEVER,
    AnyRecord,
    Complaint,
    PageOperation,
    ReadOperation,
    WriteOperation,
)

JUDGED_EVERY = 20_000
PORCUPINE = Path(__file__).parent / "porcupine"
BUILD_SECONDS = 300


class Verdict(msgspec.Struct):
    """What the first judge says."""

    complaints: list[Complaint]
    undecided: int
    counts: Counter[str]


def read(files: Sequence[Path]) -> list[AnyRecord]:
    """All records, in the order of their ends. The last line of a killed process may be torn."""
    decoder = msgspec.json.Decoder(WriteOperation | ReadOperation | PageOperation)
    found: list[AnyRecord] = []
    for file in files:
        found += map(decoder.decode, file.read_bytes().split(b"\n")[:-1])
    return sorted(found, key=lambda each: each.ended)


def first_judge(records: Sequence[AnyRecord]) -> Verdict:
    """Judge in steps, so that what is settled is forgotten."""
    since = [NEVER] * (len(records) + 1)
    for place in range(len(records) - 1, -1, -1):
        since[place] = min(since[place + 1], records[place].began)
    judge, fenced = HistoryJudge(), FencedJudge()
    complaints, counts = list[Complaint](), Counter[str]()
    for place, record in enumerate(records, 1):
        counts[_kind(record)] += 1
        if record.key.startswith(OWNED_KEYS):
            assert not isinstance(record, PageOperation)
            fenced.add(record)
        else:
            judge.add(record)
        if place % JUDGED_EVERY == 0 or place == len(records):
            complaints += [*judge.judge(since[place]), *fenced.judge(since[place])]
    return Verdict(complaints, judge.registers.undecided, counts)


def _kind(record: AnyRecord) -> str:
    if isinstance(record, WriteOperation):
        return record.told
    return "pages" if isinstance(record, PageOperation) else "reads"


def second_judge(files: Sequence[Path]) -> dict[str, Any] | None:
    """What Porcupine says; None if there is no Go to build it with."""
    go = shutil.which("go")
    if go is None:
        return None
    program = files[0].parent / "porcupine"
    subprocess.run(
        [go, "build", "-o", program, "."], cwd=PORCUPINE, check=True, timeout=BUILD_SECONDS
    )
    done = subprocess.run([program, *files], check=False, capture_output=True, text=True)
    assert done.returncode in {0, 1}, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said
