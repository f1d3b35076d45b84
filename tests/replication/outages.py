#!/usr/bin/env python3
"""A full disk on either side, and a replica that was away for long: each says what is wrong, goes on once it can, and source and replica end with the same rows and the same transactions.

    tests/replication/outages.py [--squalld target/debug/squalld] [--seed 1]

The replica's disk fills while it applies, then the source's while it is followed; each once more with kill -9 and a start while the disk is full. Then a replica is away, after a stop
and after a kill -9, while the source's log goes through many files: it catches up in bounded memory, or says that what it needs is purged, and is cloned anew.

It mounts small file systems in memory in a name space of its own. Where that is not allowed it says so and leaves out what needs them.
"""

import argparse
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "crash"))
from full_disk import EXPECTED, FILE_SYSTEM_BYTES, Filler, Load, Session, quiet, writes_again  # noqa: E402
sys.path.insert(0, str(HERE))
from binary_log import CLIENTS, TABLES, client, decode, load, repeated, rows  # noqa: E402
from clone import allow, clone, run, wait_end  # noqa: E402
from follow import catch_up, everything  # noqa: E402
from hostile import memory  # noqa: E402
from kill_loop import Server, free_port  # noqa: E402
from log_settings import expect, follow, start  # noqa: E402

#: Clients that write large rows.
BULK = 2
POOL = "--innodb-buffer-pool-size=16M"
#: What a full disk is called, and its errors.
FULL_ERRORS = ("1114", "1021")
FULL = ("is full", "Disk full")
#: Rows of the table that grows the log, bytes of each, and how much more memory (MiB) than while it follows a replica may take to catch up.
ROWS, WIDTH, MEMORY_MAX = 20, 22_000, 48
#: Where memory is not looked at.
NARROW = 8_000
STATUS = "SELECT Replica_IO_Running, Replica_SQL_Running, Last_IO_Errno, Last_IO_Error, Last_SQL_Errno, Last_SQL_Error FROM data_dictionary.REPLICA_STATUS"


class Servers:
    """Those that a scenario started, which end with it."""

    def __init__(self, squalld, top):
        self.squalld, self.top, self.all = squalld, top, []

    def add(self, server):
        self.all.append(server)
        return server

    def start(self, name, *extra):
        return self.add(start(self.squalld, self.top, name, *extra))

    def again(self, server):
        return self.add(Server(self.squalld, server.folder, server.port, server.extra))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        # A replica ends before its source.
        for server in sorted(self.all, key=lambda server: "--server-id=1" in server.extra):
            if server.process.poll() is None:
                # After a failure nobody waits for anything.
                server.process.kill() if kind else server.process.terminate()
                server.process.wait(60)
        for server in self.all:
            expect("no panic", kind is None and "panicked" in (server.folder / "log").read_text(errors="replace"), False)


def status(replica):
    """State and error of both threads. The client cuts empty fields off at the end."""
    found = rows(replica.port, STATUS)[0]
    return found + [""] * (6 - len(found))


def until(what, seconds, is_so):
    """Waits for something that is not false, and returns it."""
    deadline = time.monotonic() + seconds
    while not (found := is_so()):
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not within {seconds} s")
        time.sleep(0.05)
    return found


class Disk:
    """A small file system for the data of one server."""

    def __init__(self, servers, name, *extra):
        self.place, self.folder = servers.top / f"{name}-disk", servers.top / name
        self.place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={FILE_SYSTEM_BYTES}", "tmpfs", self.place], check=True)
        self.folder.mkdir()
        (self.place / "data").mkdir()
        os.symlink(self.place / "data", self.folder / "data")
        self.filler = Filler(self.place)
        self.server = servers.add(Server(servers.squalld, self.folder, free_port(), list(extra)))

    def remove(self):
        subprocess.run(["umount", self.place], check=True)


def define(source):
    rows(source.port, "CREATE DATABASE full; CREATE DATABASE logged")
    for table, columns in TABLES.items():
        rows(source.port, f"CREATE TABLE logged.{table} ({columns})")
    rows(source.port, "CREATE TABLE full.t (id BIGINT PRIMARY KEY, n INT, b VARCHAR(2000), KEY (n), KEY (b(30))); CREATE TABLE full.u (id INT PRIMARY KEY, n INT, b VARCHAR(2000)); "
                      "CREATE TABLE full.big (id BIGINT PRIMARY KEY, b VARCHAR(2000)); CREATE TABLE full.large (id INT PRIMARY KEY, b LONGTEXT); "
                      "INSERT INTO full.u SELECT n, 0, 'x' FROM (WITH RECURSIVE r (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r WHERE n < 999) SELECT n FROM r) AS r")


