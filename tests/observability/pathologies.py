#!/usr/bin/env python3
"""Ten things that go wrong in production are planted, and each is found from SQL alone.

    tests/observability/pathologies.py [--squalld target/debug/squalld] [only ...]

A hot row, a missing index, a purge that lags, a device that syncs in 20 ms, a thread that never yields, a plan that flipped, memory held by one session, a mutex
that is fought for (and unlocks that cost nothing), an ALTER whose end nobody knows, an index that nobody reads. docs/observability.md explains the tables.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))
from kill_loop import Server, free_port  # noqa: E402

SLOW_SYNC = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
static void slow(void) { usleep(20000); }
int fsync(int file) { slow(); return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file); }
int fdatasync(int file) { slow(); return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file); }
"""


def client(port, *more):
    return ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", *more]


class Session:
    """A connection that keeps running what it is given."""

    def __init__(self, port):
        self.process = subprocess.Popen(client(port, "--force", "--unbuffered"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.id = self.ask("SELECT CONNECTION_ID()")

    def send(self, sql):
        self.process.stdin.write(sql + ";\n")
        self.process.stdin.flush()

    def ask(self, sql):
        self.send(sql)
        return self.process.stdout.readline().rstrip("\n")

    def close(self):
        self.process.kill()
        self.process.wait()


class World:
    def __init__(self, program):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="squall-pathologies-"))
        self.program = program
        self.servers = []
        self.sessions = []
        self.server = self.start()

    def start(self, program=None, extra=()):
        folder = self.folder / str(len(self.servers))
        folder.mkdir()
        server = Server(program or self.program, folder, free_port(), ("--json-server-port=0", *extra))
        self.servers.append(server)
        return server

    def session(self, server=None):
        session = Session((server or self.server).port)
        self.sessions.append(session)
        return session

    def rows(self, sql, server=None):
        done = subprocess.run(client((server or self.server).port, "-e", sql), capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{sql}\n{done.stderr}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def until(self, what, sql, is_found, server=None, seconds=20):
        """Asks until the answer shows it."""
        ends = time.time() + seconds
        while True:
            found = self.rows(sql, server)
            if is_found(found):
                print(f"  {sql}\n  -> {found[0] if found else found}", flush=True)
                return found
            if time.time() > ends:
                raise SystemExit(f"{what} is not found by\n{sql}\n{found}")
            time.sleep(0.2)

    def close(self):
        for session in self.sessions:
            session.close()
        for server in self.servers:
            if server.process.poll() is None:
                server.kill()


def table(world, rows=2000):
    world.rows("SET cte_max_recursion_depth = 1000000; DROP DATABASE IF EXISTS p; CREATE DATABASE p; CREATE TABLE p.t (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(100), KEY ka (a)); "
               f"INSERT INTO p.t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i, i % 97, REPEAT('x', 60) FROM n")


def digests(world, also=()):
    for consumer in ("statements_digest", *also):
        world.rows(f"UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = '{consumer}'")


def hot_row(world):
    table(world)
    holder, *others = (world.session() for _ in range(4))
    holder.send("BEGIN; UPDATE p.t SET b = 'held' WHERE id = 7")
    time.sleep(0.3)
    for other in others:
        other.send("UPDATE p.t SET b = 'wanted' WHERE id = 7")
    world.until("who holds the row", "SELECT t.PROCESSLIST_ID, l.LOCK_DATA, COUNT(*) FROM performance_schema.data_lock_waits w "
                "JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.BLOCKING_ENGINE_LOCK_ID JOIN performance_schema.threads t ON t.THREAD_ID = l.THREAD_ID "
                "WHERE l.LOCK_STATUS = 'GRANTED' GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 1", lambda found: found and found[0][0] == holder.id and found[0][1] == "7")
    world.until("what waits", "SELECT DIGEST_TEXT, WAIT, COUNT(*) FROM data_dictionary.ACTIVE_SESSION_HISTORY WHERE WAIT_CLASS = 'LOCK' GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 1",
                lambda found: found and "UPDATE" in found[0][0] and found[0][1] == "row lock")
    holder.send("COMMIT")


def missing_index(world):
    table(world, 5000)
    digests(world)
    world.rows("TRUNCATE TABLE performance_schema.events_statements_summary_by_digest")
    for _ in range(20):
        world.rows("SELECT id FROM p.t WHERE b = 'none'; SELECT id FROM p.t WHERE a = 3 LIMIT 1; SELECT b FROM p.t WHERE id = 4")
    world.until("the statement without an index", "SELECT DIGEST_TEXT, SUM_NO_INDEX_USED, SUM_ROWS_EXAMINED DIV COUNT_STAR FROM performance_schema.events_statements_summary_by_digest "
                "WHERE SUM_NO_INDEX_USED > 0 AND SCHEMA_NAME IS NULL ORDER BY SUM_ROWS_EXAMINED DESC LIMIT 1", lambda found: found and "`b` = ?" in found[0][0] and found[0][2] == "5000")


def purge_lag(world):
    table(world)
    old = world.session()
    old.ask("BEGIN; SELECT COUNT(*) FROM p.t")
    for n in range(150):
        world.rows(f"UPDATE p.t SET a = a + 1 WHERE id <= 20")
    world.until("the lag", "SELECT STATISTIC_VALUE FROM data_dictionary.ENGINE_STATISTICS WHERE STATISTIC_NAME = 'transactions_waiting_for_purge' AND ENGINE <> 'MEMORY' ORDER BY CAST(STATISTIC_VALUE AS UNSIGNED) DESC LIMIT 1",
                lambda found: found and int(found[0][0]) >= 140)
    world.until("who keeps purge back", "SELECT trx_mysql_thread_id, TIMESTAMPDIFF(MICROSECOND, trx_started, NOW(6)) FROM information_schema.INNODB_TRX ORDER BY trx_started LIMIT 1",
                lambda found: found and found[0][0] == old.id)
    old.send("COMMIT")
    world.until("the end of the lag", "SELECT MAX(CAST(STATISTIC_VALUE AS UNSIGNED)) FROM data_dictionary.ENGINE_STATISTICS WHERE STATISTIC_NAME = 'transactions_waiting_for_purge'",
                lambda found: int(found[0][0]) < 20)


def slow_sync(world):
    source, library = world.folder / "slow.c", world.folder / "slow.so"
    source.write_text(SLOW_SYNC)
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"  left out: {error}")
        return
    program = world.folder / "slow-squalld"
    program.write_text(f"#!/bin/sh\nLD_PRELOAD={library} exec {pathlib.Path(world.program).resolve()} \"$@\"\n")
    program.chmod(0o755)
    server = world.start(str(program))
    world.until("the probe", "SELECT @@storage_sync_us", lambda found: int(found[0][0]) >= 20000, server)
    world.rows("CREATE DATABASE p; CREATE TABLE p.s (i INT)", server)
    for n in range(10):
        world.rows(f"INSERT INTO p.s VALUES ({n})", server)
    world.until("the slow operation", "SELECT FILE_CLASS, OPERATION, P50_US FROM data_dictionary.IO_STATS WHERE REQUESTS > 5 ORDER BY P50_US DESC LIMIT 1",
                lambda found: found and found[0][1] == "sync" and int(found[0][2]) >= 20000, server)
    server.kill()


