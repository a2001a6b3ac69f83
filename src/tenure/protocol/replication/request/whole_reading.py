"""Reading a page of a whole row at a level: one question, and one instant at each replica (R7, D2).

If as many replicas as are needed have the same, that is the page. Otherwise nothing is merged part
by part, since a mend of some columns would tear a mutation for the next reader: the whole row is
settled, and the page is made of what it is settled to. So no second read follows that would find
the row changed again.
"""

from contextlib import suppress
from functools import partial

from tenure.protocol.replication.conversation import Conversation, Conversing, TopologyReplaced
from tenure.protocol.replication.messages import WholeRow
from tenure.protocol.replication.request.page_reading import read_by_family
from tenure.protocol.replication.request.reading import read_parts, told_parts
from tenure.protocol.replication.request.settling import RowAsked, mend_row
from tenure.protocol.replication.request.whole_rows import (
    Shapes,
    questions_of,
    row_of_parts,
    row_of_state,
)


def read_whole(
    row: RowAsked, shapes: Shapes, within: int, talk: Conversation
) -> Conversing[WholeRow]:
    """The first `within` columns of each family."""
    while True:
        with suppress(TopologyReplaced):
            told = yield from told_parts(talk, row, questions_of(shapes, within))
            answers = [told.agreed] if told.agreed else [*told.data.values()]
            pages = [row_of_parts(row.key, shapes, each.parts) for each in answers]
            whole = [page for page in pages if page is not None]
            if len(whole) < len(pages):
                # That some cannot say it in one answer is no reason to send all of the row.
                read = partial(read_parts, talk, row)
                return (yield from read_by_family(read, row.key, shapes, within))
            if told.agreed is None:
                state = yield from mend_row(talk, row)
                return row_of_state(row.key, shapes, state, within)
            return whole[0]
