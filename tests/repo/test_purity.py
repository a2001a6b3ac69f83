"""Purity: what decides never acts. `base/` and `protocol/` compute, and do nothing else.

No clock, thread, socket, file, environment or randomness of their own, so that the simulator runs
the very machines that run in production, and the same seed gives the same run under any hash seed.

What may be imported is listed, not what may not: a list of the forbidden is never complete.

Sets are iterated in hash order, which for strings and bytes differs between processes. So a loop
over what is visibly a set is refused; `sorted(...)` is the way out. Visible is: a set display, call
or comprehension, an operation on one, and a name or attribute annotated or assigned as one in the
same function or class. That finds most of them, and the simulator's replay finds the rest. This
holds for everything that the simulator runs, whether pure or not: tasks and sockets are hashed by
where they lie in memory, so they are kept in dicts, which remember their order.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.repo.reading import Module, imports, lab_modules, modules, report, sample

PURE = ("tenure.base", "tenure.protocol")

WORLDS = ("lab.judges", "lab.search", "lab.worlds")
RUN_ELSEWHERE = ("cli", "dashboard", "manager", "testing", "transport")
"""The packages that the simulator does not run, but for the links in `transport`."""
LINKS = ("tenure.transport.link", "tenure.transport.links")
ORDER_IS_HIDDEN = {"lab/judges/orders.py": "the search goes on until all is seen, or too much"}

MAY_IMPORT = {
    "__future__", "abc", "array", "base64", "binascii", "bisect", "collections", "contextlib",
    "copy", "dataclasses", "decimal", "enum", "fractions", "functools", "hashlib", "heapq",
    "hmac", "ipaddress", "itertools", "math", "msgspec", "numbers", "operator", "re",
    "reprlib", "statistics", "string", "struct", "types", "typing", "urllib.parse", "xxhash",
    "zlib", "tenure",
}  # fmt: skip

# A generator is an argument; its type may be named. The module's own functions are one global.
# A UUID is a value; the functions that make one look at the clock, the host or the dice.
MAY_IMPORT_FROM = {"random": {"Random"}, "uuid": {"UUID"}}

FORBIDDEN_CALLS = {
    "open": "input and output are the driver's",
    "print": "input and output are the driver's",
    "input": "input and output are the driver's",
    "breakpoint": "input and output are the driver's",
    "hash": "differs between processes; xxhash does not",
    "id": "differs between runs",
    "eval": "hides what it does",
    "exec": "hides what it does",
    "__import__": "hides what it does",
}

SET_METHODS = {"union", "intersection", "difference", "symmetric_difference"}
SET_TYPES = {"set", "frozenset", "Set", "AbstractSet", "MutableSet"}
SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)
KEEPS_ORDER = {"list", "tuple", "iter", "next", "enumerate", "map", "filter", "zip"}


def is_pure(name: str) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in PURE)


def complaints(module: Module) -> list[str]:
    found = [*_imports(module), *_acts(module.tree()), *_set_loops(module.tree())]
    return [f"{module.path}:{line} {what}" for line, what in sorted(set(found))]


def _imports(module: Module) -> Iterator[tuple[int, str]]:
    for each in imports(module):
        if each.name in MAY_IMPORT_FROM.get(each.module, set()):
            continue
        if each.module not in MAY_IMPORT and each.module.split(".")[0] not in MAY_IMPORT:
            what = each.module if each.name is None else f"{each.name} from {each.module}"
            yield each.line, f"imports {what}; what may be imported is in tests/repo/test_purity.py"


def _acts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_CALLS:
                yield node.lineno, f"calls {name}(): {FORBIDDEN_CALLS[name]}"
            case ast.Call(func=ast.Name(id="Random"), args=[], keywords=[]):
                yield node.lineno, "calls Random() without a seed: randomness is an argument"
            case ast.AsyncFunctionDef(name=name):
                yield node.lineno, f"{name} is async: waiting is the driver's"
            case ast.Global():
                yield node.lineno, "changes a global: state belongs to a machine"
            case _:
                pass
    for statement in tree.body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Random"):
                yield node.lineno, "keeps a generator in a global: randomness is an argument"


def _set_loops(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for scope in ast.walk(tree):
        if isinstance(scope, ast.Module | ast.FunctionDef | ast.ClassDef):
            names = _known_sets(scope)
            for node in ast.walk(scope):
                for looped in _iterated(node):
                    if _is_set(looped, names):
                        yield looped.lineno, f"iterates a set, {ast.unparse(looped)}: sort it"


def _iterated(node: ast.AST) -> list[ast.expr]:
    """Return what is iterated here in a way that shows its order."""
    match node:
        case ast.For():
            return [node.iter]
        case ast.ListComp() | ast.DictComp():
            return [generator.iter for generator in node.generators]
        case ast.Starred(value=value) | ast.YieldFrom(value=value):
            return [value]
        case ast.Call(func=ast.Name(id=name), args=args) if name in KEEPS_ORDER:
            return _through_generators(args)
        case ast.Call(func=ast.Attribute(attr="join" | "extend"), args=args):
            return _through_generators(args)
        case _:
            return []


def _through_generators(args: list[ast.expr]) -> list[ast.expr]:
    """A generator expression has an order only if what it is given to has: `any(...)` has none."""
    return [
        looped
        for arg in args
        for looped in (
            [each.iter for each in arg.generators] if isinstance(arg, ast.GeneratorExp) else [arg]
        )
    ]


def _known_sets(scope: ast.AST) -> set[str]:
    """The names that this function or module, or the attributes that this class, says are sets."""
    names: set[str] = set()
    others: set[str] = set()
    for node in _inside(scope):
        match node:
            case ast.AnnAssign(target=target, annotation=annotation):
                (names if _names_a_set(annotation) else others).add(ast.unparse(target))
            case ast.arg(arg=name, annotation=ast.expr() as annotation):
                (names if _names_a_set(annotation) else others).add(name)
            case ast.Assign(targets=[target], value=value):
                (names if _is_set(value, names) else others).add(ast.unparse(target))
            case _:
                pass
    if isinstance(scope, ast.ClassDef):
        fields = {f"self.{name}" for name in _known_sets(ast.Module(_fields(scope), []))}
        names = fields | {name for name in names if name.startswith("self.")}
    return names - others  # a name that is a set here and something else there is left alone


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    """All of a function or class; of a module, only what is outside of them."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(scope, ast.Module) and isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        yield from ast.walk(node)


