#!/usr/bin/env python3
"""A replica of MySQL under a load of every column type and kind of statement, with kill -9 of the replica in a loop: nothing is lost or applied twice.

    tests/crash/replica.py [--source 127.0.0.1:13309] [--rounds 6] [--statements 200] [--seed 1] [--squalld target/release/squalld]

The source is a MySQL 9 with its binary log and GTIDs on, and a user root without a password that may create users; its address may come
from SQUALL_REPLICATION_SOURCE too. Without one the test says that it is left out. It writes in schemas of its own, `replica_test_SEED`.
"""

import argparse
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import time

from kill_loop import Server, free_port

TABLES = """
create table t1(id int auto_increment primary key, a varchar(50), b decimal(20,5), c double, d datetime(3), e json, f enum('x','y','z'), g set('p','q','r'), h bit(17), i time(2),
  j year, k blob, l text character set latin1, ts timestamp(4) null, fl float, key(a));
create table t2(a varchar(30), b int, c float, d text, e varbinary(20), f date);
create table t3(a varchar(20) character set gbk not null, b int unsigned not null, v int, g1 int as (v*2) virtual, g2 varchar(60) as (concat(a,'-',v)) stored, unique key u(b,a));
create table parents(id int primary key, n varchar(20));
create table children(id int primary key auto_increment, pid int, n int, foreign key(pid) references parents(id) on delete cascade on update cascade);
create table told(id int auto_increment primary key, what varchar(100));
create table geo(id int primary key, p point not null srid 4326, ls linestring, v vector(4));
create table parted(id int, d date, x varchar(10), primary key(id,d)) partition by range(year(d))
  (partition p0 values less than (2000), partition p1 values less than (2020), partition p2 values less than maxvalue);
create trigger tr1 after insert on t1 for each row insert into told(what) values(concat('ins ',new.id));
create trigger tr2 before update on t1 for each row set new.fl=1.25;
create trigger tr3 after delete on t1 for each row insert into told(what) values(concat('del ',old.id));
create view v1 as select id,a from t1 where id>5;
delimiter //
create procedure p1(in x int) begin insert into t2(a,b) values('proc',x); update t2 set c=x/3 where b=x; end//
delimiter ;
"""
COLUMNS = "(a,b,c,d,e,f,g,h,i,j,k,l,ts,fl)"


