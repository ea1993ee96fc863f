"""The walls and budgets of the house, read from the source of every production file."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.environment import PROJECT, variables_of_settings, variables_read

LAYERS = (
    "tools",
    "agent",
    "onebot",
    "frostproject",
)  # each may import itself and what stands before it
ROOMS = {
    "tools": (
        (
            "refusals",
            "error_boundary",
            "tasks",
            "time_limits",
            "breaker",
            "token_bucket",
            "metrics",
            "tracing",
            "version",
            "findings",
        ),
        ("text", "processes"),
        ("contract", "live_rows"),
        ("schemas", "fetch"),
        ("secrets", "plugin_sdk"),
        ("models",),
        ("registry",),
        ("admin",),
        ("functions", "http_tools", "mcp", "plugins"),
        ("management", "apps", "vault"),
    ),
    "agent": (
        ("domain",),
        ("models", "llm", "reminders"),
        ("record", "access"),
        ("media", "memory", "run", "markdown"),
        ("chat", "api", "subagents", "stickers", "privacy"),
        ("commands",),
        ("builtin_tools",),
        ("runtime",),
        ("pages",),
        ("admin",),
        ("management", "apps", "templatetags"),
    ),
    "onebot": (
        ("models", "protocol"),
        ("connections",),
        ("gateway", "admin"),
        ("playground",),
        ("apps",),
    ),
    "frostproject": (
        ("configuration", "models", "formats"),
        ("settings", "web"),
        ("metrics",),
        ("server",),
        ("signin",),
        ("start", "doctor"),
        ("backup", "imports"),
        ("live",),
        ("cockpit",),
        ("admin", "apps", "asgi", "management", "templatetags", "urls"),
    ),
}
"""The rooms of each layer, the lowest layer first. Rooms of one layer may import each other, but
not both ways."""
FACES = {
    "tools.models"
}  # Django looks for models there alone, so it names those of the rooms above it
ORM_ROOMS = {
    "models",
    "record",
    "access",
    "privacy",
    "memory",
    "media",
    "stickers",
    "pages",
    "admin",
    "management",
}
"""The rooms of ``agent`` that know its tables."""
SHIPPED = "plugins/hello"
READS_ENVIRONMENT = {
    "frostproject.configuration.env",
    "frostproject.configuration.machine",
    "tools.processes.process_reaper",
}  # the last hands on what it was given
LATE_IMPORTS = {
    "agent.commands.desk": "acts against members, for the first such command",
    "agent.builtin_tools.reminder_tools": "times in words are read where somebody gives one",
    "agent.llm.client.connections": "the openai library is 500 modules, for the first request",
    "agent.markdown.answer_pieces": "70 modules that read Markdown, for the first answer",
    "agent.record.ground.record_socket": "psycopg, where the database is PostgreSQL",
    "agent.runtime.runtime": "what is daily, alerts, reminders, requests: where there are any",
    "agent.runtime.settings_watch": "psycopg, where the database is PostgreSQL",
    "frostproject.cockpit.alerts": "the newest version, where an address for it is set",
    "onebot.gateway.gateway": "refusals of messages, and requests to be let in: for the first",
    "frostproject.metrics.traces": "100 modules of OpenTelemetry, where a collector is set",
    "frostproject.web.mcp": "the MCP library costs half a second, for users of /mcp alone",
    "tools.fetch.fetcher": "aiohttp is 50 modules, for the first download",
    "tools.functions.samples.source": "100 modules of requests, for two sample tools",
    "tools.http_tools.tool": "33 modules of JSONPath, for tools that pick from an answer",
    "tools.http_tools.validation": "the same, for the form of such a tool",
    "tools.mcp.provider": "the MCP library costs half a second, for users of its servers",
    "tools.plugins.runner": "a plugin's process finds this project only once it runs",
    "tools.text.encodings": "16 modules and their tables, for texts without an encoding",
    "tools.tracing": "15 modules of OpenTelemetry, where a collector is set",
}
"""Modules that import inside functions, and why. The start of an app and commands need no
reason."""
LONGEST_FUNCTION = 60
LONGEST_FILE = 600
LONG_FUNCTION = 40
FEW = 0.01  # of all functions may be longer than that
BROAD_HANDLERS = 9  # at boundaries alone; docs/decisions/failures-and-packages.md names them

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def production() -> dict[str, ast.Module]:
    """Every production module but migrations, by dotted name; a package goes by the package's
    name."""
    files = [
        PROJECT / "manage.py",
        *(file for layer in (*LAYERS, SHIPPED) for file in sorted((PROJECT / layer).rglob("*.py"))),
    ]
    return {
        _module(file): ast.parse(file.read_text(encoding="utf-8"))
        for file in files
        if "migrations" not in file.parts
    }


@cache
def _nodes(tree: ast.AST) -> list[ast.AST]:
    """Every node of ``tree``, which most rules look through."""
    return list(ast.walk(tree))


def _module(file: Path) -> str:
    return ".".join(file.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")


# --- Imports --------------------------------------------------------------------


def imported(module: str, tree: ast.AST, known: frozenset[str]) -> Iterator[str]:
    """The dotted names of ``known`` modules that ``tree`` imports, at any depth of the code."""
    for node in _nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = (
                ".".join([*module.split(".")[: -node.level or None], *filter(None, [node.module])])
                if node.level
                else node.module
            )
            assert base
            for alias in node.names:
                yield f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base


def upward_imports(modules: dict[str, ast.Module]) -> list[str]:
    """Imports of a layer by one that stands below it."""
    rank = {layer: number for number, layer in enumerate(LAYERS)}
    return [
        f"{name} imports {target}"
        for name, tree in modules.items()
        for target in imported(name, tree, frozenset(modules))
        if rank.get(target.partition(".")[0], -1) > rank.get(name.partition(".")[0], len(LAYERS))
    ]


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2])


def rooms_out_of_order(modules: dict[str, ast.Module]) -> list[str]:
    """Imports of a room by one that stands on a floor below it, and rooms without a floor."""
    floors = {
        f"{layer}.{room}": number
        for layer, plan in ROOMS.items()
        for number, rooms in enumerate(plan)
        for room in rooms
    }
    pairs = {
        (_room(name), _room(target))
        for name, tree in modules.items()
        for target in set(imported(name, tree, frozenset(modules))) & modules.keys()
        if "." in name and "." in target and name not in FACES
    }
    inside = {(a, b) for a, b in pairs if a != b and a.split(".")[0] == b.split(".")[0]}
    unknown = {room for pair in inside for room in pair if room not in floors}
    wrong = {(a, b) for a, b in inside if floors.get(a, 0) < floors.get(b, 0)}
    mutual = {(a, b) for a, b in inside if (b, a) in inside}
    return sorted({*unknown, *(f"{a} imports {b}" for a, b in wrong | mutual)})


def orm_users(modules: dict[str, ast.Module]) -> list[str]:
    """Modules of ``agent`` that import its tables, although only ``ORM_ROOMS`` may."""
    return [
        name
        for name, tree in modules.items()
        if name.startswith("agent.") and _room(name).removeprefix("agent.") not in ORM_ROOMS
        if any(_room(t) == "agent.models" for t in imported(name, tree, frozenset(modules)))
    ]


def circles(modules: dict[str, ast.Module]) -> list[str]:
    """Modules that import themselves by way of others when they are loaded."""
    known = frozenset(modules)
    loads = {
        name: {t for part in _run_on_load(tree) for t in imported(name, part, known)} & known
        for name, tree in modules.items()
    }
    return [name for name in loads if name in _reachable(loads, name)]


def _run_on_load(tree: ast.Module) -> Iterator[ast.AST]:
    """The import statements outside functions; those for the type checker count as well."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not isinstance(node, Function):
            waiting.extend(ast.iter_child_nodes(node))


