#!/usr/bin/env python3
"""Tables of engine ndbcluster on a real MySQL Cluster: SQL, kill -9 of a data node under writes, the whole cluster gone and back.

    tests/ndb/run.py --squalld target/debug/squalld [--only sql,node,cluster]

SQUALL_NDB names a program that runs a cluster: `start` prints "connect string HOST:PORT", `stop`, `kill-node N`; in its directory $NDB_DIR/ndb are `include` and `bin` with libndbclient.so.
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
        command = [squalld, f"--datadir={self.folder}/data", f"--port={self.port}", f"--socket={self.folder}/s", "--insecure-root", *options]
        self.log = open(self.folder / "log", "w")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        for _ in range(200):
            if self.sql("select 1", check=False)[0] == 0:
                return
            time.sleep(0.1)
        raise SystemExit((self.folder / "log").read_text())

    def sql(self, text, check=True, user="root"):
        """Return code, rows as text, errors."""
        command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{self.port}", f"-u{user}", "-N", "-B", "--force" if not check else "--skip-reconnect"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
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
    server.refuse("alter cluster restart", 1235)
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
    """Inserts row after row and remembers what was acknowledged."""

    def __init__(self, server, first):
        super().__init__()
        self.server, self.next, self.acknowledged, self.failed, self.stopped = server, first, [], [], False
        self.longest = 0.0

    def run(self):
        command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{self.server.port}", "-uroot", "-N", "-B", "--unbuffered", "--force"]
        client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        while not self.stopped:
            began = time.monotonic()
            client.stdin.write(f"insert into n.w values({self.next},{self.next % 9}); select row_count(), {self.next};\n")
            client.stdin.flush()
            answer, errors = client.stdout.readline(), []
            while answer and answer.split()[1:] != [str(self.next)]:
                errors.append(answer.strip())
                answer = client.stdout.readline()
            if answer.split()[:1] == ["1"]:
                self.acknowledged.append(self.next)
            else:
                self.failed.append(f"{answer.strip()} {errors}")
            self.longest = max(self.longest, time.monotonic() - began)
            self.next += 1
        client.stdin.close()
        client.wait()


def check_node(server, cluster):
    server.sql("create table n.w(id int primary key, g int, key(g)) engine=ndb")
    writers = [Writer(server, first) for first in (0, 1_000_000, 2_000_000)]
    for writer in writers:
        writer.start()
    time.sleep(2)
    cluster.run("kill-node", "3")
    time.sleep(3)
    cluster.start()
    time.sleep(2)
    for writer in writers:
        writer.stopped = True
    for writer in writers:
        writer.join()
    acknowledged = {number for writer in writers for number in writer.acknowledged}
    failed = [text for writer in writers for text in writer.failed]
    present = {int(line) for line in server.sql("select id from n.w")[1].split()}
    lost = acknowledged - present
    longest = max(writer.longest for writer in writers)
    print(f"kill -9 of a data node: {len(acknowledged)} rows acknowledged, {len(lost)} lost, {len(failed)} statements failed, longest {longest:.2f} s")
    if lost or failed:
        raise SystemExit(f"lost {sorted(lost)[:5]}, failed {failed[:5]}")
    server.expect("check table n.w", "n.w check status OK")


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
    parser.add_argument("--only", default="sql,node,cluster")
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
            if "node" in checks:
                check_node(server, cluster)
            if "cluster" in checks:
                check_cluster(server, cluster)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
