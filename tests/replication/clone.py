#!/usr/bin/env python3
"""CLONE INSTANCE: a server becomes a copy of another one that is written to, follows it, and is whole whenever it is killed.

    tests/replication/clone.py [--kills 4] [--seed 1] [--squalld target/debug/squalld]

Writers change the donor while it is cloned. The clone must know exactly the transactions that it has: it follows by CHANGE REPLICATION SOURCE TO without one
missing or repeated. Then the recipient is killed at random moments of a clone and of the start that takes it: it has either its old data or all of the new.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import client, rows  # noqa: E402
from kill_loop import Server, free_port  # noqa: E402
from log_settings import expect  # noqa: E402

WRITERS = 3
OPTIONS = ["--log-bin"]


def run(port, sql, user="root", password=None):
    """Runs statements and returns the error, or an empty text."""
    command = [word for word in client(port) if not word.startswith("-u")] + [f"-u{user}"]
    command += [f"-p{password}"] if password else []
    said = subprocess.run(command, input=sql, capture_output=True, text=True).stderr
    return next((line for line in said.splitlines() if line.startswith("ERROR")), "")


def write(port, own, stop):
    """Each transaction inserts the writer's next number and adds it to its sum."""
    number = 0
    while not stop.is_set():
        text = []
        for _ in range(20):
            text.append(f"BEGIN; INSERT INTO d.marks VALUES ({own}, {number}, REPEAT('x', {number % 900})); UPDATE d.sums SET total = total + {number} WHERE writer = {own}; COMMIT;")
            number += 1
        failed = run(port, "\n".join(text))
        if failed:
            if stop.is_set():
                return
            raise SystemExit(f"a writer failed: {failed}")


def sums(port):
    return rows(port, "CHECKSUM TABLE d.marks, d.sums, d.big"), rows(port, "SELECT * FROM d.sums ORDER BY writer")


def check_whole(port, what):
    """What each writer wrote is there as whole transactions."""
    total = dict(rows(port, "SELECT writer, total FROM d.sums"))
    for writer, count, most, added in rows(port, "SELECT writer, COUNT(*), MAX(n), SUM(n) FROM d.marks GROUP BY writer"):
        expect(f"{what}, writer {writer}", (int(most) + 1, total[writer]), (int(count), added))


def clone(donor, extra="", password="pw 'x"):
    quoted = password.replace("'", "''")
    return f"CLONE INSTANCE FROM 'cloner'@'127.0.0.1':{donor.port} IDENTIFIED BY '{quoted}'{extra};"


def allow(donor, recipient):
    failed = run(recipient.port, f"SET GLOBAL clone_valid_donor_list = '127.0.0.1:{donor.port}'")
    expect("the donor is allowed", failed, "")


def wait_end(server):
    server.process.wait(60)


