"""Verdicts: the judges of the library over recorded files, and Porcupine over the same files.

All operations on a key are in the files of one *batch*. So batches are judged apart, several at
once, and no more than a few are in memory.
"""

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

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
KEYS_A_BATCH = 10
"""How many times the keys change in one batch."""
PORCUPINE = Path(__file__).parent / "porcupine"
BUILD_SECONDS = 300


class Verdict(msgspec.Struct):
    """What the first judge says."""

    complaints: list[Complaint]
    undecided: int
    counts: Counter[str]


class BatchVerdict(NamedTuple):
    """What both judges say of a batch; None if the second was not asked."""

    files: list[Path]
    first: Verdict
    second: dict[str, Any] | None

    @property
    def is_clean(self) -> bool:
        """Whether nobody complains, and nothing is undecided."""
        second = self.second or {"failed": [], "undecided": []}
        undecided = self.first.undecided or second["undecided"]
        return not (self.first.complaints or second["failed"] or undecided)


def batch_of(key: str) -> int:
    """The batch of a key, which ends with the number of its time."""
    return int(key.rpartition("-")[2]) // KEYS_A_BATCH


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


def porcupine(place: Path) -> Path | None:
    """Build the second judge; None if there is no Go to build it with."""
    go = shutil.which("go")
    if go is None:
        return None
    program = place / "porcupine"
    subprocess.run(
        [go, "build", "-o", program, "."], cwd=PORCUPINE, check=True, timeout=BUILD_SECONDS
    )
    return program


def second_judge(program: Path, files: Sequence[Path]) -> dict[str, Any]:
    """What Porcupine says."""
    done = subprocess.run([program, *files], check=False, capture_output=True, text=True)
    assert done.returncode in {0, 1}, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def judge_batch(files: list[Path], program: Path | None) -> BatchVerdict:
    """Ask both judges about one batch; without a program, the first one alone."""
    second = None if program is None else second_judge(program, files)
    return BatchVerdict(files, first_judge(read(files)), second)


def judge_all(place: Path, program: Path | None) -> Iterator[BatchVerdict]:
    """Judge all batches of a run, as many at once as there are processors."""
    batches: dict[str, list[Path]] = {}
    for file in sorted(place.glob("history-*.jsonl")):
        batches.setdefault(file.name.rsplit("-", 1)[0], []).append(file)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(judge_batch, batches.values(), [program] * len(batches))
