#!/usr/bin/env python3
"""The binary log under load and kill -9: what it says is what the tables hold.

    tests/replication/binary_log.py [--rounds 6] [--squalld target/debug/squalld] [--seed 1]

Connections run transactions of random changes, some of them rolled back, wholly or to a savepoint, while the server is killed and started again. Then the log
is read by `mariadb-binlog`, and its changes are repeated in memory: the rows must be those of the tables, each transaction number must occur once,
and none be missing.
"""

import argparse
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "crash"))
from kill_loop import Server, free_port  # noqa: E402

TABLES = {
    "numbers": "id INT PRIMARY KEY, n BIGINT, t VARCHAR(40)",
    "keyless": "id INT, n BIGINT, t VARCHAR(40)",
}
CLIENTS = 3


def client(port, *more):
    return ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", *more]


def rows(port, sql):
    done = subprocess.run(client(port, "-e", sql), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{sql}\n{done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def change(chance, own):
    """A statement; each client has ids of its own."""
    table, key = chance.choice(list(TABLES)), own * 1000 + chance.randrange(60)
    kind = chance.randrange(5)
    if kind < 2:
        values = ",".join(f"({key + at}, {chance.randrange(10**9)}, REPEAT('{chance.choice('abc')}', {chance.randrange(40)}))" for at in range(chance.randrange(1, 9)))
        return f"INSERT IGNORE INTO {table} VALUES {values}"
    if kind == 2:
        return f"UPDATE {table} SET n = n + 1, t = CONCAT('x', LEFT(t, 30)) WHERE id BETWEEN {key} AND {key + 5}"
    if kind == 3:
        return f"DELETE FROM {table} WHERE id = {key}"
    return f"REPLACE INTO {table} VALUES ({key}, 7, 'replaced')"


def load(port, seed, own, stop):
    chance = random.Random(f"{seed} {own}")
    while not stop.is_set():
        text = []
        for _ in range(20):
            text.append("BEGIN")
            text += [change(chance, own) for _ in range(chance.randrange(1, 4))]
            if chance.random() < 0.3:
                text += ["SAVEPOINT s", change(chance, own), "ROLLBACK TO s"]
            text.append("ROLLBACK" if chance.random() < 0.2 else "COMMIT")
            if chance.random() < 0.2:
                text.append(change(chance, own))
            if chance.random() < 0.02:
                text.append("FLUSH BINARY LOGS")
        # A killed server ends it; it is started again.
        subprocess.run(client(port, "-D", "logged"), input=";\n".join(text) + ";\n", capture_output=True, text=True)
        time.sleep(0.02)


VALUE = re.compile(r"###\s+@(\d+)=(.*)$")


def value(text):
    """`7 /* INT .. */`, `'text'`, `7 (7)`, `NULL`"""
    text = text.split(" /*")[0]
    if text.startswith("'"):
        return text[1:-1]
    return text.split(" ")[0]


def repeated(text):
    """The rows that the log's changes lead to."""
    tables = {name: [] for name in TABLES}
    table, kind, images = None, None, []

    def finish():
        if table is None:
            return
        found = tables[table]
        before = images[0] if kind != "INSERT" else None
        after = images[-1] if kind != "DELETE" else None
        if before is not None:
            if before not in found:
                raise SystemExit(f"the log changes a row of {table} that is not there: {before}")
            found.remove(before)
        if after is not None:
            found.append(after)

    for line in text.splitlines():
        head = re.match(r"### (INSERT INTO|UPDATE|DELETE FROM) `logged`\.`(\w+)`", line)
        if head:
            finish()
            kind, table, images = head[1].split(" ")[0], head[2] if head[2] in tables else None, []
        elif line.startswith("### SET") or line.startswith("### WHERE"):
            images.append([])
        elif VALUE.match(line):
            images[-1].append(value(VALUE.match(line)[2]))
        elif not line.startswith("###"):
            finish()
            table = None
    finish()
    return {name: sorted(found) for name, found in tables.items()}


def decode(arguments):
    done = subprocess.run(["mariadb-binlog", "--no-defaults", "-v", "--base64-output=decode-rows", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"mariadb-binlog {arguments}: {done.stderr}")
    return done.stdout


def check(server, folder):
    port = server.port
    logs = [row[0] for row in rows(port, "SHOW BINARY LOGS")]
    numbers = []
    for log in logs:
        for event in rows(port, f"SHOW BINLOG EVENTS IN '{log}'"):
            found = re.search(r"GTID_NEXT= '[-0-9a-f]+:(\d+)'", event[5])
            if found and event[2] == "Gtid":
                numbers.append(int(found[1]))
    if numbers != list(range(1, len(numbers) + 1)):
        raise SystemExit(f"transactions are numbered {numbers[:50]}")
    executed = rows(port, "SELECT @@gtid_executed")[0][0]
    if not executed.endswith(f":1-{len(numbers)}"):
        raise SystemExit(f"{executed} are executed, {len(numbers)} are in the log")
    files = [str(folder / "data" / "binary-log" / log) for log in logs]
    expected = {table: sorted(rows(port, f"SELECT id, n, t FROM logged.{table}")) for table in TABLES}
    if repeated(decode(files)) != expected:
        raise SystemExit("the log leads to other rows")
    return len(numbers), len(logs), sum(map(len, expected.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    extra = ["--log-bin", "--max-binlog-size=65536"]
    server = Server(options.squalld, folder, port, extra)
    rows(port, "CREATE DATABASE logged")
    for table, columns in TABLES.items():
        rows(port, f"CREATE TABLE logged.{table} ({columns})")
    stop = threading.Event()
    threads = [threading.Thread(target=load, args=(port, options.seed, own, stop)) for own in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(options.rounds):
            time.sleep(0.5 + 1.5 * chance.random())
            server.kill()
            server = Server(options.squalld, folder, port, extra)
        time.sleep(1)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    transactions, logs, kept = check(server, folder)
    print(f"{options.rounds} kills, {transactions} transactions in {logs} files, {kept} rows: the log says what the tables hold")
    server.process.terminate()
    server.process.wait()
    # What a stop leaves is complete too.
    server = Server(options.squalld, folder, port, extra)
    check(server, folder)
    server.process.terminate()
    server.process.wait()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
