#!/usr/bin/env python3
"""kill -9 under XA in two phases, in a loop: what was prepared is there until somebody decides, and what was decided stays so.

    tests/crash/prepared.py [--rounds 100] [--squalld target/release/squalld] [--seed 1]

Connections prepare branches that move amounts between rows and note themselves, and decide about them, their own and each other's. Outside the
server each branch's last step is written down, before it is sent and when it is answered. After a kill the server is started again on the same folder. Then
each branch is in doubt, committed or gone, as its last step allows: an acknowledged one that nobody decided about is in XA RECOVER, and its changes are hidden; a
committed one is whole. Half of what is in doubt is decided then, the rest by the connections of the next round; the sum of all amounts never changes.
Needs PyMySQL.
"""

import argparse
import enum
import pathlib
import random
import shutil
import tempfile
import threading
import time

import pymysql

from kill_loop import Server, free_port

CLIENTS = 6
ROWS = 200


class Step(enum.Enum):
    """The last step of a branch: what was sent, and what was answered."""

    BEGUN = "begun"
    PREPARING = "preparing"
    PREPARED = "prepared"
    COMMITTING = "committing"
    COMMITTED = "committed"
    ROLLING_BACK = "rolling back"
    GONE = "gone"


#: Where a branch may be after a crash: in doubt, committed, neither.
DOUBT, KEPT, NOWHERE = "in doubt", "committed", "nowhere"
ALLOWED = {
    Step.BEGUN: {NOWHERE},
    Step.PREPARING: {DOUBT, NOWHERE},
    Step.PREPARED: {DOUBT},
    Step.COMMITTING: {DOUBT, KEPT},
    Step.COMMITTED: {KEPT},
    # A rollback is not waited for: what comes back is rolled back once more.
    Step.ROLLING_BACK: {DOUBT, NOWHERE},
    Step.GONE: {DOUBT, NOWHERE},
}


def connect(port):
    return pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True, read_timeout=60)


def run(connection, sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


class Branches:
    """The last steps of all branches."""

    def __init__(self):
        self.steps, self.lock = {}, threading.Lock()

    def set(self, xid, step):
        with self.lock:
            self.steps[xid] = step

    def take(self, chance):
        """A prepared branch that nobody else decides about from now on, and what is decided."""
        with self.lock:
            prepared = [xid for xid, step in self.steps.items() if step is Step.PREPARED]
            if not prepared:
                return None, None
            xid = chance.choice(prepared)
            commits = chance.random() < 0.6
            self.steps[xid] = Step.COMMITTING if commits else Step.ROLLING_BACK
            return xid, commits


def decide(connection, branches, xid, commits):
    run(connection, f"XA {'COMMIT' if commits else 'ROLLBACK'} '{xid}'")
    branches.set(xid, Step.COMMITTED if commits else Step.GONE)


class Client(threading.Thread):
    """One connection that prepares and decides until the server is gone."""

    def __init__(self, port, name, seed, branches):
        super().__init__()
        self.port, self.label, self.chance, self.branches = port, name, random.Random(seed), branches
        self.failure = None

    def prepare(self, connection, xid):
        rows = self.chance.sample(range(ROWS), 2)
        amount = self.chance.randint(1, 100)
        self.branches.set(xid, Step.BEGUN)
        run(connection, f"XA START '{xid}'")
        try:
            run(connection, f"INSERT INTO noted VALUES ('{xid}', 1)")
            for row, change in zip(rows, (-amount, amount)):
                run(connection, f"UPDATE amounts SET amount = amount + {change} WHERE id = {row}")
            run(connection, f"INSERT INTO noted VALUES ('{xid}', 2)")
            run(connection, f"XA END '{xid}'")
        except pymysql.err.OperationalError as error:
            # A row of a branch in doubt, or a deadlock.
            if error.args[0] not in (1205, 1213, 1614):
                raise
            if error.args[0] == 1205:
                run(connection, f"XA END '{xid}'")
            run(connection, f"XA ROLLBACK '{xid}'")
            self.branches.set(xid, Step.GONE)
            return
        self.branches.set(xid, Step.PREPARING)
        run(connection, f"XA PREPARE '{xid}'")
        self.branches.set(xid, Step.PREPARED)

    def run(self):
        try:
            connection = connect(self.port)
            run(connection, "USE crash")
            run(connection, "SET innodb_lock_wait_timeout = 1")
            for number in range(1_000_000):
                self.prepare(connection, f"{self.label}-{number}")
                # Some stay in doubt for a while.
                for _ in range(self.chance.randint(0, 2)):
                    xid, commits = self.branches.take(self.chance)
                    if xid:
                        decide(connection, self.branches, xid, commits)
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, ConnectionError) as error:
            if error.args[0] not in (0, 2003, 2006, 2013, 104, 111):
                self.failure = error


