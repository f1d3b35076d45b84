#!/usr/bin/env python3
"""Tables that travel between servers, on two real servers: FLUSH TABLES .. FOR EXPORT on one, IMPORT TABLESPACE and IMPORT TABLE on the other.
What arrives is what left; discarded tables stay so over a restart; kill -9 and KILL in the middle of an import leave the table discarded and
whole files; a full disk, KILL and the end of a session leave no file; a damaged file changes nothing.

    tests/crash/transport.py [--squalld target/debug/squalld] [--rows 60000] [--port 0]
"""

import argparse
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import threading
import time

from kill_loop import Server, free_port


def client(port, *options):
    return ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", "--default-character-set=utf8mb4", *options]


def run(port, sql, check=True):
    done = subprocess.run(client(port, "--force", "shop"), input=sql.encode(), capture_output=True)
    # Columns of bytes need not be UTF-8.
    answer, error = (text.decode(errors="backslashreplace").strip() for text in (done.stdout, done.stderr))
    if check:
        expect(not error, sql, error)
        return answer
    return error


def expect(condition, *what):
    if not condition:
        raise SystemExit(f"transport: {what}")


class Session:
    """A client that stays connected."""

    def __init__(self, port):
        command = client(port, "-B", "-n", "--force", "--skip-reconnect", "shop")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)

    def run(self, sql):
        self.process.stdin.write(f"{sql};\nSELECT '-- over';\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline().rstrip("\n")) != "-- over":
            expect(line or self.process.poll() is None, "the client is gone", sql)
            lines.append(line)
        return "\n".join(lines)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Side:
    def __init__(self, squalld, folder, port):
        self.squalld, self.folder, self.port = squalld, folder, port
        folder.mkdir()
        self.server = None
        self.start()

    def start(self):
        self.server = Server(self.squalld, self.folder, self.port)

    def restart(self):
        self.server.kill()
        self.start()

    def data(self, *parts):
        return self.folder.joinpath("data", *parts)

    def exported(self):
        return sorted(path.name for path in self.data("export").rglob("*") if not path.is_dir())

    def take(self, other):
        """Copies what `other` has exported."""
        target = self.data("import")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(other.data("export"), target)


ALL_TYPES = """CREATE TABLE kinds (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(20) CHARACTER SET latin1, b DECIMAL(20,5), c DATETIME(3),
d TIMESTAMP(6) NULL, e ENUM('x','y','z'), f SET('p','q','r'), g JSON, h LONGBLOB, i LONGTEXT, j BIT(13), k YEAR, l DATE, m TIME(2), n DOUBLE, o FLOAT,
p GEOMETRY, q VECTOR(4), r BINARY(7), s CHAR(9), x TINYINT UNSIGNED, v INT AS (x * 2) VIRTUAL, w INT AS (x + 1) STORED, y BIGINT UNSIGNED, z UUID,
`in` INT INVISIBLE DEFAULT 7, pnt POINT SRID 4326, UNIQUE KEY (a), KEY (v), KEY (w), FULLTEXT KEY (i), KEY ((b + 1)))"""

ROWS = """INSERT INTO kinds (id, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, x, y, z, pnt) VALUES (1, 'é', -12.34567,
'2024-01-02 03:04:05.678', '2024-01-02 03:04:05.678901', 'y', 'p,r', '{"a":[1,2.5,"x",null,true],"d":{"k":1e10}}', x'00ff01', 'hello world',
b'1010101010101', 1999, '2020-02-29', '-12:34:56.78', 1.5e300, -2.5, ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))'), TO_VECTOR('[1,2,3]'), 'ab', 'cd  ', 100,
18446744073709551615, UUID(), ST_GeomFromText('POINT(10 20)', 4326));
INSERT INTO kinds (id, g) VALUES (5, JSON_OBJECT('d', DATE'2020-01-01', 't', TIME'01:02:03', 'dt', TIMESTAMP'2020-01-01 01:02:03.5', 'dec', 1.23, 'b',
CAST('x' AS BINARY)));
SET sql_mode = ''; INSERT IGNORE INTO kinds (id, c, l, e, d) VALUES (9, '0000-00-00', '2020-00-00', 'bad', 0);
INSERT INTO kinds (id, h, i) VALUES (11, REPEAT('ab', 3000000), REPEAT('word ', 400000));"""


def kinds_of_values(here, there):
    """Every kind of value, a value of several blocks, computed columns, keys, the counter."""
    for side in (here, there):
        run(side.port, ALL_TYPES)
    run(here.port, ROWS)
    holder = Session(here.port)
    expect(holder.run("FLUSH TABLES kinds FOR EXPORT") == "", "export")
    expect(here.exported() == ["kinds.squall"], here.exported())
    there.take(here)
    expect("1099" in holder.run("DELETE FROM kinds"), "the table is locked")
    holder.run("UNLOCK TABLES")
    expect(here.exported() == [], "UNLOCK TABLES removes the file")
    run(there.port, "ALTER TABLE kinds DISCARD TABLESPACE")
    there.restart()
    expect("1814" in run(there.port, "SELECT * FROM kinds", False), "discarded over a restart")
    run(there.port, "ALTER TABLE kinds IMPORT TABLESPACE")
    for sql in ("SELECT *, `in` FROM kinds ORDER BY id", "CHECKSUM TABLE kinds", "SHOW CREATE TABLE kinds"):
        expect(run(here.port, sql) == run(there.port, sql), sql)
    expect("OK" in run(there.port, "CHECK TABLE kinds"), "check")
    expect(run(there.port, "SELECT id FROM kinds WHERE MATCH (i) AGAINST ('hello')") == "1", "full text")
    run(there.port, "INSERT INTO kinds (a) VALUES ('next')")
    expect(run(there.port, "SELECT MAX(id) FROM kinds") == "12", "the counter")
    # The end of a session, however it comes, removes the file too; a crash leaves it until the next start.
    holder.run("FLUSH TABLES kinds FOR EXPORT")
    holder.process.kill()
    holder.process.wait()
    wait_until(lambda: here.exported() == [], "the end of the session removes the file")
    holder = Session(here.port)
    holder.run("FLUSH TABLES kinds FOR EXPORT")
    here.server.kill()
    expect(here.exported() == ["kinds.squall"], "a crash leaves the file")
    here.start()
    expect(here.exported() == [], "the start removes it")


def wait_until(condition, *what):
    end = time.monotonic() + 60
    while not condition():
        expect(time.monotonic() < end, *what)
        time.sleep(0.02)


def history(here, there):
    """Rows of a table that keeps history keep their times."""
    table = "CREATE TABLE told (a INT PRIMARY KEY, b INT) WITH SYSTEM VERSIONING"
    run(here.port, f"{table}; INSERT INTO told VALUES (1, 1), (2, 2); UPDATE told SET b = 9; DELETE FROM told WHERE a = 2")
    run(there.port, f"{table}; ALTER TABLE told DISCARD TABLESPACE")
    holder = Session(here.port)
    expect(holder.run("FLUSH TABLES told FOR EXPORT") == "", "export of history")
    there.take(here)
    holder.close()
    run(there.port, "ALTER TABLE told IMPORT TABLESPACE")
    sql = "SELECT a, b, row_start, row_end FROM told FOR SYSTEM_TIME ALL ORDER BY row_end, a, b"
    expect(run(here.port, sql) == run(there.port, sql) != "", run(here.port, sql), run(there.port, sql))


def encrypted(squalld, folder, port):
    """What is encrypted here is not written in plain."""
    home = folder / "encrypted"
    home.mkdir()
    server = Server(squalld, home, port, (f"--keyring-file-data={home / 'keyring'}",))
    try:
        subprocess.run(client(port), input=b"CREATE DATABASE shop; CREATE TABLE shop.t (a INT)", check=True)
        expect("1235" in run(port, "FLUSH TABLES t FOR EXPORT", False), "an encrypted server exports nothing")
        expect(not (home / "data/export").exists(), "nothing is written")
    finally:
        server.kill()


def denied(squalld, folder, port):
    """Who may not read a table cannot export it, and who may not make one cannot import it."""
    home = folder / "denied"
    home.mkdir()
    rules = home / "rules"
    rules.write_text("table u .*\\.secret DENY\n")
    server = Server(squalld, home, port, ("--plugin-add=regex_policy", f"--regex-policy-policy={rules}"))
    try:
        setup = b"CREATE DATABASE shop; CREATE TABLE shop.secret (a INT); CREATE USER u; GRANT ALL ON *.* TO u"
        subprocess.run(client(port), input=setup, check=True)
        holder = Session(port)
        expect(holder.run("FLUSH TABLES secret FOR EXPORT") == "", "export")
        shutil.copytree(home / "data/export", home / "data/import")
        holder.close()
        as_user = lambda sql: subprocess.run([*client(port), "-uu", "shop", "-e", sql], capture_output=True, text=True).stderr
        expect("1142" in as_user("FLUSH TABLES secret FOR EXPORT"), "export by who may not read")
        run(port, "DROP TABLE secret")
        expect("1142" in as_user("IMPORT TABLE FROM 'import/shop/secret.squall'"), "import by who may not make it")
        run(port, "IMPORT TABLE FROM 'import/shop/secret.squall'")
    finally:
        server.kill()


def import_table(here, there):
    """IMPORT TABLE makes tables, also partitioned ones with odd names, and in the schema that the file says."""
    run(here.port, """CREATE TABLE `odd #1/` (a INT, t TIMESTAMP DEFAULT '2001-01-01 00:00:00', c INT AS (a + 1)) COMMENT='it''s' PARTITION BY LIST (a)
        (PARTITION p0 VALUES IN (1, 2), PARTITION `P/1` VALUES IN (3)); INSERT INTO `odd #1/` (a) VALUES (1), (3), (3);
        CREATE TABLE plain (a INT AUTO_INCREMENT PRIMARY KEY); INSERT INTO plain VALUES (41)""")
    holder = Session(here.port)
    expect(holder.run("FLUSH TABLES `odd #1/`, plain FOR EXPORT") == "", "export")
    expect(len(here.exported()) == 3, here.exported())
    there.take(here)
    holder.close()
    run(there.port, "SET time_zone = '+05:00'; IMPORT TABLE FROM 'import/shop/odd*.squall', 'import/shop/plain.squall'")
    for sql in ("SELECT * FROM `odd #1/` ORDER BY a", "SHOW CREATE TABLE `odd #1/`", "SELECT * FROM plain", "SHOW CREATE TABLE plain"):
        expect(run(here.port, sql) == run(there.port, sql), sql, run(there.port, sql))
    expect("3610" in run(there.port, "IMPORT TABLE FROM 'import/shop/plain.squall'", False), "it exists")
    run(there.port, "DROP TABLE `odd #1/`, plain")
    missing = "IMPORT TABLE FROM 'import/shop/*p0.squall'"
    expect("1808" in run(there.port, missing, False), "a partition is missing")
    expect(run(there.port, "SHOW TABLES LIKE 'odd%'") == "", "nothing is left")
    expect("1290" in run(there.port, "IMPORT TABLE FROM 'import/../export/x'", False), "only below import")
    expect("1290" in run(there.port, "IMPORT TABLE FROM '/etc/*'", False), "only below import")


def damage(there, path):
    """A damaged file is refused, and nothing is imported."""
    whole = path.read_bytes()
    chance = random.Random(7)
    for _ in range(12):
        at = chance.randrange(len(whole))
        path.write_bytes(chance.choice([whole[:at], whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]]))
        error = run(there.port, "ALTER TABLE big IMPORT TABLESPACE", False)
        expect("1816" in error or "1808" in error, error)
        expect("1814" in run(there.port, "SELECT COUNT(*) FROM big", False), "still discarded")
    path.write_bytes(whole)


