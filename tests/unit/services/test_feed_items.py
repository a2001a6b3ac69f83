"""RSS and Atom are read, refused if they mean harm, coalesced and transformed."""

from collections.abc import Iterator
from time import process_time
from typing import Any

import feedparser
import msgspec
import pytest

from tenure.errors import ServiceRefusal
from tenure.services.feeds.atom import rendered
from tenure.services.feeds.feed_state import (
    COALESCE_SECONDS,
    ITEMS,
    MOST_PARTS,
    MOST_SEEN,
    URL_BYTES,
    FeedSource,
    FeedState,
)
from tenure.services.feeds.parsing import (
    DEPTH,
    ELEMENTS,
    NAME_CHARACTERS,
    PERSON_CHARACTERS,
    TEXT_CHARACTERS,
    FeedItem,
    check_xml,
    items_in,
)
from tenure.services.feeds.rules import MOST_MADE, FeedRules, joined

RSS = b"""<?xml version="1.0"?>
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>People</title>
<item><guid>1</guid><title>Alice updated her profile.</title><dc:creator>Alice</dc:creator>
<link>https://example.org/1</link><pubDate>Sun, 22 Nov 2026 10:00:00 GMT</pubDate></item>
<item><guid>2</guid><title>Alice added Bob as a friend.</title><dc:creator>Alice</dc:creator>
<link>javascript:alert(1)</link><pubDate>Sun, 22 Nov 2026 10:05:00 GMT</pubDate></item>
</channel></rss>"""

