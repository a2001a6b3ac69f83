"""An authority for one test, and what it signs, as files."""

from pathlib import Path
from typing import NamedTuple

import trustme


class Identity(NamedTuple):
    """A certificate for this machine's own addresses, and its key."""

    cert: Path
    key: Path


class Authority:
    """Signs for 127.0.0.1. Files that stand there already are replaced."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        self._authority = trustme.CA()
        self._directory = directory
        self.file = directory / f"{name}.pem"
        self._authority.cert_pem.write_to_path(str(self.file))

    def sign(self, name: str) -> Identity:
        """An identity in two files."""
        made = self._authority.issue_cert("127.0.0.1", "localhost")
        cert, key = self._directory / f"{name}.pem", self._directory / f"{name}.key"
        for file, pem in ((cert, made.cert_chain_pems[0]), (key, made.private_key_pem)):
            file.unlink(missing_ok=True)
            pem.write_to_path(str(file))
        return Identity(cert, key)
