"""Ratchets: what is not good yet may only become better.

Each rule has the places that break it today, as a list or a number. Whoever mends some shortens the
list, or lowers the number. What is not listed may not break the rule.
"""

import ast
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO

from tests.repo.reading import Module, imports, lab_modules, modules, report, sample

CIRCLES: tuple[set[str], ...] = ()
"""Modules that need each other, type-checking imports included."""
COMMENTED = 0.02
"""The least share of the lines of `protocol/` that have a comment. It was 0.006 in November."""
POINTING = 21
"""How many docstrings only point elsewhere, or repeat their name."""
DELETING = 7
"""How many parameters are deleted."""
PARAMETERS = 9
"""The most parameters of a constructor; what is more goes into groups (`client/options.py`)."""
SILENT = re.compile(r"#\s*(?:noqa|type:|pragma|fmt:)")
POINTS = re.compile(r"See (?:above|below|`[^`]*`(?: \w+)*)\.")
FILLERS = {
    *(
        "a",
        "all",
        "an",
        "at",
        "do",
        "everything",
        "for",
        "go",
        "if",
        "it",
        "its",
        "itself",
        "nothing",
    ),
    *("of", "on", "one", "or", "the", "them", "this", "to"),
}
"""Words that add nothing to a name."""

Graph = Mapping[str, Iterable[str]]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def needs(all_modules: Sequence[Module]) -> Graph:
    """The modules that each module imports."""
    names = {each.name for each in all_modules}
    found: dict[str, set[str]] = defaultdict(set)
    for module in all_modules:
        for each in imports(module):
            inner = f"{each.module}.{each.name}"
            wanted = inner if inner in names else each.module
            if wanted in names and wanted != module.name:
                found[module.name].add(wanted)
    return found


def reached(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    ahead = [start]
    while ahead:
        for each in graph.get(ahead.pop(), ()):
            if each not in found:
                found.add(each)
                ahead.append(each)
    return found


def circles(all_modules: Sequence[Module]) -> list[set[str]]:
    """The greatest sets of modules each of which needs all others."""
    graph = needs(all_modules)
    reach = {name: reached(graph, name) for name in graph}
    found: list[set[str]] = []
    for name in sorted(reach):
        if name in reach[name] and not any(name in each for each in found):
            found.append({each for each in reach[name] if name in reach.get(each, ())})
    return found


def new_circles(all_modules: Sequence[Module]) -> list[str]:
    known = [circle for circle in circles(all_modules) if any(circle <= each for each in CIRCLES)]
    return [" -> ".join(sorted(each)) for each in circles(all_modules) if each not in known]


def commented(texts: Iterable[str]) -> float:
    """The share of lines with a comment that is for readers, among all lines that are not blank."""
    lines = comments = 0
    for text in texts:
        lines += sum(1 for line in text.splitlines() if line.strip())
        tokens = tokenize.generate_tokens(StringIO(text).readline)
        comments += sum(
            1 for each in tokens if each.type == tokenize.COMMENT and not SILENT.match(each.string)
        )
    return comments / lines


def idle_docstrings(module: Module) -> Iterator[str]:
    """Docstrings that say nothing which the name does not."""
    for node in ast.walk(module.tree()):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        said = ast.get_docstring(node) or ""
        words = {word.lower() for word in re.findall(r"\w+", said)}
        named = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", node.name)}
        if said and (POINTS.fullmatch(said) or words <= FILLERS | named):
            yield f"{module.path}:{node.lineno} {node.name}: {said!r}"


def functions(module: Module) -> Iterator[Function]:
    for node in ast.walk(module.tree()):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def parameters(function: Function) -> list[str]:
    of = function.args
    return [each.arg for each in (*of.posonlyargs, *of.args, *of.kwonlyargs)]


def deleted_parameters(module: Module) -> Iterator[str]:
    for function in functions(module):
        for statement in function.body:
            if isinstance(statement, ast.Delete):
                for target in statement.targets:
                    if isinstance(target, ast.Name) and target.id in parameters(function):
                        yield f"{module.path}:{statement.lineno} {function.name}: {target.id}"


def long_constructors(module: Module) -> Iterator[str]:
    for function in functions(module):
        count = len(parameters(function)) - 1
        if function.name == "__init__" and count > PARAMETERS:
            place = f"{module.path}:{function.lineno}"
            yield f"{place} {count} parameters, {PARAMETERS} at most: group them"


def protocol() -> list[str]:
    return [each.text for each in modules() if each.name.startswith("tenure.protocol.")]


def test_no_modules_need_each_other_but_those_that_do_today() -> None:
    found = new_circles([*modules(), *lab_modules()])
    assert found == [], report(found)


def test_a_circle_is_found_also_if_one_import_is_for_type_checkers() -> None:
    one = sample("tenure.one", "from tenure.two import Two\n")
    two = sample("tenure.two", "if TYPE_CHECKING:\n    from tenure.three import Three\n")
    three = sample("tenure.three", "import tenure.one\n")
    apart = sample("tenure.apart", "import tenure.one\n")
    assert new_circles([one, two, apart]) == []
    found = new_circles([one, two, three, apart])
    assert found == ["tenure.one -> tenure.three -> tenure.two"]


def test_the_protocol_has_no_fewer_comments() -> None:
    assert commented(protocol()) >= COMMENTED, "say why, at the line where a reader would stop"


def test_a_comment_counts_if_it_is_for_readers() -> None:
    assert commented(["a = 1  # why\n\nb = '# no'\n", "c = 2  # noqa: E501\nd = 1\n"]) == 0.25


def test_no_more_docstrings_say_nothing() -> None:
    found = [line for each in modules() for line in idle_docstrings(each)]
    assert len(found) <= POINTING, report(found)


def test_a_docstring_that_says_nothing_is_found() -> None:
    text = '''
class Runner:
    """The runner."""

    def hear(self):
        """See `Engine.hear`."""

    def close(self):
        """Close it."""

    def look(self):
        """See above."""

    def every(self):
        """All of it."""

    def end(self):
        """End the display. See `begin`."""
'''
    found = [line.split()[1] for line in idle_docstrings(sample("a", text))]
    assert found == ["Runner:", "hear:", "close:", "look:", "every:"]


def test_no_more_parameters_are_deleted() -> None:
    found = [line for each in modules() for line in deleted_parameters(each)]
    assert len(found) <= DELETING, report(found)


def test_a_deleted_parameter_is_found() -> None:
    text = "class A:\n    def f(self, now, *, key):\n        del now, other\n        del self.key\n"
    assert list(deleted_parameters(sample("a", text))) == ["src/a.py:3 f: now"]


def test_no_constructor_has_more_parameters_than_nine() -> None:
    found = [line for each in modules() for line in long_constructors(each)]
    assert found == [], report(found)


def test_a_long_constructor_is_found() -> None:
    ten = ", ".join("abcdefghij")
    text = f"class A:\n    def __init__(self, {ten}):\n        pass\n"
    assert len(list(long_constructors(sample("a", text)))) == 1
    assert list(long_constructors(sample("a", text.replace(", j", "")))) == []
