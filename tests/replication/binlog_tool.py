#!/usr/bin/env python3
"""`squall binlog`: what it repeats is what the source has, what it undoes is what was before, and BINLOG statements make the same changes.

    tests/replication/binlog_tool.py [--squalld target/debug/squalld] [--squall target/debug/squall] [--seed 1] [--mysqlbinlog PROGRAM]

A load of random transactions and definitions runs on a source. Its log is repeated on servers: by `squall binlog replay` from files and from the server,
as events and as statements, as a script that a client runs, and by `mysqlbinlog | mariadb` where MySQL's program is named. Then the last part of the log is undone.
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import client, rows  # noqa: E402
from log_settings import expect, start  # noqa: E402

TYPES = """CREATE TABLE d.kinds (id INT PRIMARY KEY, t VARCHAR(30) CHARACTER SET latin1, b VARBINARY(20), x BLOB, f FLOAT, g DOUBLE, n DECIMAL(20,5), j JSON,
 e ENUM('a','ü'), s SET('x','y','z'), w BIT(9), d DATE, ti TIME(3), dt DATETIME(6), ts TIMESTAMP(2) NULL, y YEAR, p POINT, made INT AS (id + 1) STORED)"""


def run(port, sql):
    done = subprocess.run(client(port, "--default-character-set=utf8mb4"), input=sql, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{sql[:300]}\n{done.stderr}")


def load(chance, port, turns):
    for _ in range(turns):
        text = ["BEGIN"]
        for _ in range(chance.randrange(1, 5)):
            key = chance.randrange(60)
            text.append(chance.choice([
                f"REPLACE INTO d.kinds (id, t, b, x, f, g, n, j, e, s, w, d, ti, dt, ts, y, p) VALUES ({key}, 'ä\\'\\\\{key}', X'00ff{key:02x}', REPEAT('z', {key}), {key}.1, 1e-{key}, -{key}.12345, "
                f"JSON_OBJECT('k', {key}, 'd', CAST('2024-01-02' AS DATE)), 'ü', 'x,z', {key}, '2024-02-29', '-12:34:56.789', '2024-01-02 03:04:05.678901', '2024-01-02 03:04:05.67', 1999, POINT({key}, 1))",
                f"UPDATE d.kinds SET n = n + 1, t = NULL WHERE id BETWEEN {key} AND {key + 3}",
                f"DELETE FROM d.kinds WHERE id = {key}",
                f"INSERT INTO d.keyless VALUES ({key}, 'K'), ({key}, 'k'), ({key}, NULL)",
                f"UPDATE d.keyless SET t = 'changed' WHERE id = {key} LIMIT 1",
                f"DELETE FROM d.keyless WHERE id = {key} LIMIT 2",
            ]))
        text.append("ROLLBACK" if chance.random() < 0.15 else "COMMIT")
        run(port, ";\n".join(text) + ";")


def state(port):
    kinds = rows(port, "SELECT id, HEX(t), HEX(b), HEX(x), f, g, n, j, JSON_TYPE(j->'$.d'), e, s, HEX(w), d, ti, dt, UNIX_TIMESTAMP(ts), y, ST_AsText(p), made FROM d.kinds ORDER BY id")
    other = rows(port, "SELECT id, COALESCE(HEX(t), '-') AS h, COUNT(*) FROM d.keyless GROUP BY id, h ORDER BY id, h")
    return kinds, other, rows(port, "SELECT * FROM d.noted ORDER BY 1")


def tool(squall, *arguments, wrong=False):
    done = subprocess.run([squall, "binlog", *map(str, arguments)], capture_output=True, text=True)
    if bool(done.returncode) != wrong:
        raise SystemExit(f"{arguments}: {done.stdout[-1000:]}\n{done.stderr[-3000:]}")
    return done.stderr if wrong else done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--squall", help="beside squalld unless given")
    parser.add_argument("--mysqlbinlog")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    squall = options.squall or str(pathlib.Path(options.squalld).with_name("squall"))
    top = pathlib.Path(tempfile.mkdtemp())
    servers = []

    def begin(name, number):
        servers.append(start(options.squalld, top, name, "--log-bin", f"--server-id={number}"))
        return servers[-1]

    source = begin("source", 1)
    run(source.port, f"CREATE DATABASE d; {TYPES}; CREATE TABLE d.keyless (id INT, t VARCHAR(10)); CREATE TABLE d.noted (n INT AUTO_INCREMENT PRIMARY KEY);")
    load(chance, source.port, 25)
    run(source.port, "CREATE TRIGGER d.note AFTER INSERT ON d.keyless FOR EACH ROW INSERT INTO d.noted VALUES ();")
    load(chance, source.port, 15)
    run(source.port, "FLUSH BINARY LOGS;")
    logs = top / "source" / "data" / "binary-log"
    wanted = state(source.port)
    executed = rows(source.port, "SELECT @@gtid_executed")
    tool(squall, "list", logs)
    lines = [json.loads(line) for line in tool(squall, "show", "--json", logs).splitlines()]
    expect("one line per row and statement", any(line["op"] == "delete" and line["before"]["id"] >= 0 for line in lines if line["op"] == "delete"), True)
    expect("table", {line["table"] for line in map(json.loads, tool(squall, "show", "--json", "--table", "d.keyless", logs).splitlines())}, {"keyless"})

    # A part as a file of its own, which other programs read, and a damaged file.
    part = top / "part.000001"
    tool(squall, "filter", "--table", "d.keyless", "--output", part, logs)
    read = subprocess.run(["mariadb-binlog", "--no-defaults", "-v", part], capture_output=True, text=True)
    expect("mariadb-binlog", (read.returncode, "### INSERT INTO `d`.`keyless`" in read.stdout, "`kinds`" in read.stdout), (0, True, False))
    bytes_of_part = part.read_bytes()
    part.write_bytes(bytes_of_part[:-5])
    expect("damage", "within an event" in tool(squall, "show", part, wrong=True), True)

    # From files as events, which keep types within documents and fire no triggers; a second time nothing is left to do.
    first = begin("first", 2)
    into = f"mysql://root@127.0.0.1:{first.port}"
    print(tool(squall, "replay", "--into", into, logs).strip())
    expect("replayed files", state(first.port), wanted)
    expect("identifiers", rows(first.port, "SELECT @@gtid_executed"), executed)
    expect("again", "0 transactions repeated" in tool(squall, "replay", "--into", into, logs), True)

    # From the server, as a script for another program.
    second = begin("second", 3)
    script = tool(squall, "replay", "--from", f"mysql://root@127.0.0.1:{source.port}")
    run(second.port, script)
    expect("replayed script", state(second.port), wanted)
    expect("identifiers of the script", rows(second.port, "SELECT @@gtid_executed"), executed)

    # Triggers are refused as statements would fire them.
    third = begin("third", 4)
    into = f"mysql://root@127.0.0.1:{third.port}"
    said = tool(squall, "replay", "--sql", "--into", into, logs, wrong=True)
    expect("triggers", "has triggers" in said, True)

    # What follows is undone.
    run(source.port, "DROP TRIGGER d.note;")
    before, known = state(source.port), rows(source.port, "SELECT @@gtid_executed")[0][0]
    load(chance, source.port, 20)
    into = f"mysql://root@127.0.0.1:{source.port}"
    expect("definitions", "cannot be undone" in tool(squall, "flashback", "--into", into, logs, wrong=True), True)
    after = state(source.port)
    print(tool(squall, "flashback", "--into", into, "--from", into, "--exclude-gtids", known).strip())
    expect("undone", state(source.port), before)
    # Undoing what undid it brings it back: as a script.
    both = rows(source.port, f"SELECT GTID_SUBTRACT(@@gtid_executed, '{known}')")[0][0]
    half = both.split(":")
    low, high = map(int, half[1].split("-"))
    middle = low + (high - low + 1) // 2
    run(source.port, tool(squall, "flashback", "--from", into, "--include-gtids", f"{half[0]}:{middle}-{high}"))
    expect("undone twice", state(source.port), after)

    # Images without the columns that are needed.
    known = rows(source.port, "SELECT @@gtid_executed")[0][0]
    run(source.port, "SET binlog_row_image = MINIMAL; INSERT INTO d.kinds (id) VALUES (1000); DELETE FROM d.kinds WHERE id = 1000;")
    said = tool(squall, "flashback", "--from", into, "--exclude-gtids", known, wrong=True)
    expect("small images", "lacks columns" in said, True)
    expect("privilege", subprocess.run(client(source.port, "-e", "CREATE USER nobody; BINLOG 'AAAA'"), capture_output=True, text=True).stderr.count("1594"), 1)

    # A statement whose second event finds no row makes none of its changes.
    first_part = tool(squall, "replay", "--from", into, "--exclude-gtids", known, "--without-gtids")
    statements = [part for part in first_part.split("/*!*/;") if "BINLOG '" in part]
    insert, delete = ("".join(part.split("'")[1]) for part in statements[1:3])
    for opening in ("", "BEGIN; "):
        twice = f"{statements[0]}; {opening}BINLOG '{insert}{delete}{delete}'; SELECT 1"
        done = subprocess.run(client(source.port, "-e", twice), capture_output=True, text=True)
        expect(f"{opening}{done.stderr}", "ERROR 1032" in done.stderr, True)
    run(source.port, f"{statements[0]}; BINLOG '{insert}';")
    expect("a row without BEGIN", rows(source.port, "SELECT id FROM d.kinds WHERE id = 1000"), [["1000"]])

    if options.mysqlbinlog:
        fourth = begin("fourth", 5)
        files = sorted(str(file) for file in logs.glob("binlog.0*"))
        done = subprocess.run([*options.mysqlbinlog.split(), *files], capture_output=True)
        run(fourth.port, done.stdout.decode("utf8", "surrogateescape"))
        expect("mysqlbinlog", state(fourth.port), state(source.port))
        print("mysqlbinlog's statements make the same")
    for server in servers:
        server.process.terminate()
        server.process.wait()
    shutil.rmtree(top)
    print("what the log says is repeated and undone")


if __name__ == "__main__":
    main()
