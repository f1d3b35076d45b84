#!/usr/bin/env python3
"""Compares names, types and ranges with those of MySQL 9.7: system variables, status variables, and the columns of the schemas that tools read.

    tests/information/compare.py [--squalld target/debug/squalld] [--list]
    tests/information/compare.py --port PORT --write

The facts of MySQL are in `mysql-9.7.tsv`, written by the second form from a server of that version. What differs must have a row in
`docs/information.md`, whose first cell names a kind and whose second cell patterns of what differs; a row that explains nothing is an error too,
so that the page says neither too little nor too much. `--list` prints the differences and judges nothing.

| kind | what is compared |
| variable | that the name is known, globally or in a session |
| scope, type, range | of a variable that both know: `performance_schema.variables_metadata` |
| status | that SHOW GLOBAL STATUS has the name |
| table, column | that SHOW TABLES or SELECT finds it |
| column type | the type in SHOW COLUMNS, and whether it may be NULL |
"""

import argparse
import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "crash"))

from kill_loop import Server, free_port  # noqa: E402

FACTS = HERE / "mysql-9.7.tsv"
PAGE = HERE.parent.parent / "docs/information.md"
SCHEMAS = ("information_schema", "performance_schema", "mysql", "sys")
KINDS = ("variable", "scope", "type", "range", "status", "table", "column", "column type")
METADATA_KINDS = ("scope", "type", "range")
# Facts of a variable and the column of `variables_metadata` that has it.
METADATA = "SELECT LOWER(VARIABLE_NAME), VARIABLE_SCOPE, DATA_TYPE, CONCAT(MIN_VALUE, ' .. ', MAX_VALUE) FROM performance_schema.variables_metadata"


def ask(port, sql):
    """The rows of all statements; those that fail have none."""
    command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", "-B", "--force"]
    done = subprocess.run(command, input=sql, capture_output=True, text=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def look(port):
    """What a server has: {(kind, name): fact}."""
    facts = {}
    for scope in ("GLOBAL", "SESSION"):
        for name, _ in ask(port, f"SHOW {scope} VARIABLES"):
            facts["variable", name.lower()] = ""
    for name, scope, kind, bounds in ask(port, METADATA):
        facts["scope", name] = scope
        facts["type", name] = kind
        facts["range", name] = bounds.strip() if bounds.strip() != ".." else ""
    for name, _ in ask(port, "SHOW GLOBAL STATUS"):
        facts["status", name] = ""
    return facts


def columns(port, names):
    """The columns of tables: {(kind, name): fact}; a table that cannot be read has none."""
    facts = {}
    statements = "".join(f"SELECT '= {name}'; SHOW COLUMNS FROM {name};\n" for name in names)
    table = None
    for row in ask(port, statements):
        if row[0].startswith("= "):
            table = row[0][2:]
            continue
        facts["table", table] = ""
        facts["column", f"{table}.{row[0]}"] = ""
        facts["column type", f"{table}.{row[0]}"] = row[1] + (" NOT NULL" if row[2] == "NO" else "")
    return facts


def tables(port):
    listed = ask(port, "".join(f"SELECT CONCAT('= ', '{schema}'); SHOW TABLES FROM {schema};\n" for schema in SCHEMAS))
    schema = None
    for row in listed:
        if row[0].startswith("= "):
            schema = row[0][2:]
        else:
            yield f"{schema}.{row[0]}"


def write(port):
    facts = look(port) | columns(port, list(tables(port)))
    lines = ["\t".join(["variable", name, *(facts[kind, name] for kind in METADATA_KINDS)]) for kind, name in facts if kind == "variable"]
    lines += ["\t".join(["status", name]) for kind, name in facts if kind == "status"]
    lines += ["\t".join(["column", name, fact]) for (kind, name), fact in facts.items() if kind == "column type"]
    FACTS.write_text("\n".join(sorted(lines)) + "\n")
    print(f"{len(lines)} facts")


def read():
    """The facts of MySQL: {(kind, name): fact}."""
    facts = {}
    for line in FACTS.read_text().splitlines():
        kind, name, *rest = line.split("\t")
        facts[kind, name] = ""
        if kind == "variable":
            facts.update({(kind, name): fact for kind, fact in zip(METADATA_KINDS, rest)})
        elif kind == "column":
            facts["table", name.rpartition(".")[0]] = ""
            facts["column type", name] = rest[0]
    return facts


def differences(port):
    """(kind, name, what MySQL has, what Squall has), without those that follow from another: a missing table's columns, a missing variable's type."""
    theirs = read()
    names = {name for kind, name in theirs if kind == "table"} | set(tables(port))
    ours = look(port) | columns(port, sorted(names))

    def follows(kind, name, other):
        if kind in METADATA_KINDS:
            return ("variable", name) not in other
        if kind == "column":
            return ("table", name.rpartition(".")[0]) not in other
        return kind == "column type" and ("column", name) not in other

    for (kind, name), fact in sorted(theirs.items()):
        if (kind, name) not in ours:
            if not follows(kind, name, ours):
                yield kind, name, fact or "has it", "missing"
        elif ours[kind, name] != fact:
            yield kind, name, fact, ours[kind, name]
    for (kind, name), fact in sorted(ours.items()):
        if (kind, name) not in theirs and not follows(kind, name, theirs):
            yield kind, name, "missing", fact or "has it"


def explanations():
    """(kind, pattern) of the rows of the page, each with its place."""
    for at, line in enumerate(PAGE.read_text().splitlines(), 1):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] in KINDS:
            for pattern in re.findall(r"`([^`]+)`", cells[1]):
                yield at, cells[0], pattern


def judge(found):
    explained, used, wrong = list(explanations()), set(), 0
    for kind, name, theirs, ours in found:
        rows = [row for row in explained if row[1] == kind and fnmatch.fnmatchcase(name, row[2])]
        used.update(rows)
        if not rows:
            wrong += 1
            print(f"{kind} {name}: MySQL {theirs}, Squall {ours}: not explained in docs/{PAGE.name}")
    for at, kind, pattern in explained:
        if (at, kind, pattern) not in used:
            wrong += 1
            print(f"docs/{PAGE.name}:{at}: nothing differs: {kind} {pattern}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--port", type=int, help="of a server that runs")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.write:
        return write(options.port)
    folder, server, port = pathlib.Path(tempfile.mkdtemp()), None, options.port
    try:
        if port is None:
            port = free_port()
            server = Server(options.squalld, folder, port)
        found = list(differences(port))
    finally:
        if server:
            server.kill()
        shutil.rmtree(folder)
    if options.list:
        for difference in found:
            print("\t".join(difference))
        return None
    wrong = judge(found)
    print(f"information: {len(found)} differences, {wrong} not right in the page")
    return sys.exit(1) if wrong else None


if __name__ == "__main__":
    main()
