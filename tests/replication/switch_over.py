#!/usr/bin/env python3
"""SWITCH OVER TO between two servers under writers: no acknowledged row is lost, and the stall is short.

    tests/replication/switch_over.py [--times 4] [--writers 8] [--pause 0.05] [--seed 1] [--squalld target/debug/squalld]

The writers insert numbered rows, one each, and take the other server when they are told that this one is read-only. After each switch-over the next one goes back. In
the end both servers have every acknowledged row and the same transactions.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import client, rows  # noqa: E402
from kill_loop import Server, free_port  # noqa: E402
from log_settings import expect  # noqa: E402

READ_ONLY = "ERROR 1290"


class Writers:
    """Clients that write one row after another, wherever that is allowed."""

    def __init__(self, servers, count, pause):
        self.servers, self.pause, self.stop = servers, pause, threading.Event()
        self.acknowledged = [[] for _ in range(count)]
        self.when = [[] for _ in range(count)]
        self.refused, self.other = 0, []
        self.primary = 0
        self.threads = [threading.Thread(target=self.write, args=(own,), daemon=True) for own in range(count)]
        for thread in self.threads:
            thread.start()

    def write(self, own):
        number, at = 0, self.primary
        while not self.stop.is_set():
            # --force: it goes on after an error and says it; each answer is seen as it comes.
            server = self.servers[at]
            process = subprocess.Popen(client(server.port, "--force", "--unbuffered", "-vv"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
            while not self.stop.is_set():
                process.stdin.write(f"INSERT INTO d.t VALUES ({own}, {number});\n")
                process.stdin.flush()
                said = next((line for line in process.stdout if line.startswith(("ERROR", "Query OK"))), "ERROR: gone")
                if said.startswith("Query OK"):
                    self.acknowledged[own].append(number)
                    self.when[own].append(time.monotonic())
                    number += 1
                    time.sleep(self.pause)
                    continue
                if READ_ONLY in said:
                    self.refused += 1
                    at = 1 - at
                else:
                    self.other.append(said.strip())
                    # Not acknowledged: it may be there or not.
                    number += 1
                time.sleep(0.005)
                break
            process.stdin.close()
            process.stdout.read()
            process.wait()

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def stall(self, since):
        """The longest time after `since` in which nobody's row was acknowledged."""
        times = sorted(at for when in self.when for at in when if at >= since)
        return max((after - before for before, after in zip([since, *times], times)), default=float("inf"))


def switch(to):
    return f"SWITCH OVER TO '127.0.0.1':{to.port} USER 'switcher' IDENTIFIED BY 's' TIMEOUT 20"


def run(port, sql, user="root", password=None):
    command = [word for word in client(port) if not word.startswith("-u")] + [f"-u{user}"]
    command += [f"-p{password}"] if password else []
    said = subprocess.run(command, input=sql, capture_output=True, text=True).stderr
    return next((line for line in said.splitlines() if line.startswith("ERROR")), "")


def is_writable(server):
    return rows(server.port, "SELECT @@read_only, @@super_read_only") == [["0", "0"]]


