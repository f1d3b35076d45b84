#!/usr/bin/env python3
"""`squall import`: a source with every kind of object comes over whole, beside writers, interrupted and resumed, and can be followed.

    tests/import/run.py [--squalld target/debug/squalld] [--squall target/debug/squall] [--rows 60000]

The source is a Squall, and also a MySQL 9 with its binary log and GTIDs on (SQUALL_IMPORT_MYSQL=127.0.0.1:PORT) and a MariaDB 10.11
(SQUALL_IMPORT_MARIADB=127.0.0.1:PORT), each with a user root without a password, on which the test makes and drops the databases `zoo`, `farm` and `odd-näme`. Without
these two it says that they are left out.
"""

import argparse
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
#: What only a MariaDB has, as the report names it.
OF_MARIADB = ["sequence `zoo`.`sq`", "privilege DELETE HISTORY", "`u`: uuid is a text", "`i`: inet6 is a text", "COMPRESSED", "engine Aria", "uca1400", "system versioning"]


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


class Writers:
    """Transfers between accounts: their sum never changes."""

    def __init__(self, port, rows):
        self.port, self.rows, self.stop, self.done = port, rows, threading.Event(), 0
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        process = subprocess.Popen(client(self.port), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        while not self.stop.is_set():
            # Not the rows that are copied first: some ranges stay equal.
            half = self.rows // 2
            a, b = half + self.done * 7919 % half, half + self.done * 104729 % half
            process.stdin.write(f"BEGIN; UPDATE farm.big SET balance = balance - 5 WHERE id = {a}; UPDATE farm.big SET balance = balance + 5 WHERE id = {b}; COMMIT;\n")
            process.stdin.flush()
            self.done += 1
            time.sleep(0.002)
        process.stdin.close()
        process.wait()

    def end(self):
        self.stop.set()
        self.thread.join()


def importing(options, source, target, *more, databases=DATABASES):
    return [options.squall, "import", f"mysql://root@127.0.0.1:{source}/", *databases, "--into", f"mysql://root@127.0.0.1:{target}", "--range-mb", "1", *more]


def dump(port, *more):
    command = ["mariadb-dump", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "--skip-comments", "--routines", "--events", "--triggers", "--hex-blob",
               "--default-character-set=utf8mb4", *more, "--databases", *DATABASES]
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


def interrupted(options, source, target, folder):
    """Kills the import when some of its ranges are there; rows change; it goes on."""
    log = open(folder / "interrupted", "w")
    process = subprocess.Popen(importing(options, source, target, "--threads", "2"), stdout=log, stderr=log)
    wanted = "SELECT COUNT(*) FROM farm.big"
    while process.poll() is None:
        done = subprocess.run(client(target, "root", "-e", wanted), capture_output=True, text=True)
        if done.returncode == 0 and int(done.stdout) > options.rows // 4:
            break
        time.sleep(0.01)
    check(process.poll() is None, "the import is interrupted while it copies")
    process.kill()
    process.wait()
    check(ask(target, "SELECT COUNT(*) FROM squall_import.objects WHERE kind = 'database'") == "3\n", "the target knows what it has begun")
    ask(source, "DELETE FROM farm.big WHERE id < 50; INSERT INTO farm.texts VALUES ('new', 1, 'x'); ALTER TABLE zoo.nokey ADD late INT DEFAULT 4; "
                "UPDATE farm.big SET balance = balance + 50 * 100 - 100 WHERE id = 60")


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
    server = Server(options.squalld, folder, free_port(), ["--server-id=77"])
    target = server.port
    interrupted(options, source, target, folder)
    writers = Writers(source, options.rows)
    time.sleep(0.3)
    before = writers.done
    done = subprocess.run(importing(options, source, target), capture_output=True, text=True)
    beside = writers.done - before
    writers.end()
    (folder / "report").write_text(done.stdout + done.stderr)
    report = done.stdout + done.stderr
    if (done.returncode != 0) != bool(missing):
        raise SystemExit(f"squall import: {done.returncode}\n{report}")
    check(all(text in report for text in missing), f"the report names what is missing: {len(missing)} things")
    kept, ranges = map(int, re.search(r"(\d+) of (\d+) ranges were equal already", report).groups())
    check(0 < kept < ranges, f"{kept} of {ranges} ranges were kept")
    check(ask(target, "SELECT SUM(balance) FROM farm.big").strip() == str(options.rows * 100), f"one moment of the source, beside {beside} transactions")
    check("squall_import" not in ask(target, "SHOW DATABASES"), "nothing is left of the import")
    if not missing:
        follow(source, target, report)
        ask(target, "STOP REPLICA")
        theirs, ours = dump(source, *dump_options).splitlines(), dump(target).splitlines()
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--squall", default="target/debug/squall")
    parser.add_argument("--rows", type=int, default=60000)
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="import-"))
    for name in ("source", "own", "mysql", "mariadb"):
        (folder / name).mkdir()
    source = Server(options.squalld, folder / "source", free_port(), ["--log-bin"])
    one(options, "from Squall", source.port, folder / "own", "tables.sql", "programs.sql", "mysql.sql")
    source.process.terminate()
    source.process.wait()
    for name, variable, last, more in (("MySQL", "SQUALL_IMPORT_MYSQL", "mysql.sql", {"dump_options": ["--ssl=0"]}),
                                       ("MariaDB", "SQUALL_IMPORT_MARIADB", "mariadb.sql", {"missing": OF_MARIADB})):
        address = os.environ.get(variable)
        if not address:
            print(f"LEFT OUT: the import from {name}: {variable} names no server", flush=True)
            continue
        one(options, f"from {name}", int(address.rsplit(":", 1)[1]), folder / name.lower(), "tables.sql", "programs.sql", last, **more)
    shutil.rmtree(folder)
    print("import: passed")


if __name__ == "__main__":
    main()
