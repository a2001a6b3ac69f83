"""Both judges over recorded files: the one of the library, and Porcupine."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

import msgspec
import pytest

from lab.histories.operations_of_clients import OWNED_KEYS
from lab.histories.verdicts import first_judge, porcupine, read, second_judge
from lab.judges.operations import AnyRecord, PageOperation, ReadOperation, Told, WriteOperation

TOLD: tuple[Told, ...] = ("written", "written", "unknown", "not written")


def kept(place: Path, records: Sequence[AnyRecord]) -> list[Path]:
    """Write records into two files, as two processes do."""
    files = [place / "history-0.jsonl", place / "history-1.jsonl"]
    for number, file in enumerate(files):
        mine = (msgspec.json.encode(each) + b"\n" for each in records[number::2])
        file.write_bytes(b"".join(mine))
    return files


def drawn(random: Random, key: str) -> list[AnyRecord]:
    """A few operations on one column, of which some explain each other."""
    is_owned = key.startswith(OWNED_KEYS)
    made: list[AnyRecord] = []
    values: list[str | None] = [None]
    at = 0
    for number in range(random.randrange(3, 9)):
        began, ended = at + random.randrange(3), at + 3 + random.randrange(8)
        at += random.randrange(8)
        if random.random() < 0.5:
            value = None if random.random() < 0.2 and not is_owned else f"v{number}"
            values.append(value)
            told = random.choice(TOLD)
            made.append(WriteOperation("c1", key, {"s/a": value}, began, ended, told))
        elif is_owned or random.random() < 0.5:
            made.append(ReadOperation("c2", key, {"s/a": random.choice(values[-3:])}, began, ended))
        else:
            value = random.choice(values[-3:])
            shown: dict[str, str | None] = {} if value is None else {"s/a": value}
            made.append(PageOperation("c3", key, "s/", shown, began, ended))
    return made


def test_a_record_that_is_torn_at_the_end_of_a_file_is_left_out(tmp_path: Path) -> None:
    files = kept(tmp_path, drawn(Random(1), "k"))
    whole = len(read(files))
    files[0].write_bytes(files[0].read_bytes() + b'{"type":"wri')
    assert len(read(files)) == whole


@pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go to build Porcupine with")
def test_both_judges_find_the_same_columns(tmp_path: Path) -> None:
    random = Random(5)
    keys = [f"k{number}" for number in range(400)] + [f"owned-{n}" for n in range(200)]
    records = [each for key in keys for each in drawn(random, key)]
    files = kept(tmp_path, records)
    verdict = first_judge(read(files))
    found = {each.what.partition(":")[0] for each in verdict.complaints if each.promise[:2] == "D2"}
    program = porcupine(tmp_path)
    assert program is not None
    said = second_judge(program, files)
    assert (said["records"], said["undecided"]) == (len(records), [])
    assert 20 < sum(each.startswith("k") for each in found) < 380
    assert 10 < sum(each.startswith(OWNED_KEYS) for each in found) < 190
    assert set(said["failed"]) == found
