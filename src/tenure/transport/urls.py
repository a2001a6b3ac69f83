"""URLs to ask, put together from their parts (see `Origin`)."""

from yarl import URL

from tenure.base.origin import Origin


def url_at(origin: Origin, path: str, query: str = "") -> URL:
    """The URL of a path below an origin's prefix, both as they are on the wire. Raises ValueError
    if it is no path.
    """
    return URL.build(
        scheme=origin.scheme,
        authority=origin.authority,
        path=origin.path_to(path),
        query_string=query,
        encoded=True,
    )