def _reachable(loads: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = set(loads[start])
    while waiting:
        found.add(name := waiting.pop())
        waiting |= loads[name] - found
    return found


def late_imports(modules: dict[str, ast.Module]) -> list[str]:
    """Modules that import inside functions, also by a written name, where neither Django's start
    nor a command asks for it."""
    found = {
        name
        for name, tree in modules.items()
        if name != "manage" and ".management.commands." not in name
        for function in functions(tree)
        if not (name.endswith(".apps") and function.name == "ready")
        if any(map(_imports_late, ast.walk(function)))
    }
    return sorted(found)


def _imports_late(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Import | ast.ImportFrom)
    if not any(isinstance(argument, ast.Constant) for argument in node.args):
        return False
    called = {getattr(part, "attr", getattr(part, "id", "")) for part in (node.func, *node.args)}
    return bool({"import_module", "import_string", "__import__"} & called)


def test_imports_never_point_upwards():
    assert upward_imports(production()) == []


def test_every_room_of_the_plan_is_there():
    every = {f"{layer}.{room}" for layer, plan in ROOMS.items() for rooms in plan for room in rooms}
    rooms = {_room(name) for name in production()}
    assert sorted(every - rooms) == []


def test_rooms_import_what_stands_below_them():
    assert rooms_out_of_order(production()) == []


def test_the_run_loop_does_not_know_the_tables():
    assert orm_users(production()) == []


def test_a_plugin_that_ships_imports_of_this_project_the_sdk_alone():
    known = frozenset(production())
    shipped = {
        name: tree
        for name, tree in production().items()
        if name.startswith(SHIPPED.replace("/", "."))
    }
    assert {
        target for name, tree in shipped.items() for target in imported(name, tree, known)
    } & known == {"tools.plugin_sdk"}


def test_no_modules_import_each_other_in_a_circle():
    assert circles(production()) == []


def test_imports_stand_at_the_top_of_their_file_but_for_those_with_a_reason():
    assert late_imports(production()) == sorted(LATE_IMPORTS)


# --- Budgets --------------------------------------------------------------------


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in _nodes(tree) if isinstance(node, Function))


