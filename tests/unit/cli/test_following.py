"""`tenure events` and `tenure top` show what happens at the leader, whichever manager that is."""

import asyncio
import io
import json
import socket
from threading import Thread

import msgspec
import pytest

from tenure import Lookup, Owner
from tenure.base.noted import Noted
from tenure.cli.app import run
from tenure.cli.asking import get
from tenure.cli.demo.ports import free_ports
from tenure.cli.events import folded, words_in_sum
from tenure.cli.following import leader_of, live, recent
from tenure.cli.top import look, picture
from tenure.errors import NoManager, TenureError
from tenure.journals import MemoryJournal
from tenure.manager import live as live_module
from tenure.manager import service as service_module
from tenure.manager.limits import ManagerLimits
from tenure.manager.live import LiveEvent, Pulse
from tenure.manager.noted import ServiceKind
from tenure.protocol.lease.answers import HottestKey, SpelledKey
from tenure.wire.lease_records import LEASE_RECORDS
from tests.patience import DEADLINE_SECONDS
from tests.unit.manager.serving import Events, Serving, serving

pytestmark = pytest.mark.asyncio
Capture = pytest.CaptureFixture[str]


async def said(capsys: Capture, *words: str, code: int = 0) -> str:
    assert await asyncio.to_thread(run, list(words)) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err


def owner(manager: Serving, name: str = "ann") -> Owner:
    return Owner(manager.service.url, pool="rooms", address=f"http://{name}", name=name)


def event(number: int, detail: str, kind: str = "handed over", at: float = 0.0) -> LiveEvent:
    return LiveEvent(
        number=number, at=at, kind=kind, level="info", pool="rooms", detail=detail, cause="1.2"
    )


async def test_what_has_happened_is_told_in_order(capsys: Capture) -> None:
    async with serving() as manager:
        async with owner(manager) as ann:
            await ann.ready()
        text = await said(capsys, "events", "-m", manager.service.url)
        kinds = [line.split("  ", 1)[1] for line in text.splitlines()]
        assert "leading: leadership 1, LSN 1" in kinds
        joined, left = (next(i for i, k in enumerate(kinds) if w in k) for w in ("joined", "left"))
        assert joined < left
        granted = next(k for k in kinds if k.startswith("[rooms] granted"))
        assert "to ann" in granted, "who gets keys, and who gives them up, is told at this level"
        assert kinds[joined].startswith("[rooms] owner joined: ann as 1 (cause ")
        text = await said(capsys, "events", "-m", manager.service.url, "--pool", "no", "--json")
        assert text == ""
        text = await said(capsys, "events", "-m", manager.service.url, "--level", "debug", "--json")
        found = [json.loads(line) for line in text.splitlines()]
        assert "connected" in {each["kind"] for each in found}
        assert [each["number"] for each in found] == list(range(1, len(found) + 1))


async def test_a_recall_is_told_with_who_has_to_give_up(capsys: Capture) -> None:
    async with serving() as manager, owner(manager) as ann:
        await ann.ready()
        async with owner(manager, "bob") as bob:
            await bob.ready()
            text = await said(capsys, "events", "-m", manager.service.url)
    kinds = [line.split("  ", 1)[1].split(" (")[0] for line in text.splitlines()]
    joined = kinds.index("[rooms] owner joined: bob as 2")
    assert kinds[joined + 1 :] == [
        "[rooms] recalled: 1 range from ann",
        "[rooms] granted: 1 range to bob",
    ]


async def test_events_that_are_alike_are_one_line_that_says_who_took_how_much() -> None:
    def lines(*events: LiveEvent) -> list[str]:
        return [words_in_sum(each).split("  ", 1)[1] for each in folded(events)]

    moves = [event(n, "1 range to ann") for n in range(3)]
    one = "[rooms] handed over: 1 range to ann (cause 1.2)"
    assert lines(*moves) == [one] * 3
    more = [*moves, event(3, "2 ranges to ann")]
    assert lines(*more) == ["[rooms] handed over: 5 ranges to ann (4 of them)"]
    two = "[rooms] handed over: 7 ranges to ann (5 ranges), bob (2 ranges) (5 of them)"
    left = event(5, "eve (3)", "owner left")
    shown = [two, "[rooms] owner left: eve (3) (cause 1.2)"]
    assert lines(*more, event(4, "2 ranges to bob"), left) == shown
    assert lines(*more, event(4, "1 range to ann", at=11.0))[1] == one, "that was long after"
    many = [event(n, f"1 range to owner-{n}") for n in range(9)]
    assert lines(*many) == ["[rooms] handed over: 9 ranges to 9 owners (9 of them)"]
    died = [event(n, f"owner-{n}", "owner expired") for n in range(4)]
    assert lines(*died) == ["[rooms] owner expired (4 of them)"]


