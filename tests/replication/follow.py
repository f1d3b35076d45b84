#!/usr/bin/env python3
"""Squall follows Squall: under load and kill -9 of either, the replica gets every transaction of the source once.

    tests/replication/follow.py [--rounds 6] [--squalld target/debug/squalld] [--seed 1]

Connections change rows and definitions of the source while source and replica are killed and started again. In the end both have the same rows, the same
definitions and the same transactions in their binary logs, and the replica's log leads to the same rows as the source's.
"""

import argparse
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import CLIENTS, TABLES, client, decode, load, repeated, rows  # noqa: E402
from kill_loop import Server, free_port  # noqa: E402

import subprocess  # noqa: E402


def define(port, seed, stop):
    """Definitions come and go beside the rows."""
    chance, number = random.Random(f"{seed} definitions"), 0
    while not stop.is_set():
        number += 1
        table = f"logged.t{number}"
        text = [
            f"CREATE TABLE {table} (a INT PRIMARY KEY, b VARCHAR(20), c INT AS (a * 2) STORED)",
            f"INSERT INTO {table} (a, b) VALUES (1, 'one'), (2, 'two')",
            f"ALTER TABLE {table} ADD COLUMN d INT DEFAULT {number}, ADD INDEX (b)",
            f"UPDATE {table} SET d = d + 1 WHERE a = 1",
            f"CREATE TABLE {table}_copy AS SELECT a, b FROM {table}",
            f"CREATE TRIGGER logged.tr{number} AFTER INSERT ON {table} FOR EACH ROW INSERT INTO {table}_copy VALUES (new.a, new.b)",
            f"INSERT INTO {table} (a, b) VALUES (3, 'three')",
            f"CREATE TABLE {table}_p (a INT, b INT, s DATE, e DATE, PERIOD FOR p (s, e), PRIMARY KEY (a, p WITHOUT OVERLAPS)) WITH SYSTEM VERSIONING",
            f"INSERT INTO {table}_p VALUES (1, 0, '2026-01-01', '2027-01-01'), (2, 0, '2026-01-01', '2027-01-01')",
            f"UPDATE {table}_p FOR PORTION OF p FROM '2026-03-01' TO '2026-07-01' SET b = b + 1",
            f"DELETE FROM {table}_p FOR PORTION OF p FROM '2026-05-01' TO '2026-08-01'",
            f"INSERT INTO {table}_p VALUES (1, 2, '2026-05-02', '2026-07-30')",
            f"UPDATE {table}_p SET a = a + 2 WHERE s > '2026-04-01'",
        ]
        if chance.random() < 0.5:
            text.append(f"DROP TABLE {table}_copy, {table}_p, {table}")
        subprocess.run(client(port, "--force"), input=";\n".join(text) + ";\n", capture_output=True, text=True)
        time.sleep(0.2)


def everything(port):
    found = {}
    for (name,) in rows(port, "SHOW TABLES FROM logged"):
        shape = rows(port, f"SHOW CREATE TABLE logged.{name}")[0][1]
        # What a counter skips in a crash is not logged.
        shape = " ".join(word for word in shape.split(" ") if not word.startswith("AUTO_INCREMENT="))
        found[name] = shape, sorted(rows(port, f"SELECT * FROM logged.{name}"))
    triggers = [row[0] for row in rows(port, "SHOW TRIGGERS FROM logged")]
    return found, sorted(triggers)


def catch_up(source, replica):
    """Waits until the replica has what the source has."""
    wanted = rows(source.port, "SELECT @@gtid_executed")[0][0]
    for _ in range(600):
        status = rows(replica.port, "SELECT Last_Error, Executed_Gtid_Set FROM data_dictionary.REPLICA_STATUS")
        if status and status[0][0]:
            raise SystemExit(f"the replica stopped: {status[0][0]}")
        if rows(replica.port, "SELECT @@gtid_executed")[0][0] == wanted:
            return wanted
        time.sleep(0.1)
    raise SystemExit(f"the replica is at {status}, the source at {wanted}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    top = pathlib.Path(tempfile.mkdtemp())
    folders = [top / "source", top / "replica"]
    for folder in folders:
        folder.mkdir()
    ports = [free_port(), free_port()]
    extra = [["--log-bin", "--max-binlog-size=65536", f"--server-id={1 + which}"] for which in (0, 1)]
    servers = [Server(options.squalld, folders[which], ports[which], extra[which]) for which in (0, 1)]
    rows(ports[0], "CREATE USER follower@'127.0.0.1' IDENTIFIED BY 'pass word'")
    rows(ports[0], "GRANT REPLICATION SLAVE ON *.* TO follower@'127.0.0.1'")
    rows(ports[0], "CREATE DATABASE logged")
    for table, columns in TABLES.items():
        rows(ports[0], f"CREATE TABLE logged.{table} ({columns})")
    rows(ports[1], f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {ports[0]}, SOURCE_USER = 'follower', SOURCE_PASSWORD = 'pass word', "
                   "SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1")
    rows(ports[1], "START REPLICA")
    stop = threading.Event()
    threads = [threading.Thread(target=load, args=(ports[0], options.seed, own, stop)) for own in range(CLIENTS)]
    threads.append(threading.Thread(target=define, args=(ports[0], options.seed, stop)))
    for thread in threads:
        thread.start()
    try:
        for _ in range(options.rounds):
            time.sleep(0.5 + 1.5 * chance.random())
            which = chance.randrange(2)
            servers[which].kill()
            servers[which] = Server(options.squalld, folders[which], ports[which], extra[which])
        time.sleep(1)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    executed = catch_up(*servers)
    source, replica = (everything(port) for port in ports)
    if source != replica:
        for name in sorted(set(source[0]) | set(replica[0])):
            if source[0].get(name) != replica[0].get(name):
                print(f"{name}\n source  {source[0].get(name)}\n replica {replica[0].get(name)}")
        raise SystemExit("source and replica differ")
    logs = []
    for which in (0, 1):
        names = [row[0] for row in rows(ports[which], "SHOW BINARY LOGS")]
        logs.append(repeated(decode([str(folders[which] / "data" / "binary-log" / name) for name in names])))
    if logs[0] != logs[1]:
        raise SystemExit("the logs of source and replica lead to different rows")
    print(f"{options.rounds} kills, {executed.rsplit(':', 1)[1]} transactions, {len(source[0])} tables: the replica is as its source")
    for server in servers:
        server.process.terminate()
        server.process.wait()
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