def large(source, number):
    """A transaction that no reserve has room for. Its error, or an empty text."""
    return run(source.port, f"INSERT INTO full.large VALUES ({number * 10}, REPEAT('l', {3 << 20})), ({number * 10 + 1}, REPEAT('m', {3 << 20})), ({number * 10 + 2}, REPEAT('n', {3 << 20}))")


class Writers:
    """Clients of the source: some write large rows and keep what was acknowledged, some small ones, also to a table without a key."""

    def __init__(self, source, chance, number):
        self.stops = threading.Event()
        self.bulk = [Load(source.port, own, chance, number) for own in range(BULK)]
        self.small = [threading.Thread(target=load, args=(source.port, f"{number} {chance.random()}", own, self.stops)) for own in range(CLIENTS - 1)]
        for thread in self.bulk + self.small:
            # One that waits keeps no failed test from its end.
            thread.daemon = True
            thread.start()

    def stop(self, was_killed=False):
        """Ends them, and returns the ids that must be there, and the errors."""
        self.stops.set()
        for each in self.bulk:
            each.stops = True
            if was_killed and each.session:
                # A client may wait for an answer that does not come.
                each.session.process.kill()
        for thread in self.bulk + self.small:
            thread.join(60)
            expect("a statement ends", thread.is_alive(), False)
        for each in self.bulk:
            expect("a writer", (each.failure, None if was_killed else each.gone), (None, None) if was_killed else (None, False))
        errors = [error for each in self.bulk for error in each.errors]
        for error in errors:
            expect(f"errors for a full disk: {error}", error.split()[1] in EXPECTED, True)
        return set().union(*(each.acknowledged for each in self.bulk)), errors


def numbers(server):
    """The numbers of the transactions in a log, in order."""
    found = []
    for (name, *_) in rows(server.port, "SHOW BINARY LOGS"):
        found += [int(event[5].rsplit(":", 1)[1].split("'")[0]) for event in rows(server.port, f"SHOW BINLOG EVENTS IN '{name}'") if event[2] == "Gtid"]
    return found


def same(what, source, replica, acknowledged, logs):
    """Both sides have the same transactions, each once, the same rows and all that was acknowledged, and these logs have each transaction once and lead to these rows. The number of transactions."""
    executed = catch_up(source, replica)
    count = int(executed.rsplit("-", 1)[1])
    sums = [rows(each.port, "CHECKSUM TABLE full.t, full.u, full.big, full.large") for each in (source, replica)]
    expect(f"{what}: checksums", sums[1], sums[0])
    ids = [{int(row[0]) for row in rows(each.port, "SELECT id FROM full.t")} for each in (source, replica)]
    expect(f"{what}: acknowledged rows that are lost", [sorted(acknowledged - each)[:5] for each in ids], [[], []])
    small = [everything(each.port) for each in (source, replica)]
    if small[0] != small[1]:
        raise SystemExit(f"{what}: small tables differ")
    tables = [f"full.{name}" for name in ("t", "u", "big", "large")] + [f"logged.{name}" for name in TABLES]
    expect(f"{what}: tables", rows(replica.port, f"CHECK TABLE {', '.join(tables)}"),
           [[table, "check", "status", "OK"] for table in tables])
    for each in logs:
        check_numbers(what, each, count)
        files = [str(each.folder / "data" / "binary-log" / row[0]) for row in rows(each.port, "SHOW BINARY LOGS")]
        wanted = {table: sorted(rows(each.port, f"SELECT id, n, t FROM logged.{table}")) for table in TABLES}
        if repeated(decode(["--database=logged", *files])) != wanted:
            raise SystemExit(f"{what}: the log leads to other rows")
    return count


def failure(server):
    """Why the files of the log cannot be written."""
    found = rows(server.port, "SELECT FAILURE FROM data_dictionary.BINARY_LOG_STATUS")[0]
    return found[0] if found else ""


def check_numbers(what, server, count):
    """Each transaction is in its log, once and in order."""
    found = numbers(server)
    if found != list(range(1, count + 1)):
        twice = sorted({number for number in found if found.count(number) > 1})
        missing = sorted(set(range(1, count + 1)) - set(found))
        raise SystemExit(f"{what}: of {count} transactions the log has {len(found)}, twice {twice[:9]}, not {missing[:9]}, or in another order")


