"""Prints the shape of the code in figures: ``python .ci/shape.py [TREE] [--beside OTHER]``.

TREE is a checkout, this one by default. With ``--beside`` the change from OTHER to TREE is printed.
Measured are the Python files of ``PACKAGES``, migrations apart.

* A *room* is a folder directly in a package, with all that is in it, or a loose file beside them
  (``__init__.py`` is none). An *arrow* is a pair of rooms of one package of which the first imports
  the second, at any depth of its code, also where only type checkers look.
* *Arrows back* have to go so that no circle of rooms is left: the fewest that a search finds, of
  equally few those with the fewest imports. *Floors* are the layers when each room stands as low as
  its imports allow, once with each circle taken for one room, once without the arrows back.
* A *helper with one caller* is a private function whose name is used once in its file. *Code lines*
  are without empty lines, comments and docstrings. Dunder methods do not count as names.

Statements, arrows between the files and folders directly inside a room, and helpers with one caller
are printed for each room as well; the loose files of a package stand under its name. A room may not
grow past what ``.ci/shape.toml`` says of it (``tests/test_shape.py``): ``--write`` writes that file.
"""

import argparse
import ast
import json
import random
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeGuard

PROJECT = Path(__file__).resolve().parent.parent
BOUNDS = PROJECT / ".ci" / "shape.toml"
PACKAGES = ("agent", "tools", "onebot", "frostproject")
PRESCRIBED = {"Meta", "Media", "Command"}  # class names that Django asks for more than once
WIDE, LONG_FUNCTION, SMALL_FILE = 100, 40, 40
TRIES = 30  # orders to start from; a thousand did not find a better one

Figures = dict[str, int | float]
Rooms = dict[str, dict[str, int]]
Graph = Mapping[str, set[str]]
Arrow = tuple[str, str]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One file. ``name`` is dotted; an ``__init__.py`` goes by its package's name (``is_face``)."""

    name: str
    is_face: bool
    lines: list[str]
    nodes: list[ast.AST]

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    @property
    def functions(self) -> list[Function]:
        return [node for node in self.nodes if isinstance(node, Function)]


def measure(tree: Path) -> Figures:
    """Every figure of a checkout by its label."""
    sources = list(read(tree))
    if not sources:
        sys.exit(f"{tree} has none of the folders {', '.join(PACKAGES)}: name a checkout.")
    return layout(sources) | sizes(sources) | names(sources) | statements(sources) | habits(sources)


def read(tree: Path) -> Iterator[Source]:
    for file in (file for package in PACKAGES for file in sorted((tree / package).rglob("*.py"))):
        path = file.relative_to(tree).with_suffix("")
        if "migrations" not in path.parts:
            name, text = ".".join(path.parts), file.read_text(encoding="utf-8")
            module, nodes = name.removesuffix(".__init__"), list(ast.walk(ast.parse(text)))
            yield Source(module, name != module, text.splitlines(), nodes)


def layout(sources: Sequence[Source]) -> Figures:
    """Rooms and arrows of each package, and the circles of files in all of them."""
    known = frozenset(source.name for source in sources)
    files = {source.name: set(imported(source, known)) - {source.name} for source in sources}
    figures: Figures = {}
    for package in PACKAGES:
        figures |= {f"{package}: {label}": value for label, value in rooms(package, files).items()}
    knots = circles(files)
    return figures | {"circles of files": len(knots), "files in circles": sum(map(len, knots))}


