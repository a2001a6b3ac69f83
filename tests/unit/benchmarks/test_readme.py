"""The README's table is that of the results that are committed."""

from benchmarks._readme import BEGIN, END, README, block, written
from benchmarks._report import Results
from benchmarks.results import ORDER


def test_the_readme_has_the_table_of_the_results() -> None:
    table = block(Results(order=ORDER).all())
    text = README.read_text("utf-8")
    assert BEGIN in text
    assert table is None or table in text  # None where `make bench-quick` wrote the page


def test_the_table_takes_the_place_of_the_one_before() -> None:
    assert written(f"a\n{BEGIN}\nold\n{END}\nb\n", "new") == "a\nnew\nb\n"


def test_no_table_is_made_of_what_was_not_measured_in_full() -> None:
    assert block([]) is None
