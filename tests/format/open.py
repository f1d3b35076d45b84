#!/usr/bin/env python3
"""Data directories of earlier builds: this one opens each, finds all that was in it, and goes on writing.

    tests/format/open.py [--squalld target/debug/squalld] [--make NAME]

`NAME.tar.gz` is the storage of a server that was killed: pages on disk, a log behind the checkpoint, and a transaction that never ended. `NAME.txt` holds what
the queries of `QUERIES` answered before. Neither is ever made again under the same name: `--make`, run by hand for a release, adds a set. A set of a build that was not
released yet may go when the formats change on purpose.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "crash"))

from kill_loop import Server, free_port  # noqa: E402

#: In the pages: the server stops after it.
BEFORE = """
CREATE DATABASE golden CHARACTER SET utf8mb4;
USE golden;
CREATE TABLE kinds (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, i8 TINYINT, i64 BIGINT, u64 BIGINT UNSIGNED, d DECIMAL(30,10), f FLOAT, g DOUBLE, b BIT(12), c CHAR(9),
  v VARCHAR(300), x VARBINARY(40), t TEXT, l LONGBLOB, e ENUM('one','two','three'), s SET('a','b','c'), y YEAR, dt DATE, tm TIME(3), dtt DATETIME(6), ts TIMESTAMP NULL,
  j JSON, n INT GENERATED ALWAYS AS (i8 * 2) STORED, w INT GENERATED ALWAYS AS (i8 + 1) VIRTUAL, KEY by_v (v(20), i8 DESC), UNIQUE KEY by_i (i64), KEY by_d (d), KEY by_w (w));
INSERT INTO kinds (i8, i64, u64, d, f, g, b, c, v, x, t, l, e, s, y, dt, tm, dtt, ts, j) VALUES
  (-128, -9223372036854775808, 18446744073709551615, -12345678901234567890.0123456789, -1.5, 1e300, b'101', 'abc ', 'Zoë 💩', x'00ff00', REPEAT('text ', 2000), REPEAT(x'00', 40000),
   'two', 'a,c', 2026, '2026-11-22', '-12:34:56.789', '2026-11-22 01:02:03.456789', '2020-02-29 12:00:00', '{"a": [1, 2.5, "x", null, true], "b": {"c": "d"}}'),
  (127, 9223372036854775807, 0, 0, 0, -0.0, NULL, '', '', '', '', '', 'one', '', 1901, '1000-01-01', '00:00:00', '9999-12-31 23:59:59', NULL, 'null');
