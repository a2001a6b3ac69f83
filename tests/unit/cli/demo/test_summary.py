"""The summary: sums of what was reported, the same for people and for programs."""

import msgspec

from tenure.base.instants import Instant
from tenure.cli.demo.places import Frontends, OwnerPlace
from tenure.cli.demo.reports import FrontendReport, OwnerReport, encode
from tenure.cli.demo.summary import Summary, lines

SUMMARY = Summary(
    requests=12_345,
    failed=1,
    rerouted=0,
    double_owner=0,
    losses_signalled=0,
    keys_republished=0,
    attempts=0,
    refused=0,
    refused_late=0,
    ranges_lost=0,
    slowest_seconds=1.456,
    served=1234,
    voided=2,
    owner_kills=3,
    owner_stops=4,
    seconds=60.0,
    owners=5,
    frontends=6,
    preset="test",
)


def frontends(*reports: FrontendReport) -> Frontends:
    frontends = Frontends()
    for number, report in enumerate(reports):
        frontends.on_line(number, encode(report))
    return frontends


def summary(double_owner: int = 0) -> Summary:
    return msgspec.structs.replace(SUMMARY, double_owner=double_owner)


def test_reports_of_frontends_are_added_up_and_the_slowest_is_the_slowest() -> None:
    totals = frontends(
        FrontendReport(has_published=True, requests=1, rerouted=2, slowest_ns=9),
        FrontendReport(has_published=True, requests=10, keys_republished=5, slowest_ns=7),
    ).totals
    assert totals == FrontendReport(
        has_published=True, requests=11, rerouted=2, keys_republished=5, slowest_ns=9
    )


def test_a_later_report_takes_the_place_of_an_earlier_one() -> None:
    it = frontends(FrontendReport(requests=1))
    it.on_line(0, encode(FrontendReport(requests=2)))
    assert it.totals.requests == 2


def test_without_reports_all_is_zero() -> None:
    assert Frontends().totals == FrontendReport()


def test_what_the_killed_lives_of_an_owner_counted_is_kept() -> None:
    place = OwnerPlace(2)
    assert place.begin_life() == "owner-2"
    for served in (3, 8):
        report = OwnerReport(at=Instant(1), address="http://a", ranges=1, served=served)
        place.on_line(encode(report))
    assert (place.state, place.address) == ("serving", "http://a")
    assert place.begin_life() == "owner-2-life-2"
    assert (place.state, place.address) == ("starting", None)
    place.on_line(encode(OwnerReport(at=Instant(2), address="http://b", served=1)))
    assert (place.state, place.address) == ("starting", "http://b")
    assert place.total(lambda report: report.served) == 9


def test_the_summary_has_what_programs_ask_for() -> None:
    made = msgspec.json.decode(msgspec.json.encode(summary()))
    assert made["requests"] == 12_345
    assert made["slowest_seconds"] == 1.456
    assert made.keys() >= {
        "requests",
        "failed",
        "rerouted",
        "double_owner",
        "losses_signalled",
        "keys_republished",
        "owner_kills",
    }


def test_two_owners_of_one_key_make_it_bad() -> None:
    assert summary().is_good
    assert not summary(double_owner=1).is_good


def test_the_lines_for_people() -> None:
    good = list(lines(summary()))
    assert good[0] == "   12,345  requests in 60 s, from 6 frontends"
    assert "     1.46  seconds at most for a request, retries included" in good
    assert good[-2] == "        0  keys that two owners served at once, in 1,234 entries"
    assert good[-1] == "One owner for every key, all the time."
    assert list(lines(summary(2)))[-1] == "Two owners served one key at once: that must never be."


def test_drains_and_dark_keys_are_told_where_there_were_any() -> None:
    drained = msgspec.structs.replace(summary(), drains=4, drain_seconds=0.5, moves_per_key=1.25)
    text = "\n".join(lines(drained))
    assert "        4  restarts of 5 owners, two at a time" in text
    assert "     1.25  moves of a key, on average" in text
    dark = msgspec.structs.replace(
        summary(), dark_seconds=0.12, slowest_dark_seconds=0.34, keys_lost=56
    )
    text = "\n".join(lines(dark))
    assert "       56  keys whose state was lost" in text
    assert "     0.12  seconds until all keys of the dead were served again: median" in text
    assert "     0.34  seconds at most" in text
    assert "restarts of" not in text


def test_crowds_are_told_where_there_were_any() -> None:
    told = msgspec.structs.replace(summary(), crowds=3, uneven=2.5, even_seconds=9.5)
    text = "\n".join(lines(told))
    assert "        3  crowds that asked for a few keys of one owner" in text
    assert "     2.50  times the mean was asked of one owner, at the worst" in text
    assert "     9.50  seconds until the load was even again: median" in text
    assert "crowds" not in "\n".join(lines(summary()))


def test_failovers_are_told_where_there_were_any() -> None:
    told = msgspec.structs.replace(summary(), leader_kills=4, managers=3, takeover_seconds=1.8)
    text = "\n".join(lines(told))
    assert "        4  leaders of 3 managers killed with kill -9" in text
    assert "     1.80  seconds until another led, in the median" in text
    assert "        0  leases lost to that" in text
    assert "leaders of" not in "\n".join(lines(summary()))
