"""How much code each service has: at most a fifth of what the PRS paper's table 1 counts for it.

The paper counts lines of C#, and does not say which. Here a line counts if it has code: blank
lines, comments and docstrings do not. Beside it stand all lines. A service's own code is its
folder, client included; what the four share is counted once, and is no service's own.
"""

import ast
import io
import sys
import tokenize
from pathlib import Path

import tenure.services

PAPER = {"documents": 5_788, "pubsub": 4_164, "queues": 5_695, "feeds": 5_019}
"""Lines of C#, in table 1."""
PART = 5
PLACE = Path(tenure.services.__path__[0])
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(text: str) -> int:
    """Lines with code."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {
        line
        for each in tokens
        if each.type not in NO_CODE
        for line in range(each.start[0], each.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):  # a docstring
                lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def counted(folder: Path) -> tuple[int, int]:
    """Lines with code in a folder, and all lines."""
    texts = [path.read_text("utf-8") for path in sorted(folder.glob("*.py"))]
    return sum(map(code_lines, texts)), sum(len(text.splitlines()) for text in texts)


def main() -> int:
    """Print the counts."""
    is_kept = True
    for name, paper in PAPER.items():
        code, everything = counted(PLACE / name)
        is_kept = is_kept and code <= paper // PART
        print(f"{name}: {code} lines of code ({everything} of all), bound {paper // PART}")
    code, everything = counted(PLACE)
    print(f"what all four share: {code} ({everything} of all), no bound")
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
