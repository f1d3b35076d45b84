#!/usr/bin/env python3
"""A file system that is full at random moments of a mixed load, on the real server: nothing that was acknowledged is lost, statements that need
space fail with an error that says so and keep no locks, reads go on, the server stays up, writes go on once there is space, it opens
while the file system is full, and CHECK TABLE finds nothing.

    tests/crash/full_disk.py [--moments 20] [--seed 1] [--squalld target/debug/squalld]

It mounts a small file system in memory in a name space of its own. Where that is not allowed it says so and does nothing.
"""

import argparse
import errno
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from kill_loop import Server, free_port

FILE_SYSTEM_BYTES = 320 << 20
#: Errors that a statement may end with because there is no space.
EXPECTED = ("1114", "1021", "1026", "1205", "1213", "3")
WORKERS = 4


class Session:
    """A client that stays connected."""

    def __init__(self, port):
        command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", "-B", "-n", "--force", "--skip-reconnect", "full"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)

    def run(self, sql):
        """Rows, and the error or None; raises when the server is gone."""
        try:
            self.process.stdin.write(f"{sql};\nSELECT '-- over';\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise ConnectionError(sql)
        rows, error = [], None
        while True:
            line = self.process.stdout.readline()
            if not line or "ERROR 2013" in line or "ERROR 2006" in line:
                raise ConnectionError(f"{sql}: {line}")
            line = line.rstrip("\n")
            if line == "-- over":
                return rows, error
            if line.startswith("ERROR "):
                error = line
            else:
                rows.append(line)

    def close(self):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()


def expect(condition, *what):
    if not condition:
        raise SystemExit(f"full disk: {what}")


class Load(threading.Thread):
    """Inserts with known ids, changes and large transactions until told to stop."""

    def __init__(self, port, number, chance, moment):
        super().__init__()
        self.port, self.number, self.chance = port, number, random.Random(chance.random())
        self.next = (moment * WORKERS + number) * 1_000_000
        self.acknowledged, self.errors, self.stops, self.failure = set(), [], False, None
        self.gone, self.statement_now, self.session = False, None, None

    def run(self):
        try:
            self.session = session = Session(self.port)
            while not self.stops:
                self.step(session)
            session.close()
        except ConnectionError as error:
            self.gone = str(error)
        except Exception as error:  # the main thread reports it
            self.failure = repr(error)

    def statement(self, session, sql):
        self.statement_now = sql[:80]
        _, error = session.run(sql)
        self.statement_now = None
        if error:
            self.errors.append(error)
        return error is None

    def insert(self, session, count):
        ids = range(self.next, self.next + count)
        self.next += count
        rows = ",".join(f"({id}, {id % 997}, REPEAT(CHAR(65 + {id} % 26), {self.chance.randrange(1500)}))" for id in ids)
        return set(ids), self.statement(session, f"INSERT INTO t VALUES {rows}")

    def step(self, session):
        kind = self.chance.randrange(10)
        if kind < 5:
            ids, done = self.insert(session, self.chance.choice((1, 5, 50)))
            if done:
                self.acknowledged |= ids
        elif kind < 7:
            low = self.chance.randrange(1000)
            self.statement(session, f"UPDATE u SET b = REPEAT('x', {self.chance.randrange(1500)}), n = n + 1 WHERE id BETWEEN {low} AND {low + 20}")
        elif kind < 8:
            self.statement(session, f"INSERT INTO big SELECT UUID_SHORT(), b FROM u LIMIT {self.chance.choice((100, 1000))}")
        elif kind < 9:
            session.run("BEGIN")
            ids, done = self.insert(session, 20)
            done = done and self.statement(session, "UPDATE u SET n = n + 1 WHERE id < 30")
            if self.chance.randrange(3) == 0:
                session.run("ROLLBACK")
            else:
                # A statement that fails ends itself only: the others may be committed.
                _, error = session.run("COMMIT")
                if done and error is None:
                    self.acknowledged |= ids
                session.run("ROLLBACK")
        else:
            self.statement(session, f"DELETE FROM big LIMIT {self.chance.choice((50, 2000))}")


class Filler:
    """A file that takes the space."""

    def __init__(self, place):
        self.path = place / "filler"

    def fill(self, left):
        with open(self.path, "ab") as file:
            while True:
                status = os.statvfs(self.path.parent)
                count = status.f_bavail * status.f_frsize - left
                if count <= 0:
                    return
                try:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, count)
                except OSError as error:
                    # The server took some of it in the meantime.
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self):
        self.path.unlink(missing_ok=True)


def quiet(session, deadline):
    """No transaction is left, and so no lock."""
    while True:
        rows, error = session.run("SELECT trx_id, trx_state, trx_rows_locked FROM information_schema.innodb_trx WHERE trx_rows_locked > 0")
        expect(error is None, error)
        if not rows:
            return
        expect(time.monotonic() < deadline, "transactions stay open", rows)
        time.sleep(0.1)


def writes_again(session, key):
    deadline = time.monotonic() + 30
    while True:
        _, error = session.run(f"INSERT INTO t VALUES ({key}, 1, REPEAT('w', 1000))")
        if error is None:
            break
        expect(time.monotonic() < deadline, "no writes although there is space", error)
        time.sleep(0.1)
    for sql in ("UPDATE u SET n = n + 1", "DELETE FROM big LIMIT 10"):
        _, error = session.run(sql)
        expect(error is None, "locked", sql, error)