def refusals(donor, recipient, top):
    """What cannot be is refused, and the data stays."""
    before = rows(recipient.port, "SELECT * FROM mine.t")
    cases = [
        (f"CLONE INSTANCE FROM 'cloner'@'127.0.0.1':{donor.port + 1} IDENTIFIED BY 'x';", "ERROR 3869"),
        (clone(donor, password="wrong"), "ERROR 3862 (HY000) at line 1: Clone Donor Error: Connect failed: 1045"),
        (clone(donor, " DATA DIRECTORY = 'relative'"), "ERROR 1525"),
        (clone(donor, f" DATA DIRECTORY = '{top}'"), "ERROR 1007"),
        (f"CLONE INSTANCE FROM 'weak'@'127.0.0.1':{donor.port} IDENTIFIED BY 'w';", "ERROR 3862 (HY000) at line 1: Clone Donor Error: 1227"),
    ]
    for sql, said in cases:
        failed = run(recipient.port, sql)
        if not failed.startswith(said):
            raise SystemExit(f"{sql}\n  said: {failed}\n  not: {said}")
    failed = run(recipient.port, "CREATE USER weak@'%' IDENTIFIED BY 'w'")
    expect("an account", failed, "")
    failed = run(recipient.port, clone(donor), "weak", "w")
    expect("without CLONE_ADMIN", failed.split(" at ")[0], "ERROR 1227 (42000)")
    expect("the data stays", rows(recipient.port, "SELECT * FROM mine.t"), before)
    expect("the last status", rows(recipient.port, "SELECT STATE, ERROR_NO FROM performance_schema.clone_status"), [["Failed", "3862"]])
    # While it runs it is shown, another one is refused, and a KILL ends it: a donor that says nothing gives the time.
    silent = socket.create_server(("127.0.0.1", 0))
    port = silent.getsockname()[1]
    run(recipient.port, f"SET GLOBAL clone_valid_donor_list = '127.0.0.1:{port}'")
    failures = []
    sql = f"CLONE INSTANCE FROM 'cloner'@'127.0.0.1':{port} IDENTIFIED BY 'x'"
    runner = threading.Thread(target=lambda: failures.append(run(recipient.port, sql)), daemon=True)
    runner.start()
    for _ in range(200):
        found = rows(recipient.port, "SELECT PID FROM performance_schema.clone_status WHERE STATE = 'In Progress'")
        if found:
            break
        time.sleep(0.02)
    expect("one at a time", run(recipient.port, sql).split(" at ")[0], "ERROR 3634 (HY000)")
    expect("kill", run(recipient.port, f"KILL QUERY {found[0][0]}"), "")
    runner.join(30)
    silent.close()
    expect("killed", failures[0].split(" at ")[0], "ERROR 1317 (70100)")
    expect("nothing is left", sorted(p.name for p in (recipient.folder / "data").glob("clone-*")), ["clone-status"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    top = pathlib.Path(tempfile.mkdtemp())
    folders = [top / "donor", top / "recipient"]
    for folder in folders:
        folder.mkdir()
    donor = Server(options.squalld, folders[0], free_port(), [*OPTIONS, "--server-id=1"])
    made = Server(options.squalld, folders[1], free_port(), [*OPTIONS, "--server-id=2"])
    again = lambda: Server(options.squalld, folders[1], made.port, [*OPTIONS, "--server-id=2"])  # noqa: E731
    rows(donor.port, "CREATE DATABASE d; CREATE TABLE d.marks (writer INT, n INT, t TEXT, PRIMARY KEY (writer, n)); CREATE TABLE d.sums (writer INT PRIMARY KEY, total BIGINT)")
    rows(donor.port, "CREATE TABLE d.big (a INT PRIMARY KEY AUTO_INCREMENT, t LONGTEXT); INSERT INTO d.big (t) VALUES (REPEAT('b', 3000000)), (REPEAT('c', 1000000))")
    rows(donor.port, "INSERT INTO d.sums VALUES " + ", ".join(f"({own}, 0)" for own in range(WRITERS)))
    rows(donor.port, "CREATE USER cloner@'%' IDENTIFIED BY 'pw ''x'; GRANT BACKUP_ADMIN ON *.* TO cloner@'%'; CREATE USER weak@'%' IDENTIFIED BY 'w'")
    rows(donor.port, "CREATE USER repl@'%' IDENTIFIED BY 'r'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'; FLUSH BINARY LOGS")
    uuid = rows(made.port, "SELECT @@server_uuid")
    rows(made.port, "CREATE DATABASE mine; CREATE TABLE mine.t (a INT); INSERT INTO mine.t VALUES (7)")
    stop = threading.Event()
    writers = [threading.Thread(target=write, args=(donor.port, own, stop), daemon=True) for own in range(WRITERS)]
    for writer in writers:
        writer.start()
    allow(donor, made)
    refusals(donor, made, top)
    allow(donor, made)

    # A new data directory, which another server is started on.
    expect("to a directory", run(made.port, clone(donor, f" DATA DIRECTORY = '{top / 'third' / 'data'}'")).split(" at ")[0], "ERROR 1026 (HY000)")
    (top / "third").mkdir()
    expect("to a directory", run(made.port, clone(donor, f" DATA DIRECTORY = '{top / 'third' / 'data'}'")), "")
    third = Server(options.squalld, top / "third", free_port(), [*OPTIONS, "--server-id=3"])
    check_whole(third.port, "the third server")
    executed = rows(third.port, "SELECT @@gtid_executed = @@gtid_purged, @@gtid_executed <> ''")
    expect("it knows its transactions", executed, [["1", "1"]])
    third.process.terminate()
    third.process.wait()

    # In the place of the data, killed at random moments.
    server, old, new = made, 0, 0
    for turn in range(options.kills):
        allow(donor, server)
        was_new = rows(server.port, "SHOW DATABASES LIKE 'd'")
        runner = subprocess.Popen(client(server.port), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        runner.stdin.write(clone(donor) + "\n")
        runner.stdin.flush()
        if turn % 2 == 0:
            time.sleep(chance.uniform(0, 0.8))
            server.kill()
        else:
            wait_end(server)
            # The start that takes the clone is ended too.
            for _ in range(3):
                start = subprocess.Popen([options.squalld, f"--datadir={folders[1] / 'data'}", f"--port={made.port}", f"--socket={folders[1] / 's'}", "--insecure-root", "--server-id=2", *OPTIONS],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(chance.uniform(0, 0.15))
                os.kill(start.pid, signal.SIGKILL)
                start.wait()
        runner.communicate()
        server = again()
        for _ in range(100):
            left = {p.name for p in (folders[1] / "data").glob("clone-*")} - {"clone-status"}
            if not left:
                break
            # What was replaced goes once the server is ready.
            time.sleep(0.05)
        expect("nothing is left", left, set())
        if rows(server.port, "SHOW DATABASES LIKE 'mine'"):
            expect("old data", (rows(server.port, "SELECT * FROM mine.t"), was_new), ([["7"]], []))
            old += 1
        else:
            check_whole(server.port, f"turn {turn}")
            new += 1
        if turn % 2:
            expect("the clone was taken", rows(server.port, "SELECT STATE FROM performance_schema.clone_status"), [["Completed"]])
    print(f"{options.kills} kills: {old} times the old data, {new} times the new")

    # The clone of a server in use, and its following.
    allow(donor, server)
    began = time.monotonic()
    failed = run(server.port, clone(donor))
    expect("it stops", failed.split(" at ")[0], "ERROR 3707 (HY000)")
    wait_end(server)
    server = again()
    took = time.monotonic() - began
    stages = rows(server.port, "SELECT STAGE, STATE FROM performance_schema.clone_progress")
    expect("all stages have ended", {state for _, state in stages}, {"Completed"})
    expect("status", rows(server.port, "SELECT STATE, ERROR_NO, SOURCE, DESTINATION, GTID_EXECUTED = @@gtid_executed FROM performance_schema.clone_status"),
           [["Completed", "0", f"127.0.0.1:{donor.port}", "LOCAL INSTANCE", "1"]])
    expect("its own identifier", rows(server.port, "SELECT @@server_uuid"), uuid)
    check_whole(server.port, "the clone")
    # What the clone has is not sent again: the donor does not even have the logs of it.
    rows(donor.port, "FLUSH BINARY LOGS")
    time.sleep(0.3)
    rows(server.port, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={donor.port}, SOURCE_USER='repl', SOURCE_PASSWORD='r', SOURCE_AUTO_POSITION=1; START REPLICA")
    time.sleep(0.5)
    stop.set()
    for writer in writers:
        writer.join()
    wanted = rows(donor.port, "SELECT @@gtid_executed")[0][0]
    waited = rows(server.port, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{wanted}', 60)")
    status = rows(server.port, "SELECT Last_Error FROM data_dictionary.REPLICA_STATUS")
    expect("the clone follows", (waited, status), ([["0"]], [[""]]))
    expect("the same transactions", rows(server.port, "SELECT @@gtid_executed")[0][0], wanted)
    expect("the same rows", sums(server.port), sums(donor.port))
    count = rows(donor.port, "SELECT COUNT(*) FROM d.marks")[0][0]
    for last in (server, donor):
        last.process.terminate()
        last.process.wait()
    shutil.rmtree(top)
    print(f"cloned in {took:.2f} s beside {WRITERS} writers; {count} transactions on both sides")


if __name__ == "__main__":
    main()
