#!/usr/bin/env python3
"""Semi-synchronous replication: a commit is answered when replicas have it, or after the timeout, which is told.

    tests/replication/semi_sync.py [--squalld target/debug/squalld] [--mysql 127.0.0.1:13309]

With --mysql, or SQUALL_REPLICATION_SOURCE, the same with a MySQL 9.7 on either side, whose two plugins are installed if they are not.
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import client, rows  # noqa: E402
from log_settings import expect, follow, start  # noqa: E402
from parallel import executed  # noqa: E402


def status(port, name):
    return rows(port, f"SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_{name}'")[0][1]


def becomes(port, name, wanted):
    for _ in range(200):
        if status(port, name) == wanted:
            return
        time.sleep(0.05)
    raise SystemExit(f"{name} is {status(port, name)}, not {wanted}")


def inserts(port, ids):
    """Seconds that they take, each a transaction."""
    began = time.monotonic()
    subprocess.run(client(port), input="".join(f"INSERT INTO d.t VALUES ({each});\n" for each in ids), text=True, check=True)
    return time.monotonic() - began


def settings(source, replica):
    expect("the wait point", rows(source.port, "SELECT @@rpl_semi_sync_source_wait_point"), [["AFTER_SYNC"]])
    expect("off", (status(source.port, "source_status"), status(replica.port, "replica_status")), ("OFF", "OFF"))
    rows(source.port, "SET GLOBAL rpl_semi_sync_source_enabled = ON, GLOBAL rpl_semi_sync_source_timeout = 20000")
    rows(replica.port, "SET GLOBAL rpl_semi_sync_replica_enabled = ON")


def acknowledged(source, replica):
    """Whoever has the answer finds the row on the replica."""
    for number in range(10):
        rows(source.port, f"INSERT INTO d.t VALUES ({number})")
        expect("on the replica", rows(replica.port, f"SELECT COUNT(*) FROM d.t WHERE id = {number}"), [["1"]])
    threads = [threading.Thread(target=inserts, args=(source.port, range(own * 1000, own * 1000 + 50))) for own in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect("all", rows(replica.port, "SELECT COUNT(*) FROM d.t"), rows(source.port, "SELECT COUNT(*) FROM d.t"))
    rows(source.port, "CREATE TABLE d.u (id INT)")
    expect("definitions", rows(replica.port, "SELECT COUNT(*) FROM d.u"), [["0"]])
    expect("none without", (status(source.port, "source_no_tx"), status(source.port, "source_no_times")), ("0", "0"))
    expect("all with", int(status(source.port, "source_yes_tx")) >= 211, True)


def unseen(source, replica):
    """With AFTER_SYNC nobody sees what the replica may not have, with AFTER_COMMIT others do."""
    for point, seen in (("AFTER_COMMIT", "1"), ("AFTER_SYNC", "0")):
        rows(source.port, f"SET GLOBAL rpl_semi_sync_source_wait_point = {point}")
        inserts(source.port, [9000 + len(point)])
        time.sleep(0.3)
        os.kill(replica.process.pid, signal.SIGSTOP)
        thread = threading.Thread(target=inserts, args=(source.port, [9100 + len(point)]))
        thread.start()
        time.sleep(1)
        expect(f"seen with {point}", rows(source.port, f"SELECT COUNT(*) FROM d.t WHERE id = {9100 + len(point)}"), [[seen]])
        reading = threading.Thread(target=rows, args=(source.port, f"SELECT * FROM d.t WHERE id = {9100 + len(point)} FOR UPDATE"))
        reading.start()
        reading.join(0.5)
        expect(f"read under a lock with {point}", reading.is_alive(), seen == "0")
        expect("who wrote it waits", thread.is_alive(), True)
        os.kill(replica.process.pid, signal.SIGCONT)
        thread.join()
        reading.join()
        expect("seen", rows(source.port, f"SELECT COUNT(*) FROM d.t WHERE id = {9100 + len(point)}"), [["1"]])
    # What is not logged does not wait for replicas.
    began = time.monotonic()
    rows(source.port, "SET sql_log_bin = 0; INSERT INTO d.t VALUES (9200); DELETE FROM d.t WHERE id = 9200")
    expect("not logged", time.monotonic() - began < 2, True)


def falls_back(source, replica):
    """A replica that stands still, then goes on."""
    rows(source.port, "SET GLOBAL rpl_semi_sync_source_timeout = 700")
    os.kill(replica.process.pid, signal.SIGSTOP)
    took = inserts(source.port, [10000])
    expect(f"the timeout, {took:.2f} s", 0.7 <= took < 5, True)
    expect("off", (status(source.port, "source_status"), status(source.port, "source_no_times")), ("OFF", "1"))
    expect("told", b"did not acknowledge a commit in time" in (source.folder / "log").read_bytes(), True)
    # The others do not wait.
    inserts(source.port, range(10001, 10006))
    expect("without", status(source.port, "source_no_tx"), "6")
    rows(source.port, "SET GLOBAL rpl_semi_sync_source_timeout = 20000")
    os.kill(replica.process.pid, signal.SIGCONT)
    becomes(source.port, "source_status", "ON")
    rows(source.port, "INSERT INTO d.t VALUES (10010)")
    expect("waits again", rows(replica.port, "SELECT COUNT(*) FROM d.t WHERE id = 10010"), [["1"]])


def counts(source, replica):
    """More replicas than there are; and none at all."""
    rows(source.port, "SET GLOBAL rpl_semi_sync_source_wait_for_replica_count = 2, GLOBAL rpl_semi_sync_source_timeout = 700")
    expect("two are wanted", inserts(source.port, [10020]) >= 0.7, True)
    rows(source.port, "SET GLOBAL rpl_semi_sync_source_enabled = OFF, GLOBAL rpl_semi_sync_source_wait_for_replica_count = 1, GLOBAL rpl_semi_sync_source_enabled = ON, "
                      "GLOBAL rpl_semi_sync_source_timeout = 20000, GLOBAL rpl_semi_sync_source_wait_no_replica = OFF")
    becomes(source.port, "source_clients", "1")
    rows(source.port, "INSERT INTO d.t VALUES (10021)")
    expect("one is enough", rows(replica.port, "SELECT COUNT(*) FROM d.t WHERE id = 10021"), [["1"]])
    rows(replica.port, "STOP REPLICA")
    becomes(source.port, "source_clients", "0")
    expect("nobody is waited for", inserts(source.port, [10022]) < 10, True)
    rows(replica.port, "START REPLICA")
    becomes(source.port, "source_status", "ON")


def nothing_is_lost(source, replica):
    """What was answered or seen before the source is killed is on the replica."""
    told, seen = [], []

    def look():
        while True:
            done = subprocess.run(client(source.port, "-e", "SELECT id FROM d.t WHERE id >= 20000"), capture_output=True, text=True)
            if done.returncode:
                return
            seen[:] = [int(line) for line in done.stdout.split()] or seen
    looking = threading.Thread(target=look)
    looking.start()

    def insert():
        for number in range(20000, 30000):
            if subprocess.run(client(source.port, "-e", f"INSERT INTO d.t VALUES ({number})"), capture_output=True).returncode:
                return
            told.append(number)
    thread = threading.Thread(target=insert)
    thread.start()
    deadline = time.monotonic() + 30
    time.sleep(1.5)
    while len(seen) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    source.kill()
    thread.join()
    here = {int(row[0]) for row in rows(replica.port, "SELECT id FROM d.t WHERE id >= 20000")}
    looking.join()
    expect("lost", sorted(set(told + seen) - here), [])
    expect("some were seen", len(seen) > 3, True)
    expect("some", len(told) > 3, True)
    return len(told)


class Mysql:
    def __init__(self, address):
        self.port = int(address.rsplit(":", 1)[1])
        for name in ("source", "replica"):
            if not rows(self.port, f"SHOW PLUGINS") or f"rpl_semi_sync_{name}" not in {row[0] for row in rows(self.port, "SHOW PLUGINS")}:
                rows(self.port, f"INSTALL PLUGIN rpl_semi_sync_{name} SONAME 'semisync_{name}.so'")


def of_mysql(mysql, squalld, top):
    rows(mysql.port, "SET GLOBAL rpl_semi_sync_source_enabled = OFF; DROP DATABASE IF EXISTS d; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); "
                     "CREATE USER IF NOT EXISTS squall_semi@'%' IDENTIFIED BY 'secret'; GRANT REPLICATION SLAVE ON *.* TO squall_semi@'%'")
    replica = start(squalld, top, "of_mysql", "--server-id=11")
    file, offset = rows(mysql.port, "SHOW BINARY LOG STATUS")[0][:2]
    rows(replica.port, f"CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); SET GLOBAL rpl_semi_sync_replica_enabled = ON; CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', "
                       f"SOURCE_PORT = {mysql.port}, SOURCE_USER = 'squall_semi', SOURCE_PASSWORD = 'secret', SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {offset}; START REPLICA")
    becomes(replica.port, "replica_status", "ON")
    becomes(mysql.port, "source_clients", "1")
    rows(mysql.port, "SET GLOBAL rpl_semi_sync_source_enabled = ON, GLOBAL rpl_semi_sync_source_timeout = 20000")
    before = int(status(mysql.port, "source_yes_tx")), int(status(mysql.port, "source_no_tx"))
    for number in range(10):
        rows(mysql.port, f"INSERT INTO d.t VALUES ({number})")
        expect("on the replica", rows(replica.port, f"SELECT COUNT(*) FROM d.t WHERE id = {number}"), [["1"]])
    after = int(status(mysql.port, "source_yes_tx")), int(status(mysql.port, "source_no_tx"))
    expect("acknowledged", (after[0] - before[0], after[1] - before[1]), (10, 0))
    replica.process.terminate()
    replica.process.wait()
    rows(mysql.port, "SET GLOBAL rpl_semi_sync_source_enabled = OFF; DROP DATABASE d")


def to_mysql(mysql, squalld, top):
    source = start(squalld, top, "to_mysql", "--log-bin", "--server-id=12")
    rows(source.port, "SET GLOBAL rpl_semi_sync_source_enabled = ON, GLOBAL rpl_semi_sync_source_timeout = 1; SET sql_log_bin = 0; CREATE USER squall_semi@'%' IDENTIFIED BY 'secret'; "
                      "GRANT REPLICATION SLAVE ON *.* TO squall_semi@'%'; SET sql_log_bin = 1; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")
    rows(mysql.port, f"SET GLOBAL rpl_semi_sync_replica_enabled = ON; CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {source.port}, SOURCE_USER = 'squall_semi', "
                     "SOURCE_PASSWORD = 'secret', SOURCE_AUTO_POSITION = 1, SOURCE_SSL = 1, GET_SOURCE_PUBLIC_KEY = 1 FOR CHANNEL 'semi'; START REPLICA FOR CHANNEL 'semi'")
    try:
        becomes(source.port, "source_status", "ON")
        rows(source.port, "SET GLOBAL rpl_semi_sync_source_timeout = 20000")
        before = int(status(source.port, "source_yes_tx")), int(status(source.port, "source_no_tx"))
        took = inserts(source.port, range(20)), inserts(source.port, range(100, 120))
        after = int(status(source.port, "source_yes_tx")), int(status(source.port, "source_no_tx"))
        expect(f"acknowledged, {took}", (after[0] - before[0], after[1] - before[1], max(took) < 10), (40, 0, True))
        for _ in range(100):
            if rows(mysql.port, "SELECT COUNT(*) FROM d.t") == [["40"]]:
                break
            time.sleep(0.1)
        expect("rows", rows(mysql.port, "SELECT COUNT(*) FROM d.t"), [["40"]])
    finally:
        subprocess.run(client(mysql.port, "-e", "STOP REPLICA FOR CHANNEL 'semi'; RESET REPLICA ALL FOR CHANNEL 'semi'; SET GLOBAL rpl_semi_sync_replica_enabled = OFF; DROP DATABASE d"), timeout=60)
    source.process.terminate()
    source.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--mysql", default=os.environ.get("SQUALL_REPLICATION_SOURCE"))
    options = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp())
    source = start(options.squalld, top, "source", "--log-bin", "--server-id=1")
    replica = start(options.squalld, top, "replica", "--log-bin", "--server-id=2")
    rows(source.port, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")
    settings(source, replica)
    follow(source, replica)
    executed(source, replica)
    becomes(source.port, "source_clients", "1")
    becomes(replica.port, "replica_status", "ON")
    acknowledged(source, replica)
    unseen(source, replica)
    falls_back(source, replica)
    counts(source, replica)
    count = nothing_is_lost(source, replica)
    replica.process.terminate()
    replica.process.wait()
    print(f"replicas have what is answered: {count} transactions before a kill")
    if options.mysql:
        mysql = Mysql(options.mysql)
        of_mysql(mysql, options.squalld, top)
        to_mysql(mysql, options.squalld, top)
        print("with MySQL on either side too")
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