def _fields(scope: ast.ClassDef) -> list[ast.stmt]:
    return [each for each in scope.body if isinstance(each, ast.AnnAssign)]


def _names_a_set(annotation: ast.expr) -> bool:
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return ast.unparse(annotation).split(".")[-1] in SET_TYPES


def _is_set(node: ast.expr, names: set[str]) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in SET_METHODS:
            return _is_set(value, names) or _is_keys(value)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, SET_OPERATORS):
            return any(_is_set(side, names) or _is_keys(side) for side in (left, right))
        case ast.Name() | ast.Attribute():
            return ast.unparse(node) in names
        case _:
            return False


def _is_keys(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".keys")


def test_base_and_protocol_are_pure() -> None:
    found = [line for module in modules() if is_pure(module.name) for line in complaints(module)]
    assert found == [], report(found)


def is_simulated(name: str) -> bool:
    return name in LINKS or name.split(".")[1:2] not in [[each] for each in RUN_ELSEWHERE]


def test_what_is_simulated_has_no_loop_over_a_set() -> None:
    """But for those whose order nobody sees, each of which must still be there."""
    simulated = [each for each in modules() if is_simulated(each.name)]
    simulated += [each for each in lab_modules() if each.name.startswith(WORLDS)]
    found = {module.path: sorted(set(_set_loops(module.tree()))) for module in simulated}
    hidden = {path for path in ORDER_IS_HIDDEN if found.pop(path)}
    assert hidden == ORDER_IS_HIDDEN.keys()
    lines = [f"{path}:{line} {what}" for path, loops in found.items() for line, what in loops]
    assert lines == [], report(lines)


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "import os.path",
        "import urllib.request",
        "from collections import deque; import asyncio",
        "def f():\n    import sqlite3",
        "from random import randrange",
        "from uuid import uuid4",
        "import random",
        "import secrets",
        "def f():\n    return open('a')",
        "def f(x):\n    print(x)",
        "def f(x):\n    return hash(x)",
        "async def f(): ...",
        "def f():\n    global x\n    x = 1",
        "from random import Random\ndef f():\n    return Random()",
        "from random import Random\nDICE = Random(1)",
        "for x in {1, 2}: ...",
        "def f(a, b):\n    for x in set(a) - b: ...",
        "def f(a, b):\n    return [x for x in a.keys() & b]",
        "def f(a: frozenset[str]):\n    return list(a)",
        "def f(a: frozenset[str]):\n    return tuple(x for x in a)",
        "def f(a: frozenset[str]):\n    yield from a",
        "def f(a):\n    b = {x for x in a}\n    return [*b]",
        "class C:\n    a: set[str]\n    def f(self):\n        for x in self.a: ...",
        "class C:\n  def f(self):\n    self.a = set()\n  def g(self):\n    return tuple(self.a)",
    ],
)
def test_an_impurity_is_found(text: str) -> None:
    assert complaints(sample("tenure.protocol.bad", text)) != []


@pytest.mark.parametrize(
    "text",
    [
        "from random import Random\ndef f(dice: Random) -> float:\n    return dice.random()",
        "from urllib.parse import urlsplit",
        "from collections.abc import Iterator\nimport msgspec",
        "def f(a: set[str]):\n    return sorted(a)",
        "def f(a: set[str]):\n    return [x for x in sorted(a)] if 'b' in a else []",
        "def f(a: set[str]):\n    return max(len(x) for x in a)",
        "def f(a, b):\n    return {x for x in a.keys() - b}",
        "def f(a: set[str]): ...\ndef g(a):\n    return list(a)",
        "def f(a: int, b: int):\n    return [a | b, a - b]",
    ],
)
def test_purity_is_not_found_impure(text: str) -> None:
    assert complaints(sample("tenure.protocol.good", text)) == []
