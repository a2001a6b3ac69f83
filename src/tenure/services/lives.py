"""Names of lives and versions that never come again, and that say which of two is the later.

A name is the lease number first, then a count, then the journal that numbers leases. After a loss
the next owner has a higher lease number. The count is one of the whole process, so that within a
lease it does not begin again even where a key was deleted, forgotten and made anew.
"""

from itertools import count

from tenure import Lease

_count = count(1)


def new_name(lease: Lease) -> str:
    """A name that is later than every other under this lease, and under those before it."""
    return f"{lease.number}.{next(_count)}.{lease.journal:x}"


def journal_of(name: str) -> str:
    """The journal that numbers the leases of a name."""
    return name.rpartition(".")[2]


def came_before(name: str, other: str) -> bool:
    """Whether this is the earlier of two names; of two journals, nobody can know."""
    number, made, journal = name.split(".")
    its_number, its_made, its_journal = other.split(".")
    return journal == its_journal and (int(number), int(made)) < (int(its_number), int(its_made))
