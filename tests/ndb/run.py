#!/usr/bin/env python3
"""Tables of engine ndbcluster on a real MySQL Cluster: SQL, several servers, kill -9 of a data node under writes, the cluster changed by SQL, the whole cluster gone and back.

    tests/ndb/run.py --squalld target/debug/squalld [--only sql,several,full,node,change,crash,cluster,tool,grow]

`grow` adds two data nodes, takes three minutes, and wipes the cluster in the end; `tool` makes a second cluster. `tool` needs target/debug/squall beside squalld.

SQUALL_NDB names a program that runs a cluster: `start` prints "connect string HOST:PORT", `stop`, `wipe`, `kill-node N`, `start-node N --initial`; in its directory $NDB_DIR/ndb are `include` and `bin` with
libndbclient.so.
Without it the test says that it is left out.
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

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "crash"))
from kill_loop import free_port  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Cluster:
    def __init__(self, program):
        self.program = program
        os.environ.setdefault("NDB_DIR", "/tmp/ndb")
        self.home = pathlib.Path(os.environ["NDB_DIR"]) / "ndb"

    def run(self, *command):
        done = subprocess.run([self.program, *command], capture_output=True, text=True, timeout=200)
        if done.returncode:
            raise SystemExit(f"cluster {command}: {done.stdout}{done.stderr}")
        return done.stdout

    def start(self):
        found = re.search(r"connect string (\S+?),", self.run("start"))
        self.address = found.group(1)

    def shim(self, out):
        command = ["cargo", "xtask", "ndb-shim", "--include", self.home / "include", "--lib", self.home / "bin", "--out", out]
        subprocess.run(command, check=True, cwd=ROOT)
        return pathlib.Path(out) / "libsquall_ndb.so"


class Server:
    def __init__(self, squalld, options):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="squall-ndb-"))
        self.port = free_port()
        self.command = [squalld, f"--datadir={self.folder}/data", f"--port={self.port}", f"--socket={self.folder}/s", "--insecure-root", *options]
        self.log = open(self.folder / "log", "w")
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)
        self.ready()

    def ready(self):
        for _ in range(200):
            if self.sql("select 1", check=False)[0] == 0:
                return
            time.sleep(0.1)
        raise SystemExit((self.folder / "log").read_text())

    def sql(self, text, check=True, user="root"):
        """Return code, rows as text, errors."""
        command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{self.port}", f"-u{user}", "-N", "-B", "--force" if not check else "--skip-reconnect"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=500)
        if check and done.returncode:
            raise SystemExit(f"{text}\n{done.stderr}\n{(self.folder / 'log').read_text()[-2000:]}")
        return done.returncode, done.stdout, done.stderr

    def expect(self, text, wanted):
        found = " ".join(self.sql(text)[1].split())
        if found != wanted:
            raise SystemExit(f"{text}\n  wanted {wanted}\n  found  {found}")

    def refuse(self, text, code):
        _, _, errors = self.sql(text, check=False)
        if f"ERROR {code} " not in errors:
            raise SystemExit(f"{text}\n  wanted error {code}\n  found  {errors}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def said(self, text):
        return text in (self.folder / "log").read_text()

    def stop(self):
        self.process.terminate()
        if self.process.wait(60) and not sys.exc_info()[0]:
            raise SystemExit(f"squalld ended with {self.process.returncode}")
        shutil.rmtree(self.folder)


def check_sql(server):
    server.sql("drop database if exists n; create database n;"
               "create table n.a(id int auto_increment primary key, b int, c varchar(40), unique(b), key(c)) engine=ndb;"
               "insert into n.a(b,c) values(1,'x'),(2,'y'),(3,'z')")
    server.expect("select engine from information_schema.tables where table_schema='n'", "ndbcluster")
    server.expect("select xa from information_schema.engines where engine='ndbcluster'", "NO")
    server.expect("select * from n.a where b=3", "3 3 z")
    server.expect("select c from n.a order by c desc limit 2", "z y")
    server.expect("select id from n.a where b in (1,3) order by id", "1 3")
    server.refuse("insert into n.a(b,c) values(9,'q'),(2,'dup')", 1062)
    server.expect("select count(*) from n.a", "3")
    server.expect("begin; update n.a set c='w' where b=1; savepoint s; delete from n.a where id=2; insert into n.a values(50,50,'f');"
                  "rollback to s; commit; select * from n.a order by id", "1 1 w 2 2 y 3 3 z")
    # A failed statement undoes itself, and the transaction goes on.
    _, rows, errors = server.sql("begin; update n.a set b=10 where id=1; update n.a set b=3 where id=2; insert into n.a(id,b) values(7,7); commit;"
                                 "select id,b from n.a order by id", check=False)
    assert "ERROR 1062" in errors and rows.split() == "1 10 2 2 3 3 7 7".split(), (rows, errors)
    server.expect("insert into n.a values(1,0,'z') on duplicate key update c='odku'; select c from n.a where id=1", "odku")
    server.expect("replace into n.a values(2,3,'rep'); select id,b from n.a order by id", "1 10 2 3 7 7")
    server.expect("update n.a set id=id+100; select x.id,y.id from n.a x join n.a y on x.b=y.b order by 1", "101 101 102 102 107 107")
    server.sql("insert into n.a(c) values('auto'); drop table if exists n.i; create table n.i(id int primary key, v int); insert into n.i values(1,1),(2,2)")
    server.expect("select last_insert_id() > 107; alter table n.i engine=ndb; select v from n.i; alter table n.i engine=innodb; select v from n.i", "0 1 2 1 2")
    server.expect("alter table n.a add column d int default 5; alter table n.a add index(d); alter table n.a drop index c; select count(*) from n.a where d=5", "4")
    server.expect("check table n.a", "n.a check status OK")
    values = ",".join(f"({n},{n % 7},'row {n}')" for n in range(1000, 3000))
    server.sql(f"create table n.many(id int primary key, g int, t varchar(30), key(g)) engine=ndb; insert into n.many values {values}")
    server.expect("select count(*), sum(g), min(t), max(id) from n.many", "2000 5997 row 1000 2999")
    server.expect("select sum(id) from n.many where id in (1000,1001,2999,3000,1001)", "5000")
    # The refused row of many that travel together is named, as the client wrote it.
    _, _, errors = server.sql("create table n.u(x varchar(20) primary key) engine=ndb; insert into n.u values('a'),('B'),('A'); select count(*) from n.u", check=False)
    assert "Duplicate entry 'A' for key 'u.PRIMARY'" in errors, errors
    server.expect("select count(*) from n.u", "0")
    server.expect("select count(*) from n.many where g=3; update n.many set g=8 where g=3; select count(*) from n.many where g=8", "286 286")
    server.expect("delete from n.many where id<1500; select count(*) from n.many; check table n.many", "1500 n.many check status OK")
    server.expect("truncate n.many; select count(*) from n.many", "0")
    # What the cluster cannot do is refused.
    server.refuse("create table n.f(a int primary key, b text, fulltext(b)) engine=ndb", 1214)
    server.refuse("create table n.f(a int primary key, b int, foreign key(b) references a(id)) engine=ndb", 1235)
    server.refuse("create temporary table n.f(a int) engine=ndb", 1478)
    server.refuse("start transaction with consistent snapshot; select * from n.a", 1235)
    server.refuse("set transaction_isolation='serializable'; select * from n.a", 1235)
    server.refuse("xa start 'x'; insert into n.a(b) values(500); xa end 'x'; xa prepare 'x'", 1235)
    server.refuse("begin; insert into n.i values(9,9); insert into n.a(b) values(900); commit", 1235)
    server.expect("select count(*) from data_dictionary.ndb_nodes where type='DATA' and status='STARTED'", "2")
    check_cluster_by_sql(server)
    server.refuse("create table n.big(a int primary key, b longtext) engine=ndb; insert into n.big values(1, repeat('x',30000))", 1118)


def check_many_keys(server):
    """Lists of keys, and joins by key, in few round trips and with the same answers."""
    trips = "select statistic_value from data_dictionary.engine_statistics where engine='ndbcluster' and statistic_name='round_trips_total'"
    values = ",".join(f"({n},{n * 7919 % 2000 + 1},{n})" for n in range(1, 2001))
    server.sql(f"create table n.k(id int primary key, x int, u int, unique(u)) engine=ndb; insert into n.k values {values}")
    every, odd = ",".join(map(str, range(1, 1501))), ",".join(map(str, range(1, 3000, 2)))
    for text, wanted, most in (
            (f"select count(*), sum(x) from n.k where id in ({every})", f"1500 {sum(n * 7919 % 2000 + 1 for n in range(1, 1501))}", 20),
            (f"select count(*), sum(x) from n.k where u in ({odd})", f"1000 {sum(n * 7919 % 2000 + 1 for n in range(1, 2000, 2))}", 40),
            ("select straight_join count(*), sum(b.u) from n.k a join n.k b force index(primary) on b.id = a.x", f"2000 {sum(n * 7919 % 2000 + 1 for n in range(1, 2001))}", 60),
            ("select straight_join count(*), count(b.id) from n.k a left join n.k b force index(primary) on b.id = a.x + 1000", "2000 1000", 60)):
        before = int(server.sql(trips)[1])
        server.expect(text, wanted)
        used = int(server.sql(trips)[1]) - before
        if used > most:
            raise SystemExit(f"{text[:100]}: {used} round trips")
    server.expect("begin; update n.k set x = 0 where id in (1,2,3,9999); delete from n.k where u in (4,5,8888); select count(*) from n.k where id in (1,2,3,4,5,6) and x = 0; rollback;"
                  "select count(*) from n.k where id in (1,2,3,4,5,6) and x > 0", "3 6")
    server.expect("select id from n.k where id in (5,3,9,9999,3) order by id desc limit 2", "9 5")
    server.expect("begin; select id from n.k where id in (7,2,9999) for update; update n.k set x = -1 where id in (2,7); commit; select count(*) from n.k where x = -1", "2 7 2")
    server.sql("drop table n.k")


def check_cluster_by_sql(server):
    """What the cluster says of itself."""
    status = [line.split("\t")[:3] for line in server.sql("show cluster status where Type <> 'CLIENT'")[1].splitlines()]
    if sorted(status) != [["1", "MANAGEMENT", "CONNECTED"], ["2", "DATA", "STARTED"], ["3", "DATA", "STARTED"]]:
        raise SystemExit(f"SHOW CLUSTER STATUS: {status}")
    server.expect("select node_id, status from ndbinfo.nodes order by 1", "2 STARTED 3 STARTED")
    server.expect("select count(distinct node_id), min(total) > 1000000 from ndbinfo.memoryusage where memory_type='Data memory' and used > 0", "2 1")
    server.expect("select count(*) > 50 from ndbinfo.`ndb$tables`", "1")
    server.expect("begin; update n.a set c='t' where b=1; select count(*) > 0 from ndbinfo.`ndb$transactions`; rollback", "1")
    # Every table can be read, and no number of columns is wrong.
    for name in server.sql("select table_name from information_schema.tables where table_schema='ndbinfo'")[1].split():
        server.sql(f"select * from ndbinfo.`{name}` limit 3")
    # It is the administrators' business.
    server.sql("drop user if exists reader; create user reader; grant select on n.* to reader")
    for text, code in (("select * from ndbinfo.nodes", 1142), ("select * from ndbinfo.`ndb$operations`", 1142), ("use ndbinfo", 1044)):
        _, _, errors = server.sql(text, check=False, user="reader")
        if f"ERROR {code} " not in errors:
            raise SystemExit(f"{text}: {errors}")
    server.sql("grant select on ndbinfo.* to reader")
    found = server.sql("select count(*) from ndbinfo.nodes", user="reader")[1].strip()
    if found != "2":
        raise SystemExit(f"ndbinfo for somebody who may read it: {found}")
    server.sql("drop user reader")


def check_library(squalld, address):
    """A library that is missing, or another one, is named with what to do."""
    for path in ("/nowhere/libsquall_ndb.so", "libm.so.6"):
        server = Server(squalld, ["--plugin-add=ndb", f"--ndb-connectstring={address}", f"--ndb-shim={path}"])
        try:
            _, _, errors = server.sql("create database n; create table n.a(id int primary key) engine=ndb", check=False)
            if "ERROR 1126 " not in errors or path not in errors or "cargo xtask ndb-shim" not in errors:
                raise SystemExit(f"without its library: {errors}")
        finally:
            server.stop()


class Writer(threading.Thread):
    """Inserts rows, so many with a statement, as fast as it can or so many statements a second, and remembers what was acknowledged."""

    def __init__(self, server, first, rows=1, pace=None):
        super().__init__()
        self.server, self.next, self.rows, self.pace = server, first, rows, pace
        self.acknowledged, self.failed, self.stopped = [], [], False
        self.longest = 0.0

    def run(self):
        command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{self.server.port}", "-uroot", "-N", "-B", "--unbuffered", "--force"]
        client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        while not self.stopped:
            began = time.monotonic()
            numbers = range(self.next, self.next + self.rows)
            values = ",".join(f"({number},{number % 9})" for number in numbers)
            client.stdin.write(f"insert into n.w values {values}; select row_count(), {self.next};\n")
            client.stdin.flush()
            answer, errors = client.stdout.readline(), []
            while answer and answer.split()[1:] != [str(self.next)]:
                errors.append(answer.strip())
                answer = client.stdout.readline()
            if answer.split()[:1] == [str(self.rows)]:
                self.acknowledged.extend(numbers)
            else:
                self.failed.append(f"{answer.strip()} {errors}")
            took = time.monotonic() - began
            self.longest = max(self.longest, took)
            self.next += self.rows
            if self.pace:
                time.sleep(max(0, 1 / self.pace - took))
        client.stdin.close()
        client.wait()


def under_writes(what, server, work, writers):
    """Does `work` while rows are written: no statement fails, no acknowledged row is missing."""
    began = time.monotonic()
    for writer in writers:
        writer.start()
    try:
        time.sleep(1)
        work()
        time.sleep(1)
    finally:
        for writer in writers:
            writer.stopped = True
        for writer in writers:
            writer.join()
    acknowledged = {number for writer in writers for number in writer.acknowledged}
    failed = [text for writer in writers for text in writer.failed]
    present = {int(line) for line in server.sql("select id from n.w")[1].split()}
    lost = acknowledged - present
    longest, took = max(writer.longest for writer in writers), time.monotonic() - began
    print(f"{what}: {took:.0f} s, {len(acknowledged)} rows acknowledged ({len(acknowledged) / took:.0f} a second), {len(lost)} lost, {len(failed)} statements failed, longest {longest:.2f} s", flush=True)
    if lost or failed:
        raise SystemExit(f"lost {sorted(lost)[:5]}, failed {failed[:5]}")
    server.expect("check table n.w", "n.w check status OK")


def check_node(server, cluster):
    server.sql("create database if not exists n; create table if not exists n.w(id int primary key, g int, key(g)) engine=ndb")

    def kill():
        time.sleep(1)
        cluster.run("kill-node", "3")
        time.sleep(3)
        cluster.start()

    under_writes("kill -9 of a data node", server, kill, [Writer(server, first) for first in (0, 1_000_000, 2_000_000)])


def check_full(server):
    """A full cluster is 1114; the statement is undone, the transaction goes on, and what is dropped makes room."""
    server.sql("create database if not exists n; create table n.full(id int auto_increment primary key, b varbinary(20000)) engine=ndb; create table n.small(id int primary key) engine=ndb;"
               "set cte_max_recursion_depth=1000000; insert into n.full(b) with recursive s(i) as (select 1 union all select i+1 from s where i<50) select repeat('x',20000) from s")
    fill = "insert into n.full(b) select b from n.full order by id limit 50;"
    began, errors = time.monotonic(), ""
    while not errors:
        if time.monotonic() - began > 120:
            raise SystemExit("the cluster is not full after two minutes")
        _, _, errors = server.sql(fill * 20, check=False)
    if set(re.findall(r"ERROR \d+", errors)) != {"ERROR 1114"}:
        raise SystemExit(f"the cluster is full, and the answer is: {errors[:500]}")
    server.expect("select count(*) % 50 from n.full", "0")
    server.refuse("begin; delete from n.small; insert into n.small values(7); " + fill * 3 + "rollback", 1114)
    _, rows, errors = server.sql("select count(*) from n.full; begin; delete from n.full where id=1; " + fill + "commit; select count(*) from n.full", check=False)
    before, after = map(int, rows.split())
    if "ERROR 1114" not in errors or after != before - 1:
        raise SystemExit(f"a statement that fails in a transaction: {before} rows, {after} rows, {errors}")
    server.sql("drop table n.full, n.small")
    server.sql("create table n.full(id int primary key) engine=ndb; insert into n.full values(1); drop table n.full")
    print(f"a full cluster: 1114 after {time.monotonic() - began:.0f} s, and the transaction goes on", flush=True)


def data_memory(server):
    values = {int(line) for line in server.sql("select config_value from ndbinfo.config_values where config_param = 112")[1].split()}
    if len(values) != 1:
        raise SystemExit(f"DataMemory differs: {values}")
    return values.pop()


def check_change(server):
    """ALTER CLUSTER: explained, under writes, and with kill -9 of the SQL node in the middle."""
    server.sql("create database if not exists n; create table if not exists n.w(id int primary key, g int, key(g)) engine=ndb")
    for text, code in (("restore 1", 1235), ("set NoOfReplicas = 1", 1235), ("set Nothing = 1", 1193), ("set DataMemory = 1X", 1231), ("set DataMemory = 1M", 1231),
                       ("set DataMemory 1G", 1064), ("stop node 77", 1296), ("drop node 3", 1296), ("add node '127.0.0.1'", 1064)):
        server.refuse(f"alter cluster {text}", code)
        server.refuse(f"explain alter cluster {text}", code)
    server.sql("drop user if exists u; create user u")
    for text in ("alter cluster restart", "explain alter cluster restart", "alter cluster backup"):
        _, _, errors = server.sql(text, check=False, user="u")
        if "ERROR 1227 " not in errors:
            raise SystemExit(f"{text} by somebody: {errors}")
    server.sql("grant cluster_admin on *.* to u; drop user u")
    server.sql("alter cluster backup")
    server.expect("select statement, state from squall_cluster.changes", "ALTER CLUSTER backup done")
    # One that was made before has another size.
    old = data_memory(server)
    new = old + (16 << 20) * (1 if old % (32 << 20) == 0 else -1)
    explained = [line.split("\t") for line in server.sql(f"explain alter cluster set DataMemory = {new}")[1].splitlines()]
    if [row[:2] + row[3:4] for row in explained] != [["1", "NULL", "YES"], ["2", "2", "YES"], ["3", "3", "YES"], ["NULL", "NULL", "YES"]]:
        raise SystemExit(f"EXPLAIN ALTER CLUSTER: {explained}")
    if data_memory(server) != old:
        raise SystemExit("EXPLAIN has changed the cluster")
    # One writer as the requirement has it, and as many rows as three thousand a second.
    writers = [Writer(server, 10_000_000, pace=100), Writer(server, 20_000_000, rows=30, pace=60), Writer(server, 30_000_000, rows=30, pace=60)]
    under_writes("ALTER CLUSTER SET DataMemory", server, lambda: server.sql(f"alter cluster set DataMemory = {new}"), writers)
    if data_memory(server) != new:
        raise SystemExit("ALTER CLUSTER SET has not changed the cluster")


def check_crash(server):
    """kill -9 of the SQL node while a data node stops, and while it starts: the next start goes on."""
    state = "select state from squall_cluster.changes order by id desc limit 1"
    server.sql("alter cluster backup")
    for change, status in (("stop node 3", "NOT STARTED"), ("start node 3", "STARTED")):
        client = threading.Thread(target=server.sql, args=(f"alter cluster {change}", False))
        client.start()
        while server.sql("select state from squall_cluster.steps order by change_id desc, step limit 1")[1].strip() != "running":
            time.sleep(0.05)
        server.refuse("alter cluster backup", 1296)
        server.kill()
        client.join()
        server.start()
        if not server.said("goes on at step 1 of 1"):
            raise SystemExit(f"kill -9 during ALTER CLUSTER {change}: {(server.folder / 'log').read_text()[-2000:]}")
        for _ in range(900):
            if server.sql(state)[1].strip() == "done":
                break
            time.sleep(0.1)
        server.expect(state, "done")
        server.expect("select status from data_dictionary.ndb_nodes where node_id = 3", status)
        if status == "NOT STARTED":
            server.refuse("alter cluster stop node 2", 1296)
            server.refuse("alter cluster restart", 1296)
    print("kill -9 of the SQL node in the middle of a change: the next start goes on", flush=True)


def check_grow(server, cluster):
    """ALTER CLUSTER ADD NODE under writes."""
    if data_memory(server) < 256 << 20:
        raise SystemExit("grow writes 500,000 rows, and spreading them takes room beside: it needs a cluster with 256 MB of DataMemory")
    server.sql("create database if not exists n; create table if not exists n.w(id int primary key, g int, key(g)) engine=ndb")
    port, home = int(cluster.address.rsplit(":", 1)[1]), os.environ["NDB_DIR"]
    nodes = ", ".join(f"'127.0.0.1:{port + node - 1}' datadir '{home}/node{node}'" for node in (4, 5))

    def grow():
        client = threading.Thread(target=server.sql, args=(f"alter cluster add node {nodes}",))
        client.start()
        while server.sql("select count(*) from squall_cluster.steps where word = 'await' and state = 'running'", check=False)[1].strip() != "1":
            if not client.is_alive():
                raise SystemExit("ALTER CLUSTER ADD NODE ended early")
            time.sleep(0.2)
        for node in ("4", "5"):
            cluster.run("start-node", node, "--initial")
        client.join()

    writers = [Writer(server, 40_000_000, pace=100), Writer(server, 50_000_000, rows=30, pace=60), Writer(server, 60_000_000, rows=30, pace=60)]
    under_writes("ALTER CLUSTER ADD NODE", server, grow, writers)
    server.expect("select state, error from squall_cluster.changes order by id desc limit 1", "done NULL")
    server.expect("select count(distinct node_group) from data_dictionary.ndb_nodes where type='DATA' and status='STARTED'", "2")
    server.expect("select count(distinct node_id) from ndbinfo.memoryusage where memory_type='Data memory' and used > 0", "4")
    # Rows of a table are on all nodes.
    server.sql("create table n.after(id int primary key) engine=ndb; insert into n.after values(1); drop table n.after")


def check_tool(squalld, cluster, shim):
    """`squall cluster`: a cluster without a configuration file, killed, stopped and started."""
    tool, port = pathlib.Path(squalld).parent / "squall", free_port()
    with tempfile.TemporaryDirectory() as parent:
        directory = f"{parent}/cluster"

        def squall(what, *options, fails=False):
            done = subprocess.run([tool, "cluster", what, directory, *options], capture_output=True, text=True, timeout=200)
            if bool(done.returncode) != fails:
                raise SystemExit(f"squall cluster {what}: {done.stdout}{done.stderr}")
            return done.stdout + done.stderr

        def states():
            return [line.split()[:3] for line in squall("status").splitlines()[1:] if " client " not in line]

        assert "squall cluster init" in squall("status", fails=True)
        assert "no ndb_mgmd" in squall("init", "--ndb-bin=/", fails=True)
        began = time.monotonic()
        squall("init", f"--ndb-bin={cluster.home}/bin", f"--port={port}", "--data-memory=80M")
        made = time.monotonic() - began
        try:
            up = [["2", "data", "up"], ["3", "data", "up"], ["1", "management", "up"]]
            assert states() == up, states()
            assert "File exists" in squall("init", f"--ndb-bin={cluster.home}/bin", f"--port={free_port()}", fails=True)
            server = Server(squalld, ["--plugin-add=ndb", f"--ndb-connectstring=127.0.0.1:{port}", f"--ndb-shim={shim}"])
            try:
                server.sql("create database n; create table n.a(id int primary key) engine=ndb; insert into n.a values(5)")
                # What was killed is started: a data node, and the management server beside data nodes that run on.
                for node, name in (("3", "data"), ("1", "management")):
                    pid = int(pathlib.Path(f"{directory}/node{node}/ndb_{node}.pid").read_text())
                    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                    for process in (pid, *map(int, children)):
                        os.kill(process, 9)
                    time.sleep(1)
                    squall("start")
                    assert states() == up, states()
                    server.expect("select id from n.a", "5")
                squall("stop")
                assert "stopped" in squall("status", fails=True)
                squall("start")
                for _ in range(100):
                    if server.sql("select id from n.a", check=False)[1].strip() == "5":
                        break
                    time.sleep(0.1)
                server.expect("select id from n.a", "5")
            finally:
                server.stop()
        finally:
            subprocess.run([tool, "cluster", "stop", directory], capture_output=True, timeout=200)
    print(f"squall cluster: made in {made:.0f} s, killed, stopped, started", flush=True)


def eventually(server, text, wanted, seconds=5):
    """The answer, as soon as the server has followed the others."""
    began = time.monotonic()
    while True:
        found = " ".join(server.sql(text, check=False)[1].split())
        if found == wanted:
            return
        if time.monotonic() - began > seconds:
            server.expect(text, wanted)
        time.sleep(0.02)


def refuse_eventually(server, text, code, seconds=5):
    began = time.monotonic()
    while f"ERROR {code} " not in server.sql(text, check=False)[2]:
        if time.monotonic() - began > seconds:
            server.refuse(text, code)
        time.sleep(0.02)


class Repeater(threading.Thread):
    """Runs what `statement` gives for 0, 1, 2, .. on one server until it is told to stop, and keeps what was acknowledged. A refusal that says "try again" is none."""

    # Changed by another server, a lock too long, a deadlock; the cluster's temporary errors; a name that another has taken or given up; the server is killed.
    AGAIN = (1412, 1205, 1213, 1297, 1296, 1050, 1051, 1072, 1146, 1091, 1060, 1061, 1054, 2002, 2003, 2013, 2006, 2026)

    def __init__(self, server, statement):
        super().__init__()
        self.server, self.statement = server, statement
        self.done, self.refused, self.failed, self.stopped, self.longest = [], 0, [], False, (0.0, "")

    def run(self):
        at = 0
        while not self.stopped:
            text = self.statement(at)
            began = time.monotonic()
            code, _, errors = self.server.sql(text, check=False)
            self.longest = max(self.longest, (time.monotonic() - began, text))
            if code == 0 and not errors:
                self.done.append(at)
            elif any(f"ERROR {number} " in errors for number in self.AGAIN) or "Lost connection" in errors:
                self.refused += 1
            else:
                self.failed.append(f"{text}: {errors}")
            at += 1


def check_several(squalld, options):
    """Two servers and a third one on one cluster: definitions reach the others, rows are never written by an old one, and kill -9 of one disturbs no other."""
    options = [option for option in options if not option.startswith("--ndb-database")] + [f"--ndb-database=several_{os.getpid()}"]
    one, two = Server(squalld, options), Server(squalld, options)
    began = time.monotonic()
    try:
        check_followed(squalld, options, one, two)
        check_fence(one, two)
        check_kill(one, two)
        for name in one.sql("select table_name from information_schema.tables where table_schema='n' and engine='ndbcluster'")[1].split():
            one.sql(f"drop table n.`{name}`")
        eventually(two, "select count(*) from information_schema.tables where table_schema='n' and engine='ndbcluster'", "0")
    finally:
        one.stop()
        two.stop()
    print(f"several servers: as it should be, {time.monotonic() - began:.0f} s", flush=True)


def same_definition(one, two, name):
    """But for the next AUTO_INCREMENT value, of which each server has drawn some."""
    texts = [re.sub(r" AUTO_INCREMENT=\d+", "", server.sql(f"show create table n.{name}")[1]) for server in (one, two)]
    if texts[0] != texts[1]:
        raise SystemExit(f"two definitions: {texts}")


def check_followed(squalld, options, one, two):
    count = "select count(*) from information_schema.tables where table_schema='n'"
    one.sql("create database n collate utf8mb4_bin; create table n.t(id int auto_increment primary key, a int, b varchar(20) comment 'what', key(a)) engine=ndb; insert into n.t(a,b) values(1,'x')")
    eventually(two, "select id,a,b from n.t", "1 1 x")
    two.expect("select default_collation_name from information_schema.schemata where schema_name='n'", "utf8mb4_bin")
    same_definition(one, two, "t")
    two.sql("insert into n.t(a,b) values(2,'y')")
    one.expect("select a,b from n.t order by a", "1 x 2 y")
    # AUTO_INCREMENT is unique over servers, also after a value that somebody chose.
    for at in range(3):
        for server in (one, two):
            server.sql("insert into n.t(a) values" + ",".join("(7)" for _ in range(100)))
        one.sql(f"insert into n.t(id,a) values({100_000 * (at + 1)},8)")
    one.expect("select count(*), count(distinct id) from n.t where a=7", "600 600")
    # Each change reaches the other.
    two.sql("alter table n.t add column c int default 5, algorithm=instant")
    eventually(one, "select distinct c from n.t", "5")
    one.sql("alter table n.t drop column b, add index(c)")
    eventually(two, "select count(*) from n.t where c=5", "605")
    refuse_eventually(two, "select b from n.t", 1054)
    two.expect("insert into n.t(a,c) values(9,9); select a from n.t where c=9", "9")
    two.sql("alter table n.t drop index a, comment='changed'")
    eventually(one, "select table_comment from information_schema.tables where table_schema='n' and table_name='t'", "changed")
    one.expect("check table n.t", "n.t check status OK")
    one.sql("create table n.u(id int primary key) engine=ndb; insert into n.u values(77)")
    eventually(two, "select id from n.u", "77")
    two.sql("rename table n.t to n.x, n.u to n.t, n.x to n.u")
    eventually(one, "select id from n.t", "77")
    one.expect("select count(*) from n.u", "606")
    one.sql("truncate n.u")
    eventually(two, "select count(*) from n.u", "0")
    two.expect("insert into n.u(a) values(1); select count(*) from n.u", "1")
    # A name is taken for all, also at the same moment.
    two.sql("create table n.name(id int primary key) engine=ndb")
    one.refuse("create table n.name(id int primary key) engine=ndb", 1050)
    one.sql("drop table if exists n.none, n.name")
    refuse_eventually(two, "select * from n.name", 1146)
    # Out of the cluster and back.
    one.sql("alter table n.t engine=innodb")
    refuse_eventually(two, "select * from n.t", 1146)
    one.expect("select id from n.t", "77")
    one.sql("alter table n.t engine=ndb")
    eventually(two, "select id from n.t", "77")
    # A new server finds the tables at its start, one that was away what has changed.
    third = Server(squalld, options)
    try:
        third.expect(count, "2")
        third.expect("insert into n.t values(78); select id from n.t order by id", "77 78")
        third.kill()
        two.sql("alter table n.t add column late int default 3; create table n.later(id int primary key) engine=ndb; drop table n.u")
        third.start()
        eventually(third, "select late from n.t where id=78", "3")
        eventually(third, count, "2")
    finally:
        third.stop()
    # Views, triggers and other engines' tables are each server's own.
    one.sql("create table n.own(id int primary key); create trigger n.tr before insert on n.t for each row set new.late = 4")
    two.sql("rename table n.t to n.t2")
    eventually(one, "select count(*) from n.t2", "2")
    one.expect("insert into n.t2(id) values(80); select late from n.t2 where id=80", "4")
    two.sql("insert into n.t2(id) values(81); alter table n.t2 drop column late; drop table n.later; rename table n.t2 to n.t")
    eventually(one, count, "2")
    one.sql("drop trigger n.tr; drop table n.own")


class Client:
    """A session that is asked statement by statement."""

    def __init__(self, server):
        command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{server.port}", "-uroot", "-N", "-B", "--unbuffered", "--force"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)

    def send(self, text):
        self.process.stdin.write(f"{text}; select 'over';\n")
        self.process.stdin.flush()

    def answer(self):
        lines = []
        while (line := self.process.stdout.readline()) and line.strip() != "over":
            lines.append(line.strip())
        return " ".join(lines)

    def ask(self, text):
        self.send(text)
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def check_fence(one, two):
    """Rows and definitions change one after the other, whichever servers do it."""
    one.sql("create table n.f(id int primary key, a int) engine=ndb; insert into n.f values(1,1),(2,2)")
    eventually(two, "select count(*) from n.f", "2")
    first, second = Client(one), Client(two)
    try:
        # A change of the definition waits for a transaction of another server that has written.
        assert first.ask("begin; insert into n.f values(3,3)") == ""
        second.send("alter table n.f add column c int default 1, algorithm=copy")
        time.sleep(1)
        assert first.ask("update n.f set a=30 where id=3; commit") == ""
        assert second.answer() == ""
        two.expect("select a,c from n.f where id=3", "30 1")
        eventually(one, "select a,c from n.f where id=3", "30 1")
        # One that has only read goes on by its old definition, and may not write by it.
        assert first.ask("begin; select a from n.f where id=1") == "1"
        assert second.ask("alter table n.f add column d int default 2, algorithm=instant; insert into n.f values(4,4,4,4)") == ""
        answer = first.ask("insert into n.f values(5,5,5)")
        assert "ERROR 1297 " in answer and "1412" in answer, answer
        eventually(one, "select d from n.f where id=4", "4")
        one.expect("insert into n.f values(5,5,5,5); select count(*) from n.f", "5")
        eventually(two, "select count(*) from n.f", "5")
        # Nor lock rows of a table that is gone.
        assert first.ask("begin; select a from n.f where id=1") == "1"
        assert second.ask("truncate n.f; insert into n.f values(6,6,6,6)") == ""
        answer = first.ask("select a from n.f where id=1 for update")
        # The cluster knows the table no more, or the fence refuses: either ends the transaction.
        assert "ERROR 1297 " in answer, answer
        assert first.ask("rollback") == ""
        eventually(one, "select id from n.f", "6")
    finally:
        first.close()
        second.close()
    one.sql("drop table n.f")


def check_kill(one, two):
    """DDL and DML on both servers, and kill -9 of the second again and again."""
    one.sql("create table n.l(id bigint primary key, a int, key(a)) engine=ndb; create table n.w(id int primary key, g int, key(g)) engine=ndb")
    eventually(two, "select count(*) from n.l, n.w", "0")
    ddl = ["alter table n.l add column x int default 1, algorithm=instant", "alter table n.l add index(x)", "alter table n.l drop index x", "alter table n.l drop column x",
           "create table n.l2(id int primary key) engine=ndb", "rename table n.l2 to n.l3", "truncate n.l3", "drop table n.l3"]
    patience = "set session lock_wait_timeout=3, innodb_lock_wait_timeout=3;"

    def rows(first):
        return lambda at: f"{patience} insert into n.l(id,a) values({first + at},{at % 10}); update n.l set a = a + 1 where id = {first + at}"

    workers = [Repeater(one, rows(0)), Repeater(one, rows(1_000_000_000)), Repeater(two, rows(2_000_000_000)),
               Repeater(one, lambda at: patience + ddl[at % len(ddl)]), Repeater(two, lambda at: patience + ddl[(at + 4) % len(ddl)])]
    for worker in workers:
        worker.start()
    kills = 4
    try:
        for _ in range(kills):
            time.sleep(4)
            two.kill()
            two.start()
        time.sleep(3)
    finally:
        for worker in workers:
            worker.stopped = True
        for worker in workers:
            worker.join()
    # What a crash may have left of a name is settled.
    for server in (one, two):
        if any(worker.failed for worker in workers):
            raise SystemExit(f"failed: {[worker.failed[:3] for worker in workers]}")
        eventually(server, "select count(*) from n.w", "0")
    definitions = "select table_name, group_concat(column_name order by ordinal_position) from information_schema.columns where table_schema='n' group by 1 order by 1"
    eventually(two, definitions, " ".join(one.sql(definitions)[1].split()))
    for name in ("l", "t"):
        same_definition(one, two, name)
        for server in (one, two):
            server.expect(f"check table n.{name}", f"n.{name} check status OK")
    present = {int(line) for line in two.sql("select id from n.l")[1].split()}
    acknowledged = {first + at for first, worker in zip((0, 1_000_000_000, 2_000_000_000), workers) for at in worker.done}
    longest = max(worker.longest for worker in workers)
    lost, changes = acknowledged - present, sum(len(worker.done) for worker in workers[3:])
    print(f"{kills} times kill -9 of one of two servers: {len(acknowledged)} rows, {len(lost)} lost, {changes} changes of definitions, "
          f"{sum(worker.refused for worker in workers)} refusals, longest statement {longest[0]:.1f} s", flush=True)
    if lost or longest[0] > 5:
        raise SystemExit(f"lost {sorted(lost)[:5]}, longest {longest}")


def check_cluster(server, cluster):
    count = server.sql("select count(*) from n.w")[1].strip()
    cluster.run("stop")
    began = time.monotonic()
    _, _, errors = server.sql("select count(*) from n.w; insert into n.w values(-1,0)", check=False)
    if errors.count("ERROR 129") != 2:
        raise SystemExit(f"the cluster is gone, and the answer is: {errors}")
    print(f"cluster gone: two statements refused in {time.monotonic() - began:.1f} s")
    server.expect("insert into n.i values(70,70); select v from n.i where id=70", "70")
    cluster.start()
    began = time.monotonic()
    while server.sql("select count(*) from n.w", check=False)[1].strip() != count:
        if time.monotonic() - began > 30:
            raise SystemExit("the cluster is back, and its tables are not: " + server.sql("select count(*) from n.w", check=False)[2])
        time.sleep(0.2)
    print(f"cluster back: its tables {time.monotonic() - began:.1f} s later")
    server.sql("insert into n.w values(-2,0); delete from n.w where id=-2; drop database n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--only", default="sql,several,full,node,change,crash,cluster")
    parser.add_argument("--suite", action="store_true", help="run the engine suite too")
    args = parser.parse_args()
    program = os.environ.get("SQUALL_NDB")
    if not program:
        print("################ LEFT OUT: no MySQL Cluster (SQUALL_NDB names the program that runs one)")
        return
    cluster = Cluster(program)
    cluster.start()
    with tempfile.TemporaryDirectory() as out:
        shim = cluster.shim(out)
        if args.suite:
            given = {"SQUALL_NDB_CONNECTSTRING": cluster.address, "SQUALL_NDB_SHIM": str(shim)}
            suite = ["cargo", "test", "--package", "engine-ndb", "--locked"]
            subprocess.run(suite, check=True, cwd=ROOT, env=os.environ | given)
        options = ["--plugin-add=ndb", f"--ndb-connectstring={cluster.address}", f"--ndb-shim={shim}", f"--ndb-database=test_{os.getpid()}"]
        server = Server(args.squalld, options)
        checks = args.only.split(",")
        try:
            if "sql" in checks:
                check_library(args.squalld, cluster.address)
                check_sql(server)
                check_many_keys(server)
                print("SQL: as it should be", flush=True)
            if "several" in checks:
                check_several(args.squalld, options)
            if "full" in checks:
                check_full(server)
            if "node" in checks:
                check_node(server, cluster)
            if "change" in checks:
                check_change(server)
            if "tool" in checks:
                check_tool(args.squalld, cluster, shim)
            if "crash" in checks:
                check_crash(server)
            if "grow" in checks:
                check_grow(server, cluster)
            if "cluster" in checks:
                check_cluster(server, cluster)
        finally:
            server.stop()
            if "grow" in checks:
                cluster.run("wipe")


if __name__ == "__main__":
    main()
