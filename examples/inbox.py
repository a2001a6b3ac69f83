"""A mailbox with search that lasts: the inbox search of the Cassandra paper (section 6.1).

    python examples/inbox.py rocksdb:./inbox send ann bob "tea at four?"
    python examples/inbox.py rocksdb:./inbox search bob tea
    python examples/inbox.py rocksdb:./inbox between bob ann

Kill it with -9 at any time: a mail that was acknowledged is there, for both, with all its words. On
Cassandra it is the same by another URL, such as cassandra:db1,db2/mail.
"""

import re
import sys
import time

from tenure import Family, Table, open_store

INBOX = Table(
    "inbox",
    kind="hashed",
    writes="clock",  # each column is written once: no two writes of it need an order
    texts=Family(columns=int, values=str),
    terms=Family(supers=str, columns=int, order="time"),
    interactions=Family(supers=str, columns=int, order="time"),
)


def main(url: str, what: str, user: str, *more: str) -> None:
    create = url.startswith("cassandra:")
    with open_store(url, INBOX, create=create) as store:
        if what == "send":
            mail, (other, text) = time.time_ns(), more
            terms = {word: {mail: b""} for word in re.findall(r"\w+", text.lower())}
            for one, with_whom in ((user, other), (other, user)):
                index = {"terms": terms, "interactions": {with_whom: {mail: b""}}}
                store.insert(INBOX, one, {"texts": {mail: text}} | index)
            print("kept")
            return
        store.warm(INBOX, user)  # as a click into the search field does
        family = "terms" if what == "search" else "interactions"
        for column in store.get(INBOX, user, family, more[0].lower(), first=20):  # newest first
            print(store.get(INBOX, user, "texts", column.name).value)


if __name__ == "__main__":
    main(*sys.argv[1:])
