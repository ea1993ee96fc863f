"""Runs a server that counts what it does between SIGUSR1 and SIGUSR2, into ``walk.json`` in its data
folder. Run as a program in the folder of the commit that is measured: ROOT -m MODULE ARGS.
"""

import json
import os
import runpy
import signal
import sqlite3
import sys
import threading
from collections import Counter
from pathlib import Path

root, sys.argv = sys.argv[1] + os.sep, sys.argv[2:]
OURS = tuple(root + name + os.sep for name in ("agent", "frostproject", "onebot", "tools"))
#: What runs each statement in the end, whoever writes it; its callers have the text as ``query``.
EXECUTE = {"execute", "executemany"}
DATABASE = (sqlite3.Connection, sqlite3.Cursor)
#: What gives work to the thread of the record.
HOP = ("run_in_executor", "base_events.py")
ANONYMOUS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<module>")

files, functions, sql = Counter(), Counter(), Counter()
others = Counter()
is_counting = False


def watch(frame, event, argument):
    if not is_counting:
        return
    if event == "c_call":
        if isinstance(argument.__self__, DATABASE):
            if argument.__name__ in EXECUTE:
                sql[str(frame.f_locals.get("query", "?"))] += 1
            others["commits"] += argument.__name__ == "commit"
        return
    if event != "call":
        return
    code = frame.f_code
    name = code.co_filename
    if name.startswith(OURS):
        # A coroutine that goes on, or a generator, is no new call: it is past its first instruction.
        if code.co_name not in ANONYMOUS and (not code.co_flags & 0x2A0 or frame.f_lasti <= 2):
            short = name[len(root) :]
            files[short] += 1
            # With who called it: what two messages have in common is called from the same place.
            caller = frame.f_back and frame.f_back.f_code
            origin = f"{Path(caller.co_filename).name}:{caller.co_name}" if caller else ""
            functions[f"{short}:{code.co_name} < {origin}"] += 1
    elif code.co_name == HOP[0] and name.endswith(HOP[1]):
        others["hops"] += 1


def begin(*_):
    global is_counting
    for counter in (files, functions, sql, others):
        counter.clear()
    is_counting = True
    sys.setprofile(watch)  # of the main thread, which starts faster without it


def end(*_):
    global is_counting
    is_counting = False
    sys.setprofile(None)
    count = {"files": files, "functions": functions, "sql": sql}
    count |= {"calls": functions.total(), "statements": sql.total()}
    count |= {"commits": others["commits"], "hops": others["hops"]}
    file = Path(os.environ["FROST_DATA_DIR"]) / "walk.json"
    part = file.with_suffix(".part")
    part.write_text(json.dumps(count), encoding="utf-8")
    part.rename(file)


signal.signal(signal.SIGUSR1, begin)
signal.signal(signal.SIGUSR2, end)
sys.path[0] = ""
threading.setprofile(watch)
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
