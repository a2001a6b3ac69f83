"""The claims of the Volume Leases paper about its algorithms, one test for each claim, with its
section.

The trace simulator counts the costs, on a workload a fiftieth of the paper's in size. The tests
compare the order of the algorithms and the shape of the curves.
"""

from array import array
from functools import cache, partial
from random import Random

import pytest

from lab.trace.algorithms import Delayed, ObjectLease, Poll, VolumeLease
from lab.trace.figures import AT_100_SECONDS, FIGURES, Cost, Figure, Run, cost_of, savings
from lab.trace.replay import Make, replay
from lab.trace.workload import PAPER, Trace, draw

SIZE = PAPER.scaled(0.02)


@cache
def workload(kind: str | float) -> Trace:
    if isinstance(kind, float):
        return draw(1, SIZE, multiplier=kind)
    return draw(1, SIZE, bursty=kind == "bursty")


@cache
def cost(run: Run) -> Cost:
    return cost_of(workload(run.workload), run)


def curves(figure: Figure) -> dict[str, dict[float, float]]:
    found = figure.curves({run: cost(run) for run in figure.runs()})
    return {name: dict(points) for name, points in found.items()}


# --- table 1: with random reads and no writes, what a read costs ---


def random_reads(rate: float, files: int, seed: int = 1, count: int = 40_000) -> Trace:
    """One client that reads each file of one server at a rate, at random."""
    dice = Random(seed)
    now, times, places = 0.0, array("d"), array("i")
    for _ in range(count):
        now += dice.expovariate(rate * files)
        times.append(now)
        places.append(dice.randrange(files))
    return Trace(
        array("i", [0] * files), times, array("i", [0] * count), places, array("d"), array("i")
    )


def cost_of_a_read(make: Make, trace: Trace) -> float:
    """Exchanges for each read."""
    return replay(trace, make).all_messages / 2 / len(trace.read_at)


@pytest.mark.parametrize("term", [10.0, 100.0, 1000.0])
def test_table_1_a_read_costs_the_inverse_of_reads_in_a_timeout(term: float) -> None:
    """The paper has 1/(R t), the limit of what random reads give exactly: 1/(1 + R t)."""
    rate = 0.02
    trace = random_reads(rate, 1)
    expected = pytest.approx(1 / (1 + rate * term), rel=0.05)
    assert cost_of_a_read(lambda t, c: Poll(t, c, term), trace) == expected
    assert cost_of_a_read(lambda t, c: ObjectLease(t, c, term), trace) == expected


def test_table_1_a_volume_lease_is_paid_for_by_the_reads_of_all_its_objects() -> None:
    """The first term, 1/(R_o t_v) with the reads of all active objects: the second is nought."""
    rate, files, volume_term = 0.002, 50, 100.0
    trace = random_reads(rate, files)
    measured = cost_of_a_read(lambda t, c: VolumeLease(t, c, volume_term, 1e12), trace)
    first_reads = files / len(trace.read_at)
    exact = 1 / (1 + rate * files * volume_term)
    assert measured == pytest.approx(exact + first_reads, rel=0.1)
    alone = cost_of_a_read(lambda t, c: ObjectLease(t, c, volume_term), trace)
    assert alone > 7 * measured


def test_table_1_callbacks_cost_a_read_nothing_and_a_write_every_holder() -> None:
    trace = random_reads(0.02, 1)
    assert cost_of_a_read(lambda t, c: ObjectLease(t, c, float("inf")), trace) * 40_000 == 1


# --- section 5.1: load of servers and network ---


def test_5_1_volume_leases_save_messages_where_writes_may_wait_10_or_100_seconds() -> None:
    """32 and 39 % at 10 s, 30 and 40 % at 100 s in the paper; here the order is held to."""
    runs = [run for number in (5, 6) for run in FIGURES[number].runs()]
    for saving in savings({run: cost(run) for run in runs}):
        assert 0.1 < saving.volume < saving.delayed


def test_figure_5_callback_is_flat_and_longer_leases_never_cost_more_reads() -> None:
    found = curves(FIGURES[5])
    assert len(set(found["Callback"].values())) == 1
    polls = list(found["Poll(t)"].values())
    assert polls == sorted(polls, reverse=True)


def test_figure_5_volume_leases_fall_to_a_least_and_then_rise() -> None:
    """Fewer renewals, until invalidations of objects that nobody reads any more outweigh them."""
    for name in ("Volume(10,t)", "Volume(100,t)"):
        values = list(curves(FIGURES[5])[name].values())
        least = values.index(min(values))
        assert 0 < least < len(values) - 1
        assert values[:least] == sorted(values[:least], reverse=True)
        assert values[-1] < 1.2 * min(values), "slightly"