def never_yields(world):
    busy = world.session()
    busy.send("SELECT BENCHMARK(1000000000000, MD5('pants'))")
    world.until("the thread", "SELECT CONNECTION_ID, STATE, RUN_NS FROM data_dictionary.THREAD_STATES WHERE CONNECTION_ID <> CONNECTION_ID() AND STATE = 'running' ORDER BY RUN_NS DESC LIMIT 1",
                lambda found: found and found[0][0] == busy.id and int(found[0][2]) > 1_000_000_000)
    world.until("its statement", "SELECT SESSION_ID, WAIT_CLASS, COUNT(*) FROM data_dictionary.ACTIVE_SESSION_HISTORY WHERE WAIT_CLASS = 'CPU' GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 1",
                lambda found: found and found[0][0] == busy.id)
    world.rows(f"KILL QUERY {busy.id}")


def plan_flipped(world):
    table(world)
    digests(world, ["events_statements_history_long"])
    world.rows("TRUNCATE TABLE performance_schema.events_statements_history_long")
    for _ in range(5):
        world.rows("SELECT id FROM p.t WHERE a = 5 ORDER BY id LIMIT 3")
    world.rows("ALTER TABLE p.t ALTER INDEX ka INVISIBLE")
    for _ in range(5):
        world.rows("SELECT id FROM p.t WHERE a = 6 ORDER BY id LIMIT 3")
    world.until("the statement with two plans", "SELECT DIGEST_TEXT, SUM(NO_INDEX_USED), SUM(NO_INDEX_USED = 0), MIN(ROWS_EXAMINED), MAX(ROWS_EXAMINED) "
                "FROM performance_schema.events_statements_history_long WHERE EVENT_NAME = 'statement/sql/select' GROUP BY DIGEST, DIGEST_TEXT HAVING COUNT(DISTINCT NO_INDEX_USED) = 2 ORDER BY COUNT(*) DESC LIMIT 1",
                lambda found: found and "`a` = ?" in found[0][0] and found[0][1] == "5" and found[0][2] == "5")