def discarded_again(there, is_there, rows):
    """All rows are there, or none are and the table says so."""
    if is_there:
        expect(run(there.port, "SELECT COUNT(*) FROM big") == str(rows), "all rows or none")
        run(there.port, "ALTER TABLE big DISCARD TABLESPACE")
    expect("1814" in run(there.port, "SELECT COUNT(*) FROM big", False), "discarded")


def interruptions(here, there, rows):
    """KILL and kill -9 in the middle; a full disk."""
    table = "CREATE TABLE big (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(100), KEY (a), KEY (b))"
    run(here.port, f"""{table}; SET cte_max_recursion_depth = {rows};
        INSERT INTO big (a, b) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i * 7919 % 10007, SHA2(i, 256) FROM n""")
    run(there.port, f"{table}; ALTER TABLE big DISCARD TABLESPACE")
    holder = Session(here.port)
    number = holder.run("SELECT CONNECTION_ID()")
    # The disk is full.
    export = here.data("export", "shop")
    export.mkdir(parents=True, exist_ok=True)
    (export / "big.part").symlink_to("/dev/full")
    error = holder.run("FLUSH TABLES big FOR EXPORT")
    expect("ERROR 3 " in error and "No space left" in error, error)
    expect(here.exported() == [], "a full disk leaves no file")
    run(here.port, "UPDATE big SET a = a WHERE id = 1")
    # KILL of an export.
    killed = 0
    for attempt in range(40):
        thread = threading.Thread(target=lambda: run(here.port, f"DO SLEEP({0.002 * (attempt % 10)}); KILL QUERY {number}"))
        thread.start()
        error = holder.run("FLUSH TABLES big FOR EXPORT")
        thread.join()
        if "1317" in error:
            expect(here.exported() == [], "KILL leaves no file")
            killed += 1
            if killed == 2:
                break
        holder.run("UNLOCK TABLES")
    expect(killed > 0, "KILL came too late each time")
    expect(holder.run("SELECT 1") == "1" and holder.run("FLUSH TABLES big FOR EXPORT") == "", "export")
    there.take(here)
    holder.close()
    damage(there, there.data("import", "shop", "big.squall"))
    interrupted = 0
    for attempt in range(8):
        importer = Session(there.port)
        number = importer.run("SELECT CONNECTION_ID()")
        thread = threading.Thread(target=lambda: run(there.port, f"DO SLEEP({0.05 * attempt}); KILL QUERY {number}"))
        thread.start()
        error = importer.run("ALTER TABLE big IMPORT TABLESPACE")
        thread.join()
        importer.close()
        interrupted += "1317" in error
        discarded_again(there, error == "", rows)
    expect(interrupted > 0, "KILL of an import")
    interrupted = 0
    for wait in (0.02, 0.1, 0.2, 0.4, 0.8):
        importer = Session(there.port)
        importer.process.stdin.write("ALTER TABLE big IMPORT TABLESPACE;\n")
        importer.process.stdin.flush()
        time.sleep(wait)
        there.restart()
        importer.process.kill()
        importer.process.wait()
        is_there = "1814" not in run(there.port, "SELECT COUNT(*) FROM big", False)
        interrupted += not is_there
        discarded_again(there, is_there, rows)
    expect(interrupted > 0, "kill -9 in an import")
    started = time.monotonic()
    run(there.port, "ALTER TABLE big IMPORT TABLESPACE")
    print(f"{rows} rows imported in {time.monotonic() - started:.1f} s")
    expect(run(here.port, "CHECKSUM TABLE big") == run(there.port, "CHECKSUM TABLE big"), "the rows")
    expect("OK" in run(there.port, "CHECK TABLE big"), "check")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--port", type=int, default=0)
    args = parser.parse_args()
    squalld = os.path.abspath(args.squalld)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="squall-transport-"))
    sides = []
    try:
        for name in ("here", "there"):
            port = args.port + len(sides) if args.port else free_port()
            sides.append(Side(squalld, folder / name, port))
            setup = subprocess.run(client(port), input="CREATE DATABASE shop", capture_output=True, text=True)
            expect(not setup.stderr, setup.stderr)
        here, there = sides
        kinds_of_values(here, there)
        history(here, there)
        encrypted(squalld, folder, args.port + 2 if args.port else free_port())
        denied(squalld, folder, args.port + 3 if args.port else free_port())
        import_table(here, there)
        interruptions(here, there, args.rows)
        print("transport: all is well")
    finally:
        for side in sides:
            side.server.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
