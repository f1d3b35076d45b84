#!/usr/bin/env python3
"""Full scans of sysbench's table against a peer, in alternation: medians and ratios.

    sysbench oltp_read_only --mysql-db=scan --table-size=1000000 --tables=1 prepare     (on both servers)
    benches/scans.py --port 3306 --peer 13306 [--schema scan] [--rounds 5]

Prints for each query the median milliseconds of both, and how many times the peer's are. Needs PyMySQL.
"""

import argparse
import statistics
import time

import pymysql

QUERIES = {
    "count": "SELECT COUNT(*) FROM sbtest1",
    "count and sum": "SELECT COUNT(*), SUM(k) FROM sbtest1",
    "count and sum, no index": "SELECT COUNT(*), SUM(k) FROM sbtest1 IGNORE INDEX (k_1)",
    "range of the index": "SELECT COUNT(*), SUM(k), MIN(id) FROM sbtest1 WHERE k BETWEEN 400000 AND 600000",
    "groups of a hundredth": "SELECT k % 100, COUNT(*), SUM(k) FROM sbtest1 GROUP BY k % 100",
    "groups by index": "SELECT k, COUNT(*) FROM sbtest1 GROUP BY k ORDER BY 2 DESC LIMIT 5",
    "like": "SELECT COUNT(*) FROM sbtest1 WHERE c LIKE '%123-4%'",
    "top ten by text": "SELECT id, c FROM sbtest1 ORDER BY c LIMIT 10",
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=3306)
    parser.add_argument("--peer", type=int, required=True)
    parser.add_argument("--schema", default="scan")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    connections = [
        pymysql.connect(host="127.0.0.1", port=port, user="root", database=options.schema)
        for port in (options.port, options.peer)
    ]
    for name, query in QUERIES.items():
        times = [[], []]
        # The first round warms up.
        for round_number in range(options.rounds + 1):
            for connection, own in zip(connections, times):
                cursor = connection.cursor()
                begun = time.perf_counter()
                cursor.execute(query)
                cursor.fetchall()
                if round_number:
                    own.append((time.perf_counter() - begun) * 1000)
        own, peer = map(statistics.median, times)
        print(f"{name}: {own:.1f} ms, peer {peer:.1f} ms, {peer / own:.2f} times", flush=True)


if __name__ == "__main__":
    main()