class Load:
    def __init__(self, seed, statements):
        self.random, self.schema, self.lines = random.Random(seed), f"replica_test_{seed}", []
        self.lines.append(f"drop database if exists {self.schema}; create database {self.schema} character set utf8mb4; use {self.schema};")
        self.lines.append(TABLES)
        for number in range(statements):
            in_transaction = self.random.random() < 0.3
            if in_transaction:
                self.lines.append("begin;")
            for _ in range(self.random.randint(1, 4) if in_transaction else 1):
                self.lines.append(self.change(number, in_transaction))
            if in_transaction:
                self.lines.append(self.random.choice(["commit;"] * 4 + ["rollback;"]))
            if self.random.random() < 0.06:
                self.lines.append(self.definition(number))

    def text(self, most, letters="abcXYZ éüß日本%_ "):
        return "'" + "".join(self.random.choice(letters) for _ in range(self.random.randint(0, most))) + "'"

    def maybe(self, value):
        return "null" if self.random.random() < 0.1 else str(value)

    def time(self, first, last, digits):
        n = self.random.randint
        return f"'{n(first, last):04}-{n(1, 12):02}-{n(1, 28):02} {n(4, 23):02}:{n(0, 59):02}:{n(0, 59):02}.{n(0, 10**digits - 1):0{digits}}'"

    def document(self):
        return self.random.choice([
            "'{\"a\":1,\"b\":[1,2,{\"c\":\"%s\"}]}'" % ("x" * self.random.randint(0, 300)),
            "'[1,2.5,null,true,\"é\"]'", "'7'",
            f"json_object('k',{self.random.randint(-9**9, 9**9)},'d',cast('2020-01-01' as date))",
            f"json_array(1,json_object('z',{self.random.randint(0, 70000)}))"])

    def row(self):
        n, u = self.random.randint, self.random.uniform
        return (f"({self.maybe(self.text(50))},{u(-1e10, 1e10):.5f},{u(-1e300, 1e300)!r},{self.maybe(self.time(1000, 9999, 3))},{self.maybe(self.document())},"
                f"{self.maybe(n(1, 3))},{n(0, 7)},{n(0, 131071)},'{self.random.choice(['', '-'])}{n(0, 838)}:{n(0, 59)}:{n(0, 58)}.{n(0, 99)}',{n(1901, 2155)},"
                f"x'{self.random.randbytes(n(0, 40)).hex()}',{self.maybe(self.text(40, 'abc éüß'))},{self.maybe(self.time(1971, 2037, 4))},{u(-1e5, 1e5):.3f})")

    def change(self, number, in_transaction):
        n, u = self.random.randint, self.random.uniform
        return self.random.choice([
            lambda: f"insert into t1{COLUMNS} values {','.join(self.row() for _ in range(n(1, 5)))};",
            lambda: f"insert into t1{COLUMNS} values {self.row()};",
            lambda: f"update t1 set a={self.text(50)}, e=json_set(coalesce(e,'{{}}'),'$.n',{n(0, 9)}), g=g^1 where id%{n(2, 7)}={n(0, 1)};",
            lambda: f"delete from t1 where id={n(1, max(2, number))};",
            lambda: f"insert into t2(a,b,c,d,e,f) values({self.text(30)},{self.maybe(n(-5, 5))},{u(-1e3, 1e3):.4f},{self.maybe(self.text(30))},"
                    f"x'{self.random.randbytes(n(0, 6)).hex()}','{n(1000, 9999)}-01-0{n(1, 9)}');",
            lambda: f"update t2 set b=b+1, d={self.text(9)} where b={n(-5, 5)};",
            lambda: f"delete from t2 where b={n(-5, 9)};",
            lambda: f"insert ignore into t3(a,b,v) values('{self.random.choice(['中', '文', 'abc', 'x'])}',{n(0, 50)},{n(0, 100)});",
            lambda: f"update t3 set v=v+1 where b<{n(0, 50)};",
            lambda: f"insert ignore into parents values({n(1, 20)},{self.text(10)}); insert ignore into children(pid,n) values({n(1, 20)},1);",
            lambda: f"replace into parents values({n(1, 20)},{self.text(10)});",
            lambda: f"delete from parents where id={n(1, 20)};",
            lambda: f"update ignore parents set id=id+20 where id={n(1, 20)};",
            lambda: f"insert ignore into geo values({n(1, 99)},st_srid(point({u(-180, 180):.3f},{u(-90, 90):.3f}),4326),st_geomfromtext('LINESTRING(0 0,{number} 1)'),"
                    f"string_to_vector('[{self.random.random():.3f},1,2,3]'));",
            lambda: f"insert ignore into parted(id,d,x) values({n(1, 99)},'{n(1990, 2030)}-05-05',{self.text(5)}); update ignore parted set d=d+interval 10 year where id={n(1, 99)};",
            lambda: f"call p1({n(1, 99)});",
            lambda: "savepoint s1; insert into t2(a) values('gone'); rollback to s1; insert into t2(a) values('kept');" if in_transaction else "insert into t2(a) values('one');",
            lambda: f"insert into t1(id,a) values({n(1, 50)},{self.text(10)}) on duplicate key update a={self.text(10)};",
            lambda: "do 0;" if in_transaction else f"xa start 'x{number}'; insert into t2(b) values({number}); xa end 'x{number}'; xa prepare 'x{number}'; "
                    f"xa {self.random.choice(['commit', 'rollback'])} 'x{number}';",
        ])()

    def definition(self, number):
        user = f"u{number}_{self.schema}"
        return self.random.choice([
            f"alter table t1 add column n{number} int default {number};", f"alter table t2 add column m{number} varchar(10) default 'é' after a;",
            f"create table made{number} as select id,a,b from t1 limit 5;", f"create table like{number} like t3; insert into like{number}(a,b,v) values('q',1,2); drop table like{number};",
            f"create index i{number} on t2(b);", f"alter table t1 modify a varchar({50 + number});", "truncate table told;",
            f"create temporary table tt(a int); insert into tt values(1); insert into t2(b) select a from tt; drop temporary table tt;",
            "rename table geo to geo_; rename table geo_ to geo;", f"create or replace view v2 as select {number} as k;", f"alter table t3 add column inv{number} int default 3 invisible;",
            f"create user {user}@localhost identified by 'x'; grant select on {self.schema}.* to {user}@localhost; drop user {user}@localhost;",
            f"create event e{number} on schedule every 1 year do set @a=1; drop event e{number};", "analyze table t1;", "optimize table t2;", f"alter table t1 comment 'c{number}';",
            f"set binlog_row_image=minimal; update t1 set b=b+1 where id%3=0; delete from t3 where b={number % 50}; set binlog_row_image=full;",
            f"set binlog_transaction_compression=on; insert into t2(a,d) select a,l from t1; set binlog_transaction_compression=off;",
            f"set binlog_row_value_options=partial_json; update t1 set e=json_set(e,'$.a',{number}) where id%2=0; set binlog_row_value_options='';"])