ATOM = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>Rooms</title>
<entry><id>urn:a</id><title>Grün &amp; blau</title><author><name>Bob</name></author>
<updated>2026-11-22T10:00:00Z</updated><summary>Text</summary></entry></feed>""".encode()

BOMB = b"""<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>
<rss version="2.0"><channel><title>&b;</title></channel></rss>"""
FILE = b"""<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<rss version="2.0"><channel><title>&a;</title></channel></rss>"""
PARAMETER = b"""<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY % a SYSTEM "http://10.0.0.1/a">%a;]>
<rss version="2.0"><channel/></rss>"""
RSS_OF = b"<rss version='2.0'><channel><item>%s</item></channel></rss>"
STUMBLES = RSS_OF % b"<author_detail>v</author_detail><author><name>x</name></author>"
"""feedparser keeps what it does not know beside what it does, by the same names."""
UNREAD = b"""<?xml version="1.0"?>
<!DOCTYPE rss [%a;
<!ENTITY c "lol">
]>
<rss version="2.0"><channel><item><title>t</title><link href="&c;"/></item></channel></rss>"""
"""Text behind a parameter that nobody has declared is not read by expat, but by feedparser."""
COMMENTED = b"""<?xml version="1.0"?>
<!DOCTYPE rss PUBLIC "a" "b">
<!--
<!ENTITY c "lol">
-->
<rss version="2.0"><channel><item><title>t</title><link href="&c;"/></item></channel></rss>"""
SKIPPED = b"""<!DOCTYPE rss PUBLIC "a" "b"><rss version="2.0"><channel><title>&c;</title></channel>
</rss>"""
UNPARSED = b"""<!DOCTYPE rss [<!-- <a> --><!NOTATION n SYSTEM "n"><!ENTITY a SYSTEM "a" NDATA n>]>
<rss version="2.0"><channel/></rss>"""


def item(id_: str, title: str = "", user: str = "", at: float = 1.0) -> FeedItem:
    return FeedItem(id_, title or id_, user, at=at)


def state() -> FeedState:
    return FeedState(expires=1e9)


def titles(of: FeedState) -> list[str]:
    return [each.title for each in of.items]


def test_rss_and_atom_are_read_with_who_did_what_when() -> None:
    first, second = items_in(RSS)
    assert (first.id, first.user, first.title) == ("1", "Alice", "Alice updated her profile.")
    assert second.at - first.at == 300.0
    assert (first.link, second.link) == ("https://example.org/1", "")
    (only,) = items_in(ATOM)
    assert (only.id, only.title, only.user, only.text) == ("urn:a", "Grün & blau", "Bob", "Text")


@pytest.mark.parametrize("body", [BOMB, FILE, PARAMETER, UNREAD, COMMENTED, SKIPPED, UNPARSED])
def test_a_body_with_entities_is_refused_before_anything_is_expanded(body: bytes) -> None:
    with pytest.raises(ServiceRefusal) as refused:
        items_in(body)
    assert (refused.value.status, refused.value.error) == (422, "entities")


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        (b"<a>" * (DEPTH.most + 1), "xml_depth"),
        (b"<a>" + b"<b/>" * (ELEMENTS.most + 1) + b"</a>", "xml_elements"),
        (b"<a " + b" ".join(b'x%d=""' % i for i in range(101)) + b"/>", "xml_attributes"),
        (
            b"<rss version='2.0'><channel>" + b"<item><title>t</title></item>" * 1001
            + b"</channel></rss>",
            "entries",
        ),
    ],
)  # fmt: skip
def test_a_body_beyond_a_limit_is_refused_by_its_name(body: bytes, limit: str) -> None:
    with pytest.raises(ServiceRefusal) as refused:
        items_in(body)
    assert (refused.value.status, refused.value.limit) == (413, limit)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"<rss",
        b"<html><body/></html>",
        b"\x00\xff",
        b"<?xml version='1.0' encoding='x'?>",
        "<rss version='2.0'><channel/></rss>".encode("utf-16"),
        STUMBLES,
    ],
)
def test_what_is_no_feed_is_refused(body: bytes) -> None:
    with pytest.raises(ServiceRefusal) as refused:
        items_in(body)
    assert (refused.value.status, refused.value.error) == (422, "no_feed")


def test_nothing_in_a_feed_takes_long() -> None:
    """These took a minute, or hours if they are longer, in which the process stood still."""
    before = process_time()
    one_line = b"<rss version='2.0'><channel><title>%s</title></channel></rss>"
    assert items_in(b"<?xml version='1.0'?>" + one_line % (b"encoding=''" * 20_000)) == []
    style = b"<description><![CDATA[<a style='%s'>b</a>]]></description>" % (b"a" * 50_000)
    (only,) = items_in(RSS_OF % (b"<title>t</title>" + style))
    assert only.text == "<a>b</a>"
    assert process_time() - before < 5.0


def test_of_a_person_so_much_is_read_and_of_others_in_a_feed_as_much_again() -> None:
    name = b"<author>%s</author>" % (b"x" * PERSON_CHARACTERS.most)
    text = b"<title>t</title><description>%s</description>" % (b"x" * 3000)
    (only,) = items_in(RSS_OF % (name + name + text))
    assert only.title == "t"
    for each in (b"dc:Creator", b"managingEditor"):
        parts = b"<%s><owner>%s</owner>x</%s>" % (each, b"x" * PERSON_CHARACTERS.most, each)
        with pytest.raises(ServiceRefusal) as refused:
            items_in(RSS_OF % parts)
        assert refused.value.limit == "person_characters"


def test_ordinary_bodies_pass() -> None:
    check_xml(b"<!DOCTYPE rss PUBLIC '-//Netscape//DTD RSS 0.91//EN' 'http://a/b'><rss>&amp;</rss>")


def test_what_is_too_long_is_cut() -> None:
    long = b"x" * (TEXT_CHARACTERS + 1)
    names = (b"guid", b"title", b"description")
    said = b"".join(b"<%s>%s</%s>" % (name, long, name) for name in names)
    link = b"<link>http://a.test/%s</link>" % long
    (only,) = items_in(
        RSS_OF % (said + link + b"<author>%s</author>" % long[: PERSON_CHARACTERS.most])
    )
    assert [len(each) for each in (only.id, only.title, only.user, only.link)] == [
        NAME_CHARACTERS
    ] * 4
    assert len(only.text) == TEXT_CHARACTERS


def test_several_items_of_one_user_become_one() -> None:
    feed = state()
    assert feed.take(items_in(RSS), 1.0, joined) == 2
    (only,) = feed.items
    assert only.title == "Alice updated her profile and added Bob as a friend"
    assert only.parts == ("1", "2")
    feed.take([item("3", "Alice left", "Alice", only.at)], 2.0, joined)
    assert titles(feed) == ["Alice updated her profile and added Bob as a friend and left"]


def test_items_of_others_and_of_long_ago_stay_apart() -> None:
    feed = state()
    feed.take([item("1", user="Alice", at=1e6), item("2", user="Bob", at=1e6)], 1.0, joined)
    feed.take([item("3", user="Alice", at=1e6 + COALESCE_SECONDS + 1.0)], 1.0, joined)
    feed.take([item("4", at=1.0), item("5", at=2.0)], 1.0, joined)
    assert titles(feed) == ["3", "1", "2", "5", "4"]


def test_an_item_is_made_of_so_many_and_no_more() -> None:
    feed = state()
    for number in range(2 * MOST_PARTS + 5):
        feed.take([item(str(number), user="Alice")], 1.0, joined)
    assert sorted(len(each.parts) for each in feed.items) == [5, MOST_PARTS, MOST_PARTS]


def test_an_item_without_a_title_is_not_taken() -> None:
    feed = state()
    assert feed.take([FeedItem("1", ""), item("2")], 1.0, joined) == 1
    assert titles(feed) == ["2"]


def test_of_two_items_with_one_id_the_first_is_taken() -> None:
    feed = state()
    assert feed.take([item("1", "first"), item("1", "second")], 1.0, joined) == 1
    assert titles(feed) == ["first"]


def test_what_came_already_is_not_taken_again_and_no_list_grows_for_ever() -> None:
    feed = state()
    assert feed.take([item("1")], 1.0, joined) == 1
    assert feed.take([item("1")], 2.0, joined) == 0
    assert feed.updated == 1.0
    for number in range(MOST_SEEN + 50):
        feed.take([item(f"n{number}", at=float(number + 2))], 3.0, joined)
    assert len(feed.items) == ITEMS.most
    assert len(feed.seen) == MOST_SEEN
    assert feed.items[0].id == f"n{MOST_SEEN + 49}"


def test_a_feed_is_small_enough_to_move_whatever_is_put_in() -> None:
    """One that is too large to move would keep the others of its range from moving."""
    feed, large = state(), "\U0001f600"
    for number in range(20):
        url = f"http://8.8.8.8/{number}".ljust(URL_BYTES.most, "x")
        source = feed.sources.setdefault(url, FeedSource(60.0))
        source.etag = source.modified = large * 1000
        source.succeeded(0.0, large * 1000, large * 1000)
        source.failed(0.0, large * 1000)
    for number in range(MOST_SEEN):
        name = f"{number}".ljust(NAME_CHARACTERS, large)
        made = FeedItem(name, name, name, name, large * TEXT_CHARACTERS, float(number + 1))
        feed.take([made], 1.0, joined)
    assert len(feed.items) > 20
    assert len(msgspec.msgpack.encode(feed)) < 1 << 20


def test_rules_transform_drop_and_multiply_and_one_that_fails_changes_nothing() -> None:
    rules = FeedRules()

    @rules.item
    def broken(item: FeedItem) -> None:
        raise ValueError(item)

    @rules.item
    def sorted_out(each: FeedItem) -> list[FeedItem] | None:
        return None if each.id == "spam" else [each, item(f"{each.id}-copy")]

    made = rules.transformed([item("1"), item("spam")])
    assert [each.id for each in made] == ["1", "1-copy"]
    assert rules.failures == 2

    @rules.item
    def wrong(_: FeedItem) -> Any:  # noqa: ANN401  # users write anything
        return 7

    assert [each.id for each in rules.transformed([item("1")])] == ["1", "1-copy"]


@pytest.mark.parametrize(
    "join",
    [
        lambda items: items[7],
        lambda _: None,
        lambda _: 7,
        lambda items: [*items, item("3")],
        lambda _: FeedItem("\ud800", "half a character"),
    ],
)
def test_where_coalescing_fails_items_become_one_as_usual(join: Any) -> None:  # noqa: ANN401
    rules, feed = FeedRules(), state()
    rules.coalesce(join)
    feed.take(items_in(RSS), 1.0, rules.one_of)
    assert titles(feed) == ["Alice updated her profile and added Bob as a friend"]


def test_a_rule_is_asked_for_so_many_items_and_no_more() -> None:
    rules, made = FeedRules(), list[FeedItem]()

    @rules.item
    def endless(each: FeedItem) -> Iterator[FeedItem]:
        while len(made) < 2 * MOST_MADE:
            made.append(item(f"{each.id}-{len(made)}"))
            yield made[-1]

    assert rules.transformed([item("1")]) == made
    assert len(made) == MOST_MADE


def test_rules_make_entries_of_events_of_other_services() -> None:
    rules = FeedRules()

    @rules.event
    def online(event: dict[str, object]) -> FeedItem | None:
        if event.get("data") != "online":
            return None
        return item(f"{event['topic']}-{event['number']}", f"{event['topic']} is now online")

    (made,) = rules.items_of({"topic": "Alice", "number": 3, "data": "online"})
    assert made.title == "Alice is now online"
    assert rules.items_of({"topic": "Alice", "number": 4, "data": "away"}) == []


def test_what_is_shown_is_atom_that_others_can_read() -> None:
    feed = state()
    feed.take([item("1", "a < b & \x00 c", "Ann", at=1_795_341_600.0)], 1_795_341_601.0, joined)
    shown = feedparser.parse(rendered("rooms/1", feed))
    assert not shown.bozo
    assert shown.version == "atom10"
    (entry,) = shown.entries
    assert (entry.title, entry.author) == ("a < b &  c", "Ann")
    assert entry.updated == "2026-11-22T10:00:00Z"
