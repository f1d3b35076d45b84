#!/usr/bin/env python3
"""Change streams: a reader that is cut off and comes back, while the server is killed, rebuilds the same rows, each transaction once.

    tests/replication/changes.py [--rounds 2] [--squalld target/debug/squalld] [--seed 1]
"""

import argparse
import base64
import http.client
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "crash"))
from binary_log import client, rows  # noqa: E402
from kill_loop import Server, free_port  # noqa: E402

TABLE = """CREATE TABLE d.t (id INT PRIMARY KEY, a DECIMAL(20,5), b VARBINARY(40), c DATETIME(6), d TIMESTAMP(3) NULL, e TIME(2), f ENUM('x','y'),
g SET('p','q','r'), h JSON, i BIGINT UNSIGNED, j DOUBLE, k FLOAT, l TEXT, m BIT(10), n YEAR, o DATE, p CHAR(5), q BINARY(4))"""


def value(chance, number):
    return (f"({number}, {chance.randrange(10**9)}.5, X'00FF{chance.randrange(256):02x}', NOW(6), NOW(3), '-12:30:01.25', '{chance.choice('xy')}', 'p,r', "
            f"'{{\"a\": [1, {chance.randrange(9)}, null]}}', 18446744073709551615, {chance.random()}, 1.5, REPEAT('é', {chance.choice([1, 300, 30000])}), "
            f"b'1010101', 2026, '2026-02-03', NULL, X'0100')")


def load(port, seed, stop):
    chance = random.Random(seed)
    while not stop.is_set():
        key = chance.randrange(80)
        text = [f"BEGIN; REPLACE INTO d.t VALUES {value(chance, key)}; SAVEPOINT s; DELETE FROM d.t WHERE id < 5; ROLLBACK TO s;"
                f" UPDATE d.t SET id = id + 100 WHERE id = {chance.randrange(80)} AND NOT EXISTS (SELECT * FROM (SELECT id FROM d.t) AS u WHERE u.id >= 100); COMMIT",
                f"XA START 'x{seed}'; REPLACE INTO d.t VALUES {value(chance, key)}; XA END 'x{seed}'; XA COMMIT 'x{seed}' ONE PHASE",
                f"DELETE FROM d.t WHERE id = {key}", "TRUNCATE TABLE d.u; INSERT INTO d.u VALUES (1, 'a'), (2, 'b')",
                "UPDATE d.u SET b = CONCAT(b, 'x') WHERE a = 1"]
        subprocess.run(client(port, "-e", chance.choice(text)), capture_output=True)


class Copy:
    """Rows by table and key, as events make them."""

    def __init__(self):
        self.rows, self.seen, self.position, self.open, self.done = {}, set(), None, [], False

    def take(self, event):
        op = event["op"]
        if op == "error":
            raise ConnectionError(event)
        if op == "snapshot_begin":
            self.rows = {}
        if op == "read":
            self.rows[event["schema"], event["table"], json.dumps(event["key"])] = event["after"]
        if op == "begin":
            self.open = []
        if op in ("insert", "update", "delete", "truncate"):
            self.open.append(event)
            assert event["n"] == len(self.open), event
        if op == "commit":
            assert event["events"] == len(self.open) and event["gtid"] not in self.seen, event
            self.seen.add(event["gtid"])
            for change in self.open:
                self.apply(change)
        if op in ("commit", "position", "snapshot_end"):
            self.position = event["position"]

    def apply(self, event):
        if event["op"] == "truncate":
            gone = {tuple(name) for name in event["tables"]}
            self.rows = {key: row for key, row in self.rows.items() if key[:2] not in gone}
            return
        name = event["schema"], event["table"]
        key = (*name, json.dumps(event["key"]))
        if event["op"] != "insert":
            assert self.rows.pop(key) == event["before"], event
        if event["op"] != "delete":
            names = event["key"]
            self.rows[(*name, json.dumps({field: event["after"][field] for field in names}))] = event["after"]


