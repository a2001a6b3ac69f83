"""URLs of files: `sqlite:PATH` and `rocksdb:PATH`, whose path is all that follows the colon."""

from tenure.base.names import shown_url
from tenure.errors import ConfigurationError


def path_in(url: str) -> str:
    """The path that such a URL names. Raises ConfigurationError if it is a URL itself: a file of
    that name would be made without a word, and no server would be asked.
    """
    scheme, _, path = url.partition(":")
    if "://" in path:
        raise ConfigurationError(
            f"{shown_url(url)} is not {scheme}:PATH: what follows the colon is a URL, and "
            f"{scheme} has a path of this host, such as {scheme}:/var/lib/tenure/data. The nodes "
            "of a store are columns:URL,URL"
        )
    return path
