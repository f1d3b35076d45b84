#!/usr/bin/env python3
"""Definitions within transactions (transactional_ddl): all of a transaction or nothing, and what it does is what its statements do.

    tests/crash/transactions.py [--rounds 40] [--kills 10] [--squalld target/debug/squalld] [--seed 1]

A connection runs transactions of random statements that change definitions and rows. Some are rolled back: everything is as before. Some are committed: everything
is as after the same statements on another server, where each commits by itself. Some are cut off by kill -9: after the restart everything is as before or as after.
"Everything" is SHOW CREATE of all tables and views, all rows, also read through each index, and CHECK TABLE.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import tempfile

from kill_loop import Server, free_port

SCHEMA = "transactional"


def client(port, *more):
    return ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", *more]


def run(port, statements, force=True):
    """Runs statements in one connection; their answers and errors. With `force` an error is an answer."""
    text = ";\n".join(statements) + ";\n"
    more = ["--force"] if force else []
    done = subprocess.run(client(port, "-D", SCHEMA, *more), input=text, capture_output=True, text=True)
    return done.stdout, [line.split(" at line")[0] for line in done.stderr.splitlines()]


def rows(port, sql):
    done = subprocess.run(client(port, "-e", sql), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{sql}\n{done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def everything(port):
    """All objects with their rows."""
    found = {}
    for name, kind in rows(port, f"SHOW FULL TABLES FROM {SCHEMA}"):
        table = f"{SCHEMA}.{name}"
        shape = rows(port, f"SHOW CREATE TABLE {table}")[0][1]
        if kind == "VIEW":
            found[name] = shape
            continue
        # The counter goes on after a rollback, as it does for rows.
        shape = " ".join(word for word in shape.split(" ") if not word.startswith("AUTO_INCREMENT="))
        content = sorted(rows(port, f"SELECT * FROM {table}"))
        for index in {row[2] for row in rows(port, f"SHOW INDEX FROM {table}")}:
            through = sorted(rows(port, f"SELECT * FROM {table} FORCE INDEX (`{index}`) WHERE id IS NOT NULL AND a IS NOT NULL AND (b IS NOT NULL OR b IS NULL)"))
            if through != content:
                raise SystemExit(f"{table}: {len(content)} rows, {len(through)} through {index}")
        verdict = rows(port, f"CHECK TABLE {table}")[-1][3]
        if verdict != "OK":
            raise SystemExit(f"{table}: {verdict}")
        found[name] = (shape, content)
    return found


CREATE = "CREATE TABLE {t} (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(200), KEY ka (a))"


class Statements:
    """Random statements. Each is right or wrong alike on both servers."""

    def __init__(self, chance):
        self.chance = chance
        self.number = 0

    def some(self, count):
        return [self.one() for _ in range(count)]

    def one(self):
        self.number += 1
        n, chance = self.number, self.chance
        t, u = chance.sample(["t0", "t1", "t2", "t3"], 2)
        first = chance.randrange(0, 400)
        values = ",".join(f"({first + i},{i * 7 % 50},REPEAT('{chr(97 + n % 26)}',{i % 90}))" for i in range(chance.choice([1, 3, 40, 400])))
        kinds = [
            CREATE,
            f"INSERT IGNORE INTO {{t}} (id, a, b) VALUES {values}",
            f"REPLACE INTO {{t}} (id, a, b) VALUES {values}",
            f"INSERT IGNORE INTO {{t}} (id, a, b) SELECT id + {n}, a, b FROM {{u}}",
            f"UPDATE {{t}} SET a = a + {n}, b = CONCAT(LEFT(b, 20), '{n}') WHERE id % 3 = {n % 3}",
            f"DELETE FROM {{t}} WHERE id BETWEEN {first} AND {first + 60}",
            f"ALTER TABLE {{t}} ADD COLUMN c{n % 9} INT NOT NULL DEFAULT {n}",
            f"ALTER TABLE {{t}} DROP COLUMN c{(n + 4) % 9}",
            f"ALTER TABLE {{t}} ADD INDEX i{n % 5} (a, b(10))",
            f"ALTER TABLE {{t}} DROP INDEX i{(n + 2) % 5}",
            "ALTER TABLE {t} MODIFY a BIGINT NOT NULL",
            "ALTER TABLE {t} MODIFY a INT NOT NULL",
            f"ALTER TABLE {{t}} ADD UNIQUE INDEX u{n % 3} (id, a)",
            "ALTER TABLE {t} ADD UNIQUE INDEX never (a)",
            "ALTER TABLE {t} ENGINE=InnoDB",
            "RENAME TABLE {t} TO {u}",
            "DROP TABLE {t}",
            "TRUNCATE TABLE {t}",
            "CREATE TABLE {t} LIKE {u}",
            "CREATE OR REPLACE VIEW v AS SELECT id, a FROM {t}",
            "DROP VIEW v",
            "SELECT COUNT(*), SUM(a) FROM {t}",
        ]
        return chance.choice(kinds + kinds[1:6]).format(t=t, u=u)


def differ(one, two):
    names = sorted(set(one) | set(two))
    return [name for name in names if one.get(name) != two.get(name)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    chance = random.Random(options.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="squall-transactions-"))
    ports = [free_port(), free_port()]
    for name in ("own", "other"):
        (folder / name).mkdir()

    def start(at):
        return Server(options.squalld, folder / ("own", "other")[at], ports[at], ("--json-server-port=0",))

    servers = [start(0), start(1)]
    own, other = servers
    try:
        for server in servers:
            rows(server.port, f"CREATE DATABASE {SCHEMA}")
            run(server.port, [CREATE.format(t="t0"), "INSERT INTO t0 VALUES (1, 1, 'one')"], force=False)
        statements = Statements(chance)
        done = {"rolled back": 0, "committed": 0, "cut": 0, "cut after its commit": 0}
        for number in range(options.rounds + options.kills):
            wanted = statements.some(chance.randrange(1, 12))
            begin = ["SET transactional_ddl = ON", chance.choice(["BEGIN", "SET autocommit = 0"])]
            if chance.random() < 0.2:
                wanted.insert(chance.randrange(len(wanted) + 1), "SAVEPOINT s")
                wanted += ["ROLLBACK TO s"] + statements.some(2)
                undone = wanted[wanted.index("SAVEPOINT s"):wanted.index("ROLLBACK TO s") + 1]
            else:
                undone = []
            before = everything(own.port)
            if number < options.rounds and chance.random() < 0.4:
                run(own.port, begin + wanted + ["ROLLBACK"])
                now = everything(own.port)
                if now != before:
                    raise SystemExit(f"rolled back, but {differ(before, now)} differ:\n" + "\n".join(wanted))
                done["rolled back"] += 1
                continue
            kept = [sql for sql in wanted if not any(sql is gone for gone in undone)]
            if number < options.rounds:
                answers = run(own.port, begin + wanted + ["COMMIT"])
                others = run(other.port, kept)
                if not undone and answers != others:
                    raise SystemExit(f"answers differ:\n{answers}\n{others}\n" + "\n".join(wanted))
                done["committed"] += 1
            else:
                cut = subprocess.Popen(client(own.port, "-D", SCHEMA, "--force"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
                cut.stdin.write(";\n".join(begin + wanted + ["COMMIT"]) + ";\n")
                cut.stdin.close()
                try:
                    cut.wait(chance.random() * 0.4)
                except subprocess.TimeoutExpired:
                    pass
                own.kill()
                cut.wait()
                own = servers[0] = start(0)
                now = everything(own.port)
                if now == before:
                    done["cut"] += 1
                    continue
                run(other.port, kept)
                done["cut after its commit"] += 1
            now, wished = everything(own.port), everything(other.port)
            if now != wished:
                raise SystemExit(f"{differ(now, wished)} differ after:\n" + "\n".join(wanted))
        print(", ".join(f"{count} {what}" for what, count in done.items()))
    finally:
        for server in servers:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)
    print("ok")


if __name__ == "__main__":
    main()