def get(port, path, user="root:", accept="application/x-ndjson", method="GET", body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Authorization": "Basic " + base64.b64encode(user.encode()).decode(), "Accept": accept, "Content-Type": "application/json"}
    connection.request(method, path, body=body, headers=headers)
    return connection, connection.getresponse()


def read(copy, port, path, accept, until):
    """Reads until `until` says so. An event that is cut off is no event."""
    connection, answer = get(port, path, accept=accept)
    for _ in range(50):
        # The server notices a moment later that the reader before has gone.
        if answer.status == 200:
            break
        said = answer.read()
        if b"being read" not in said:
            raise ConnectionError(said)
        time.sleep(0.1)
        connection, answer = get(port, path, accept=accept)
    try:
        while True:
            line = answer.readline()
            if not line.endswith(b"\n"):
                return
            if line.startswith(b"data: "):
                line = line[6:]
            if line.startswith(b"{"):
                copy.take(json.loads(line))
                if until(copy):
                    return
    finally:
        connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance, folder = random.Random(options.seed), pathlib.Path(tempfile.mkdtemp())
    port, web = free_port(), free_port()
    more = ("--log-bin", "--plugin-add=json_server", f"--json-server-port={web}")
    server = Server(options.squalld, folder, port, more)
    try:
        rows(port, f"CREATE DATABASE d; {TABLE}; CREATE TABLE d.u (a INT PRIMARY KEY, b TEXT); INSERT INTO d.u VALUES (1, 'a');"
                   f"INSERT INTO d.t VALUES {value(chance, 1)}; CREATE CHANGE STREAM s FOR SCHEMA d FROM SNAPSHOT; CREATE USER low IDENTIFIED BY 'x'")
        assert get(web, "/1.0/changes/s", "low:x")[1].status == 403
        assert get(web, "/1.0/changes/none")[1].status == 404
        for wrong in ["?from=x", "?tables=a", "?heartbeat=0", "?include_before=2"]:
            assert get(web, f"/1.0/changes{wrong}")[1].status == 400, wrong
        copy = Copy()
        read(copy, web, "/1.0/changes/s?heartbeat=1", "application/x-ndjson", lambda copy: copy.position)
        for turn in range(options.rounds):
            stop = threading.Event()
            threads = [threading.Thread(target=load, args=(port, f"{options.seed}{turn}{at}", stop)) for at in range(3)]
            for thread in threads:
                thread.start()
            accept = chance.choice(["text/event-stream", "application/x-ndjson"])
            ends = time.time() + 1
            read(copy, web, f"/1.0/changes/s?from={copy.position}&heartbeat=1", accept, lambda _: time.time() > ends)
            server.kill()
            stop.set()
            for thread in threads:
                thread.join()
            server = Server(options.squalld, folder, port, more)
        wanted = rows(port, "SELECT @@gtid_executed")[0][0].replace("\\n", "")
        for _ in range(20):
            if copy.position == wanted:
                break
            read(copy, web, f"/1.0/changes/s?from={copy.position}&heartbeat=1", "application/x-ndjson", lambda copy: copy.position == wanted)
        fresh = Copy()
        read(fresh, web, "/1.0/changes?schema=d&from=snapshot&heartbeat=1", "application/x-ndjson", lambda copy: copy.position)
        assert copy.rows == fresh.rows, [(key, copy.rows.get(key), fresh.rows.get(key)) for key in copy.rows.keys() | fresh.rows.keys()
                                         if copy.rows.get(key) != fresh.rows.get(key)][:1]
        assert get(web, "/1.0/changes/s/ack", method="POST", body=json.dumps({"gtid": wanted}))[1].status == 200
        assert rows(port, "SELECT CONFIRMED_GTID_SET FROM data_dictionary.CHANGE_STREAMS")[0][0] == wanted
        rows(port, "ALTER CHANGE STREAM s WITH (retention_bytes = 1); INSERT INTO d.u VALUES (50, 'z'); FLUSH BINARY LOGS; INSERT INTO d.u VALUES (51, 'z');"
                   "FLUSH BINARY LOGS; CREATE CHANGE STREAM keeps FROM NOW; PURGE BINARY LOGS BEFORE '2037-01-01'")
        assert rows(port, "SELECT STREAM_NAME, STATE FROM data_dictionary.CHANGE_STREAMS ORDER BY 1") == [["keeps", "idle"], ["s", "lost"]]
        assert b"lost" in get(web, "/1.0/changes/s")[1].read()
        print(f"{len(copy.seen)} transactions, {len(copy.rows)} rows are the same")
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
