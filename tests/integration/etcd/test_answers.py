"""Answers are lost, members are silent, and etcd contains what it should not."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from tenure.cli.demo.ports import free_ports
from tenure.errors import (
    ClosedError,
    ConfigurationError,
    JournalDamaged,
    JournalError,
    JournalTooNew,
)
from tenure.journals import perform
from tenure.journals.etcd.journal import EtcdJournal
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.log.journal import (
    Append,
    Appended,
    Campaign,
    Committed,
    JournalFailed,
    Mandate,
    Seat,
    Unknown,
)
from tenure.testing.contracts.journal import lead, taken_by
from tenure.testing.contracts.records import A_STATE, numbered
from tests.integration.etcd.keys import delete, key_of, keys_under, put
from tests.integration.etcd.proxy import Mode, Proxy, proxy_to
from tests.integration.etcd.servers import Cluster, running
from tests.patience import until

OpenEtcd = Callable[[str], EtcdJournal[AnyRecord, State]]
pytestmark = pytest.mark.asyncio


@contextmanager
def broken(proxy: Proxy, mode: Mode, journal: EtcdJournal[AnyRecord, State]) -> Iterator[None]:
    """A way on which no answer comes; the journal does not wait for it as long as for others."""
    gateway = journal._gateway
    patient, proxy.mode = gateway._options, mode
    gateway._options = msgspec.structs.replace(patient, timeout=2.0)
    yield
    proxy.mode, gateway._options = "pass", patient


async def test_an_append_whose_answer_was_lost_is_unknown_and_then_recognised(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    async with proxy_to(etcd.urls[0]) as proxy:
        journal = open_etcd(f"etcd:{proxy.url}?prefix={prefix}&timeout=10")
        leadership = await lead(journal)
        with broken(proxy, "lose answers", journal):
            result = await journal.append(leadership, 0, numbered(0, 2))
        assert isinstance(result, Unknown)
        assert "may have been done" in result.why
        assert (await open_etcd(etcd.journal_url(prefix=prefix)).load()).records == numbered(0, 2)
        assert await journal.append(leadership, 0, numbered(0, 2)) == Committed(2)
        assert (await journal.load()).records == numbered(0, 2)


async def test_where_another_member_answers_a_lost_answer_is_not_even_unknown(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    async with proxy_to(etcd.urls[0]) as proxy:
        journal = open_etcd(f"etcd:{proxy.url},{etcd.urls[0]}?prefix={prefix}&timeout=10")
        leadership = await lead(journal)
        with broken(proxy, "lose answers", journal):
            assert await journal.append(leadership, 0, numbered(0, 2)) == Committed(2)
        assert (await journal.load()).records == numbered(0, 2)


async def test_a_campaign_whose_answer_was_lost_is_not_repeated(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    """The second one would say that it was lost, to the very manager that has the seat."""
    async with proxy_to(etcd.urls[0]) as proxy:
        journal = open_etcd(f"etcd:{proxy.url},{etcd.urls[0]}?prefix={prefix}&timeout=10")
        await journal.load()
        campaign = Campaign(Seat(), taken_by("http://a", Seat()))
        with broken(proxy, "lose answers", journal):
            assert isinstance(await perform(journal, campaign), JournalFailed)
        assert await journal.read_seat() == campaign.taken


async def test_who_is_silent_costs_one_timeout_and_is_then_passed_over(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    async with proxy_to(etcd.urls[0]) as proxy:
        journal = open_etcd(f"etcd:{proxy.url},{etcd.urls[0]}?prefix={prefix}&timeout=10")
        leadership = await lead(journal)
        asked = proxy.requests
        with broken(proxy, "stall", journal):
            for beat in range(1, 10):
                assert await journal.beat(leadership, beat)
        assert proxy.requests == asked + 1


async def test_what_was_never_sent_is_told_apart(prefix: str, open_etcd: OpenEtcd) -> None:
    nobody = ",".join(f"http://127.0.0.1:{port}" for port in free_ports(2))
    journal = open_etcd(f"etcd:{nobody}?prefix={prefix}")
    found = await perform(journal, Append(Mandate(77, 1), 0, numbered(0, 1)))
    assert isinstance(found, Appended)
    assert isinstance(found.result, Unknown)
    assert "nothing was sent" in found.result.why
    for url in nobody.split(","):
        assert url in found.result.why
    with pytest.raises(JournalError, match="nothing was sent"):
        await journal.campaign(Seat(), taken_by("http://a", Seat()))


async def test_a_manager_may_come_before_its_etcd_and_outlive_it(
    tmp_path: Path, open_etcd: OpenEtcd
) -> None:
    async with running(tmp_path) as etcd:
        url = etcd.journal_url(timeout=2)
        etcd.kill()
        journal = open_etcd(url)
        with pytest.raises(JournalError, match="cannot be reached"):
            await journal.read_seat()
        etcd.members[0].start()
        await until(etcd.ready, "etcd is back")
        leadership = await lead(journal)
        assert await journal.append(leadership, 0, numbered(0, 3)) == Committed(3)
        before = await journal.load()
        etcd.kill()
        assert isinstance(await journal.append(leadership, 3, numbered(3, 1)), Unknown)
        etcd.members[0].start()

        async def committed() -> bool:
            return await journal.append(leadership, 3, numbered(3, 1)) == Committed(4)

        await until(committed, "the append is committed")
        found = await journal.load()
        assert (found.journal, found.records) == (before.journal, numbered(0, 4))


async def test_journals_of_two_prefixes_know_nothing_of_each_other(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    one = open_etcd(etcd.journal_url(prefix=f"{prefix}one/"))
    other = open_etcd(etcd.journal_url(prefix=f"{prefix}other/"))
    await one.append(await lead(one), 0, numbered(0, 2))
    found = await other.load()
    assert found.records == ()
    assert found.journal != (await one.load()).journal


async def test_managers_that_begin_a_journal_at_once_begin_one(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    journals = [open_etcd(etcd.journal_url(prefix=prefix)) for _ in range(5)]
    assert len({(await each.load()).journal for each in journals}) == 1


async def test_what_is_not_ours_is_refused_and_left_alone(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    await put(etcd, f"{prefix}something", b"else")
    with pytest.raises(JournalDamaged, match="no journal of tenure"):
        await open_etcd(etcd.journal_url(prefix=prefix)).load()
    assert await keys_under(etcd, prefix) == [f"{prefix}something"]


async def test_a_later_format_is_refused(etcd: Cluster, prefix: str, open_etcd: OpenEtcd) -> None:
    await put(etcd, f"{prefix}front/identity", b'{"format":2,"journal":7}')
    with pytest.raises(JournalTooNew, match="is of format 2"):
        await open_etcd(etcd.journal_url(prefix=prefix)).read_seat()


async def test_a_journal_that_was_deleted_is_not_begun_anew_by_who_knew_it(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    journal = open_etcd(etcd.journal_url(prefix=prefix))
    leadership = await lead(journal)
    await delete(etcd, prefix)
    for _ in range(2):
        with pytest.raises(JournalDamaged, match="deleted or replaced"):
            await journal.append(leadership, 0, numbered(0, 1))
        await open_etcd(etcd.journal_url(prefix=prefix)).load()  # somebody begins another
    for call in (journal.load(), journal.read_seat(), journal.beat(leadership, 1)):
        with pytest.raises(JournalDamaged, match="deleted or replaced"):
            await call


async def test_a_campaign_for_the_seat_of_a_journal_that_was_deleted_takes_no_other(
    etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    """The seat of the one that somebody has begun looks the same, and its leader knows no lease."""
    url = etcd.journal_url(prefix=prefix)
    journal = open_etcd(url)
    seen = await journal.read_seat()
    await delete(etcd, prefix)
    begun = open_etcd(url)
    assert await begun.read_seat() == seen
    with pytest.raises(JournalDamaged, match="deleted or replaced"):
        await journal.campaign(seen, taken_by("http://a", seen))
    assert await begun.read_seat() == seen


@pytest.mark.parametrize(
    "what", ["records/", "front/head", "front/end", "front/beat", "snapshots/"]
)
async def test_what_was_altered_or_is_missing_is_damage(
    what: str, etcd: Cluster, prefix: str, open_etcd: OpenEtcd
) -> None:
    url = etcd.journal_url(prefix=prefix)
    journal = open_etcd(url)
    leadership = await lead(journal)
    await journal.append(leadership, 0, numbered(0, 3))
    await journal.compact(leadership, 2, A_STATE)
    key = await key_of(etcd, prefix + what)
    for change in (put(etcd, key, b"\x00nonsense"), delete(etcd, key)):
        await change
        with pytest.raises(JournalDamaged):
            await (journal.read_seat() if "beat" in what else journal.load())


async def test_what_is_not_etcd_is_a_mistake_in_the_configuration(
    etcd: Cluster, open_etcd: OpenEtcd
) -> None:
    with pytest.raises(ConfigurationError, match="not etcd's JSON gateway"):
        await open_etcd(f"etcd:{etcd.members[0].peer_url}").read_seat()


async def test_a_closed_journal_says_so(etcd: Cluster, prefix: str, open_etcd: OpenEtcd) -> None:
    journal = open_etcd(etcd.journal_url(prefix=prefix))
    await journal.read_seat()
    await journal.close()
    with pytest.raises(ClosedError):
        await journal.read_seat()