def test_figure_5_delayed_sends_strictly_fewer_than_volume_once_leases_are_long() -> None:
    found = curves(FIGURES[5])
    for term in (10, 100):
        volume, delayed = found[f"Volume({term},t)"], found[f"Delay({term},t,inf)"]
        assert all(delayed[x] <= volume[x] for x in volume)
        assert all(delayed[x] < volume[x] for x in (1e5, 1e6, 1e7))


def test_figure_5_polling_shows_old_data_once_timeouts_are_long() -> None:
    """1 % of reads at 100,000 s and 5 % at 1,000,000 s in the paper."""
    stale = {run.x: cost(run).stale for run in FIGURES[5].runs() if run.setting.name == "Poll(t)"}
    assert stale[1e4] < stale[1e5] < stale[1e6] < stale[1e7]
    assert 0.01 < stale[1e6] < 0.10


def test_figure_6_shorter_volume_leases_cost_more() -> None:
    found = curves(FIGURES[6])
    at = [found[f"Volume({term:g},t)"][1e5] for term in (10, 100, 1e3, 1e4)]
    assert at == sorted(at, reverse=True)
    assert found["Lease(t)"][1e5] <= at[-1], "a volume lease that never ends would be a lease"


# --- section 5.2: state ---


@pytest.mark.parametrize("number", [7, 8])
def test_5_2_short_leases_remember_less_than_callbacks(number: int) -> None:
    found = curves(FIGURES[number])
    assert found["Lease(t)"][1e5] < found["Callback"][1e5] / 2


@pytest.mark.parametrize("number", [7, 8])
def test_5_2_volume_leases_add_little_and_unlimited_delay_adds_most(number: int) -> None:
    found = curves(FIGURES[number])
    for x in (1e4, 1e5, 1e6, 1e7):
        assert found["Lease(t)"][x] <= found["Volume(10,t)"][x] + 1
        assert found["Volume(10,t)"][x] < found["Delay(10,t,inf)"][x]


@pytest.mark.parametrize("number", [7, 8])
def test_5_2_delayed_that_forgets_soon_remembers_least(number: int) -> None:
    found = curves(FIGURES[number])
    for x in (1e5, 1e6, 1e7):
        assert found["Delay(10,t,10000)"][x] < found["Lease(t)"][x]


# --- section 5.3: bursts ---


def seconds_of_at_least(number: int, load: int) -> dict[str, float]:
    found = FIGURES[number].curves({run: cost(run) for run in FIGURES[number].runs()})
    return {
        name: max((seconds for at, seconds in points if at >= load), default=0.0)
        for name, points in found.items()
    }


def test_5_3_delayed_has_lower_peaks_than_volume_and_callback() -> None:
    for number in (9, 10):
        seconds = seconds_of_at_least(number, 12)
        assert seconds["Delay(100,1e+07,inf)"] <= seconds["Volume(100,1e+07)"]
        assert seconds["Delay(100,1e+07,inf)"] <= seconds["Callback"]


def test_5_3_writes_in_bursts_raise_the_peaks_of_volume_and_callback_only() -> None:
    calm, bursty = seconds_of_at_least(9, 20), seconds_of_at_least(10, 20)
    for name in ("Volume(100,1e+07)", "Callback"):
        assert bursty[name] > calm[name]
    assert bursty["Delay(100,1e+07,inf)"] <= calm["Delay(100,1e+07,inf)"]


# --- section 5.4: how often files are written ---


def test_5_4_short_leases_and_polls_hardly_notice_how_often_files_are_written() -> None:
    found = curves(FIGURES[11])
    assert len(set(found["Poll(100)"].values())) == 1
    assert found["Lease(100)"][100.0] < 1.02 * found["Lease(100)"][0.1]


def test_5_4_callbacks_rise_faster_than_volume_and_delayed_leases() -> None:
    found = curves(FIGURES[11])
    rise = {name: found[name][100.0] - found[name][0.1] for name in found}
    assert rise["Callback"] > rise["Volume(100,1e+07)"] > rise["Delay(100,1e+07,inf)"]
    assert [setting.name for setting in AT_100_SECONDS] == list(found)


# --- section 3.2 ---


def test_3_2_delayed_tells_only_who_is_active() -> None:
    """A write costs C_v and not C_o messages: those whose volume lease runs."""
    reads = [(float(client), client, 0) for client in range(10)]
    trace = Trace(
        array("i", [0]),
        array("d", [at for at, _, _ in reads]),
        array("i", [client for _, client, _ in reads]),
        array("i", [0] * 10),
        array("d", [9.5]),
        array("i", [0]),
    )
    told = {
        make: replay(trace, partial(make, volume_term=5, term=1000)).all_messages - 20
        for make in (VolumeLease, Delayed)
    }
    assert told == {VolumeLease: 2 * 10, Delayed: 2 * 5}
