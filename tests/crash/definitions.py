#!/usr/bin/env python3
"""kill -9 in the middle of CREATE, ALTER, DROP, TRUNCATE, RENAME and index builds, in a loop: never half a table.

    tests/crash/definitions.py [--rounds 1000] [--squalld target/release/squalld] [--seed 1]

A few connections change definitions as fast as they can; each table's rows tell which shapes it may have. After each kill the server is started
again on the same folder. Then every table that the dictionary lists can be read through each of its indexes, passes CHECK TABLE, has all rows or
is the one that a TRUNCATE or DROP in flight may have emptied or removed, and a name that was dropped can be created again. A table that is being
renamed is there under one of its two names, and a swap of two names is whole.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import tempfile
import threading
import time

from kill_loop import Server, free_port

TABLES = 4
ROWS = 50
VALUES = ",".join(f"({i},{i * 7 % ROWS},REPEAT('x',{i * 20}))" for i in range(ROWS))
CREATE = "CREATE TABLE {t} (id INT PRIMARY KEY, a INT NOT NULL, b TEXT NOT NULL, UNIQUE KEY ua (a))"
#: Statements on a table that is there; each leaves it there, with the same rows but for the last two.
CHANGES = [
    "ALTER TABLE {t} ADD COLUMN c{n} INT NOT NULL DEFAULT 7",
    "ALTER TABLE {t} ADD INDEX i{n} (a, id)",
    "ALTER TABLE {t} ADD INDEX i{n} (b(20)), ADD COLUMN c{n} VARCHAR(10)",
    "ALTER TABLE {t} MODIFY a BIGINT NOT NULL",
    "ALTER TABLE {t} MODIFY a INT NOT NULL",
    "ALTER TABLE {t} RENAME COLUMN b TO bb, RENAME COLUMN bb TO b",
    "ALTER TABLE {t} ENGINE=InnoDB",
    "DROP TABLE IF EXISTS {t}r",
    "RENAME TABLE {t} TO {t}r",
    "ALTER TABLE {t} RENAME TO {t}r",
    "RENAME TABLE {t} TO {t}x, {t}r TO {t}, {t}x TO {t}r",
    "DROP TABLE {t}",
    "TRUNCATE TABLE {t}",
]


def client(port, *more):
    return ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", *more]


def query(port, sql, attempts=5):
    done = subprocess.run(client(port, "-e", sql), capture_output=True, text=True)
    if done.returncode and attempts and "ERROR 2013" in done.stderr:
        return query(port, sql, attempts - 1)  # The machine is too busy for a log-in in time.
    if done.returncode:
        raise SystemExit(f"{sql}\n{done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]


class Changer(threading.Thread):
    """One connection that sends statements until the server is gone; counts what was sent."""

    def __init__(self, port, table, seed):
        super().__init__()
        self.random = random.Random(seed)
        self.table = table
        # --force: an index or column that is there already is an error that changes nothing.
        self.client = subprocess.Popen(client(port, "--force", "--unbuffered", "-D", "definitions"), stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        self.sent = 0

    def run(self):
        try:
            for n in range(100000):
                for sql in self.statements(n):
                    self.client.stdin.write(sql.format(t=self.table, n=n % 40) + ";\n")
                    self.sent += 1
                self.client.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def statements(self, n):
        change = self.random.choice(CHANGES)
        # A table is filled in one transaction: all rows or none.
        refill = [CREATE.replace("TABLE", "TABLE IF NOT EXISTS"), f"INSERT IGNORE INTO {{t}} (id, a, b) VALUES {VALUES}"]
        return [change, *refill] if n % 15 else ["DROP TABLE IF EXISTS {t}", *refill]


def check(port):
    """What is wrong is the end of the program; returns how many tables were there."""
    names = [row[0] for row in query(port, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'definitions'")]
    # Names that only the middle of a statement knows are not among these.
    strangers = [name for name in names if name not in {f"t{n}{end}" for n in range(TABLES) for end in ("", "r")}]
    if strangers:
        raise SystemExit(f"left over: {strangers}")
    for name in names:
        table = f"definitions.{name}"
        (found,) = query(port, f"SELECT COUNT(*), COALESCE(SUM(a), 0), COALESCE(SUM(LENGTH(b)), 0) FROM {table}")
        whole = [str(ROWS), str(sum(i * 7 % ROWS for i in range(ROWS))), str(sum(i * 20 for i in range(ROWS)))]
        if found not in (whole, ["0", "0", "0"]):
            raise SystemExit(f"{table} has {found}, not {whole} and not nothing")
        verdict = query(port, f"CHECK TABLE {table}")[-1][3]
        if verdict != "OK":
            raise SystemExit(f"{table}: {verdict}")
        indexes = {row[2] for row in query(port, f"SHOW INDEX FROM {table}")}
        for index in indexes:
            (through,) = query(port, f"SELECT COUNT(*) FROM {table} FORCE INDEX (`{index}`) WHERE a >= 0 AND b >= '' AND id >= 0")
            if through[0] != found[0]:
                raise SystemExit(f"{table} has {found[0]} rows, {through[0]} through {index}")
        query(port, f"UPDATE {table} SET b = CONCAT(b, '') WHERE id = 3")
    return len(names)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--squalld", default="target/release/squalld")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="before a kill, at most")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    chance = random.Random(options.seed)
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    server = Server(options.squalld, folder, port)
    query(port, "CREATE DATABASE definitions")
    tables = statements = 0
    slowest = 0.0
    for turn in range(1, options.rounds + 1):
        changers = [Changer(port, f"t{n}", chance.random()) for n in range(TABLES)]
        for changer in changers:
            changer.start()
        time.sleep(chance.uniform(0.1, options.seconds))
        server.kill()
        for changer in changers:
            changer.client.kill()
            changer.client.wait()
            changer.join()
            statements += changer.sent
        server = Server(options.squalld, folder, port)
        slowest = max(slowest, server.seconds)
        try:
            tables += check(port)
        except SystemExit as wrong:
            raise SystemExit(f"round {turn}: {wrong}; kept in {folder}")
        if turn % 20 == 0:
            print(f"{turn} kills, {tables} tables looked at, slowest start {slowest:.2f} s", flush=True)
    server.process.terminate()
    server.process.wait()
    shutil.rmtree(folder)
    # Kills that come before anything was made show nothing.
    if tables < options.rounds:
        raise SystemExit(f"only {tables} tables were there after {options.rounds} kills: the machine is too slow for this")
    print(f"{options.rounds} passed, 0 failed")


if __name__ == "__main__":
    main()
