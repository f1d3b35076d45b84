#!/usr/bin/env python3
"""`session_track_gtids`: the identifiers of transactions in the replies, as a driver reads them.

Environment: PORT.
"""

import os
import re
import sys

import pymysql

SESSION_TRACK = 1 << 23
SESSION_STATE_CHANGED = 1 << 14
GTIDS = 3


def length(data, at):
    first = data[at]
    if first < 251:
        return first, at + 1
    size = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(data[at + 1:at + 1 + size], "little"), at + 1 + size


def told(connection, sql):
    """The set in the reply to a statement; None without one."""
    connection._execute_command(3, sql)
    data = connection._read_packet()._data
    if data[0] != 0:
        raise SystemExit(f"{sql}: {data}")
    _, at = length(data, 1)
    _, at = length(data, at)
    status = int.from_bytes(data[at:at + 2], "little")
    at += 4
    if not status & SESSION_STATE_CHANGED:
        return None
    size, at = length(data, at)
    at += size
    size, at = length(data, at)
    end = at + size
    while at < end:
        kind = data[at]
        size, at = length(data, at + 1)
        if kind == GTIDS:
            inner, begin = length(data, at + 1)
            return data[begin:begin + inner].decode()
        at += size
    return None


def main():
    connection = pymysql.connect(host="127.0.0.1", port=int(os.environ["PORT"]), user="root", autocommit=True, client_flag=SESSION_TRACK)
    statements = [
        ("CREATE DATABASE IF NOT EXISTS tracked", None), ("DROP TABLE IF EXISTS tracked.t", None), ("CREATE TABLE tracked.t (a INT PRIMARY KEY)", None),
        ("SET session_track_gtids = OWN_GTID", None),
        ("INSERT INTO tracked.t VALUES (1)", 1), ("DELETE FROM tracked.t WHERE a = 99", None), ("BEGIN", None), ("INSERT INTO tracked.t VALUES (2)", None),
        ("COMMIT", 1), ("BEGIN", None), ("INSERT INTO tracked.t VALUES (3)", None), ("ROLLBACK", None), ("CREATE TABLE tracked.u (a INT)", 1),
        ("DROP TABLE tracked.u", 1), ("UPDATE tracked.t SET a = 5 WHERE a = 1", 1), ("SET session_track_gtids = OFF", None),
        ("INSERT INTO tracked.t VALUES (7)", None), ("SET session_track_gtids = ALL_GTIDS", None), ("INSERT INTO tracked.t VALUES (8)", "all"),
        ("SET session_track_gtids = OFF", None),
    ]
    last, faults = None, 0
    for sql, wanted in statements:
        found = told(connection, sql)
        if wanted == 1 and found and re.fullmatch(r"[0-9a-f-]{36}:\d+", found):
            number = int(found.rsplit(":", 1)[1])
            good = last is None or number == last + 1
            last = number
        elif wanted == "all" and found:
            with connection.cursor() as cursor:
                cursor.execute("SELECT @@gtid_executed")
                good = cursor.fetchone()[0] == found
        else:
            good = found is wanted
        if not good:
            print(f"{sql}: the reply says {found}")
            faults += 1
    print(f"session_track_gtids: {len(statements)} statements, {faults} faults")
    return faults


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
