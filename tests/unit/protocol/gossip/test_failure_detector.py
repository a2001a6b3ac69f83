"""The failure detector: reference values, how often it is wrong, and what it does not count."""

from random import Random

import pytest

from tenure.base.instants import MILLISECOND_NS, SECOND_NS, Instant
from tenure.protocol.gossip.failure_detector import ArrivalWindow, FailureDetector

NODE = 7


def ms(value: float) -> Instant:
    return Instant(round(value * MILLISECOND_NS))


def test_the_reference_values_of_a_window_of_four() -> None:
    window = ArrivalWindow(ms(111), size=4)
    for at in (222, 333, 444, 555):
        window.arrive(ms(at))
    assert window.phi(ms(666)) == pytest.approx(0.4342, abs=0.0001)
    assert window.phi(ms(3_000)) == pytest.approx(9.566, abs=0.001)


def test_what_was_expected_leaves_the_window_when_it_is_full() -> None:
    window = ArrivalWindow(ms(111), expected_ns=9_000 * MILLISECOND_NS, size=4)
    for at in (222, 333, 444, 555):
        window.arrive(ms(at))
    assert window.phi(ms(666)) == pytest.approx(0.4342, abs=0.0001)


@pytest.mark.parametrize(("phi", "wrong"), [(1, 0.1), (2, 0.01), (3, 0.001)])
def test_phi_says_how_often_it_is_wrong(phi: int, wrong: float) -> None:
    dice = Random(phi)
    window = ArrivalWindow(Instant(0), size=1_000)
    samples, late = 400_000, 0
    for _ in range(samples):
        at = Instant(window.last + round(dice.expovariate(1 / SECOND_NS)))
        late += len(window._distances) == 1_000 and window.phi(at) > phi
        window.arrive(at)
    assert late / samples == pytest.approx(wrong, rel=0.15)


def test_the_instant_of_conviction_is_where_phi_reaches_the_threshold() -> None:
    window = ArrivalWindow(Instant(0), SECOND_NS)
    at = window.reaches(5)
    assert window.phi(at) == pytest.approx(5)
    assert window.phi(Instant(at - MILLISECOND_NS)) < 5
    assert at == pytest.approx(11.513 * SECOND_NS, rel=0.001)


def detector() -> FailureDetector:
    made = FailureDetector(SECOND_NS)
    made.begin(NODE, Instant(0))
    return made


def test_a_node_is_convicted_once_and_acquitted_when_it_is_heard() -> None:
    made = detector()
    convicts_at = made.next_at()
    assert convicts_at is not None
    assert made.convict(Instant(convicts_at - 1)) == []
    assert made.convict(convicts_at) == [NODE]
    assert made.convict(Instant(convicts_at + 1)) == []
    assert made.next_at() is None
    assert made.arrive(NODE, Instant(convicts_at + 1))
    assert not made.is_convicted(NODE)
    assert not made.arrive(NODE, Instant(convicts_at + 2))


def test_how_long_a_node_was_dead_does_not_make_the_detector_patient() -> None:
    made = detector()
    made.convict(Instant(3_600 * SECOND_NS))
    made.arrive(NODE, Instant(3_600 * SECOND_NS))
    assert made.next_at() == pytest.approx(3_611.5 * SECOND_NS, abs=SECOND_NS / 10)


def test_an_own_pause_is_nobody_elses() -> None:
    made = detector()
    made.on_own_pause(60 * SECOND_NS)
    assert made.convict(Instant(71 * SECOND_NS)) == []
    assert made.convict(Instant(72 * SECOND_NS)) == [NODE]


def test_a_node_that_is_forgotten_is_not_convicted() -> None:
    made = detector()
    made.forget(NODE)
    assert made.convict(Instant(3_600 * SECOND_NS)) == []
    assert made.watched() == []