def says_full(text):
    return any(word in text for word in FULL)


def replica_is_full(servers, chance):
    disk = Disk(servers, "full-replica", "--log-bin", "--server-id=2", POOL)
    source, replica = servers.start("source", "--log-bin", "--server-id=1", "--innodb-buffer-pool-size=64M"), disk.server
    define(source)
    follow(source, replica)
    acknowledged = set()
    for number, kills in enumerate((False, True)):
        what = "the replica's disk is full" + (" and it is killed" if kills else "")
        began = time.monotonic()
        writers = Writers(source, chance, number)
        time.sleep(chance.uniform(0.2, 0.6))

        def is_stopped():
            disk.filler.fill(0)
            return status(replica)[1] == "No" and status(replica)
        disk.filler.fill(0)
        time.sleep(chance.uniform(0.2, 0.6))
        ids, errors = writers.stop()
        # Two writers may want each other's rows.
        expect(f"{what}: errors of the source", [error for error in errors if error.split()[1] != "1213"], [])
        acknowledged |= ids
        expect(f"{what}: the source has space", large(source, number), "")
        found = until(what, 30, is_stopped)
        expect(f"{what}: it says so: {found}", found[4] in FULL_ERRORS and says_full(found[5]), True)
        workers = rows(replica.port, "SELECT LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker WHERE LAST_ERROR_NUMBER > 0")
        expect(f"{what}: the workers say so: {workers}", any(row[0] in FULL_ERRORS and says_full(row[1]) for row in workers), True)
        # Reads go on, and what is there are whole transactions of the source.
        here = rows(replica.port, "SELECT COUNT(*) FROM full.t; SELECT @@gtid_executed")
        executed = here[1][0]
        expect(f"{what}: it has no more than the source", rows(source.port, f"SELECT GTID_SUBSET('{executed}', @@gtid_executed), '{executed}' = @@gtid_executed"), [["1", "0"]])
        if kills:
            replica.kill()
            replica = servers.again(replica)
            expect(f"{what}: a read after the start", int(rows(replica.port, "SELECT COUNT(*) FROM full.u")[0][0]), 1000)
            # The channel starts with the server: too early, which changes nothing.
            found = until(f"{what}: a start that is too early", 20, is_stopped)
            expect(f"{what}: still: {found}", says_full(found[5]), True)
        disk.filler.free()
        rows(replica.port, "START REPLICA")
        count = same(what, source, replica, acknowledged, [replica] if kills else [])
        print(f"ok: {what}: {count} transactions, {len(acknowledged)} acknowledged rows, {time.monotonic() - began:.1f} s; it said: {found[4]} {found[5][:200]}", flush=True)
    return disk


def source_is_full(servers, chance):
    disk = Disk(servers, "full-source", "--log-bin", "--server-id=1", POOL)
    source, replica = disk.server, servers.start("replica", "--log-bin", "--server-id=2", "--innodb-buffer-pool-size=64M")
    define(source)
    follow(source, replica)
    acknowledged = set()
    for number, kills in enumerate((False, True)):
        what = "the source's disk is full" + (" and it is killed" if kills else "")
        began = time.monotonic()
        writers = Writers(source, chance, number)
        time.sleep(chance.uniform(0.2, 0.6))
        disk.filler.fill(0)
        time.sleep(chance.uniform(0.2, 0.6))
        disk.filler.fill(0)
        failed = large(source, number)
        expect(f"{what}: a statement that needs space: {failed}", failed.startswith("ERROR") and failed.split()[1] in FULL_ERRORS and says_full(failed), True)
        if kills:
            source.kill()
        ids, errors = writers.stop(kills)
        acknowledged |= ids
        if kills:
            source = servers.again(source)
        expect(f"{what}: a read", int(rows(source.port, "SELECT COUNT(*) FROM full.u")[0][0]), 1000)
        said = until(f"{what}: the log says why it is not written", 10, lambda: failure(source))
        expect(f"{what}: it says so: {said}", says_full(said) or "No space left" in said, True)
        state = until(f"{what}: the replica is connected, or tries to be", 10, lambda: status(replica)[0] in ("Yes", "Connecting") and status(replica))
        expect(f"{what}: the replica applies", state[1], "Yes")
        # The replica has nothing that the source has not.
        executed = rows(replica.port, "SELECT @@gtid_executed")[0][0]
        there = {row[0] for row in rows(replica.port, "SELECT id FROM full.t")}
        extra = there - {row[0] for row in rows(source.port, "SELECT id FROM full.t")}
        expect(f"{what}: rows of the replica alone", sorted(extra)[:5], [])
        disk.filler.free()
        until(f"{what}: the log is written again", 10, lambda: not failure(source))
        expect(f"{what}: transactions", rows(source.port, f"SELECT GTID_SUBSET('{executed}', @@gtid_executed)"), [["1"]])
        session = Session(source.port)
        quiet(session, time.monotonic() + 30)
        writes_again(session, 900_000_000 + number)
        session.close()
        count = same(what, source, replica, acknowledged, [source] if kills else [])
        codes = sorted({error.split()[1] for error in errors})
        print(f"ok: {what}: {count} transactions, {len(acknowledged)} acknowledged rows, {len(errors)} errors {codes}, {time.monotonic() - began:.1f} s; its log said: {said}; the replica said: {state[0]} {state[3]}", flush=True)
    return disk


