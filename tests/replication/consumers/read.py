#!/usr/bin/env python3
"""Reads the whole binary log with python-mysql-replication and compares the rows that its changes lead to with a SELECT.

Environment: PORT. Prints the differences; the exit code tells whether there are any.
"""

import json
import os
import sys

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import GtidEvent, QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

SCHEMA = "read_by_others"
# Columns that came later, and whose negative fractions the reader gets wrong, with MySQL's log too.
NOT_READ = {"late", "t3"}


def plain(value):
    """A value whichever type the reader makes of it."""
    if isinstance(value, set):
        return ",".join(sorted(value))
    return document(value) if isinstance(value, (dict, list)) else value


def document(value):
    """A JSON document with texts, not bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {document(key): document(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [document(inner) for inner in value]
    return value


def main():
    settings = {"host": "127.0.0.1", "port": int(os.environ["PORT"]), "user": "root", "password": ""}
    with pymysql.connect(**settings) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@gtid_executed")
        executed = cursor.fetchone()[0]
        cursor.execute("SHOW BINARY LOGS")
        first = cursor.fetchall()[0][0]
    events = [GtidEvent, QueryEvent, XidEvent, WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent]
    uuid = executed.split(":")[0]
    # A set without transactions: all that the log has.
    kinds = {"file": {"log_file": first, "log_pos": 4, "resume_stream": True}, "gtid": {"auto_position": f"{uuid}:1"}}
    faults = 0
    for kind, start in kinds.items():
        tables, transactions = {}, 0
        stream = BinLogStreamReader(connection_settings=settings, server_id=77, only_events=events, **start)
        for event in stream:
            if isinstance(event, GtidEvent):
                transactions += 1
                continue
            if isinstance(event, QueryEvent):
                if event.query.startswith("TRUNCATE"):
                    tables["copied"] = {}
                continue
            if isinstance(event, XidEvent) or event.schema != SCHEMA:
                continue
            rows = tables.setdefault(event.table, {})
            for row in event.rows:
                if isinstance(event, WriteRowsEvent):
                    rows[row["values"]["id"]] = row["values"]
                elif isinstance(event, DeleteRowsEvent):
                    del rows[row["values"]["id"]]
                else:
                    del rows[row["before_values"]["id"]]
                    rows[row["after_values"]["id"]] = row["after_values"]
        stream.close()
        faults += compare(settings, tables, kind)
        print(f"python-mysql-replication by {kind}: {transactions} transactions, {sum(map(len, tables.values()))} rows")
    return faults


def compare(settings, tables, kind):
    faults = 0
    own = {name: settings[name] for name in ("host", "port", "user", "password")}
    with pymysql.connect(database=SCHEMA, init_command="SET time_zone = '+00:00'", **own) as connection, connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute(f"SELECT TABLE_NAME t FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{SCHEMA}'")
        for table in [row["t"] for row in cursor.fetchall()]:
            cursor.execute(f"SELECT * FROM {table}")
            expected = {row["id"]: row for row in cursor.fetchall()}
            read = tables.get(table, {})
            if sorted(read) != sorted(expected):
                print(f"{kind} {table}: the log leads to rows {sorted(read)}, the table has {sorted(expected)}")
                faults += 1
                continue
            for key, row in expected.items():
                for column, wanted in row.items():
                    found = plain(read[key].get(column))
                    if column in NOT_READ or alike(column, found, wanted):
                        continue
                    print(f"{kind} {table} {key} {column}: the log has {str(found)[:80]!r}, the table {str(wanted)[:80]!r}")
                    faults += 1
    return faults


def alike(column, found, wanted):
    if column == "j" and wanted is not None:
        return (document(found) if isinstance(found, (str, bytes)) else found) == json.loads(wanted)
    if column.startswith("bits") and wanted is not None:
        return int(found, 2) == int.from_bytes(wanted, "big")
    if isinstance(found, float) and isinstance(wanted, float):
        return abs(found - wanted) <= abs(wanted) * 1e-6
    if isinstance(wanted, bytes):
        # The reader makes text of nothing; zeros at the end of BINARY are not in the log.
        found = b"" if found == "" else found
        return found == wanted or column == "b" and found == wanted.rstrip(b"\0")
    return found == wanted


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
