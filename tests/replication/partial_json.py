#!/usr/bin/env python3
"""`binlog_row_value_options = PARTIAL_JSON`: changes of documents in the log, and what readers make of them.

    tests/replication/partial_json.py [--squalld target/debug/squalld] [--squall target/debug/squall] [--mysql 127.0.0.1:13309]

The events are those that a MySQL 9.7 writes for the same updates (GOLDEN; `--golden` prints those of a MySQL). Replicas follow, with a key and without, and the
tool reads and repeats the log. With --mysql, or SQUALL_REPLICATION_SOURCE, its events are compared, and a server follows it; with `--replica 127.0.0.1:PORT` that
MySQL follows a server.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import client, rows  # noqa: E402
from log_settings import expect, fails, start  # noqa: E402

UPDATE, PARTIAL_UPDATE = 31, 39
SCHEMA = "squall_partial"
TABLE = f"CREATE TABLE {SCHEMA}.t (id INT PRIMARY KEY, j JSON, k JSON, n INT)"
ROW = (f"INSERT INTO {SCHEMA}.t VALUES (1, JSON_OBJECT('a', 1, 'b', REPEAT('x', 40), 'c', JSON_ARRAY(1, 2, 3), 'd', JSON_OBJECT('x', 1, 'y k', 2, 'é', 1)), "
       "JSON_OBJECT('q', REPEAT('y', 20)), 5)")
STAYS = "j = JSON_SET(j, '$.a', 1), n = 6"
SETS = [
    "j = JSON_SET(j, '$.a', 2)",
    "j = JSON_SET(j, '$.new', 'x')",
    "j = JSON_REPLACE(j, '$.d.x', 'abc')",
    "j = JSON_REMOVE(j, '$.c[1]')",
    "j = JSON_SET(j, '$.c[3]', 9)",
    "j = JSON_SET(j, '$.a', 3, '$.c[1]', 9, '$.d.\"y k\"', 7)",
    "j = JSON_REMOVE(JSON_SET(j, '$.a', 3), '$.c')",
    "j = JSON_SET(j, '$.a', 3), k = JSON_SET(k, '$.z', 1)",
    "k = JSON_SET(k, '$.a', 3)",
    STAYS,
    "n = 7",
    "j = JSON_SET(j, '$.a[1]', 2)",
    "j = JSON_SET(j, '$.a', 2), j = JSON_SET(j, '$.e', 2)",
    "j = JSON_SET(j, '$.d.é', 2.50)",
    "j = JSON_SET(j, '$.a', CAST('2026-01-02 03:04:05.678' AS DATETIME(3)), '$.e', TRUE)",
    # Whole documents: they are shorter, or made by other functions or of another column.
    "j = JSON_SET(j, '$', 2)",
    "j = JSON_SET(j, '$.b', REPEAT('z', 90), '$.c', NULL, '$.d', 2)",
    "j = JSON_INSERT(j, '$.e', 3)",
    "j = JSON_SET(k, '$.e', 3)",
    "j = NULL, k = JSON_SET(k, '$.a', 3)",
]
IMAGES = ["MINIMAL", "NOBLOB", "FULL"]
GOLDEN = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())


def events(data):
    """Kind and body of the updates in a log file, without the table's number and flags: those that cascades change are logged here, so keys are not checked."""
    at = 4
    while at < len(data):
        kind, length = data[at + 4], struct.unpack_from("<I", data, at + 9)[0]
        if kind in (UPDATE, PARTIAL_UPDATE):
            yield kind, data[at + 19 + 8:at + length - 4].hex()
        at += length


def written(port, read):
    """What a server writes for each update."""
    found = {}
    for image in IMAGES:
        for change in SETS:
            rows(port, f"DROP DATABASE IF EXISTS {SCHEMA}; CREATE DATABASE {SCHEMA}; SET NAMES utf8mb4; {TABLE}; {ROW}; FLUSH BINARY LOGS; "
                       f"SET binlog_row_image = {image}, binlog_row_value_options = PARTIAL_JSON; UPDATE {SCHEMA}.t SET {change}")
            log = rows(port, "SHOW BINARY LOG STATUS")[0][0]
            (event,) = events(read(log))
            # An image of MySQL that is not FULL also has what was assigned and stayed the same.
            if change != STAYS or image == "FULL":
                found[f"{image} {change}"] = list(event)
    return found


def of_mysql(port):
    """What a MySQL on this machine writes."""
    folder = pathlib.Path(rows(port, "SELECT @@log_bin_basename")[0][0]).parent
    return written(port, lambda log: (folder / log).read_bytes())


LOAD = """CREATE DATABASE squall_partial;
CREATE TABLE squall_partial.keyed (id INT PRIMARY KEY, j JSON, k JSON, t TEXT);
CREATE TABLE squall_partial.keyless (id INT, j JSON, t TEXT);
CREATE TABLE squall_partial.computed (id INT PRIMARY KEY, j JSON, a INT AS (j->'$.a'), g JSON AS (JSON_SET(j, '$.q', 1)) STORED, KEY (a));"""