def imported(source: Source, known: frozenset[str]) -> Iterator[str]:
    """The ``known`` modules that a file imports."""
    parts = source.name.split(".")
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from known & {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = parts[: len(parts) - node.level + source.is_face] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            paths = {f"{base}.{alias.name}" for alias in node.names}
            yield from known & {path if path in known else base for path in paths}


def rooms(package: str, files: Graph) -> Figures:
    inside = {name: name.split(".")[1] for name in files if name.startswith(f"{package}.")}
    imports = Counter((inside[a], inside[b]) for a in inside for b in files[a] if b in inside)
    arrows = {(a, b) for a, b in imports if a != b}
    graph = {room: {b for a, b in arrows if a == room} for room in inside.values()}
    knots = circles(graph)
    back = {arrow for knot in knots for arrow in arrows_back(graph, knot, imports)}
    downwards = {a: {b for b in graph[a] if (a, b) not in back} for a in graph}
    return {
        "rooms": len(graph),
        "floors, circles as one room": floors(as_one(graph, knots)),
        "floors without arrows back": floors(downwards),
        "arrows": len(arrows),
        "arrows back": len(back),
        "rooms in circles": sum(map(len, knots)),
        "imports inside a room, %": percent(sum(imports[r, r] for r in graph), imports.total()),
    }


def measure_rooms(tree: Path) -> Rooms:
    """Statements, arrows inside and helpers with one caller of each room, by its path."""
    sources = list(read(tree))
    known = frozenset(source.name for source in sources)
    paths = {source.name: tuple(source.name.split(".")) for source in sources}
    folders = {path[:2] for path in paths.values() if len(path) > 2}
    found: dict[tuple[str, ...], list[Source]] = {}
    for source in sources:
        path = paths[source.name][:2]
        found.setdefault(path if path in folders else path[:1], []).append(source)
    return {
        "/".join(room): {
            "statements": sum(isinstance(n, ast.stmt) for s in inside for n in s.nodes),
            "arrows": len(set(arrows_inside(room, inside, known))),
            "helpers": sum(len(single_caller_helpers(source)) for source in inside),
        }
        for room, inside in sorted(found.items())
    }


def arrows_inside(
    room: tuple[str, ...], inside: Sequence[Source], known: frozenset[str]
) -> Iterator[Arrow]:
    """The pairs of what stands directly in a room of which the first imports the second."""
    here, depth = {source.name for source in inside}, len(room)
    for source in inside:
        for target in imported(source, known & here):
            parts = [name.split(".")[depth : depth + 1] for name in (source.name, target)]
            if all(parts) and parts[0] != parts[1]:
                yield parts[0][0], parts[1][0]


def circles(graph: Graph) -> list[list[str]]:
    """The groups of nodes that reach each other, each sorted."""
    reached = {node: reachable(graph, node) for node in graph}
    groups = {frozenset(o for o in reached[node] if node in reached[o]) for node in graph}
    return sorted(sorted(group) for group in groups if group)


def reachable(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    waiting = set(graph[start])
    while waiting:
        found.add(node := waiting.pop())
        waiting |= graph[node] - found
    return found


def arrows_back(graph: Graph, knot: Sequence[str], imports: Counter[Arrow]) -> list[Arrow]:
    """The fewest arrows to take out of a circle; of equally few, those of the fewest imports."""
    chance = random.Random(0)
    orders = (settled(graph, chance.sample(knot, len(knot))) for _ in range(TRIES))
    found = (sorted(upwards(graph, order)) for order in orders)
    return min(found, key=lambda back: (len(back), sum(imports[arrow] for arrow in back), back))


def settled(graph: Graph, order: list[str]) -> list[str]:
    """Rooms moved one at a time, lowest first, until no move lets fewer arrows point up."""
    count = len(order) ** 2
    while len(upwards(graph, order)) < count:
        count = len(upwards(graph, order))
        for room in sorted(order):
            order.remove(room)
            ups = [[target in graph[room] for target in order], [room in graph[o] for o in order]]
            costs = [sum(ups[0][n:]) + sum(ups[1][:n]) for n in range(len(order) + 1)]
            order.insert(costs.index(min(costs)), room)
    return order


def upwards(graph: Graph, order: Sequence[str]) -> list[Arrow]:
    return [(low, high) for n, low in enumerate(order) for high in order[n:] if high in graph[low]]


def as_one(graph: Graph, knots: Sequence[Sequence[str]]) -> Graph:
    """The graph with each circle as one node, its first."""
    first = {room: room for room in graph} | {room: knot[0] for knot in knots for room in knot}
    pairs = {(first[a], first[b]) for a in graph for b in graph[a]}
    return {room: {b for a, b in pairs if a == room != b} for room in first.values()}


def floors(graph: Graph) -> int:
    """The layers of a graph without circles."""
    count = 0
    while graph:
        ground = {node for node, targets in graph.items() if not targets}
        graph = {node: graph[node] - ground for node in graph if node not in ground}
        count += 1
    return count


def sizes(sources: Sequence[Source]) -> Figures:
    functions = sorted(length(f) for source in sources for f in source.functions)
    files = [len(source.lines) for source in sources]
    small = [s for s in sources if not s.is_face and len(s.lines) < SMALL_FILE]
    return {
        "files": len(files),
        "files: median lines": statistics.median_high(files),
        "files: most lines": max(files),
        f"files under {SMALL_FILE} lines, __init__.py apart": len(small),
        "code lines": sum(map(code_lines, sources)),
        f"lines over {WIDE} columns": sum(len(n) > WIDE for s in sources for n in s.lines),
        "functions": len(functions),
        "functions: median lines": statistics.median_high(functions or [0]),
        "functions: 95th percentile": (functions or [0])[int(len(functions) * 0.95)],
        "functions: most lines": max(functions, default=0),
        f"functions over {LONG_FUNCTION} lines": sum(n > LONG_FUNCTION for n in functions),
    }


def length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def code_lines(source: Source) -> int:
    texts = [node for node in source.nodes if is_docstring(node)]
    apart = {line for t in texts for line in range(t.lineno, t.lineno + length(t))}
    stripped = enumerate(map(str.strip, source.lines), 1)
    return sum(bool(line) and line[0] != "#" and n not in apart for n, line in stripped)


def names(sources: Sequence[Source]) -> Figures:
    every = [function.name for source in sources for function in source.functions]
    functions = [name for name in every if name[:2] != "__"]
    short = ["_" not in name.strip("_") for name in functions]
    single = [name for source in sources for name in single_caller_helpers(source)]
    classes = [n.name for s in sources for n in s.nodes if isinstance(n, ast.ClassDef)]
    one_word = [len(re.findall("[A-Z]+(?![a-z])|[A-Z]", name)) == 1 for name in classes]
    double = [n for n, count in Counter(classes).items() if count > 1 and n not in PRESCRIBED]
    return {
        "helpers with one caller": len(single),
        "helpers with one caller, % of functions": percent(len(single), len(every)),
        "one-word function names, %": percent(sum(short), len(short)),
        "one-word class names, %": percent(sum(one_word), len(one_word)),
        "class names defined more than once": len(double),
    }


def single_caller_helpers(source: Source) -> list[str]:
    words = [n for n in source.nodes if isinstance(n, ast.Name | ast.Attribute)]
    used = Counter(word.id if isinstance(word, ast.Name) else word.attr for word in words)
    private = [f.name for f in source.functions if f.name[0] == "_" and f.name[:2] != "__"]
    return [name for name in private if used[name] == 1]


def percent(part: int, whole: int) -> float:
    return round(100 * part / (whole or 1), 1)


def statements(sources: Sequence[Source]) -> Figures:
    figures: Figures = {}
    for package in ("all", *PACKAGES):
        part = [s for s in sources if package in ("all", s.package)]
        found = [node for s in part for node in s.nodes if isinstance(node, ast.stmt)]
        apart = sum(isinstance(n, ast.Import | ast.ImportFrom) or is_docstring(n) for n in found)
        figures[f"{package}: statements"] = len(found)
        figures[f"{package}: statements, imports and docstrings apart"] = len(found) - apart
    return figures


def is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def habits(sources: Sequence[Source]) -> Figures:
    """What goes past the type checker; keys of metadata are those of agent/ and tools/."""
    anys = sum(isinstance(n, ast.Name) and n.id == "Any" for s in sources for n in s.nodes)
    calls = (n for s in sources for n in s.nodes if isinstance(n, ast.Call))
    inner = (n for s in sources if s.package in {"agent", "tools"} for n in s.nodes)
    keys = [key for node in inner for key in metadata_keys(node)]
    return {
        "Any per 1,000 code lines": round(1000 * anys / (sum(map(code_lines, sources)) or 1), 1),
        "casts": sum(ast.unparse(call.func) in {"cast", "typing.cast"} for call in calls),
        "keys of metadata": len(set(keys)),
        "keys of metadata: places": len(keys),
    }


def metadata_keys(node: ast.AST) -> Iterator[str]:
    """The key, as it is written, of ``x.metadata[key]`` or ``x.metadata.get(key)``."""
    match node:
        case (
            ast.Subscript(value=holder, slice=key)
            | ast.Call(func=ast.Attribute(value=holder, attr="get" | "pop"), args=[key, *_])
        ) if ast.unparse(holder).rpartition(".")[2] == "metadata":
            yield ast.unparse(key)


def table(columns: Mapping[str, Figures]) -> str:
    """A line for each figure; with two columns, the change from the first to the second."""
    rows = [("", *columns, *["change"] * (len(columns) > 1))]
    for label in next(iter(columns.values())):
        values = [figures[label] for figures in columns.values()]
        change = [f"{round(b - a, 1):+,}" for a, b in pairwise(values)]
        rows.append((label, *(f"{value:,}" for value in values), *change))
    wide = max(len(label) for label, *_ in rows)
    return "\n".join(f"{label:{wide}}" + "".join(f"{c:>10}" for c in row) for label, *row in rows)


def table_of_rooms(found: Rooms) -> str:
    rows = [("room", *next(iter(found.values())))]
    rows += [(room, *map(str, figures.values())) for room, figures in found.items()]
    wide = max(len(room) for room, *_ in rows)
    return "\n".join(f"{room:{wide}}" + "".join(f"{c:>12}" for c in row) for room, *row in rows)


def write_bounds(found: Rooms) -> None:
    lines = (
        f'"{room}" = {{ {", ".join(f"{name} = {n}" for name, n in figures.items())} }}'
        for room, figures in found.items()
    )
    head = "# Written by make shape ARGS=--write. A room that grows needs new figures in the same commit."
    BOUNDS.write_text("\n".join([head, *lines, ""]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints the shape of the code in figures.")
    parser.add_argument("tree", nargs="?", type=Path, default=PROJECT, help="a checkout; this one")
    parser.add_argument("--beside", type=Path, help="another checkout, to print the change from it")
    parser.add_argument("--json", action="store_true", help="print the figures as an object")
    parser.add_argument("--write", action="store_true", help="write .ci/shape.toml")
    options = parser.parse_args()
    if options.write:
        write_bounds(measure_rooms(PROJECT))
    trees = (("beside", options.beside), ("here", options.tree))
    figures = {name: measure(tree) for name, tree in trees if tree}
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        print(table(figures), table_of_rooms(measure_rooms(options.tree)), sep="\n\n")


if __name__ == "__main__":
    main()