def length(function: Function) -> int:
    """Lines from ``def`` to the last one; decorators do not count."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def broad_handlers(modules: dict[str, ast.Module]) -> list[str]:
    """Every ``except`` that catches all exceptions and does not end by raising the same one
    again."""
    return [
        f"{name}:{node.lineno}"
        for name, tree in modules.items()
        for node in _nodes(tree)
        if isinstance(node, ast.ExceptHandler)
        and _catches_everything(node)
        and ast.unparse(node.body[-1]) != "raise"
    ]


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    names = (
        {"BaseException"}
        if handler.type is None
        else {n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)}
    )
    return bool(names & {"Exception", "BaseException"})


def test_no_function_is_longer_than_a_screen():
    every = [
        (name, function) for name, tree in production().items() for function in functions(tree)
    ]
    assert [
        f"{name}.{function.name}" for name, function in every if length(function) > LONGEST_FUNCTION
    ] == []


def test_few_functions_are_long():
    every = [length(f) for tree in production().values() for f in functions(tree)]
    assert sum(lines > LONG_FUNCTION for lines in every) <= FEW * len(every)


def test_no_file_is_too_long():
    lines = {
        name: max((getattr(node, "end_lineno", 0) or 0 for node in _nodes(tree)), default=0)
        for name, tree in production().items()
    }
    assert {name: count for name, count in lines.items() if count > LONGEST_FILE} == {}


def test_few_places_catch_everything():
    found = broad_handlers(production())
    assert len(found) <= BROAD_HANDLERS, found


# --- Tasks ----------------------------------------------------------------------


def dropped_tasks(modules: dict[str, ast.Module]) -> list[str]:
    """Tasks that nobody keeps; the event loop itself holds them only weakly."""
    return [
        f"{name}:{node.lineno}"
        for name, tree in modules.items()
        for groups in [_task_groups(tree)]
        for node in _nodes(tree)
        if isinstance(node, ast.Expr | ast.Assign)
        and isinstance(node.value, ast.Call)
        and _starts_task(node.value.func, groups)
        and (isinstance(node, ast.Expr) or ast.unparse(node.targets[0]) == "_")
    ]


def _starts_task(func: ast.expr, groups: set[str]) -> bool:
    called = getattr(func, "attr", getattr(func, "id", ""))
    owner = ast.unparse(func.value) if isinstance(func, ast.Attribute) else ""
    return called in {"create_task", "ensure_future"} and owner not in groups


def _task_groups(tree: ast.AST) -> set[str]:
    items = [
        item for node in _nodes(tree) if isinstance(node, ast.AsyncWith) for item in node.items
    ]
    return {
        ast.unparse(i.optional_vars)
        for i in items
        if i.optional_vars and "TaskGroup" in ast.unparse(i.context_expr)
    }


def test_no_task_is_started_and_dropped():
    assert dropped_tasks(production()) == []


# --- Settings -------------------------------------------------------------------


def environment_readers(modules: dict[str, ast.Module]) -> list[str]:
    """Places that touch the process environment; naming Django's settings module does not count."""
    return [
        f"{name}:{node.lineno}"
        for name, tree in modules.items()
        if name not in READS_ENVIRONMENT
        for node in _without_settings_default(tree)
        if (isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"})
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "os"
            and {a.name for a in node.names} & {"environ", "getenv"}
        )
    ]