INSERT INTO kinds (i8) VALUES (NULL), (0);
CREATE TABLE rows_ (a INT, b VARCHAR(60), KEY (b));
INSERT INTO rows_ WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, CONCAT('row ', i * 7919 % 900) FROM n;
DELETE FROM rows_ WHERE a % 5 = 0;
CREATE TABLE parent (id INT PRIMARY KEY, name VARCHAR(20) COLLATE utf8mb4_0900_as_cs, UNIQUE (name));
CREATE TABLE child (id INT PRIMARY KEY, parent_id INT, CONSTRAINT fk FOREIGN KEY (parent_id) REFERENCES parent (id) ON DELETE CASCADE, CHECK (id > 0));
INSERT INTO parent VALUES (1, 'A'), (2, 'a'), (3, 'ä');
INSERT INTO child VALUES (1, 1), (2, 1), (3, 3);
ALTER TABLE parent ADD COLUMN late INT NOT NULL DEFAULT 7, ALGORITHM=INSTANT;
CREATE TABLE gone (id INT PRIMARY KEY);
CREATE VIEW seen AS SELECT p.name, COUNT(c.id) AS children FROM parent p LEFT JOIN child c ON c.parent_id = p.id GROUP BY p.name;
CREATE USER reader IDENTIFIED BY 'secret';
GRANT SELECT ON golden.* TO reader;
"""

#: In the log only: the server is killed after it.
AFTER = """
USE golden;
UPDATE kinds SET v = REPEAT('new ', 60), l = REPEAT('L', 30000), i8 = 5 WHERE id = 2;
DELETE FROM parent WHERE id = 3;
INSERT INTO parent VALUES (4, 'late', 8);
ALTER TABLE rows_ ADD INDEX by_a (a), ADD COLUMN more INT DEFAULT 3;
INSERT INTO rows_ SELECT a + 10000, b, 4 FROM rows_ WHERE a < 200;
CREATE TABLE in_the_log (id INT PRIMARY KEY, t VARCHAR(20)) CHARACTER SET latin1;
INSERT INTO in_the_log VALUES (1, 'größe'), (2, NULL);
DROP TABLE gone;
"""

#: Ends with the server.
UNFINISHED = "USE golden; BEGIN; UPDATE rows_ SET b = 'never' WHERE a < 500; INSERT INTO in_the_log VALUES (3, 'never'); DELETE FROM kinds; SELECT SLEEP(1000);"

TABLES = ("kinds", "rows_", "parent", "child", "in_the_log")
QUERIES = [
    "SELECT id, i8, i64, u64, d, f, g, HEX(b), c, v, HEX(x), LENGTH(t), CRC32(t), LENGTH(l), CRC32(l), e, s, y, dt, tm, dtt, ts, j, n, w FROM golden.kinds ORDER BY id",
    "SELECT COUNT(*), SUM(a), SUM(CRC32(b)), SUM(more) FROM golden.rows_ FORCE INDEX (by_a) WHERE a > 0",
    "SELECT COUNT(*), MIN(b), MAX(b) FROM golden.rows_ FORCE INDEX (b) WHERE b >= ''",
    "SELECT * FROM golden.parent ORDER BY id",
    "SELECT * FROM golden.seen ORDER BY name",
    "SELECT * FROM golden.in_the_log ORDER BY id",
    *(f"SHOW CREATE TABLE golden.{table}" for table in TABLES),
    "SHOW CREATE VIEW golden.seen",
    "SHOW TABLES FROM golden",
    "SHOW GRANTS FOR reader",
    "SELECT auto_increment FROM information_schema.tables WHERE table_schema = 'golden' AND table_name = 'kinds'",
]


def run(port, sql, *more):
    client = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-N", "--default-character-set=utf8mb4", *(more or ["-uroot"])]
    done = subprocess.run(client, input=sql, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{sql[:200]}: {done.stderr}")
    return done.stdout


def answers(port):
    return "".join(f"> {sql}\n{run(port, sql)}" for sql in QUERIES)


def make(program, name):
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    server = Server(program, folder, port)
    run(port, BEFORE)
    server.process.terminate()
    server.process.wait()
    server = Server(program, folder, port, ["--recovery-time-target-sec=86400"])
    run(port, AFTER)
    known = answers(port)
    client = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-e", UNFINISHED]
    unfinished = subprocess.Popen(client, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while "SLEEP" not in run(port, "SELECT info FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"):
        time.sleep(0.05)
    # What the transaction wrote is in the log when a later commit is.
    run(port, "CREATE DATABASE golden_end")
    server.kill()
    unfinished.wait()
    with tarfile.open(HERE / f"{name}.tar.gz", "w:gz", compresslevel=9) as archive:
        for file in sorted((folder / "data" / "storage").iterdir()):
            archive.add(file, f"storage/{file.name}", filter=anonymous)
    (HERE / f"{name}.txt").write_text(known)
    shutil.rmtree(folder)


def anonymous(entry):
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def check(program, archive, previous):
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    (folder / "data").mkdir()
    with tarfile.open(archive) as files:
        files.extractall(folder / "data")
    expected = archive.with_name(archive.name.removesuffix(".tar.gz") + ".txt").read_text()
    # The second time nothing is left to recover. Then the way back, and forth again.
    back = [previous, program] if previous else []
    for start, starts in enumerate([program, program, *back], 1):
        server = Server(starts, folder, port)
        seen = answers(port)
        if seen != expected:
            (folder / "seen").write_text(seen)
            subprocess.run(["diff", archive.with_name(archive.name.removesuffix(".tar.gz") + ".txt"), folder / "seen"])
            raise SystemExit(f"{archive.name}, start {start}: other answers than before")
        for table in TABLES:
            verdict = run(port, f"CHECK TABLE golden.{table}")
            if not verdict.strip().endswith("OK"):
                raise SystemExit(f"{archive.name}, start {start}: {verdict}")
        if run(port, "SELECT COUNT(*) FROM golden.parent", "-ureader", "-psecret").strip() != "3":
            raise SystemExit("a user of before does not see the table")
        # In present formats from here on; what was there stays the same.
        run(port, "USE golden; UPDATE kinds SET i8 = 9, v = 'now', l = REPEAT('x', 50000) WHERE id = 4; UPDATE kinds SET i8 = 0, v = NULL, l = NULL WHERE id = 4; "
                  "UPDATE rows_ SET b = CONCAT(b, '!'); UPDATE rows_ SET b = TRIM(TRAILING '!' FROM b); ALTER TABLE parent ADD COLUMN now INT DEFAULT 1; "
                  "ALTER TABLE parent DROP COLUMN now; INSERT INTO in_the_log VALUES (9, 'now'); DELETE FROM in_the_log WHERE id = 9")
        server.process.terminate()
        server.process.wait()
    shutil.rmtree(folder)


def command(about, folder, make, check, passed):
    """Makes a set in `folder`, or checks all that are there, as the command line says."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--make", metavar="NAME")
    parser.add_argument("--previous", metavar="PROGRAM", help="the program of the version before, which opens what the present one has written")
    options = parser.parse_args()
    if options.make:
        if (folder / f"{options.make}.tar.gz").exists():
            raise SystemExit(f"{options.make} is there")
        return make(options.squalld, options.make)
    archives = sorted(folder.glob("*.tar.gz"))
    if not archives:
        raise SystemExit("no sets")
    for archive in archives:
        check(options.squalld, archive, options.previous)
    print(f"{len(archives)} {passed}")
    if options.previous:
        print("and the previous version opens them again")


if __name__ == "__main__":
    command(__doc__, HERE, make, check, "passed, 0 failed")
