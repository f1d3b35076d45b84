#!/usr/bin/env python3
"""Transactions applied side by side: they commit in the order of the source, give way to earlier ones, and stop at the first that fails.

    tests/replication/parallel.py [--squalld target/debug/squalld] [--measure SECONDS]

With --measure it compares how long 1 and 4 workers, and none, take for the transactions of eight connections of the source.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import client, rows  # noqa: E402
from log_settings import expect, fails, follow, start  # noqa: E402

WORKERS = "performance_schema.replication_applier_status_by_worker"


def executed(source, replica, seconds=20):
    """Waits until the replica has what the source has."""
    wanted = rows(source.port, "SELECT @@gtid_executed")[0][0]
    waited = rows(replica.port, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{wanted}', {seconds})")
    if waited != [["0"]]:
        raise SystemExit(f"not executed: {rows(replica.port, 'SELECT * FROM data_dictionary.REPLICA_STATUS')}")


def stopped(replica):
    for _ in range(200):
        status = rows(replica.port, "SELECT Replica_SQL_Running, Last_SQL_Errno, Last_SQL_Error, Executed_Gtid_Set FROM data_dictionary.REPLICA_STATUS")[0]
        if status[0] == "No":
            return status
        time.sleep(0.05)
    raise SystemExit("the replica does not stop")


def settings(replica):
    fails(replica.port, "SET GLOBAL replica_preserve_commit_order = OFF", 1235)
    found = rows(replica.port, "SELECT @@replica_parallel_workers, @@replica_preserve_commit_order, @@replica_pending_jobs_size_max")
    expect("defaults", found, [["4", "1", "134217728"]])


def many(source, replica):
    """Each connection has rows of its own, and one that all change."""
    def load(own):
        text = [f"BEGIN; INSERT INTO d.t VALUES ({own * 1000 + number}, {number}); UPDATE d.t SET n = n + 1 WHERE id = {own * 1000 + number // 2}; "
                f"{'UPDATE d.t SET n = n * 7 % 1000003 WHERE id = 0; ' if number % 5 == 0 else ''}COMMIT" for number in range(1, 80)]
        subprocess.run(client(source.port), input=";\n".join(text) + ";\n", text=True, check=True)
    rows(source.port, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, n BIGINT); INSERT INTO d.t VALUES (0, 1)")
    threads = [threading.Thread(target=load, args=(own,)) for own in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    executed(source, replica)
    everything = rows(source.port, "SELECT * FROM d.t ORDER BY id")
    expect("rows", rows(replica.port, "SELECT * FROM d.t ORDER BY id"), everything)
    order = [[row for row in rows(port, f"SHOW BINLOG EVENTS IN '{log}'") if row[2] == "Gtid"] for port in (source.port, replica.port)
             for (log, *_) in rows(port, "SHOW BINARY LOGS")]
    names = [[row[5] for row in events] for events in order]
    expect("the order of commits", names[1], names[0])
    status = rows(replica.port, f"SELECT WORKER_ID, SERVICE_STATE, THREAD_ID > 0, LAST_APPLIED_TRANSACTION <> '', LAST_ERROR_NUMBER, APPLYING_TRANSACTION FROM {WORKERS}")
    expect("workers", [row[:2] for row in status], [[str(number), "ON"] for number in range(5)])
    expect("workers", {tuple(row[2:]) for row in status}, {("1", "1", "0", "")})
    last = rows(replica.port, "SELECT LAST_PROCESSED_TRANSACTION, SERVICE_STATE, LAST_ERROR_NUMBER FROM performance_schema.replication_applier_status_by_coordinator")
    uuid, number = rows(source.port, "SELECT @@gtid_executed")[0][0].split(":")
    expect("the coordinator", last, [[f"{uuid}:{number.split('-')[-1]}", "ON", "0"]])


def gives_way(source, replica):
    """What the source changed in two rows is one here: the later transaction has it first, and gives it back."""
    rows(source.port, "CREATE TABLE d.two (id INT PRIMARY KEY, g INT, n INT); CREATE TABLE d.much (id INT PRIMARY KEY); INSERT INTO d.two VALUES (1, 1, 0), (2, 1, 0)")
    executed(source, replica)
    rows(replica.port, "SET sql_log_bin = 0; DELETE FROM d.two WHERE id = 2; ALTER TABLE d.two DROP PRIMARY KEY, ADD PRIMARY KEY (g); STOP REPLICA")
    for number in range(3):
        much = ",".join(f"({number * 10000 + each})" for each in range(3000))
        rows(source.port, f"BEGIN; INSERT INTO d.much VALUES {much}; UPDATE d.two SET n = {number * 2 + 1} WHERE id = 1; COMMIT; "
                          f"UPDATE d.two SET n = {number * 2 + 2} WHERE id = 2")
    began = time.monotonic()
    rows(replica.port, "START REPLICA")
    executed(source, replica)
    expect("the last change", rows(replica.port, "SELECT n FROM d.two"), [["6"]])
    expect("quick", time.monotonic() - began < 15, True)
    expect("tried again", rows(replica.port, "SELECT COUNT_TRANSACTIONS_RETRIES > 0 FROM performance_schema.replication_applier_status"), [["1"]])


def too_early(source, replica):
    """A unique key that only the replica has: what is too early for it is applied in its turn."""
    rows(source.port, "CREATE TABLE d.uniq (id INT PRIMARY KEY, u INT); INSERT INTO d.uniq VALUES (1, 5)")
    executed(source, replica)
    rows(replica.port, "SET sql_log_bin = 0; ALTER TABLE d.uniq ADD UNIQUE (u); STOP REPLICA")
    much = ",".join(f"({100000 + each})" for each in range(3000))
    rows(source.port, f"BEGIN; INSERT INTO d.much VALUES {much}; UPDATE d.uniq SET u = 6 WHERE id = 1; COMMIT; INSERT INTO d.uniq VALUES (2, 5)")
    rows(replica.port, "START REPLICA")
    executed(source, replica)
    expect("both", rows(replica.port, "SELECT * FROM d.uniq ORDER BY id"), [["1", "6"], ["2", "5"]])


def stops(source, replica):
    """Nothing after the transaction that fails."""
    rows(replica.port, "SET sql_log_bin = 0; INSERT INTO d.t VALUES (50004, 0); STOP REPLICA")
    before = rows(source.port, "SELECT @@gtid_executed")[0][0]
    for number in range(8):
        rows(source.port, f"INSERT INTO d.t VALUES ({50000 + number}, 1)")
    rows(replica.port, "START REPLICA")
    _, number, text, here = stopped(replica)
    uuid, last = before.split(":")
    last = int(last.split("-")[-1]) + 4
    expect("the last that was applied", here, f"{uuid}:1-{last}")
    expect(text, (number, f"'{uuid}:{last + 1}'" in text), ("1062", True))
    expect("what is here", rows(replica.port, "SELECT id, n FROM d.t WHERE id >= 50000 ORDER BY id"), [[str(50000 + at), "0" if at == 4 else "1"] for at in range(5)])
    failed = rows(replica.port, f"SELECT COUNT(*), MAX(LAST_ERROR_NUMBER), SUM(SERVICE_STATE = 'ON') FROM {WORKERS} WHERE LAST_ERROR_NUMBER > 0 AND WORKER_ID > 0")
    expect("the worker that failed", failed, [["1", "1062", "0"]])
    coordinator = rows(replica.port, "SELECT SERVICE_STATE, LAST_ERROR_NUMBER FROM performance_schema.replication_applier_status_by_coordinator")
    expect("the coordinator", coordinator, [["OFF", "1062"]])
    rows(replica.port, "SET sql_log_bin = 0; DELETE FROM d.t WHERE id = 50004; START REPLICA")
    executed(source, replica)
    expect("all", rows(replica.port, "SELECT COUNT(*), SUM(n) FROM d.t WHERE id >= 50000"), [["8", "8"]])


def alone(source, replica):
    """Transactions that are too large for the memory that workers may have, among small ones, compressed too."""
    rows(replica.port, "STOP REPLICA; SET GLOBAL replica_pending_jobs_size_max = 4096")
    for number in range(12):
        wide = ",".join(f"({number * 100 + each}, REPEAT('{chr(97 + number)}', 100))" for each in range(90 if number % 3 == 0 else 2))
        compressed = f"SET binlog_transaction_compression = {'ON' if number % 2 else 'OFF'}; "
        rows(source.port, ("CREATE TABLE d.wide (id INT PRIMARY KEY, t TEXT); " if number == 0 else "") + f"{compressed}INSERT INTO d.wide VALUES {wide}")
    rows(replica.port, "START REPLICA")
    executed(source, replica)
    query = "SELECT COUNT(*), SUM(CRC32(CONCAT(id, t))) FROM d.wide"
    expect("wide rows", rows(replica.port, query), rows(source.port, query))
    rows(replica.port, "SET GLOBAL replica_pending_jobs_size_max = DEFAULT")


def measure(source, replica, seconds):
    rows(replica.port, "STOP REPLICA")
    rows(source.port, "CREATE TABLE d.m (id INT PRIMARY KEY, n BIGINT, t VARCHAR(100)); INSERT INTO d.m WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 900) SELECT n, 0, '' FROM s")
    results = {}
    for workers in (0, 1, 4, 0, 1, 4):
        rows(replica.port, f"SET GLOBAL replica_parallel_workers = {workers}")
        stop = threading.Event()
        def load(own):
            text = ";\n".join(f"BEGIN; " + "; ".join(f"UPDATE d.m SET n = n + 1, t = REPEAT('x', n % 90) WHERE id = {own * 100 + (number * 5 + each) % 100 + 1}" for each in range(5)) + "; COMMIT"
                              for number in range(200)) + ";\n"
            while not stop.is_set():
                subprocess.run(client(source.port), input=text, text=True, check=True)
        before = int(rows(source.port, "SELECT @@gtid_executed")[0][0].split("-")[-1])
        threads = [threading.Thread(target=load, args=(own,)) for own in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        stop.set()
        for thread in threads:
            thread.join()
        count = int(rows(source.port, "SELECT @@gtid_executed")[0][0].split("-")[-1]) - before
        began = time.monotonic()
        rows(replica.port, "START REPLICA")
        executed(source, replica, 600)
        took = time.monotonic() - began
        results.setdefault(workers, []).append(count / took)
        print(f"{workers} workers: {count} transactions of 5 rows in {took:.2f} s, {count / took:.0f} a second")
        rows(replica.port, "STOP REPLICA")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--measure", type=float)
    options = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp())
    source = start(options.squalld, top, "source", "--log-bin", "--server-id=1")
    replica = start(options.squalld, top, "replica", "--log-bin", "--server-id=2")
    settings(replica)
    follow(source, replica)
    many(source, replica)
    if options.measure:
        measure(source, replica, options.measure)
    else:
        gives_way(source, replica)
        too_early(source, replica)
        stops(source, replica)
        alone(source, replica)
    for server in (source, replica):
        server.process.terminate()
        server.process.wait()
    print("side by side, and in the order of the source")
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