def holds(server):
    return rows(server.port, "CHECKSUM TABLE a.t, a.k; SELECT COUNT(*), SUM(n) FROM a.k; SELECT id, n, LEFT(b, 5), LENGTH(b) FROM a.t ORDER BY id")


def write_much(source, count, width=WIDTH):
    """So many transactions, each of which fills a file of the log. How many files there are more."""
    before = len(rows(source.port, "SHOW BINARY LOGS"))
    text = [f"BEGIN; UPDATE a.t SET n = n + 1, b = REPEAT(CHAR(65 + n % 26), {width}); INSERT INTO a.k SELECT n FROM a.t; COMMIT" for _ in range(count)]
    subprocess.run(client(source.port), input=";\n".join(text) + ";\n", text=True, check=True)
    return len(rows(source.port, "SHOW BINARY LOGS")) - before


def bytes_of_log(source):
    return sum(int(row[1]) for row in rows(source.port, "SHOW BINARY LOGS"))


def leave(replica, kills):
    if kills:
        replica.kill()
    else:
        replica.process.terminate()
        replica.process.wait(60)


def away(servers, chance):
    """A replica that comes back finds all that it needs, takes no more memory for it, and gets each transaction once."""
    source = servers.start("source", "--log-bin", "--server-id=1", f"--max-binlog-size={1 << 18}", POOL)
    replica = servers.start("replica", "--log-bin", "--server-id=2", f"--replica-pending-jobs-size-max={4 << 20}", POOL)
    rows(source.port, "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, n INT, b MEDIUMTEXT); CREATE TABLE a.k (n INT); CREATE USER cloner@'%' IDENTIFIED BY 'pw ''x'; "
                      "GRANT BACKUP_ADMIN ON *.* TO cloner@'%'")
    rows(source.port, "INSERT INTO a.t VALUES " + ",".join(f"({id}, {id}, '')" for id in range(ROWS)))
    follow(source, replica)
    write_much(source, 8)
    catch_up(source, replica)
    usual = memory(replica)
    for kills in (False, True):
        what = f"away after {'a kill -9' if kills else 'a stop'}"
        if kills:
            # It is killed while it applies.
            write_much(source, 3, NARROW)
        leave(replica, kills)
        before = bytes_of_log(source)
        files, written = write_much(source, chance.randrange(36, 42) if kills else chance.randrange(80, 90), NARROW if kills else WIDTH), (bytes_of_log(source) - before) >> 20
        expect(f"{what}: {files} files", files >= 34, True)
        began = time.monotonic()
        replica = servers.again(replica)
        wanted, most = rows(source.port, "SELECT @@gtid_executed"), 0
        while rows(replica.port, "SELECT @@gtid_executed") != wanted:
            for _ in range(15):
                most = max(most, memory(replica))
                time.sleep(0.02)
            if time.monotonic() - began > 40:
                raise SystemExit(f"{what}: it does not catch up: {status(replica)}")
        seconds = time.monotonic() - began
        expect(f"{what}: {most} MiB of memory for {written} MiB of log, {usual} MiB before", most - usual < MEMORY_MAX and (kills or MEMORY_MAX < written), True)
        catch_up(source, replica)
        expect(f"{what}: rows", holds(replica), holds(source))
        count = int(wanted[0][0].rsplit("-", 1)[1])
        check_numbers(what, replica, count)
        print(f"ok: {what}: {files} files, {written} MiB, {count} transactions, {seconds:.1f} s to catch up, {most} MiB of memory, {usual} MiB before", flush=True)
    for kills in (False, True):
        replica = purged(servers, source, replica, kills)


