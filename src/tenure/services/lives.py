"""Names of lives and versions that are never used twice, and that show which of two is the later.

A name is the lease number first, then a count, then the journal that numbers leases. After a loss
the next owner has a higher lease number. The whole process has one count, so that within a lease
the count does not start again even if a key was deleted, forgotten and made again.
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
