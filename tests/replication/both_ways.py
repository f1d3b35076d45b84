#!/usr/bin/env python3
"""A generated load from MySQL to Squall, from Squall to MySQL and from MariaDB to Squall: every row of every table, the definitions and the transactions are equal on both sides.

    tests/replication/both_ways.py [--minutes 0] [--seed 1] [--ways mysql-squall,squall-mysql,mariadb-squall] [--mysql 127.0.0.1:13309] [--squalld target/debug/squalld]

`generated.py` makes the load: three connections change tables of random columns side by side. `--minutes` is for each way; a round at least runs, each with a seed of
its own, which is printed. MySQL is a 9.7 on this machine with its binary log and GTIDs on, and a user root without a password; its address may come from
SQUALL_REPLICATION_SOURCE too. MariaDB is the one that the test finds (mariadbd, mariadb-install-db). The test says which ways are left out for lack of one.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent.parent / "crash")]
import generated  # noqa: E402
import mariadb  # noqa: E402
from kill_loop import Server, free_port  # noqa: E402
from replica import ask, client  # noqa: E402

CLIENTS = 3
CHANNEL = "both_ways"
BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector", "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection", "geometrycollection"}
TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
NUMBERS = {"bit", "enum", "set"}


def address(port):
    return f"127.0.0.1:{port}"


def table_of(text):
    return [line.split("\t") for line in text.splitlines()]


def transactions(server):
    """The identifiers of what a server has executed, by the server that they began on."""
    text = ask(server, "SELECT @@GLOBAL.gtid_executed").replace("\\n", "")
    return dict(part.strip().split(":", 1) for part in text.split(",") if part.strip())


class Load:
    """One round of a load on a source."""

    def __init__(self, source, seed, maria, units):
        self.source, self.schema, self.refused, self.done = source, f"ways_{seed}", collections.Counter(), 0
        self.examples = {}
        everyone = [generated.Client(seed, own, self.schema, maria) for own in range(CLIENTS)]
        # The tables that two clients change side by side are made first.
        first = [one.create() for one in everyone for _ in range(3)]
        self.run(generated.setup(self.schema) + first)
        scripts = [one.statements(units, everyone[(own + 1) % CLIENTS].tables[:3]) for own, one in enumerate(everyone)]
        threads = [threading.Thread(target=self.run, args=([f"USE {self.schema}"] + script,)) for script in scripts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def run(self, lines):
        done = subprocess.run(client(self.source) + ["--force"], input=";\n".join(lines) + ";\n", capture_output=True, text=True)
        self.done += len(lines)
        for number, at, text in re.findall(r"ERROR (\d+) \(\w+\) at line (\d+)[^:]*: (.*)", done.stderr):
            self.refused[number] += 1
            self.examples.setdefault(number, (text, lines[int(at) - 1]))
        if re.search(r"ERROR (2006|2013)", done.stderr):
            raise SystemExit(f"the source went away: {done.stderr[-2000:]}")


def columns(server, schema):
    found = collections.defaultdict(dict)
    for table, column, kind in table_of(ask(server, "SELECT c.table_name, c.column_name, c.data_type FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name) "
                                                    f"WHERE table_schema = '{schema}' AND table_type = 'BASE TABLE' ORDER BY c.table_name, c.ordinal_position")):
        found[table][column] = kind
    return found


def content(server, schema, table, kinds):
    """All rows, as texts that servers write alike: bytes as digits, long ones as their sum."""
    def form(column, kind):
        if kind in BYTES or kind in TEXTS or kind == "json":
            octets = f"HEX(`{column}`)"
            return octets if kind == "json" else f"IF(LENGTH(`{column}`) > 400, CONCAT(LENGTH(`{column}`), ' ', SHA2(`{column}`, 256)), {octets})"
        return f"CAST(`{column}` AS UNSIGNED)" if kind in NUMBERS else f"`{column}`"
    found = table_of(ask(server, f"SET time_zone = '+00:00', sql_mode = ''; SELECT {', '.join(form(*each) for each in kinds.items())} FROM `{schema}`.`{table}`"))
    documents = [at for at, kind in enumerate(kinds.values()) if kind == "json"]
    for row in found:
        for at in documents:
            if row[at] != "NULL":
                row[at] = bytes.fromhex(row[at]).decode()
    return found


def plain(rows, kinds):
    """Documents as values: MariaDB keeps their text."""
    documents = [at for at, kind in enumerate(kinds.values()) if kind == "json"]
    for row in rows:
        for at in documents:
            if row[at] != "NULL":
                row[at] = json.dumps(json.loads(row[at]), sort_keys=True)


def definitions(server, schema, tables):
    def shown(table):
        # MySQL says the collation of a column if it was said when it was made, which a replica cannot know.
        text = re.sub(r"( CHARACTER SET \w+)? COLLATE \w+( (?:NOT NULL|DEFAULT|GENERATED))", r"\2", ask(server, f"SHOW CREATE TABLE `{schema}`.`{table}`"))
        return re.sub(r" CHARACTER SET \w+|AUTO_INCREMENT=\d+ ", "", text)
    found = {table: shown(table) for table in tables}
    found["collations"] = ask(server, "SELECT c.table_name, c.column_name, c.collation_name FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name) "
                                      f"WHERE table_schema = '{schema}' AND table_type = 'BASE TABLE' ORDER BY c.table_name, c.ordinal_position")
    found["views"] = ask(server, f"SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = '{schema}' ORDER BY 1")
    found["triggers"] = ask(server, f"SELECT trigger_name, event_manipulation, action_timing, action_statement FROM information_schema.triggers WHERE trigger_schema = '{schema}' ORDER BY 1")
    found["routines"] = ask(server, f"SELECT routine_name, routine_definition FROM information_schema.routines WHERE routine_schema = '{schema}' ORDER BY 1")
    found["schema"] = ask(server, f"SHOW CREATE DATABASE `{schema}`")
    return found


def compare(source, replica, squall, schema, maria):
    """The number of tables and rows, which are equal."""
    kinds, of_source, of_replica = columns(squall, schema), columns(source, schema), columns(replica, schema)
    if {table: list(names) for table, names in of_source.items()} != {table: list(names) for table, names in of_replica.items()}:
        wrong = [f"{table}: {list(of_source.get(table, []))} and {list(of_replica.get(table, []))}" for table in sorted(of_source.keys() | of_replica.keys()) if list(of_source.get(table, [])) != list(of_replica.get(table, []))]
        raise SystemExit("tables differ, source and replica: " + "; ".join(wrong))
    faults, count = [], 0
    for table, names in kinds.items():
        there, here = content(source, schema, table, names), content(replica, schema, table, names)
        if maria:
            plain(there, names), plain(here, names)
        there.sort(), here.sort()
        count += len(there)
        if there == here:
            continue
        faults.append(f"{table}: {len(there)} rows at the source, {len(here)} at the replica")
        odd = [(left, right) for left, right in zip(there, here) if left != right][:3]
        faults += [f"  {name} ({names[name]}), row {left[:2]}: {one[:200]} at the source, {other[:200]} at the replica"
                   for left, right in odd for name, one, other in zip(names, left, right) if one != other][:6]
    if not maria:
        names = ", ".join(f"`{schema}`.`{table}`" for table in kinds)
        there, here = (ask(server, f"CHECKSUM TABLE {names}").splitlines() for server in (source, replica)) if kinds else ([], [])
        faults += [f"checksums: {left} at the source, {right} at the replica" for left, right in zip(there, here) if left != right]
        there, here = definitions(source, schema, kinds), definitions(replica, schema, kinds)
        faults += [f"{name}\n  source:  {there[name]}\n  replica: {here[name]}" for name in there if there[name] != here[name]]
    if faults:
        raise SystemExit("\n".join(faults))
    return len(kinds), count


def follow(replica, host_port, password):
    ask(replica, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {host_port}, SOURCE_USER = 'ways', SOURCE_PASSWORD = '{password}', SOURCE_AUTO_POSITION = 1, "
                 f"SOURCE_CONNECT_RETRY = 1, SOURCE_SSL = 1 FOR CHANNEL '{CHANNEL}'; START REPLICA FOR CHANNEL '{CHANNEL}'")


def stopped(replica):
    """What stopped the channel."""
    tables = ("replication_connection_status", "replication_applier_status_by_coordinator", "replication_applier_status_by_worker")
    return "".join(ask(replica, f"SELECT LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE FROM performance_schema.{table} WHERE CHANNEL_NAME = '{CHANNEL}' AND LAST_ERROR_NUMBER <> 0") for table in tables)


def caught_up(source, replica):
    """Waits until the replica has what the source has, and compares the identifiers."""
    wanted = transactions(source)
    for _ in range(1800):
        found = transactions(replica)
        if all(found.get(uuid) == numbers for uuid, numbers in wanted.items()):
            return
        error = stopped(replica)
        if error:
            raise SystemExit(f"the replica stopped: {error}")
        time.sleep(0.1)
    raise SystemExit(f"the replica is at {found}, the source at {wanted}")


class Way:
    """`source` and `replica` are addresses; `squall` is that of the one which is a Squall."""

    def __init__(self, name, options, folder):
        self.name, self.options, self.folder, self.maria = name, options, folder, None
        port = free_port()
        self.squall = address(port)
        self.server = Server(options.squalld, folder, port, ["--log-bin", "--server-id=2", "--max-binlog-size=4194304"])
        try:
            self.connect()
        except BaseException:
            self.close()
            raise

    def connect(self):
        account = "SET sql_log_bin = 0; CREATE USER IF NOT EXISTS ways@'127.0.0.1' IDENTIFIED {} 'pass word'; GRANT REPLICATION SLAVE ON *.* TO ways@'127.0.0.1'"
        if self.name == "mariadb-squall":
            (self.folder / "maria").mkdir()
            self.maria = mariadb.Mariadb(self.folder / "maria", free_port(), ["--log-bin=log", "--binlog-format=ROW", "--server-id=7", "--gtid-domain-id=3"])
            self.source, self.replica = address(self.maria.port), self.squall
            ask(self.source, account.format("BY"))
            ask(self.replica, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {self.maria.port}, SOURCE_USER = 'ways', SOURCE_PASSWORD = 'pass word', SOURCE_AUTO_POSITION = 1; START REPLICA")
            return
        mysql = self.options.mysql
        # What an earlier run left.
        left = ask(mysql, "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'ways\\_%'").split()
        ask(mysql, "SET sql_log_bin = 0;" + "".join(f"DROP DATABASE `{schema}`;" for schema in left))
        self.source, self.replica = (mysql, self.squall) if self.name == "mysql-squall" else (self.squall, mysql)
        ask(self.source, account.format("BY"))
        if self.name == "mysql-squall":
            # What the source did earlier does not matter here.
            known = ",".join(f"{uuid}:{numbers}" for uuid, numbers in transactions(self.source).items())
            ask(self.replica, f"SET GLOBAL gtid_purged = '{known}'")
        elif CHANNEL in ask(mysql, "SELECT CHANNEL_NAME FROM performance_schema.replication_connection_configuration"):
            ask(mysql, f"STOP REPLICA FOR CHANNEL '{CHANNEL}'; RESET REPLICA ALL FOR CHANNEL '{CHANNEL}'")
        follow(self.replica, self.source.rsplit(":", 1)[1], "pass word")

    def round(self, seed):
        load = Load(self.source, seed, self.maria is not None, self.options.units)
        if self.maria:
            mariadb.caught_up(self.maria, self.server)
        else:
            caught_up(self.source, self.replica)
        tables, count = compare(self.source, self.replica, self.squall, load.schema, self.maria is not None)
        ask(self.source, f"DROP DATABASE {load.schema}")
        refused = ", ".join(f"{number}: {times}" for number, times in load.refused.most_common(6))
        print(f"{self.name} seed {seed}: {load.done} statements ({sum(load.refused.values())} refused by the source: {refused}), {tables} tables, {count} rows: the same", flush=True)
        for number in load.refused if self.options.verbose else ("1064",):
            if number in load.examples:
                text, statement = load.examples[number]
                print(f"  {number} {text[:200]}\n    {statement[:300]}", flush=True)

    def close(self):
        if self.name == "squall-mysql":
            subprocess.run(client(self.options.mysql) + ["--force", "-e", f"STOP REPLICA FOR CHANNEL '{CHANNEL}'; RESET REPLICA ALL FOR CHANNEL '{CHANNEL}'; DROP USER IF EXISTS ways@'127.0.0.1'"], capture_output=True)
        if self.maria:
            self.maria.stop()
        self.server.process.terminate()
        self.server.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--units", type=int, default=120, help="for each connection and round: a statement, or a transaction")
    parser.add_argument("--ways", default="mysql-squall,squall-mysql,mariadb-squall")
    parser.add_argument("--mysql", default=os.environ.get("SQUALL_REPLICATION_SOURCE"))
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--verbose", action="store_true", help="an example of each error that the source gave")
    options = parser.parse_args()
    for way in options.ways.split(","):
        if "mysql" in way and not options.mysql:
            print(f"LEFT OUT: {way}: no MySQL; --mysql or SQUALL_REPLICATION_SOURCE names one")
            continue
        if "mariadb" in way and not all(map(shutil.which, ("mariadbd", "mariadb-install-db"))):
            print(f"LEFT OUT: {way}: there is no MariaDB")
            continue
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"squall-{way}-"))
        pair, began, seed, rounds = Way(way, options, folder), time.time(), options.seed, 0
        try:
            while rounds == 0 or time.time() - began < options.minutes * 60:
                try:
                    pair.round(seed)
                except SystemExit as fault:
                    raise SystemExit(f"{way} seed {seed}: {fault}\nkept in {folder}") from None
                seed, rounds = seed + 1, rounds + 1
            print(f"{way}: {rounds} rounds, seeds {options.seed} to {seed - 1}, {time.time() - began:.0f} s")
        finally:
            pair.close()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