def client(address):
    host, port = address.rsplit(":", 1)
    return ["mariadb", "--no-defaults", "--default-character-set=utf8mb4", f"-h{host}", f"-P{port}", "-uroot", "-N", "-B"]


def ask(address, sql):
    done = subprocess.run(client(address) + ["-e", sql], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{address}: {sql}\n{done.stderr}")
    return done.stdout


def rows(address, schema):
    """All rows of all tables, bytes as digits."""
    columns = {}
    listed = ask(address, f"select table_name,column_name,data_type from information_schema.columns where table_schema='{schema}' order by table_name,ordinal_position")
    for line in listed.splitlines():
        table, column, kind = line.split("\t")
        is_bytes = kind in ("geometry", "point", "linestring", "vector") or "blob" in kind or "binary" in kind
        form = f"hex(cast(`{column}` as binary))" if is_bytes else f"`{column}`+0" if kind == "bit" else f"`{column}`"
        columns.setdefault(table, []).append(form)
    settings = "set time_zone='+00:00',sql_mode='';"
    return {table: sorted(ask(address, f"{settings} select {','.join(forms)} from `{schema}`.`{table}`").splitlines()) for table, forms in columns.items()}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--source", default=os.environ.get("SQUALL_REPLICATION_SOURCE"))
    arguments.add_argument("--rounds", type=int, default=6)
    arguments.add_argument("--statements", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--squalld", default="target/release/squalld")
    options = arguments.parse_args()
    if not options.source:
        print("LEFT OUT: no MySQL to replicate from; --source or SQUALL_REPLICATION_SOURCE names one")
        return
    host, port = options.source.rsplit(":", 1)
    print(f"seed {options.seed}")
    ask(options.source, "create user if not exists squall_replica@'%' identified by 'secret'; grant replication slave on *.* to squall_replica@'%'")
    load = Load(options.seed, options.statements)
    # From now on: what the source did earlier does not matter here.
    ask(options.source, f"drop database if exists {load.schema}")
    executed = ask(options.source, "select replace(replace(@@gtid_executed,char(10),''),' ','')").strip().replace("\\n", "")
    file, position = ask(options.source, "show binary log status").split("\t")[:2]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="squall-replica-"))
    own_port = free_port()
    replica = f"127.0.0.1:{own_port}"
    chance = random.Random(options.seed)
    server = Server(options.squalld, folder, own_port, ["--server-id=7"])
    try:
        ask(replica, f"change replication source to source_host='{host}', source_port={port}, source_user='squall_replica', source_password='secret', "
                     f"source_log_file='{file}', source_log_pos={position}, source_connect_retry=1; start replica")
        source = subprocess.Popen(client(options.source) + ["--force"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        half = len(load.lines) // 2
        source.stdin.write("\n".join(load.lines[:half]) + "\n")
        source.stdin.flush()
        for number in range(options.rounds):
            time.sleep(chance.uniform(0.3, 1.2))
            if number == options.rounds // 2:
                source.stdin.write("\n".join(load.lines[half:]) + "\n")
                source.stdin.flush()
            server.kill()
            server = Server(options.squalld, folder, own_port, ["--server-id=7"])
        source.stdin.close()
        if source.wait():
            print("some statements failed on the source, which is all right")
        wanted = ask(options.source, f"select gtid_subtract(replace(@@gtid_executed,char(10),''),'{executed}')").strip().replace("\\n", "")
        for _ in range(600):
            done = ask(replica, "select gtids from squall_replication.channels").strip().replace("\\n", "")
            if ask(options.source, f"select gtid_subset('{wanted}','{done}')").strip() == "1":
                break
            time.sleep(0.1)
        status = ask(replica, "select last_errno, last_error, last_io_error, exec_source_log_pos from data_dictionary.replica_status").strip()
        there, here = rows(options.source, load.schema), rows(replica, load.schema)
        count = sum(map(len, there.values()))
        if there != here:
            wrong = [table for table in sorted(there.keys() | here.keys()) if there.get(table) != here.get(table)]
            raise SystemExit(f"tables differ: {', '.join(wrong)}; {status}\nkept in {folder}")
        print(f"{options.rounds} kills, {len(there)} tables, {count} rows: the same on both sides")
        ask(options.source, f"drop database {load.schema}")
    finally:
        server.kill()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
