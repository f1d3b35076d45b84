#!/usr/bin/env python3
"""Whole installations of earlier builds: their data directories and their backups open in this one, with every kind of object.

    tests/format/upgrade.py [--squalld target/debug/squalld] [--make NAME]

`whole/NAME.tar.gz` holds the data directory of a server that was killed, with its binary log, and a backup of it; `whole/NAME.txt` what it answered. The objects are those of
`tests/import/*.sql`. Neither is made again under the same name: `--make`, run by hand for a release, adds a set. A set of a build that was not released may go when formats change on purpose.

`open.py` looks at pages, log and recovery; this script at what is built on them.
"""

import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WHOLE = HERE / "whole"
sys.path.insert(0, str(HERE.parent / "crash"))

from kill_loop import Server, free_port  # noqa: E402
from open import anonymous, command, run  # noqa: E402

SCRIPTS = [HERE.parent / "import" / name for name in ("tables.sql", "programs.sql", "mysql.sql")]
SCHEMAS = "'zoo', 'farm', 'odd-näme'"
#: Keys and passwords of the machine that made a set: a server makes its own.
SECRETS = ("*.pem", "root-password")
OPTIONS = ["--log-bin", "--server-id=5"]


def lines(port, sql):
    return [line.split("\t") for line in run(port, sql).splitlines()]


def rows_of(schema, table, columns):
    """A query of all rows as texts, in an order of their own."""
    def cell(name, ty):
        quoted = f"`{name.replace('`', '``')}`"
        return f"HEX({quoted})" if ty in ("bit", "blob", "tinyblob", "longblob", "binary", "varbinary", "geometry", "point", "vector") else quoted
    cells = ", ".join(f"IFNULL(CONCAT({cell(name, ty)}), 'NULL')" for name, ty in columns)
    quoted = table.replace("`", "``")
    return f"SELECT CONCAT_WS('|', {cells}) AS r FROM `{schema}`.`{quoted}` ORDER BY 1"


def queries(port):
    found = ["SELECT @@max_connections, @@server_id", "SHOW DATABASES"]
    for schema, table, kind in lines(port, f"SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema IN ({SCHEMAS}) ORDER BY 1, 2"):
        columns = lines(port, f"SELECT column_name, LOWER(data_type) FROM information_schema.columns WHERE table_schema = '{schema}' AND table_name = '{table}' ORDER BY ordinal_position")
        quoted = table.replace("`", "``")
        found += [f"SHOW CREATE {'VIEW' if kind == 'VIEW' else 'TABLE'} `{schema}`.`{quoted}`", rows_of(schema, table, columns)]
    for kind, name, schema_column, source in (("", "routine_name", "routine_schema", "routines"), ("TRIGGER", "trigger_name", "trigger_schema", "triggers"), ("EVENT", "event_name", "event_schema", "events")):
        ty = "routine_type" if source == "routines" else f"'{kind}'"
        for schema, object_, word in lines(port, f"SELECT {schema_column}, {name}, {ty} FROM information_schema.{source} WHERE {schema_column} IN ({SCHEMAS}) ORDER BY 1, 2"):
            # The last column of SHOW CREATE TRIGGER is a time.
            found.append(f"SHOW CREATE {word} `{schema}`.`{object_}`")
    for user in ("ann@'%'", "bob@'10.0.0.%'", "'no''pw'@localhost", "reader", "writer"):
        found += [f"SHOW CREATE USER {user}", f"SHOW GRANTS FOR {user}"]
    # What runs: a trigger writes a default, a procedure calls, a full-text and a multi-valued index find.
    return found + ["CALL zoo.p1(5, @b, @c); SELECT @b; DELETE FROM zoo.nokey WHERE b = 'p'", "SELECT zoo.f1(21)", "SELECT id FROM zoo.geo WHERE 2 MEMBER OF (m->'$.t')",
                    "SELECT COUNT(*) FROM zoo.kinds WHERE MATCH (mt) AGAINST ('mä💩')", "SELECT COUNT(*) FROM zoo.pr PARTITION (p1)"]


def answers(port):
    return "".join(f"> {sql}\n{run(port, sql)}" for sql in queries(port))


