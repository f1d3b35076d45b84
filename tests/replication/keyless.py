#!/usr/bin/env python3
"""Rows of tables without a key: a replica changes those of one statement by one scan of the table. All types, equal rows, NULLs, and 10,000 rows at once.

    tests/replication/keyless.py [--squalld target/debug/squalld] [--rows 10000] [--without]

--without gives the large table a unique index over a column of NULLs, for which each row is looked for by itself: to compare the times.
"""

import argparse
import pathlib
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import rows  # noqa: E402
from follow import catch_up  # noqa: E402
from log_settings import expect, follow, start  # noqa: E402

TYPES = """a TINYINT, au TINYINT UNSIGNED, b BIGINT, bu BIGINT UNSIGNED, f FLOAT, d DOUBLE, n DECIMAL(20,5), bi BIT(20), c CHAR(10), v VARCHAR(40), cl VARCHAR(20) CHARACTER SET latin1,
  t TEXT, bn BINARY(6), vb VARBINARY(20), bl BLOB, e ENUM('x','y','z'), s SET('p','q','r'), y YEAR, da DATE, ti TIME(3), dt DATETIME(6), ts TIMESTAMP(2) NULL, j JSON, g POINT,
  gen INT AS (a + 1) STORED, virt INT AS (a + 2)"""
ROW = ("({n} % 100, {n} % 200, {n} - 50, {n} * 3, {n} / 8, {n} / 7, {n} / 3, {n}, 'c{n}  ', 'Vü{n}', 'lé{n}', REPEAT('t{n}', 9), 'b{n}', x'00{n:04}', x'ff00{n:04}', {n} % 3 + 1, {n} % 8, 1950 + {n} % 100, "
       "'2020-01-01' + INTERVAL {n} DAY, '-1:02:03.4', '2020-01-01 00:00:00.000001' + INTERVAL {n} SECOND, '2020-02-03 04:05:06.07', '{{\"k\": [{n}, null, \"x\"]}}', POINT({n}, 1))")
COLUMNS = "a, au, b, bu, f, d, n, bi, c, v, cl, t, bn, vb, bl, e, s, y, da, ti, dt, ts, j, g"


def content(server, table):
    return sorted(rows(server.port, f"SELECT {COLUMNS.replace('bi,', 'HEX(bi),').replace(' g', ' HEX(g)').replace('vb, bl', 'HEX(vb), HEX(bl)').replace('bn', 'HEX(bn)')}, gen, virt FROM d.{table}"))


def all_types(source, replica):
    rows(source.port, f"CREATE TABLE d.types ({TYPES})")
    values = [ROW.format(n=number) for number in range(1, 60)]
    nulls = "(" + ", ".join(["NULL"] * 24) + ")"
    # Equal rows, too: as many of them change as on the source.
    rows(source.port, f"INSERT INTO d.types ({COLUMNS}) VALUES {', '.join(values + values[:20] + values[:7] + [nulls] * 5)}")
    sets = [
        "v = 'all'", "a = a + 1, e = 'z', s = 'p,r'", "j = JSON_SET(j, '$.k[0]', 'new')", "t = NULL, bl = x'00' WHERE b % 2 = 0", "bi = bi + 1, f = f * 2, n = -n WHERE b > -30",
        "g = NULL WHERE b < -20", "dt = dt + INTERVAL 1 MICROSECOND, ts = NULL, ti = '00:00:00.5', da = NULL, y = NULL", "c = 'two', bn = 'x', vb = NULL WHERE e = 3",
    ]
    for image in ("FULL", "MINIMAL", "NOBLOB"):
        for change in sets:
            rows(source.port, f"SET binlog_row_image = {image}; UPDATE d.types SET {change}")
        rows(source.port, f"SET binlog_row_image = {image}; UPDATE d.types SET v = CONCAT(v, '!') WHERE b < 0 LIMIT 11; DELETE FROM d.types WHERE b % 3 = 0 LIMIT 6; DELETE FROM d.types WHERE b IS NULL LIMIT 1")
        catch_up(source, replica)
        expect(f"{image}: rows", content(replica, "types"), content(source, "types"))
    rows(source.port, "DELETE FROM d.types")
    catch_up(source, replica)
    expect("none is left", content(replica, "types"), [])


def missing(source, replica):
    """Rows that are not there are still an error that names the table."""
    rows(source.port, "CREATE TABLE d.gone (a INT, b INT); INSERT INTO d.gone VALUES (1, 1), (2, 2), (3, 3)")
    catch_up(source, replica)
    rows(replica.port, "SET sql_log_bin = 0; DELETE FROM d.gone WHERE a = 2")
    rows(source.port, "UPDATE d.gone SET b = b + 10")
    for _ in range(200):
        number, text = rows(replica.port, "SELECT Last_Errno, Last_Error FROM data_dictionary.REPLICA_STATUS")[0]
        if number != "0":
            break
        time.sleep(0.05)
    expect("a missing row", (number, "d.gone" in text), ("1032", True))
    expect("nothing was changed", rows(replica.port, "SELECT SUM(b) FROM d.gone"), [["4"]])
    rows(replica.port, "STOP REPLICA; SET sql_log_bin = 0; INSERT INTO d.gone VALUES (2, 2)")
    rows(replica.port, "START REPLICA")
    catch_up(source, replica)
    expect("it goes on", rows(replica.port, "SELECT SUM(b) FROM d.gone"), [["36"]])


def many(source, replica, options):
    index = ", ADD COLUMN u INT, ADD UNIQUE INDEX (u)" if options.without else ""
    rows(source.port, "CREATE TABLE d.many (a INT, b INT, c VARCHAR(40)); SET cte_max_recursion_depth = 1000000; "
                      f"INSERT INTO d.many WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {options.rows}) SELECT i, i % 10, CONCAT('row ', i) FROM n; ALTER TABLE d.many COMMENT 'x'{index}")
    catch_up(source, replica)
    for change in ("UPDATE d.many SET b = b + 1", "DELETE FROM d.many WHERE a % 2 = 0"):
        started = time.perf_counter()
        rows(source.port, change)
        of_source = time.perf_counter() - started
        catch_up(source, replica)
        print(f"{change}: {options.rows} rows: {of_source:.2f} s on the source, there after {time.perf_counter() - started:.2f} s")
    total = "SELECT COUNT(*), SUM(a), SUM(b), MIN(c) FROM d.many"
    expect("many rows", rows(replica.port, total), rows(source.port, total))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--rows", type=int, default=10000)
    parser.add_argument("--without", action="store_true")
    options = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp())
    source, replica = (start(options.squalld, top, name, "--log-bin", f"--server-id={number}") for number, name in ((1, "source"), (2, "replica")))
    try:
        rows(source.port, "CREATE DATABASE d")
        follow(source, replica)
        many(source, replica, options)
        if not options.without:
            all_types(source, replica)
            missing(source, replica)
    finally:
        for server in (source, replica):
            server.process.terminate()
            server.process.wait()
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
