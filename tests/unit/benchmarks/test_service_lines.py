"""Tests of what counts as a line of code."""

from benchmarks.service_lines import code_lines

PROGRAM = '''"""A module.

Explained.
"""

# why
X = 1  # and how


def f(
    a: int,
) -> str:
    """Does it."""
    return """two
lines"""
'''


def test_lines_with_code_count_and_blank_lines_comments_and_docstrings_do_not() -> None:
    assert code_lines(PROGRAM) == 6
    assert code_lines("") == 0