def moment(number, options, place, server, chance, acknowledged):
    filler, port = Filler(place), server.port
    loads = [Load(port, worker, chance, number) for worker in range(WORKERS)]
    [load.start() for load in loads]
    time.sleep(chance.uniform(0.05, options.seconds))
    filler.fill(chance.choice((0, 0, 1 << 20, 8 << 20)))
    time.sleep(chance.uniform(0.1, options.seconds))
    filler.fill(0)
    kills = number % 4 == 3
    expect(server.process.poll() is None, "the server ended", tail(server))
    session = Session(port)
    rows, error = session.run("SELECT COUNT(*) FROM u")
    expect(error is None, "a read failed", error)
    if kills:
        server.kill()
    for load in loads:
        load.stops = True
        if kills and load.session:
            # A client may wait for an answer that does not come.
            load.session.process.kill()
    for load in loads:
        load.join(60)
        if load.is_alive():
            expect(False, "a statement does not end", load.statement_now, state(server))
        expect(load.failure is None, load.failure)
        expect(kills or not load.gone, "the server ended", load.gone, tail(server))
        for error in load.errors:
            expect(error.split()[1] in EXPECTED, "another error", error)
        acknowledged |= load.acknowledged
    if kills:
        server = Server(options.squalld, server.folder, port, server.extra)
        session = Session(port)
        rows, error = session.run("SELECT COUNT(*) FROM u")
        expect(error is None, "a read failed after a start on a full file system", error)
    quiet(session, time.monotonic() + 30)
    filler.free()
    writes_again(session, (number * WORKERS + WORKERS) * 1_000_000 - 1)
    rows, error = session.run("SELECT id FROM t")
    expect(error is None, error)
    lost = acknowledged - set(map(int, rows))
    expect(not lost, "rows are lost", len(lost), sorted(lost)[:5])
    rows, error = session.run("CHECK TABLE t, u, big")
    expect(error is None and all(row.endswith("\tOK") for row in rows), "damage", rows, error)
    # Room for the next moment.
    if number % 3 == 2:
        for sql in ("TRUNCATE big", "TRUNCATE t"):
            _, error = session.run(sql)
            expect(error is None, sql, error)
        acknowledged.clear()
    session.close()
    errors = [error for load in loads for error in load.errors]
    return server, errors


def state(server):
    """What the server does: its statements, and the stacks of its threads in its log."""
    if server.process.poll() is not None:
        return "ended", tail(server)
    shown = subprocess.run(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{server.port}", "-uroot", "-e", "SHOW PROCESSLIST; SELECT * FROM information_schema.innodb_trx"], capture_output=True, text=True, timeout=20)
    server.process.send_signal(signal.SIGUSR2)
    time.sleep(2)
    return shown.stdout, shown.stderr, (server.folder / "log").read_text()


def tail(server):
    return (server.folder / "log").read_text()[-2000:]


def inside(options):
    chance = random.Random(options.seed)
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    place = folder / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={FILE_SYSTEM_BYTES}", "tmpfs", place], capture_output=True, text=True)
    if mounted.returncode:
        print(f"full disk: left out, no file system can be mounted here: {mounted.stderr.strip()}")
        return
    os.symlink(place / "data", folder / "data")
    (place / "data").mkdir()
    extra = ("--innodb-buffer-pool-size=32M", *options.option)
    server = Server(options.squalld, folder, port, extra)
    subprocess.run(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-e", "CREATE DATABASE full"], check=True)
    session = Session(port)
    for sql in (
        "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT, b VARCHAR(2000), KEY (n), KEY (b(30)))",
        "CREATE TABLE u (id INT PRIMARY KEY, n INT, b VARCHAR(2000))",
        "CREATE TABLE big (id BIGINT PRIMARY KEY, b VARCHAR(2000))",
        "INSERT INTO u SELECT n, 0, 'x' FROM (WITH RECURSIVE r (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r WHERE n < 999) SELECT n FROM r) AS r",
    ):
        _, error = session.run(sql)
        expect(error is None, sql, error)
    session.close()
    acknowledged, seen = set(), {}
    try:
        for number in range(options.moments):
            server, errors = moment(number, options, place, server, chance, acknowledged)
            for error in errors:
                code = error.split()[1]
                seen[code] = seen.get(code, 0) + 1
                if seen[code] == 1 or options.verbose:
                    print(error, flush=True)
    finally:
        if server.process.poll() is None:
            server.kill()
        if options.keep:
            print(folder)
    expect(seen, "the disk was never full")
    subprocess.run(["umount", place])
    shutil.rmtree(folder)
    print(f"{options.moments} moments; errors: {seen}")
    print("1 passed, 0 failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--option", action="append", default=[])
    options = parser.parse_args()
    if os.environ.get("FULL_DISK_INSIDE") != "1":
        unshare = ["unshare", "-rm", "--propagation", "private"]
        if shutil.which("unshare") is None or subprocess.run([*unshare, "true"], capture_output=True).returncode:
            print("full disk: left out, no name space can be made here")
            return
        os.execvpe("unshare", [*unshare, sys.executable, *sys.argv], {**os.environ, "FULL_DISK_INSIDE": "1"})
    inside(options)


if __name__ == "__main__":
    main()