def document(chance, depth=3):
    kind = chance.randrange(5 if depth else 3)
    if kind == 0:
        return chance.choice([1, -7, 70000, 5000000000, 2.5, None, True])
    if kind <= 2:
        return chance.choice(["", "x" * chance.randrange(40), "é\"\\", "y k"])
    if kind == 3:
        return [document(chance, depth - 1) for _ in range(chance.randrange(5))]
    return {chance.choice(["a", "b", "c d", "é", "quote\"", "", "1", "$"]): document(chance, depth - 1) for _ in range(chance.randrange(6))}


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def edit(chance, column):
    paths = ["$.a", "$.b", "$.\"c d\"", "$.é", "$.a.b", "$.b[1]", "$[0]", "$[9]", "$[last]", "$.a[0].b", "$.\"quote\\\"\"", "$.\"\"", "$.\"1\"", "$"]
    kind = chance.choice(["SET", "SET", "REPLACE", "REMOVE"])
    if kind == "REMOVE":
        return f"JSON_REMOVE({column}, {quoted(chance.choice(paths[:-1]))})"
    pairs = ", ".join(f"{quoted(chance.choice(paths))}, CAST({quoted(json.dumps(document(chance, 2)))} AS JSON)" for _ in range(chance.randrange(1, 3)))
    inner = edit(chance, column) if chance.random() < 0.2 else column
    return f"JSON_{kind}({inner}, {pairs})"


def load(seed, count):
    chance, text = random.Random(seed), [LOAD]
    for key in range(12):
        whole = {"a": document(chance), "b": document(chance), "pad": "p" * 60, "n": key}
        value = quoted(json.dumps(whole if chance.random() < 0.9 else document(chance)))
        text.append(f"INSERT INTO squall_partial.keyed VALUES ({key}, {value}, {value}, 'text');INSERT INTO squall_partial.keyless VALUES ({key}, {value}, 'text');"
                    f"INSERT INTO squall_partial.computed (id, j) VALUES ({key}, {quoted(json.dumps({'a': key, 'b': document(chance)}))});")
    for _ in range(count):
        text.append(f"SET binlog_row_image = {chance.choice(IMAGES)}, binlog_row_value_options = {chance.choice(['PARTIAL_JSON'] * 3 + [quoted('')])};")
        where = chance.choice([f"WHERE id = {chance.randrange(12)}", f"WHERE id < {chance.randrange(12)}", ""])
        kind = chance.randrange(6)
        if kind == 0:
            text.append(f"UPDATE squall_partial.keyless SET j = {edit(chance, 'j')} {where};")
        elif kind == 1:
            text.append(f"UPDATE squall_partial.computed SET j = JSON_SET(j, '$.a', {chance.randrange(9)}, '$.b', {chance.randrange(9)}) {where};")
        elif kind == 2:
            text.append(f"UPDATE squall_partial.keyed SET j = {quoted(json.dumps(document(chance)))} {where};")
        else:
            other = f", k = {edit(chance, 'k')}" if chance.random() < 0.3 else ""
            text.append(f"UPDATE squall_partial.keyed SET j = {edit(chance, 'j')}{other}, t = CONCAT(t, '+') {where};")
    return "SET NAMES utf8mb4;\n" + "\n".join(text)


def run(port, text):
    done = subprocess.run(client(port, "--default-character-set=utf8mb4", "--force"), input=text, capture_output=True, text=True)
    for line in done.stderr.splitlines():
        # Paths that go through a scalar may be no places to write to.
        if line.startswith("ERROR"):
            raise SystemExit(line)


def everything(port):
    tables = ["keyed ORDER BY id", "keyless ORDER BY id, CAST(j AS CHAR)", "computed ORDER BY id"]
    return [rows(port, f"SET NAMES utf8mb4; SELECT * FROM squall_partial.{table}") for table in tables]


def follow(port, host, source, user="root", password=""):
    rows(port, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{host}', SOURCE_PORT = {source}, SOURCE_USER = '{user}', SOURCE_PASSWORD = '{password}', "
               "SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1, GET_SOURCE_PUBLIC_KEY = 1; START REPLICA")


def same(source, replica):
    executed = rows(source, "SELECT @@gtid_executed")[0][0].replace("\\n", "")
    done = rows(replica, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 30)")
    if done != [["0"]]:
        raise SystemExit(f"the replica stopped: {rows(replica, 'SELECT * FROM performance_schema.replication_applier_status_by_worker')}")
    for own, wanted in zip(everything(replica), everything(source)):
        for left, right in zip(own, wanted):
            expect("a row of the replica", left, right)
        expect("rows", len(own), len(wanted))


def stop(*servers):
    for server in servers:
        server.process.terminate()
        server.process.wait()