def check(port, branches, where):
    connection = connect(port)
    in_doubt = {data for _, _, _, data in run(connection, "XA RECOVER")}
    noted = {}
    for xid, part in run(connection, "SELECT xid, part FROM crash.noted"):
        noted.setdefault(xid, set()).add(part)
    for xid, parts in noted.items():
        if parts != {1, 2}:
            raise SystemExit(f"{where}: half of {xid}")
    for xid in in_doubt - branches.steps.keys():
        raise SystemExit(f"{where}: nobody began {xid}")
    for xid, step in branches.steps.items():
        found = DOUBT if xid in in_doubt else KEPT if xid in noted else NOWHERE
        if found == DOUBT and xid in noted:
            raise SystemExit(f"{where}: {xid} is in doubt and seen")
        if found not in ALLOWED[step]:
            raise SystemExit(f"{where}: {xid} was {step.value} and is {found}")
        branches.steps[xid] = {DOUBT: Step.PREPARED, KEPT: Step.COMMITTED, NOWHERE: Step.GONE}[found]
    ((total,),) = run(connection, "SELECT SUM(amount) FROM crash.amounts")
    if total != ROWS * 1000:
        raise SystemExit(f"{where}: the sum is {total}")
    return connection, in_doubt


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--squalld", default="target/release/squalld")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    server = Server(options.squalld, folder, port)
    connection = connect(port)
    run(connection, "CREATE DATABASE crash")
    run(connection, "CREATE TABLE crash.amounts (id INT PRIMARY KEY, amount INT NOT NULL)")
    run(connection, "CREATE TABLE crash.noted (xid VARCHAR(64), part INT, PRIMARY KEY (xid, part), UNIQUE KEY (part, xid))")
    run(connection, "INSERT INTO crash.amounts VALUES " + ",".join(f"({id},1000)" for id in range(ROWS)))
    branches, survived = Branches(), 0
    for turn in range(1, options.rounds + 1):
        clients = [Client(port, f"{turn}-{at}", chance.random(), branches) for at in range(CLIENTS)]
        [client.start() for client in clients]
        time.sleep(chance.uniform(0.1, 0.8))
        server.kill()
        [client.join() for client in clients]
        for client in clients:
            if client.failure:
                raise SystemExit(f"round {turn}: {client.failure}; kept in {folder}")
        server = Server(options.squalld, folder, port)
        connection, in_doubt = check(port, branches, f"round {turn}, kept in {folder}")
        survived += len(in_doubt)
        for xid in sorted(in_doubt):
            if chance.random() < 0.5:
                decide(connection, branches, xid, chance.random() < 0.5)
        check(port, branches, f"round {turn}, decided, kept in {folder}")
        if turn % 10 == 0:
            kept = sum(step is Step.COMMITTED for step in branches.steps.values())
            print(f"{turn} kills, {len(branches.steps)} branches, {kept} committed, {survived} came back in doubt", flush=True)
    connection = connect(port)
    for _, _, _, xid in run(connection, "XA RECOVER"):
        run(connection, f"XA ROLLBACK '{xid}'")
    for (table,) in run(connection, "SHOW TABLES FROM crash"):
        (row,) = run(connection, f"CHECK TABLE crash.{table}")
        if row[3] != "OK":
            raise SystemExit(f"{table}: {row[3]}; kept in {folder}")
    server.process.terminate()
    server.process.wait()
    shutil.rmtree(folder)
    print(f"{options.rounds} passed, 0 failed")


if __name__ == "__main__":
    main()