async def test_who_comes_back_is_told_what_it_missed_and_nothing_twice() -> None:
    async with serving() as manager:
        url = manager.service.url
        before = await asyncio.to_thread(recent, url)
        async with owner(manager):
            pass

        def after() -> list[LiveEvent]:
            found: list[LiveEvent] = []
            for each in live(url, "info", before[-1].id):
                if isinstance(each, Pulse):
                    return found
                found.append(each)
            raise AssertionError

        missed = await asyncio.to_thread(after)
        assert {"owner joined", "owner left"} <= {each.kind for each in missed}
        assert all(each.number > before[-1].number for each in missed)


async def test_who_comes_is_told_all_that_is_remembered() -> None:
    async with serving() as manager:
        for number in range(live_module.RECENT_EVENTS + 50):
            manager.service.observer.note(Noted(ServiceKind.SLOW_PEER, detail=str(number)))
        found = await asyncio.to_thread(recent, manager.service.url)
        assert len(found) == live_module.RECENT_EVENTS
        assert found[-1].detail == str(live_module.RECENT_EVENTS + 49)


async def test_a_pulse_says_when_a_pools_table_changes() -> None:
    async with serving() as manager:
        pulses: list[Pulse] = []

        def follow() -> None:
            for each in live(manager.service.url, "error"):
                if isinstance(each, Pulse):
                    pulses.append(each)
                    if each.pools and each.pools[0].owners:
                        return

        thread = Thread(target=follow)
        thread.start()
        async with owner(manager):
            await asyncio.to_thread(thread.join)
        assert pulses[0].role == "leading"
        assert pulses[-1].pools[0].name == "rooms"


async def test_the_leader_is_found_by_way_of_a_standby(capsys: Capture) -> None:
    journal, gone = MemoryJournal(LEASE_RECORDS), f"http://127.0.0.1:{free_ports(1)[0]}"
    async with serving(journal) as leader, serving(journal) as standby:
        await Events(leader.service.observer).wait_for("leading")
        while not standby.service.engine.view.leader:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        urls = [gone, standby.service.url]
        assert await asyncio.to_thread(leader_of, urls) == leader.service.url
        # This manager led a moment ago: `tenure top` goes on, and asks who leads now.
        with pytest.raises(NoManager, match=f"stands by; {leader.service.url} leads"):
            await asyncio.to_thread(get, standby.service.url, "/v1/pools/rooms/owners", 5.0)
    with pytest.raises(NoManager, match=f"no manager leads: {gone}: connection refused"):
        leader_of([gone])
    assert "no manager leads" in await said(capsys, "events", "-m", gone, code=1)


async def test_a_stream_ends_with_its_manager_and_that_is_told() -> None:
    ended: list[str] = []
    async with serving() as manager:
        stream = live(manager.service.url, "info")
        await asyncio.to_thread(next, stream)

        def to_the_end() -> None:
            try:
                for _ in stream:
                    pass
            except NoManager as error:
                ended.append(str(error))

        thread = Thread(target=to_the_end)
        thread.start()
    await asyncio.to_thread(thread.join)
    assert ended
    assert ended[0].startswith(manager.service.url)


async def test_one_reader_too_many_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "MOST_READERS", 1)
    async with serving() as manager:
        stream = live(manager.service.url, "info")
        await asyncio.to_thread(next, stream)
        with pytest.raises(TenureError, match="1 pages and commands follow this manager already"):
            await asyncio.to_thread(recent, manager.service.url)
        stream.close()  # type: ignore[attr-defined]


async def test_a_reader_that_reads_nothing_takes_nobodys_place_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_module, "MOST_READERS", 1)
    limits = ManagerLimits(stuck_seconds=0.1, requests_a_second=1_000_000)
    async with serving(limits=limits) as manager:
        host, _, port = manager.service.url.removeprefix("http://").rpartition(":")

        async def status() -> int:  # 503 while another reads
            return (await manager.get("/v1/live?level=loud"))[0]

        with socket.socket() as silent:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            silent.connect((host, int(port)))
            silent.sendall(f"GET /v1/live HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            while await status() != 503:
                pass  # the other stream has not begun
            for _ in range(100):  # more than sockets and transports hold
                manager.service.observer.note(Noted(ServiceKind.SLOW_PEER, detail="x" * 100_000))
            while (found := await status()) == 503:
                pass  # it is still there
            assert found == 400


async def test_a_reader_for_whom_too_much_waits_is_told_to_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_module, "WAITING_EVENTS", 50)
    async with serving() as manager, manager.session.get(manager.service.url + "/v1/live") as slow:
        assert b"pulse" in await slow.content.readuntil(b"event: pulse")
        for number in range(60):  # before the stream has a turn
            manager.service.observer.note(Noted(ServiceKind.SLOW_PEER, detail=f"peer-{number}"))
        assert b"peer-" not in await slow.content.read(), "and it ends"


async def test_a_quiet_stream_says_a_word_now_and_then_and_who_reads_it_is_not_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_module, "QUIET_SECONDS", 0.05)
    limits = ManagerLimits(silent_seconds=0.1)
    async with (
        serving(limits=limits) as manager,
        manager.session.get(manager.service.url + "/v1/live") as quiet,
    ):
        for _ in range(5):
            await quiet.content.readuntil(b"\n:\n\n")