def stop(server):
    server.process.terminate()
    server.process.wait()


def make(program, name):
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    server = Server(program, folder, port, OPTIONS)
    for script in SCRIPTS:
        run(port, script.read_text())
    run(port, "SET PERSIST max_connections = 777")
    stop(server)
    server = Server(program, folder, port, [*OPTIONS, "--recovery-time-target-sec=86400"])
    run(port, "INSERT INTO zoo.nokey VALUES (77, 'in the log'); UPDATE zoo.kinds SET v = 'changed' WHERE id = 2; ALTER TABLE zoo.ph ADD COLUMN late INT DEFAULT 6")
    known = answers(port)
    run(port, f"BACKUP DATABASE TO '{folder}/backup'")
    run(port, "CREATE DATABASE golden_end; DROP DATABASE golden_end")
    server.kill()

    def kept(entry):
        return None if any(pathlib.PurePath(entry.name).match(secret) for secret in SECRETS) else anonymous(entry)

    WHOLE.mkdir(exist_ok=True)
    with tarfile.open(WHOLE / f"{name}.tar.gz", "w:gz", compresslevel=9) as archive:
        for part in ("data", "backup"):
            archive.add(folder / part, part, filter=kept)
    (WHOLE / f"{name}.txt").write_text(known)
    shutil.rmtree(folder)


def compare(archive, what, port, folder):
    expected = archive.with_name(archive.name.removesuffix(".tar.gz") + ".txt")
    seen = answers(port)
    if seen != expected.read_text():
        (folder / "seen").write_text(seen)
        subprocess.run(["diff", expected, folder / "seen"])
        raise SystemExit(f"{archive.name}, {what}: other answers than before; kept in {folder}")
    for schema, table in lines(port, f"SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema IN ({SCHEMAS})"):
        quoted = table.replace("`", "``")
        verdict = run(port, f"CHECK TABLE `{schema}`.`{quoted}`")
        if not verdict.strip().endswith("OK"):
            raise SystemExit(f"{archive.name}, {what}: {verdict}")
    if run(port, "SELECT CURRENT_ROLE()", "-uann", "-psecret").strip() != "`writer`@`%`":
        raise SystemExit(f"{archive.name}, {what}: ann does not log in with her role")


def check(program, archive, previous):
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    with tarfile.open(archive) as files:
        files.extractall(folder)
    server = Server(program, folder, port, OPTIONS)
    compare(archive, "the data directory", port, folder)
    # The binary log of before can be read, and goes on.
    first = run(port, "SHOW BINLOG EVENTS")
    if "odd-näme" not in first:
        raise SystemExit(f"{archive.name}: the binary log does not begin as it did: {first[:500]}")
    run(port, "INSERT INTO zoo.nokey VALUES (78, 'now'); DELETE FROM zoo.nokey WHERE b = 'now'; ALTER TABLE zoo.ph ADD COLUMN now INT; ALTER TABLE zoo.ph DROP COLUMN now; "
              "CREATE TABLE zoo.now (id INT PRIMARY KEY); DROP TABLE zoo.now")
    stop(server)
    server = Server(program, folder, port, OPTIONS)
    compare(archive, "the second start", port, folder)
    stop(server)
    for what, again in [("the previous version", previous), ("the present version again", program)] if previous else []:
        server = Server(again, folder, port, OPTIONS)
        compare(archive, what, port, folder)
        run(port, "INSERT INTO zoo.nokey VALUES (79, 'then'); DELETE FROM zoo.nokey WHERE b = 'then'; ALTER TABLE zoo.ph ADD COLUMN then_ INT; ALTER TABLE zoo.ph DROP COLUMN then_")
        stop(server)
    restored = folder / "restored"
    restored.mkdir()
    subprocess.run([program, f"--restore-from={folder / 'backup'}", f"--datadir={restored / 'data'}"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = Server(program, restored, port, OPTIONS)
    compare(archive, "the backup", port, folder)
    stop(server)
    shutil.rmtree(folder)


if __name__ == "__main__":
    command(__doc__, WHOLE, make, check, "installations: their data directories and backups open")