def purged(servers, source, replica, kills):
    """What the replica needs is purged: it says so, and changes nothing; a clone, or a dump, gets it going."""
    what = "away, and what it needs " + ("has expired" if kills else "is purged")
    before, had = holds(replica), rows(replica.port, "SELECT @@gtid_executed")
    leave(replica, kills)
    files = write_much(source, 6, NARROW)
    if kills:
        rows(source.port, "SET GLOBAL binlog_expire_logs_seconds = 1")
        time.sleep(1.5)
        rows(source.port, "INSERT INTO a.k VALUES (0); FLUSH BINARY LOGS")
        until(f"{what}: old files go", 10, lambda: len(rows(source.port, "SHOW BINARY LOGS")) <= 3)
        rows(source.port, "SET GLOBAL binlog_expire_logs_seconds = 2592000")
    else:
        last = rows(source.port, "SHOW BINARY LOGS")[-1][0]
        rows(source.port, f"PURGE BINARY LOGS TO '{last}'")
        expect(f"{what}: files", [row[0] for row in rows(source.port, "SHOW BINARY LOGS")], [last])
    replica = servers.again(replica)
    for _ in range(2):
        found = until(what, 10, lambda: status(replica)[0] == "No" and status(replica))
        expect(f"{what}: it says so: {found}", found[2] in ("1236", "13114") and "purged" in found[3], True)
        rows(replica.port, "START REPLICA")
    expect(f"{what}: nothing changes", (holds(replica), rows(replica.port, "SELECT @@gtid_executed")), (before, had))
    rows(replica.port, "STOP REPLICA; RESET REPLICA ALL")
    if kills:
        dump = subprocess.run(["mariadb-dump", "--no-defaults", "-h127.0.0.1", f"-P{source.port}", "-uroot", "--single-transaction", "--add-drop-database", "--databases", "a"], capture_output=True, text=True)
        expect(f"{what}: dump: {dump.stderr}", dump.returncode, 0)
        subprocess.run(client(replica.port), input=dump.stdout, text=True, check=True)
        executed = rows(source.port, "SELECT @@gtid_executed")[0][0]
        rows(replica.port, f"RESET BINARY LOGS AND GTIDS; SET GLOBAL gtid_purged = '{executed}'")
    else:
        allow(source, replica)
        expect(f"{what}: it is cloned", run(replica.port, clone(source)).split(" at ")[0], "ERROR 3707 (HY000)")
        wait_end(replica)
        replica = servers.again(replica)
    follow(source, replica)
    write_much(source, 2, NARROW)
    catch_up(source, replica)
    expect(f"{what}: rows", holds(replica), holds(source))
    print(f"ok: {what}: {files} files; it said: {found[2]} {found[3][:150]}; it follows again after a {'dump' if kills else 'clone'}", flush=True)
    return replica


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    has_disks = os.environ.get("FULL_DISK_INSIDE") == "1"
    if not has_disks:
        unshare = ["unshare", "-rm", "--propagation", "private"]
        if shutil.which("unshare") and not subprocess.run([*unshare, "sh", "-c", "d=$(mktemp -d) && mount -t tmpfs tmpfs $d && umount $d && rmdir $d"], capture_output=True).returncode:
            os.execvpe("unshare", [*unshare, sys.executable, *sys.argv], {**os.environ, "FULL_DISK_INSIDE": "1"})
    print(f"seed {options.seed}", flush=True)
    chance = random.Random(options.seed)
    top = pathlib.Path(tempfile.mkdtemp())
    if has_disks:
        for scenario in (replica_is_full, source_is_full):
            (top / scenario.__name__).mkdir()
            with Servers(options.squalld, top / scenario.__name__) as servers:
                disk = scenario(servers, chance)
            disk.remove()
    else:
        print("a full disk: left out, no file system can be mounted here")
    (top / "away").mkdir()
    with Servers(options.squalld, top / "away") as servers:
        away(servers, chance)
    shutil.rmtree(top)
    print("ok")


if __name__ == "__main__":
    main()
