#!/usr/bin/env python3
"""Writes tables/FAMILY.txt from tables/FAMILY.in by asking a reference server (MySQL) for every expression.

    generate.py [--port 3306] [FAMILY ...]

A line of an .in file is a list of expressions separated by commas at its top level. Needs PyMySQL. The session is in UTC at a
fixed time. The reference's messages name expressions where ours name values; review what changes.
"""
import argparse, pathlib
import pymysql
from pymysql.constants import FIELD_TYPE

NAMES = {v: k for k, v in FIELD_TYPE.__dict__.items() if isinstance(v, int)}

def split(line):
    parts, depth, quote, start, i = [], 0, None, 0, 0
    while i < len(line):
        c = line[i]
        if quote:
            if c == "\\":
                i += 1
            elif c == quote:
                quote = None
        elif c in "'\"":
            quote = c
        elif c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(line[start:i].strip())
            start = i + 1
        i += 1
    parts.append(line[start:].strip())
    return [p for p in parts if p]

def shown(value):
    if value is None:
        return "NULL"
    if isinstance(value, str):
        value = value.encode()
    try:
        text = value.decode()
        if all(c == "\n" or not (ord(c) < 32 or 127 <= ord(c) < 160) for c in text):
            return text.replace("\n", "\\n")
    except UnicodeDecodeError:
        pass
    return "0x" + value.hex().upper()

def type_text(field):
    name = NAMES[field.type_code]
    not_null = "n" if field.flags & 1 else ""
    if name == "JSON":
        return ("JSON " + not_null).strip()
    text = name in ("VAR_STRING", "STRING", "MEDIUM_BLOB", "LONG_BLOB", "BLOB") and field.charsetnr != 63
    return f"{name}({field.length},{field.scale}){'u' if field.flags & 32 else ''}{not_null}{'' if text else 'b'}"

def aggregate(cursor, line):
    """One line of aggregates.in: the answer of `aggregate` over a column of a type with these values."""
    name, kind, values = line.split("|", 2)
    rows = ",".join(f"row({value})" for value in split(values))
    cursor.execute(f"select {name}(cast(c as {kind})) from (values {rows}) t(c)")
    return answer(cursor)

def answer(cursor):
    row, field = cursor.fetchall()[0][0], cursor._result.fields[0]
    cursor.execute("show warnings")
    warnings = " | ".join(f"{w[1]} {w[2]}" for w in cursor.fetchall())
    return [shown(row), type_text(field), warnings]

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=3306)
    parser.add_argument("families", nargs="*")
    args = parser.parse_args()
    here = pathlib.Path(__file__).parent / "tables"
    db = pymysql.connect(host="127.0.0.1", port=args.port, user="root", charset="utf8mb4", conv={}, autocommit=True)
    cursor = db.cursor()
    cursor.execute("set time_zone = '+00:00', timestamp = 1767323045.678901")
    cursor.execute("create database if not exists function_suite")
    cursor.execute("use function_suite")
    cursor.execute("""create temporary table t(i int, n int not null, iu int unsigned, b bigint, bu bigint unsigned, d decimal(10,3),
        db double, f float, s varchar(10), vb varbinary(10), dt datetime(3), da date, ti time, y year, j json)""")
    cursor.execute("""insert into t values (1, 7, 2, 3, 4, 4.5, 2.5, 1.5, '6', 'bl', '2020-01-02 03:04:05.678', '2020-01-02',
        '03:04:05', 2020, '{"a": 1}')""")
    for source in sorted(here.glob("*.in")):
        if args.families and source.stem not in args.families:
            continue
        out = []
        for line in source.read_text().splitlines():
            if line.startswith("#") or not line.strip():
                continue
            for expression in [line] if source.stem == "aggregates" else split(line):
                try:
                    if source.stem == "aggregates":
                        fields = aggregate(cursor, line)
                    else:
                        cursor.execute("select " + expression + (" from t" if source.stem == "columns" else ""))
                        fields = answer(cursor)
                except pymysql.Error as error:
                    fields = [f"ERROR {error.args[0]} {error.args[1]}"]
                out.append("\t".join([expression, *fields]).rstrip())
        (here / f"{source.stem}.txt").write_text("\n".join(out) + "\n")

main()