async def test_a_manager_that_stops_ends_its_streams_itself_and_does_not_wait_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service_module, "SHUTDOWN_SECONDS", 2 * DEADLINE_SECONDS)
    async with serving() as manager, manager.session.get(manager.service.url + "/v1/live") as read:
        await read.content.readuntil(b"event: pulse")
        await manager.service.stop()
        await read.content.read()  # which raises if it is cut off
        assert read.content.at_eof()


async def test_a_stream_has_no_head() -> None:
    async with serving() as manager, manager.session.head(manager.service.url + "/v1/live") as head:
        assert head.status == 405


@pytest.mark.parametrize(
    "query", ["level=loud", "since=x", "since=-1", "since=a-", "since=" + "9" * 30]
)
async def test_a_question_that_cannot_be_is_refused(query: str) -> None:
    async with serving() as manager:
        status, problem = await manager.get(f"/v1/live?{query}")
        assert status == 400
        assert problem["way_out"]


async def test_a_manager_that_was_started_anew_sends_a_reader_all_that_it_remembers() -> None:
    """Numbers begin again: an old one that is lower than the last would hide what came
    before it.
    """
    async with serving() as manager:
        before = (await asyncio.to_thread(recent, manager.service.url))[-1]
    async with serving() as manager:
        for _ in range(before.number):
            manager.service.observer.note(Noted(ServiceKind.SLOW_PEER))
        stream = live(manager.service.url, "info", before.id)
        first = await asyncio.to_thread(next, stream)
        assert isinstance(first, LiveEvent)
        assert first.number == 1
        assert first.id != before.id
        stream.close()  # type: ignore[attr-defined]
        stream = live(manager.service.url, "info", first.id)
        second = await asyncio.to_thread(next, stream)
        assert isinstance(second, LiveEvent)
        assert second.number == 2
        stream.close()  # type: ignore[attr-defined]


# --- top ---


async def test_top_shows_owners_by_load_and_what_happens(capsys: Capture) -> None:
    async with serving() as manager:
        async with (
            owner(manager) as ann,
            owner(manager, "bob") as bob,
            Lookup(manager.service.url, pool="rooms"),
        ):
            await ann.ready()
            await bob.ready()
            text = await said(capsys, "top", "rooms", "--once", "-m", manager.service.url)
            title, where, *lines = text.splitlines()
            assert title.startswith("rooms: 2 owners, ")
            assert "1 lookup," in title
            assert where.endswith(f" at {manager.service.url}")
            assert max(map(len, (title, where))) <= 80
            assert [line.split()[0] for line in lines[:3]] == ["owner", "ann", "bob"]
            assert any("owner joined: bob" in line for line in lines[3:])
            text = await said(capsys, "top", "rooms", "--once", "--json", "-m", manager.service.url)
            seen = json.loads(text)
            assert {each["name"] for each in seen["owners"]} == {"ann", "bob"}
            assert seen["leader"] == manager.service.url
        assert "no pool 'none'" in await said(
            capsys, "top", "none", "--once", "-m", manager.service.url, code=2
        )
        refused = await said(capsys, "top", "rooms", "--every", "0", code=2)
        assert "above 0, not 0" in refused


async def test_tops_picture_fits_the_screen() -> None:
    from rich.console import Console  # noqa: PLC0415

    async with serving() as manager:
        owners = [owner(manager, f"owner-{number}") for number in range(12)]
        for each in owners:
            await each.__aenter__()
        seen = await asyncio.to_thread(look, [manager.service.url], "rooms")
        seen = msgspec.structs.replace(
            seen,
            owners=tuple(
                msgspec.structs.replace(
                    each, load=1000.0 * (12 - number), steering="cordoned, stuck"
                )
                for number, each in enumerate(seen.owners)
            ),
            events=tuple(
                event(n, "1 range to owner-1", "recalled" if n % 2 else "granted") for n in range(8)
            ),
            hottest=(
                HottestKey(key=None, name="attic\x1b", owner="owner-1", rate=41.52),
                HottestKey(key=SpelledKey("8f1e"), name=None, owner=None, rate=7.0),
            ),
        )
        for width, height, is_cut in (
            *((120, 18, True), (120, 60, False)),
            *((80, 24, True), (80, 60, False), (40, 80, False), (200, 24, True)),
        ):
            console = Console(width=width, height=height, file=io.StringIO())
            lines = console.render_lines(picture(seen, "", width, height), pad=False)
            assert len(lines) <= height
            text = "\n".join("".join(part.text for part in line) for line in lines)
            assert (" more" in text) == is_cut, (width, height)
            words = " ".join(text.split())
            assert "at http://127.0.0.1:" in words, "nothing is cut off"
            assert "hottest keys: attic\\x1b at owner-1 41.5/s, 8f1e at nobody 7.0/s" in words
            assert "[rooms] recalled: 1 range to owner-1" in words, "the latest event"
            if width >= 80:
                assert "cordoned, stuck" in text
                assert "█" * 10 in text
        for each in owners:
            await each.close(drain=0)