def _without_settings_default(tree: ast.Module) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if not (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "setdefault"
            and ast.unparse(node).startswith("os.environ.setdefault('DJANGO_SETTINGS_MODULE',")
        ):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def documented_variables() -> list[str]:
    """The variables of ``.env.example``, set there or commented out."""
    lines = (PROJECT / ".env.example").read_text(encoding="utf-8").splitlines()
    names = [line.lstrip("# ").partition("=") for line in lines]
    return [name for name, equals, _ in names if equals and name.isidentifier() and name.isupper()]


def test_only_the_settings_read_the_environment():
    assert environment_readers(production()) == []


def test_every_variable_is_in_the_example_file_and_the_other_way_round():
    assert sorted(documented_variables()) == sorted(variables_of_settings())


# --- The rules themselves -------------------------------------------------------

BROKEN = {
    "tools.a": "def f():\n    from agent import b\n",
    "tools.b": "def f():\n    run(partial(importlib.import_module, 'tools.a'))\n",
    "agent.b": "from . import c\nimport asyncio\nasyncio.create_task(x())\n"
    "_ = loop.create_task(x())\n",
    "agent.c": "import agent.b\nimport os\nos.getenv('A')\n",
    "onebot.d": "try:\n    pass\nexcept (ValueError, Exception):\n    pass\nexcept:\n    pass\n",
}
SOUND = {
    "tools.a": "if TYPE_CHECKING:\n    import ast\n",
    "tools.b": "import os\nfrom tools import a\n"
    "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'x')\n",
    "tools.apps": "class C:\n    def ready(self):\n        from tools import a\n",
    "onebot.c": "import agent.domain.types\nasync def f():\n"
    "    async with asyncio.TaskGroup() as group:\n        group.create_task(x())\n"
    "    task = asyncio.create_task(x())\n",
    "agent.domain.types": "try:\n    pass\nexcept ValueError:\n    pass\n"
    "except Exception:\n    undo()\n    raise\n",
}


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        (upward_imports, ["tools.a imports agent.b"]),
        (circles, ["agent.b", "agent.c"]),
        (late_imports, ["tools.a", "tools.b"]),
        (dropped_tasks, ["agent.b:3", "agent.b:4"]),
        (environment_readers, ["agent.c:3"]),
        (broad_handlers, ["onebot.d:3", "onebot.d:5"]),
    ],
)
def test_a_rule_sees_what_it_forbids_and_nothing_else(rule, found):
    assert rule({name: ast.parse(source) for name, source in BROKEN.items()}) == found
    assert rule({name: ast.parse(source) for name, source in SOUND.items()}) == []


def test_variables_are_found_where_they_are_read():
    assert variables_read(
        'A = env.text("B", "C")\nD = env.words("E") or env.flag("F")\ntext("G")'
    ) == ["B", "E", "F"]
