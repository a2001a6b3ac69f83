"""The process of a mutant: it calls one function, and writes down what that returned or raised."""

import pickle
import sys
from pathlib import Path

import tenure


def main(asked: Path, told: Path) -> None:
    """Call what was asked. Raises AssertionError if this process has the product and no mutant."""
    copy = asked.parent
    assert Path(tenure.__file__).is_relative_to(copy), f"{tenure.__file__} is not of {copy}"
    work = pickle.loads(asked.read_bytes())  # noqa: S301  # of the process that started this one
    try:
        outcome = "returned", work()
    except Exception as error:  # noqa: BLE001  # whatever it is, who asked must see it
        outcome = "raised", error
    told.write_bytes(pickle.dumps(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