def held_memory(world):
    table(world, 50000)
    world.rows("SET GLOBAL sort_buffer_size = 100000000")
    world.rows("SET GLOBAL tmp_table_size = 100000000")
    holder = world.session()
    holder.send("SELECT SUM(n) FROM (SELECT ROW_NUMBER() OVER (ORDER BY b, id DESC) + SLEEP(IF(id = 1, 20, 0)) AS n FROM p.t) x")
    world.until("the session", "SELECT CONNECTION_ID, HELD_BYTES FROM data_dictionary.THREAD_STATES ORDER BY HELD_BYTES DESC LIMIT 1",
                lambda found: found and found[0][0] == holder.id and int(found[0][1]) >= 1 << 20)
    world.rows(f"KILL QUERY {holder.id}")
    world.until("that it is free again", "SELECT MAX(HELD_BYTES) FROM data_dictionary.THREAD_STATES", lambda found: found[0][0] == "0")


def mutex(world):
    world.rows("SET GLOBAL lock_stats = ON")
    sessions = [world.session() for _ in range(8)]
    for session in sessions:
        session.send("DO BENCHMARK(300000, GET_LOCK('fought', 0) + RELEASE_LOCK('fought'))")
    world.until("the mutex", "SELECT NAME, WAITS, SPIN_LOOPS_UNLOCK, SPIN_NS_UNLOCK DIV ACQUIRES FROM data_dictionary.LOCK_STATS WHERE KIND = 'mutex' AND ACQUIRES > 10000 ORDER BY WAIT_NS DESC LIMIT 1",
                lambda found: found and int(found[0][1]) > 0 and found[0][2] == "0")
    world.rows("SET GLOBAL lock_stats = OFF")


def long_alter(world):
    table(world, 200000)
    world.rows("UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'events_stages_current'")
    session = world.session()
    session.send("ALTER TABLE p.t MODIFY b VARCHAR(100) CHARACTER SET latin1, ALGORITHM = COPY")
    world.until("how far the copy is", "SELECT THREAD_ID, EVENT_NAME, WORK_COMPLETED, WORK_ESTIMATED FROM performance_schema.events_stages_current WHERE EVENT_NAME LIKE '%copy to tmp table'",
                lambda found: found and found[0][0] == session.id and 0 < int(found[0][2]) <= int(found[0][3]))
    world.until("that it has ended", "SELECT COUNT(*) FROM performance_schema.events_stages_current WHERE EVENT_NAME LIKE '%table%'", lambda found: found[0][0] == "0")


def unused_index(world):
    table(world)
    world.rows("ALTER TABLE p.t ADD KEY kb (b)")
    world.rows("UPDATE performance_schema.setup_instruments SET ENABLED = 'YES' WHERE NAME = 'wait/io/table/sql/handler'")
    world.rows("SELECT b FROM p.t WHERE id = 5; SELECT COUNT(*) FROM p.t WHERE a = 5; UPDATE p.t SET b = 'y' WHERE id = 5")
    world.until("the index", "SELECT object_name, index_name FROM sys.schema_unused_indexes WHERE object_schema = 'p'", lambda found: found == [["t", "kb"]])
    world.rows("UPDATE performance_schema.setup_instruments SET ENABLED = 'NO' WHERE NAME = 'wait/io/table/sql/handler'")


CASES = [hot_row, missing_index, purge_lag, slow_sync, never_yields, plan_flipped, held_memory, mutex, long_alter, unused_index]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("only", nargs="*")
    options = parser.parse_args()
    world = World(options.squalld)
    try:
        for case in CASES:
            if options.only and case.__name__ not in options.only:
                continue
            print(case.__name__.replace("_", " "), flush=True)
            case(world)
    finally:
        world.close()
    print("ok")


if __name__ == "__main__":
    main()
