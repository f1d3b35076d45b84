#!/usr/bin/env python3
"""XA transactions and their identifiers: a branch is in the log once, with the identifier of its XA COMMIT.

    tests/replication/xa.py [--squalld target/debug/squalld] [--mysql 127.0.0.1:13309] [--kills 4]

With --mysql, or SQUALL_REPLICATION_SOURCE, a server with a binary log follows a MySQL 9.7 as well, while it is killed; a third one follows that.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import client, rows  # noqa: E402
from kill_loop import Server  # noqa: E402
from log_settings import expect, fails, follow, start  # noqa: E402
from parallel import executed  # noqa: E402

OTHER = "11111111-2222-3333-4444-555555555555"


def again(server, squalld):
    """Kills a server and starts it."""
    server.kill()
    return Server(squalld, server.folder, server.port, server.extra)


def branch(name, statement, gtid=None, end="COMMIT"):
    """Prepares a branch as one of this server, then decides it with an identifier of another."""
    given = f"SET SESSION gtid_next = '{gtid}'; " if gtid else ""
    return f"XA START '{name}'; {statement}; XA END '{name}'; XA PREPARE '{name}'; {given}XA {end} '{name}'"


def by_statements(squalld, top):
    source = start(squalld, top, "source", "--log-bin", "--server-id=1")
    replica = start(squalld, top, "replica", "--log-bin", "--server-id=2")
    rows(source.port, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")
    follow(source, replica)
    insert = "INSERT INTO d.t VALUES ({})".format
    rows(source.port, branch("a", insert(1), f"{OTHER}:1"))
    rows(source.port, branch("b", insert(2), f"{OTHER}:2", "ROLLBACK"))
    rows(source.port, branch("c", "DO 0", f"{OTHER}:3"))
    rows(source.port, branch("d", insert(4)))
    rows(source.port, f"XA START 'e'; {insert(5)}; XA END 'e'; SET SESSION gtid_next = '{OTHER}:4'; XA COMMIT 'e' ONE PHASE")
    rows(source.port, f"SET SESSION gtid_next = '{OTHER}:5'; XA START 'f'; {insert(6)}; XA END 'f'; XA PREPARE 'f'; XA COMMIT 'f'")
    # One that fails leaves nothing to the next.
    fails(source.port, f"SET SESSION gtid_next = '{OTHER}:9'; XA COMMIT 'none'", 1397)
    subprocess.run(client(source.port, "--force"), text=True, capture_output=True,
                   input=f"SET SESSION gtid_next = '{OTHER}:9'; XA ROLLBACK 'none'; SET SESSION gtid_next = 'AUTOMATIC'; {insert(7)};")
    # A restart between the two.
    rows(source.port, f"XA START 'g'; {insert(8)}; XA END 'g'; XA PREPARE 'g'")
    source = again(source, squalld)
    rows(source.port, f"SET SESSION gtid_next = '{OTHER}:6'; XA COMMIT 'g'")
    executed(source, replica)
    wanted = rows(source.port, "SELECT @@gtid_executed")[0][0]
    own = rows(source.port, "SELECT @@server_uuid")[0][0]
    sets = dict(part.rsplit(":", 1) for part in wanted.replace("\\n", "").split(","))
    # Two definitions, the branch without an identifier and the row after the failure.
    expect("identifiers", sets, {OTHER: "1-6", own: "1-4"})
    for port in (source.port, replica.port):
        expect("rows", rows(port, "SELECT id FROM d.t ORDER BY id"), [["1"], ["4"], ["5"], ["6"], ["7"], ["8"]])
    for server in (source, replica):
        server.process.terminate()
        server.process.wait()
    print("XA branches have the identifiers of their decisions")


def load(host, port, number, stop):
    count = 0
    while not stop.is_set():
        count += 1
        name, own = f"x{number}_{count}", number * 1_000_000 + count
        insert = f"INSERT INTO squall_xa.t VALUES ({own}, '{name}'); UPDATE squall_xa.t SET b = CONCAT(b, '+') WHERE id = {own - 2}"
        kinds = [branch(name, insert), branch(name, insert, end="ROLLBACK"), f"INSERT INTO squall_xa.t VALUES ({own}, 'plain')",
                 f"XA START '{name}'; {insert}; XA END '{name}'; XA COMMIT '{name}' ONE PHASE", branch(name, insert)]
        subprocess.run(client(port, f"-h{host}", "-e", kinds[count % 5]), capture_output=True)


def of_mysql(address, squalld, top, kills):
    host, port = address.split(":")
    port = int(port)
    rows(port, "DROP DATABASE IF EXISTS squall_xa; CREATE DATABASE squall_xa; CREATE TABLE squall_xa.t (id INT PRIMARY KEY, b VARCHAR(99));"
               "DROP USER IF EXISTS squall_xa; CREATE USER squall_xa IDENTIFIED BY 'secret'; GRANT REPLICATION SLAVE ON *.* TO squall_xa")
    before = rows(port, "SELECT @@gtid_executed")[0][0].replace("\\n", "")
    replica = start(squalld, top, "of_mysql", "--log-bin", "--server-id=11")
    last = start(squalld, top, "last", "--log-bin", "--server-id=12")
    for server in (replica, last):
        rows(server.port, f"SET GLOBAL gtid_purged = '{before}'; SET SESSION sql_log_bin = 0; CREATE DATABASE squall_xa; "
                          "CREATE TABLE squall_xa.t (id INT PRIMARY KEY, b VARCHAR(99))")
    rows(replica.port, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{host}', SOURCE_PORT = {port}, SOURCE_USER = 'squall_xa', SOURCE_PASSWORD = 'secret', "
                       "SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1, GET_SOURCE_PUBLIC_KEY = 1; START REPLICA")
    follow(replica, last)
    stop = threading.Event()
    threads = [threading.Thread(target=load, args=(host, port, number, stop)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for _ in range(kills):
        time.sleep(1)
        replica = again(replica, squalld)
    stop.set()
    for thread in threads:
        thread.join()
    wanted = rows(port, "SELECT @@gtid_executed")[0][0]
    for server in (replica, last):
        for _ in range(300):
            found = rows(server.port, "SELECT @@gtid_executed")[0][0]
            if found == wanted:
                break
            time.sleep(0.1)
        status = rows(server.port, "SELECT Last_Error FROM data_dictionary.REPLICA_STATUS")
        expect(f"identifiers; {status}", found, wanted)
        everything = "SELECT * FROM squall_xa.t ORDER BY id"
        expect("rows", rows(server.port, everything), rows(port, everything))
        server.process.terminate()
        server.process.wait()
    count = rows(port, "SELECT COUNT(*) FROM squall_xa.t")[0][0]
    rows(port, "DROP DATABASE squall_xa; DROP USER squall_xa")
    print(f"a replica of MySQL's XA transactions, killed {kills} times, and its replica: {count} rows and all identifiers are the same")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--mysql", default=os.environ.get("SQUALL_REPLICATION_SOURCE"))
    parser.add_argument("--kills", type=int, default=4)
    options = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp())
    by_statements(options.squalld, top)
    if options.mysql:
        of_mysql(options.mysql, options.squalld, top, options.kills)
    else:
        print("LEFT OUT: no MySQL to replicate from; --mysql or SQUALL_REPLICATION_SOURCE names one")
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