def refusals(primary, replica):
    """What cannot be leaves the primary as it was."""
    cases = [
        (switch(primary), "that is this server"),
        (switch(replica).replace("'s'", "'wrong'"), "Access denied"),
        (switch(replica).replace("switcher", "weak").replace("'s'", "'w'"), "Access denied"),
    ]
    for sql, said in cases:
        failed = run(primary.port, sql)
        if said not in failed or "primary as before" not in failed:
            raise SystemExit(f"{sql}\n  said: {failed}\n  not: {said}")
    expect("without the privilege", run(primary.port, switch(replica), "weak", "w").split(" at ")[0], "ERROR 1227 (42000)")
    failed = run(replica.port, switch(primary))
    expect("on a replica", "it is a replica itself" in failed, True)
    # A replica that cannot catch up: a table there is locked.
    blocker = subprocess.Popen(client(replica.port, "--unbuffered"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    blocker.stdin.write("LOCK TABLES d.t WRITE; SELECT 1;\n")
    blocker.stdin.flush()
    blocker.stdout.readline()
    rows(primary.port, "INSERT INTO d.t VALUES (1000, 1)")
    failed = run(primary.port, switch(replica).replace("TIMEOUT 20", "TIMEOUT 1"))
    blocker.communicate("UNLOCK TABLES;\n")
    expect("a replica behind", "has not caught up within 1 seconds" in failed, True)
    expect("still the primary", is_writable(primary), True)
    # A statement that runs on is waited for, then ended; a transaction that wrote cannot commit.
    writer = subprocess.Popen(client(primary.port, "--force"), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    writer.stdin.write("BEGIN; INSERT INTO d.t VALUES (1001, 1); INSERT INTO d.t SELECT 1002, SLEEP(60);\nCOMMIT;\n")
    writer.stdin.flush()
    while not rows(primary.port, "SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SLEEP(60)' AND INFO LIKE 'INSERT%'"):
        time.sleep(0.02)
    expect("beside a long statement", run(primary.port, switch(replica).replace("TIMEOUT 20", "TIMEOUT 1")), "")
    said = writer.communicate()[1]
    expect("it was ended", READ_ONLY in said, True)
    expect("it is not there", rows(replica.port, "SELECT COUNT(*) FROM d.t WHERE a IN (1001, 1002)"), [["0"]])
    expect("the parts", (is_writable(primary), is_writable(replica)), (False, True))
    expect("and back", run(replica.port, switch(primary)), "")
    expect("the parts", (is_writable(primary), is_writable(replica)), (True, False))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between a writer's rows: a replica in a debug build is slow")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    top = pathlib.Path(tempfile.mkdtemp())
    servers = []
    for number in (1, 2):
        folder = top / str(number)
        folder.mkdir()
        servers.append(Server(options.squalld, folder, free_port(), ["--log-bin", f"--server-id={number}"]))
    try:
        switch_to_and_fro(servers, options, chance)
    finally:
        for server in servers:
            server.process.terminate()
            server.process.wait()
    shutil.rmtree(top)


def switch_to_and_fro(servers, options, chance):
    primary, replica = servers
    rows(primary.port, "CREATE USER repl@'%' IDENTIFIED BY 'r'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'; CREATE USER weak@'%' IDENTIFIED BY 'w'; CREATE USER switcher@'%' IDENTIFIED BY 's'")
    rows(primary.port, "GRANT REPLICATION CLIENT ON *.* TO switcher@'%'; GRANT REPLICATION_SLAVE_ADMIN, SYSTEM_VARIABLES_ADMIN, CONNECTION_ADMIN ON *.* TO switcher@'%'; GRANT SELECT ON squall_replication.* TO switcher@'%'")
    rows(primary.port, "CREATE DATABASE d; CREATE TABLE d.t (a INT, n INT, PRIMARY KEY (a, n))")
    rows(replica.port, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={primary.port}, SOURCE_USER='repl', SOURCE_PASSWORD='r', SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=1; START REPLICA; SET GLOBAL super_read_only = ON")
    executed = rows(primary.port, "SELECT @@gtid_executed")[0][0]
    expect("the replica follows, though nobody may write there", rows(replica.port, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 20)"), [["0"]])
    expect("the replica runs", rows(replica.port, "SELECT Replica_IO_Running, Replica_SQL_Running FROM data_dictionary.REPLICA_STATUS"), [["Yes", "Yes"]])
    refusals(primary, replica)
    writers = Writers(servers, options.writers, options.pause)
    time.sleep(0.5)
    stalls, took = [], []
    for turn in range(options.times):
        time.sleep(chance.uniform(0.1, 0.4))
        at, to = servers[turn % 2], servers[1 - turn % 2]
        began = time.monotonic()
        failed = run(at.port, switch(to))
        expect(f"switch-over {turn}", failed, "")
        took.append(time.monotonic() - began)
        time.sleep(0.3)
        stalls.append(writers.stall(began))
        expect("the parts", (is_writable(at), is_writable(to)), (False, True))
    writers.end()
    last = servers[options.times % 2]
    executed = rows(last.port, "SELECT @@gtid_executed")[0][0]
    for server in servers:
        expect("it has all transactions", rows(server.port, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 30)"), [["0"]])
        found = set(map(tuple, rows(server.port, "SELECT a, n FROM d.t")))
        wanted = {(str(own), str(number)) for own, numbers in enumerate(writers.acknowledged) for number in numbers}
        expect("acknowledged rows that are missing", wanted - found, set())
    expect("the same transactions", rows(servers[0].port, "SELECT @@gtid_executed"), rows(servers[1].port, "SELECT @@gtid_executed"))
    expect("the same rows", rows(servers[0].port, "CHECKSUM TABLE d.t"), rows(servers[1].port, "CHECKSUM TABLE d.t"))
    expect("other errors", writers.other, [])
    total = sum(map(len, writers.acknowledged))
    stalls.sort()
    print(f"{options.times} switch-overs beside {options.writers} writers: {total} acknowledged rows all there, {writers.refused} times refused; "
          f"stall {stalls[len(stalls) // 2]:.2f} s in the middle, {stalls[-1]:.2f} s at most; the statement took {max(took):.2f} s at most")


if __name__ == "__main__":
    main()
