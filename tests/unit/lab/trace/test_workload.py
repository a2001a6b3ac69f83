"""The workload: the paper's totals, every file read, and nothing but the seed decides."""

from collections import Counter

import pytest

from lab.trace.workload import BURST_MEAN, PAPER, READS, WRITES, Size, draw, writes_a_day

SMALL = PAPER.scaled(0.01)


def test_the_totals_are_those_that_were_asked_for() -> None:
    trace = draw(1, SMALL)
    assert len(trace.read_at) == SMALL.reads
    assert len(trace.write_at) == SMALL.writes
    assert set(trace.read_file) == set(range(SMALL.files)), "every file is read"
    assert set(trace.reader) <= set(range(SMALL.clients))
    assert trace.volumes == SMALL.servers
    assert list(trace.read_at) == sorted(trace.read_at)
    assert list(trace.write_at) == sorted(trace.write_at)


def test_the_papers_own_totals_are_the_default() -> None:
    assert (PAPER.clients, PAPER.servers, PAPER.files) == (33, 1_000, 68_665)
    assert (READS, WRITES) == (977_899, 209_461)
    days = WRITES / writes_a_day(PAPER.files)
    assert 100 < days < 130, "four months"


def test_the_same_seed_is_the_same_workload_and_another_is_another() -> None:
    assert draw(7, SMALL) == draw(7, SMALL)
    assert draw(7, SMALL) != draw(8, SMALL)


def test_how_often_files_are_written_changes_no_read() -> None:
    plain, more = draw(3, SMALL), draw(3, SMALL, multiplier=10.0)
    assert more.read_at == plain.read_at
    assert len(more.write_at) == 10 * len(plain.write_at)


def test_files_that_are_read_most_are_written_least() -> None:
    """Section 4.2: a tenth of the files, the ones read most, change 0.005 times a day each."""
    trace = draw(5, PAPER.scaled(0.05))
    reads = Counter(trace.read_file)
    ranked = [file for file, _ in reads.most_common()]
    popular = set(ranked[: len(ranked) // 10])
    written = Counter(trace.written_file)
    of_popular = sum(written[file] for file in popular)
    share = of_popular / len(trace.write_at)
    expected = 0.1 * 0.005 / (writes_a_day(100_000) / 100_000)
    assert share == pytest.approx(expected, rel=0.3)


def test_bursts_take_about_ten_others_of_the_same_volume_along() -> None:
    plain, bursty = draw(3, SMALL), draw(3, SMALL, bursty=True)
    assert len(bursty.write_at) == len(plain.write_at)
    at_once: dict[float, list[int]] = {}
    for at, file in zip(bursty.write_at, bursty.written_file, strict=True):
        at_once.setdefault(at, []).append(file)
    assert all(len({bursty.volume_of[file] for file in files}) == 1 for files in at_once.values())
    mean = len(bursty.write_at) / len(at_once)
    assert mean == pytest.approx(1 + BURST_MEAN, rel=0.25)


def test_one_file_and_no_writes_are_a_workload_too() -> None:
    trace = draw(1, Size(clients=1, servers=1, files=1, reads=3, writes=0))
    assert list(trace.read_file) == [0, 0, 0]
    assert trace.last_write == 0.0
