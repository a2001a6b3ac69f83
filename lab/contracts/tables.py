"""The table of the contract of stores: families of each kind."""

from tenure.columns.tables import Family, Table, Writes


def mail(writes: Writes) -> Table:
    """The table of most tests."""
    return Table(
        "mail",
        writes=writes,
        terms=Family(supers=str, columns=int, order="time"),
        threads=Family(supers=int, columns=str),
        profile=Family(columns=str),
        log=Family(columns=bytes, order="time"),
    )
