#!/usr/bin/env python3
"""`squall import`: a source with every kind of object comes over whole, beside writers, interrupted and resumed, and can be followed.

    tests/import/run.py [--squalld target/debug/squalld] [--squall target/debug/squall] [--rows 60000] [--gigabytes 0] [--only Squall|MySQL|MariaDB]

The import is killed, goes on, then the target is killed, and it goes on again; with `--gigabytes 5 --squalld target/fast/squalld`, among that much. The source is a Squall, and also a MySQL 9 with its binary log and GTIDs on (SQUALL_IMPORT_MYSQL=127.0.0.1:PORT) and a MariaDB 10.11
(SQUALL_IMPORT_MARIADB=127.0.0.1:PORT), each with a user root without a password, on which the test makes and drops the databases `zoo`, `farm` and `odd-näme`. Without
these two it says that they are left out.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "crash"))

from kill_loop import Server, free_port  # noqa: E402

DATABASES = ["farm", "odd-näme", "zoo"]
#: With `--gigabytes`: table -> share of the bytes, and bytes of a row.
LARGE = {"wide": (0.6, 1000), "longs": (0.2, 256 * 1024), "named": (0.2, 500)}
#: Bytes that an INSERT of the load makes: one transaction of the source.
LOAD_BYTES = 64 << 20
#: Bytes of disk for a byte of rows: source and target with their indexes and logs.
DISK_FACTOR = 3
#: Ids that a server keeps ready for a table, which a kill loses.
IDS_GAP = 64
#: What only a MariaDB has, as the report names it.
OF_MARIADB = ["privilege DELETE HISTORY", "COMPRESSED", "engine Aria", "uca1400", "system versioning"]


def client(port, user="root", *more):
    return ["mariadb", "--no-defaults", "--default-character-set=utf8mb4", "-h127.0.0.1", f"-P{port}", f"-u{user}", "-N", "-B", *more]


def ask(port, sql, *more, user="root", fails=False):
    done = subprocess.run(client(port, user, *more), input=sql, capture_output=True, text=True)
    if (done.returncode != 0) != fails:
        raise SystemExit(f"port {port}: {sql[:2000]}\n{done.stderr}")
    return done.stdout


def check(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")
    print(f"  {what}", flush=True)


def load(port, rows, *files):
    for user in ("ann@'%'", "bob@'10.0.0.%'", "'no''pw'@localhost", "ed@'%'"):
        ask(port, f"DROP USER IF EXISTS {user}")
    for role in ("reader", "writer"):
        ask(port, f"DROP ROLE IF EXISTS {role}")
    for database in DATABASES:
        ask(port, f"DROP DATABASE IF EXISTS `{database}`")
    for file in files:
        ask(port, (HERE / file).read_text())
    ask(port, f"""USE farm; CREATE TABLE big (id INT PRIMARY KEY AUTO_INCREMENT, balance INT NOT NULL, filler VARCHAR(400), KEY (balance));
        CREATE TABLE texts (k VARCHAR(40) PRIMARY KEY, n INT, filler VARCHAR(400));
        CREATE TABLE digits (d INT); INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
        INSERT INTO big (balance, filler) SELECT 100, REPEAT('x', 300) FROM digits a, digits b, digits c, digits d, digits e, digits f LIMIT {rows};
        INSERT INTO texts SELECT CONCAT(CRC32(id), '-', id), id, filler FROM big LIMIT {rows // 4}; ANALYZE TABLE big, texts""")


def load_large(port, gigabytes):
    """Tables whose copy takes minutes: long rows, long values, a key that is a text. The load stays out of the binary log."""
    ask(port, """USE farm; CREATE TABLE wide (id BIGINT PRIMARY KEY AUTO_INCREMENT, k INT UNSIGNED, at DATETIME(6), balance INT NOT NULL, name VARCHAR(60), filler VARBINARY(1000), KEY (k));
        CREATE TABLE longs (id INT PRIMARY KEY, at DATE, body LONGBLOB); CREATE TABLE named (k VARCHAR(60) PRIMARY KEY, n BIGINT, filler VARCHAR(400))""")
    ordinal = "a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d"
    # `n` is the row's number and `h` 64 bytes that no other row has.
    rows = "FROM (SELECT {ordinal} + {first} AS n, SHA2({ordinal} + {first}, 512) AS h FROM farm.digits a, farm.digits b, farm.digits c, farm.digits d, farm.digits e WHERE {ordinal} < {count} ORDER BY n) t"
    selects = {"wide": "SELECT n + 1, CRC32(h), '2020-01-01' + INTERVAL n SECOND, 100, CONCAT('name ', LEFT(h, 40)), REPEAT(UNHEX(h), 14)",
               "longs": "SELECT n, '2020-01-01' + INTERVAL n HOUR, REPEAT(UNHEX(h), 4096)", "named": "SELECT CONCAT(LEFT(h, 20), '-', n), n, REPEAT(h, 3)"}
    for table, (share, row_bytes) in LARGE.items():
        count, step = int(gigabytes * share * (1 << 30) / row_bytes), min(100000, LOAD_BYTES // row_bytes)
        for first in range(0, count, step):
            made = rows.format(ordinal=ordinal, first=first, count=min(step, count - first))
            ask(port, f"SET sql_log_bin = 0; INSERT INTO farm.{table} {selects[table]} {made}")
    ask(port, "SET sql_log_bin = 0; USE farm; ANALYZE TABLE wide, longs, named")


class Writers:
    """Transfers between accounts: their sum never changes."""

    def __init__(self, port, rows, wide_rows):
        self.port, self.rows, self.wide_rows, self.stop, self.done = port, rows, wide_rows, threading.Event(), 0
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def work(self):
        process = subprocess.Popen(client(self.port), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        while not self.stop.is_set():
            # Not the rows that are copied first: some ranges stay equal.
            half = self.rows // 2
            a, b = half + self.done * 7919 % half, half + self.done * 104729 % half
            from_wide = ""
            if self.wide_rows:
                wide = self.wide_rows // 2 + self.done * 7919 % (self.wide_rows // 2)
                from_wide = f"UPDATE farm.wide SET balance = balance - 1 WHERE id = {wide}; UPDATE farm.big SET balance = balance + 1 WHERE id = {a}; "
            process.stdin.write(f"BEGIN; UPDATE farm.big SET balance = balance - 5 WHERE id = {a}; {from_wide}UPDATE farm.big SET balance = balance + 5 WHERE id = {b}; COMMIT;\n")
            process.stdin.flush()
            self.done += 1
            time.sleep(0.002)
        process.stdin.close()
        process.wait()

    def end(self):
        self.stop.set()
        self.thread.join()


def importing(options, source, target, *more, databases=DATABASES):
    ranges = [] if options.gigabytes else ["--range-mb", "1"]
    return [options.squall, "import", f"mysql://root@127.0.0.1:{source}/", *databases, "--into", f"mysql://root@127.0.0.1:{target}", *ranges, *more]


def dump(port, *more):
    command = ["mariadb-dump", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "--skip-comments", "--routines", "--events", "--triggers", "--hex-blob",
               "--default-character-set=utf8mb4", *(f"--ignore-table=farm.{table}" for table in LARGE), *more, "--databases", *DATABASES]
    text = subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="backslashreplace")
    # The same in other words; ids go on from wherever the writers were.
    for ours, theirs in ((" CHARACTER SET latin1 COLLATE", " COLLATE"), ("PRESERVE DISABLE ON REPLICA", "PRESERVE ENABLE")):
        text = text.replace(ours, theirs)
    return text


def accounts(port):
    shown = []
    for user in ("ann@'%'", "bob@'10.0.0.%'", "'no''pw'@localhost", "reader", "writer"):
        shown.append(ask(port, f"SET print_identified_with_as_hex = ON; SHOW CREATE USER {user}"))
        shown += sorted(ask(port, f"SHOW GRANTS FOR {user}").splitlines())
    shown.append(ask(port, "SELECT user, host, plugin, HEX(authentication_string) FROM mysql.user WHERE user IN ('ann', 'bob', 'no''pw') ORDER BY user"))
    return [line for line in shown if "GRANT USAGE" not in line]


def begun(options, source, target, folder, share):
    """An import on its way: it has copied `share` of the largest table."""
    table, rows = ("wide", options.wide_rows) if options.gigabytes else ("big", options.rows)
    log = open(folder / f"interrupted at {share}", "w")
    process = subprocess.Popen(importing(options, source, target, "--threads", "2"), stdout=log, stderr=log)
    options.ends.callback(process.kill)
    while process.poll() is None:
        done = subprocess.run(client(target, "root", "-e", f"SELECT COUNT(*) FROM farm.{table}"), capture_output=True, text=True)
        if done.returncode == 0 and int(done.stdout) > rows * share:
            break
        time.sleep(2 if options.gigabytes else 0.01)
    check(process.poll() is None, f"the import is interrupted while it copies, {share:.0%} are there")
    return process


def interrupted(options, source, target, folder):
    """Kills the import when some of its ranges are there; rows change; it goes on; the target is killed; it goes on again."""
    process = begun(options, source, target.port, folder, 0.25)
    process.kill()
    process.wait()
    check(ask(target.port, "SELECT COUNT(*) FROM squall_import.objects WHERE kind = 'database'") == "3\n", "the target knows what it has begun")
    ask(source, "DELETE FROM farm.big WHERE id < 50; INSERT INTO farm.texts VALUES ('new', 1, 'x'); ALTER TABLE zoo.nokey ADD late INT DEFAULT 4; "
                "UPDATE farm.big SET balance = balance + 50 * 100 - 100 WHERE id = 60")
    process = begun(options, source, target.port, folder, 0.5)
    target.kill()
    check(process.wait(60) == 1, "the import ends with its target")
    again = Server(options.squalld, folder, target.port, target.extra)
    options.ends.callback(again.process.kill)
    print(f"  the target is there again after {again.seconds:.1f} s", flush=True)
    return again


#: What each row of the large tables is, in words of either server.
SUMS = {"wide": "SUM(CRC32(CONCAT_WS('#', id, k, at, balance, name, filler)))", "longs": "SUM(CRC32(CONCAT_WS('#', id, at, body)))",
        "named": "SUM(CRC32(CONCAT_WS('#', k, n, filler)))"}


def same_large(source, target, where):
    """Sums that the import has no part in. `where` leaves out what the writers changed since."""
    for table, expression in SUMS.items():
        asked = f"SELECT COUNT(*), {expression} FROM farm.{table} {where.get(table, '')}"
        theirs, ours = ask(source, asked), ask(target, asked)
        check(theirs == ours, f"{table}: rows and sum of CRC32 are {ours.split()}")


def follow(source, target, report):
    """What the report prints lets the target go on from the moment of the import."""
    statement = report[report.index("to follow the source from"):].split("\n", 1)[1].split("START REPLICA;")[0]
    ask(target, statement.replace("'...'", "''") + "START REPLICA")
    ask(source, "INSERT INTO farm.big (balance, filler) VALUES (1, 'the last')")
    asked = "SELECT SUM(id * balance), COUNT(*), MAX(CRC32(filler)) FROM farm.big"
    limit, there = time.monotonic() + 60, ask(source, asked)
    while ask(target, asked) != there:
        if time.monotonic() > limit:
            raise SystemExit("the target does not follow:\n" + ask(target, "SHOW REPLICA STATUS\\G"))
        time.sleep(0.1)
    check(True, "it follows the source from there on")


def one(options, name, source, folder, *files, dump_options=(), missing=()):
    print(f"{name}:", flush=True)
    load(source, options.rows, *files)
    options.wide_rows = 0
    if options.gigabytes:
        began = time.monotonic()
        load_large(source, options.gigabytes)
        bytes_there, options.wide_rows = map(int, ask(source, "SELECT SUM(data_length + index_length), (SELECT MAX(id) FROM farm.wide) FROM information_schema.tables WHERE table_schema = 'farm'").split())
        print(f"  the source has {bytes_there / (1 << 30):.2f} GiB in `farm`, loaded in {time.monotonic() - began:.0f} s", flush=True)
    pool = ["--innodb-buffer-pool-size=1G"] if options.gigabytes else []
    server = Server(options.squalld, folder, free_port(), ["--server-id=77", *pool])
    options.ends.callback(server.process.kill)
    target = server.port
    if not options.gigabytes:
        server = interrupted(options, source, server, folder)
    with Writers(source, options.rows, options.wide_rows) as writers:
        if options.gigabytes:
            server = interrupted(options, source, server, folder)
        time.sleep(0.3)
        before, began = writers.done, time.monotonic()
        done = subprocess.run(importing(options, source, target), capture_output=True, text=True)
        beside = writers.done - before
        print(f"  the last call took {time.monotonic() - began:.0f} s", flush=True)
    (folder / "report").write_text(done.stdout + done.stderr)
    report = done.stdout + done.stderr
    if (done.returncode != 0) != bool(missing):
        raise SystemExit(f"squall import: {done.returncode}\n{report}")
    check(all(text in report for text in missing), f"the report names what is missing: {len(missing)} things")
    kept, ranges = map(int, re.search(r"(\d+) of (\d+) ranges were equal already", report).groups())
    check(0 < kept < ranges, f"{kept} of {ranges} ranges were kept")
    balances = "SELECT SUM(balance) FROM farm.big" + (" UNION ALL SELECT SUM(balance) FROM farm.wide" if options.gigabytes else "")
    check(sum(map(int, ask(target, balances).split())) == (options.rows + options.wide_rows) * 100, f"one moment of the source, beside {beside} transactions")
    check("squall_import" not in ask(target, "SHOW DATABASES"), "nothing is left of the import")
    if options.gigabytes and missing:
        same_large(source, target, {"wide": f"WHERE id < {options.wide_rows // 2}"})
    if missing is OF_MARIADB and ask(source, "SELECT @@log_bin").strip() == "1":
        check("SOURCE_AUTO_POSITION = 1, GTID_SLAVE_POS = '" in report, "the report says from where MariaDB is followed")
    if not missing:
        follow(source, target, report)
        ask(target, "STOP REPLICA")
        if options.gigabytes:
            same_large(source, target, {})
        theirs, ours = dump(source, *dump_options), dump(target)
        # The target was killed: its next ids are past a gap.
        next_id = re.compile(r" AUTO_INCREMENT=(\d+)")
        pairs = list(zip(map(int, next_id.findall(theirs)), map(int, next_id.findall(ours))))
        check(pairs and all(a <= b <= a + IDS_GAP for a, b in pairs), f"{len(pairs)} tables go on with ids that none of their rows has")
        theirs, ours = next_id.sub("", theirs).splitlines(), next_id.sub("", ours).splitlines()
        different = [(a, b) for a, b in zip(theirs, ours) if a != b]
        if different or len(theirs) != len(ours):
            (folder / "theirs").write_text("\n".join(theirs))
            (folder / "ours").write_text("\n".join(ours))
            raise SystemExit(f"dumps differ, kept in {folder}: {[(a[:300], b[:300]) for a, b in different[:3]]}")
        check(True, f"the same dump of {len(ours)} lines")
        theirs, ours = accounts(source), accounts(target)
        if theirs != ours:
            raise SystemExit(f"accounts differ: {sorted(set(theirs) ^ set(ours))}")
        check(True, "the same accounts, secrets, grants and roles")
    ask(target, "SELECT * FROM zoo.pl", "-psecret", user="ann")
    ask(target, "SELECT 1", "-pwrong", user="ann", fails=True)
    check(True, "ann logs in with her password and has her role")
    again = subprocess.run(importing(options, source, target), capture_output=True, text=True)
    check(again.returncode != 0 and "the target has a database" in again.stderr, "a database that is there is not touched")
    check("squall_import" not in ask(target, "SHOW DATABASES"), "and nothing is begun")
    alone = importing(options, source, target, "--without-lock", "--without-accounts", databases=["zoo"])
    ask(target, "SET foreign_key_checks = 0; DROP DATABASE zoo")
    again = subprocess.run(alone, capture_output=True, text=True)
    check("tables with equal checksums" in again.stdout + again.stderr and "no binary log, or --without-lock" in again.stdout + again.stderr, "one database, without a lock")
    ask(target, "SET foreign_key_checks = 0; DROP DATABASE farm")
    blind = [*alone[:2], f"mysql://ann:secret@127.0.0.1:{source}/", "farm", *alone[4:]]
    again = subprocess.run(blind, capture_output=True, text=True)
    check("ann@% has no SELECT, SHOW VIEW, TRIGGER, EVENT" in again.stdout + again.stderr, "who does not see all is told so")
    server.process.terminate()
    server.process.wait()
    ask(source, "SET foreign_key_checks = 0; " + "; ".join(f"DROP DATABASE `{database}`" for database in DATABASES))
    shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--squall", default="target/debug/squall")
    parser.add_argument("--rows", type=int, default=60000)
    parser.add_argument("--gigabytes", type=float, default=0, help="of rows in large tables of the source, for an optimised server")
    parser.add_argument("--only", choices=["Squall", "MySQL", "MariaDB"], help="the source")
    options = parser.parse_args()
    # Whatever fails, no process stays.
    with contextlib.ExitStack() as ends:
        options.ends = ends
        imports(options)
    print("import: passed")


def imports(options):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="import-"))
    if shutil.disk_usage(folder).free < options.gigabytes * DISK_FACTOR * (1 << 30):
        raise SystemExit(f"{folder}: {options.gigabytes} gigabytes need {options.gigabytes * DISK_FACTOR} of disk for source and target")
    for name in ("source", "own", "mysql", "mariadb"):
        (folder / name).mkdir()
    if options.only in (None, "Squall"):
        source = Server(options.squalld, folder / "source", free_port(), ["--log-bin"])
        options.ends.callback(source.process.kill)
        one(options, "from Squall", source.port, folder / "own", "tables.sql", "programs.sql", "mysql.sql")
        source.process.terminate()
        source.process.wait()
    for name, variable, last, more in (("MySQL", "SQUALL_IMPORT_MYSQL", "mysql.sql", {"dump_options": ["--ssl=0"]}),
                                       ("MariaDB", "SQUALL_IMPORT_MARIADB", "mariadb.sql", {"missing": OF_MARIADB})):
        if options.only not in (None, name):
            continue
        address = os.environ.get(variable)
        if not address:
            print(f"LEFT OUT: the import from {name}: {variable} names no server", flush=True)
            continue
        one(options, f"from {name}", int(address.rsplit(":", 1)[1]), folder / name.lower(), "tables.sql", "programs.sql", last, **more)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
