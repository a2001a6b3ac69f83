"""Traces from files are read, and errors name what cannot be read."""

from pathlib import Path

import pytest

from lab.trace.algorithms import Poll
from lab.trace.recorded import read_trace
from lab.trace.replay import replay
from tenure.errors import ConfigurationError


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trace.txt"
    path.write_text(text, "utf-8")
    return path


def test_lines_in_any_order_are_a_trace(tmp_path: Path) -> None:
    text = "# mine\n\n5 read ann s2 /x\n1 read bob s1 /a\n3.5 write s1 /a\n2 read ann s1 /b\n"
    trace = read_trace(written(tmp_path, text))
    assert list(trace.read_at) == [1.0, 2.0, 5.0]
    assert trace.volumes == 2
    assert [trace.volume_of[file] for file in trace.read_file] == [0, 0, 1]
    assert list(trace.written_file) == [trace.read_file[0]], "the file that bob read"
    assert replay(trace, lambda t, c: Poll(t, c, 0)).messages == [4, 2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 read ann s1", "trace.txt:1 is '1 read ann s1'"),
        ("1 read ann s1 /a\nsoon write s1 /a", "trace.txt:2 begins with 'soon'"),
        ("-1 write s1 /a", "trace.txt:1 begins with '-1'"),
        ("nan write s1 /a", "trace.txt:1 begins with 'nan'"),
        ("1 write s1 /a", "has no reads"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said.replace(".", r"\.")):
        read_trace(written(tmp_path, text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.txt cannot be read"):
        read_trace(tmp_path / "nowhere.txt")
