"""`python -m tests.hostile.fuzz SECONDS [SEED]`: decoders, with bytes chosen by what they reach.

atheris changes what reached new lines of a decoder, and looks whether the next bytes reach more.
One process does it for all decoders: the first byte of what is tried says for which. What earlier
runs found is kept in `build/fuzz`, so that a later run goes on from there. The exit code is that of
the fuzzer: not 0 where an exception was no refusal; the bytes then lie in `build/fuzz/crash-...`.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOUND = ROOT / "build" / "fuzz"
MOST_BYTES = 4_096


def main() -> int:
    """Fuzz for this many seconds. If atheris is missing, say so; that is not a failure."""
    if find_spec("atheris") is None:
        print("fuzz: skipped, there is no atheris for this Python and platform")
        return 0
    import atheris  # noqa: PLC0415  # where there is one

    with atheris.instrument_imports(include=["tenure"]):
        from tests.hostile.decoders import DECODERS, outcome  # noqa: PLC0415

    decoders = list(DECODERS.values())
    corpus = FOUND / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, each in enumerate(decoders):
        for which, sample in enumerate(each.samples):
            (corpus / f"sample-{number}-{which}").write_bytes(bytes([number]) + sample[:MOST_BYTES])

    def one(data: bytes) -> None:
        if data:
            outcome(decoders[data[0] % len(decoders)], data[1:])

    atheris.Setup(
        [
            sys.argv[0],
            f"-max_total_time={int(sys.argv[1])}",
            f"-max_len={MOST_BYTES}",
            f"-seed={sys.argv[2] if len(sys.argv) > 2 else 0}",  # 0: another one each time
            "-timeout=120",  # of one input, on a machine that others use as well
            "-rss_limit_mb=4096",
            "-print_final_stats=1",
            "-verbosity=0",
            f"-artifact_prefix={FOUND}/",
            str(corpus),
        ],
        one,
    )
    atheris.Fuzz()  # and does not return
    return 0


if __name__ == "__main__":
    sys.exit(main())