def tool(squall, source, squalld, top):
    """The tool shows the changes, and repeats them by events and by statements."""
    log = rows(source.port, "SHOW BINARY LOG STATUS")[0][0]
    folder = source.folder / "data" / "binary-log"
    names = sorted(str(path) for path in folder.glob("binlog.0*"))
    shown = subprocess.run([squall, "binlog", "show", str(folder / log)], capture_output=True, text=True, check=True).stdout
    expect("changes that the tool shows", "= JSON_SET(" in shown or "= JSON_REPLACE(" in shown, True)
    lines = subprocess.run([squall, "binlog", "show", "--json", *names], capture_output=True, text=True, check=True).stdout.splitlines()
    changed = [json.loads(line) for line in lines if '"changes"' in line]
    expect("updates with changes alone", len(changed) > 20, True)
    expect("a change", set(changed[0]["changes"]) <= {"j", "k"}, True)
    for kind in ([], ["--sql"]):
        target = start(squalld, top, f"target{len(kind)}", "--server-id=9")
        subprocess.run([squall, "binlog", "replay", *kind, "--without-gtids", "--into", f"mysql://root@127.0.0.1:{target.port}", *names], check=True, capture_output=True)
        expect(f"rows after replay {kind}", everything(target.port), everything(source.port))
        stop(target)


def settings(port):
    fails(port, "SET binlog_row_value_options = 'x'", 1231)
    fails(port, "BEGIN; SET binlog_row_value_options = PARTIAL_JSON", 1766)
    warned = rows(port, "SET binlog_row_value_options = PARTIAL_JSON; SHOW WARNINGS; SET binlog_row_image = MINIMAL; SHOW WARNINGS; SET binlog_row_image = FULL; "
                        "SHOW WARNINGS; SET sql_log_bin = 0; SET binlog_row_value_options = PARTIAL_JSON; SHOW WARNINGS")
    expect("warnings", [row[1] for row in warned], ["3647", "3647", "3645"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--squall", default="target/debug/squall")
    parser.add_argument("--mysql", default=os.environ.get("SQUALL_REPLICATION_SOURCE"))
    parser.add_argument("--replica", help="a MySQL that may be made a replica")
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp())
    if options.golden:
        print(json.dumps(of_mysql(int(options.mysql.split(":")[1])), indent=0, ensure_ascii=False))
        return
    print(f"seed {options.seed}")
    source = start(options.squalld, top, "source", "--log-bin", "--server-id=1")
    settings(source.port)
    found = written(source.port, lambda log: (source.folder / "data" / "binary-log" / log).read_bytes())
    for change, event in found.items():
        expect(change, event, GOLDEN[change])
    rows(source.port, f"DROP DATABASE {SCHEMA}; RESET BINARY LOGS AND GTIDS")
    replica, alone = (start(options.squalld, top, name, "--log-bin", f"--server-id={number}") for number, name in ((2, "replica"), (3, "alone")))
    rows(alone.port, "SET GLOBAL replica_parallel_workers = 0")
    for server in (replica, alone):
        follow(server.port, "127.0.0.1", source.port)
    run(source.port, load(options.seed, options.count))
    for server in (replica, alone):
        same(source.port, server.port)
    tool(options.squall, source, options.squalld, top)
    if options.replica:
        of_squall(options.replica, source)
    stop(replica, alone)
    if options.mysql:
        compare(options, top)
    else:
        print("LEFT OUT: no MySQL to replicate from; --mysql or SQUALL_REPLICATION_SOURCE names one")
    stop(source)
    shutil.rmtree(top)
    print(f"{len(found)} events are those of MySQL; replicas and replays of {options.count} updates have the same rows")


def of_squall(address, source):
    """A MySQL follows."""
    port = int(address.split(":")[1])
    rows(source.port, "CREATE USER follower IDENTIFIED BY 'pass word'; GRANT REPLICATION SLAVE ON *.* TO follower")
    rows(port, f"STOP REPLICA; RESET REPLICA ALL; DROP DATABASE IF EXISTS {SCHEMA}")
    follow(port, "127.0.0.1", source.port, "follower", "pass word")
    same(source.port, port)
    rows(port, f"STOP REPLICA; RESET REPLICA ALL; DROP DATABASE {SCHEMA}")
    print("a MySQL that follows has the same rows")


def compare(options, top):
    """MySQL writes GOLDEN still, and a server follows it."""
    host, port = options.mysql.split(":")
    if os.access(rows(int(port), "SELECT @@log_bin_index")[0][0], os.R_OK):
        expect("MySQL's events", of_mysql(int(port)), GOLDEN)
    rows(int(port), f"DROP DATABASE IF EXISTS {SCHEMA}; DROP USER IF EXISTS squall_partial; CREATE USER squall_partial IDENTIFIED BY 'secret'; "
                    "GRANT REPLICATION SLAVE ON *.* TO squall_partial")
    before = rows(int(port), "SELECT @@gtid_executed")[0][0].replace("\\n", "")
    run(int(port), load(options.seed + 1, options.count))
    replica = start(options.squalld, top, "of_mysql", "--log-bin", "--server-id=11")
    rows(replica.port, f"SET GLOBAL gtid_purged = '{before}'")
    follow(replica.port, host, port, "squall_partial", "secret")
    same(int(port), replica.port)
    rows(int(port), f"DROP DATABASE {SCHEMA}; DROP USER squall_partial")
    stop(replica)
    print("a replica of MySQL has the same rows")


if __name__ == "__main__":
    main()
