#!/usr/bin/env python3
"""A backup and the binary logs since, brought to a transaction or a time: exactly the transactions up to there, none lost, none more.

    tests/replication/point_in_time.py [--rounds 3] [--squalld target/debug/squalld] [--squall target/debug/squall] [--seed 1]

Each transaction of several writers inserts the writer's next number and adds to the writer's sum. A backup is taken in the middle, definitions change around it,
the server is killed, and `squall restore` makes data directories as of random transactions and times after the backup.
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import client, rows  # noqa: E402
from kill_loop import Server, free_port  # noqa: E402
from log_settings import expect, start  # noqa: E402

WRITERS = 4


def write(port, own, stop):
    number = 0
    while not stop.is_set():
        text = []
        for _ in range(20):
            text.append(f"BEGIN; INSERT INTO d.marks VALUES ({own}, {number}); UPDATE d.sums SET total = total + {number} WHERE writer = {own}; COMMIT;")
            number += 1
        # A killed server ends it.
        if subprocess.run(client(port), input="\n".join(text), capture_output=True, text=True).returncode:
            return


def check(port, transactions, what):
    """So many transactions of the writers, each writer's in order, are there."""
    found = rows(port, "SELECT writer, COUNT(*), MAX(n), SUM(n) FROM d.marks GROUP BY writer")
    expect(what, sum(int(count) for _, count, _, _ in found), transactions)
    sums = dict(rows(port, "SELECT writer, total FROM d.sums"))
    for writer, count, most, total in found:
        expect(f"{what}, writer {writer}", (int(most) + 1, sums[writer]), (int(count), total))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--squall", help="beside squalld unless given")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    squall = options.squall or str(pathlib.Path(options.squalld).with_name("squall"))
    top = pathlib.Path(tempfile.mkdtemp())
    server = start(options.squalld, top, "source", "--log-bin", "--server-id=1")
    rows(server.port, "CREATE DATABASE d; CREATE TABLE d.marks (writer INT, n INT, PRIMARY KEY (writer, n)); CREATE TABLE d.sums (writer INT PRIMARY KEY, total BIGINT)")
    rows(server.port, "INSERT INTO d.sums VALUES " + ", ".join(f"({own}, 0)" for own in range(WRITERS)))
    stop = threading.Event()
    writers = [threading.Thread(target=write, args=(server.port, own, stop)) for own in range(WRITERS)]
    for writer in writers:
        writer.start()
    backup = top / "backup"
    for turn in range(3):
        stop.wait(chance.uniform(0.2, 0.5))
        rows(server.port, f"CREATE TABLE d.before_{turn} (a INT); FLUSH BINARY LOGS")
    rows(server.port, f"BACKUP DATABASE TO '{backup}'")
    for turn in range(3):
        rows(server.port, f"CREATE TABLE d.after_{turn} (a INT)")
        stop.wait(chance.uniform(0.2, 0.5))
    server.kill()
    stop.set()
    for writer in writers:
        writer.join()
    # What a crash took from the files is written again.
    server = Server(options.squalld, top / "source", free_port(), ["--log-bin", "--server-id=1"])
    uuid, last = rows(server.port, "SELECT @@gtid_executed")[0][0].split(":1-")
    everything = rows(server.port, "SELECT COUNT(*) FROM d.marks")[0][0]
    server.process.terminate()
    server.process.wait()
    logs = top / "source" / "data" / "binary-log"
    shown = subprocess.run([squall, "binlog", "show", "--json", str(logs)], check=True, capture_output=True, text=True).stdout
    # What each transaction is, by its number.
    of_writers, when = set(), {}
    for line in map(json.loads, shown.splitlines()):
        number = int(line["gtid"].split(":")[1])
        when[number] = line["time"]
        if line.get("table") == "marks":
            of_writers.add(number)
    expect("all transactions are in the logs", str(len(of_writers)), everything)
    text = (backup / "binary-log").read_text()
    first = int(text.split(f"{uuid}:1-")[1].split()[0])
    expect("the backup is in the middle", 10 < first < int(last), True)
    for turn in range(options.rounds):
        number = chance.randrange(first + 1, int(last) + 1)
        by_time = turn % 2 == 1
        until = ["--until-time", when[number]] if by_time else ["--until-gtid", f"{uuid}:{number}"]
        if by_time:
            # Those that committed in the same microsecond count too.
            number = max(other for other, time in when.items() if time <= when[number])
        folder = top / f"restored-{turn}"
        folder.mkdir()
        command = [squall, "restore", "--backup", backup, "--binlogs", logs, "--datadir", folder / "data", "--squalld", options.squalld, *until]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{until}: {done.stdout[-1000:]}\n{done.stderr[-3000:]}")
        restored = Server(options.squalld, folder, free_port(), ["--log-bin", "--server-id=2"])
        expect("identifiers", rows(restored.port, "SELECT @@gtid_executed"), [[f"{uuid}:1-{number}"]])
        check(restored.port, len([other for other in of_writers if other <= number]), f"round {turn}, up to {number}")
        restored.process.terminate()
        restored.process.wait()
        print(f"{' '.join(until)}: exactly the {number} transactions up to there, the backup had {first}")
    # What cannot be is refused.
    for until, said in [(["--until-gtid", f"{uuid}:{first}"], "earlier"), (["--until-time", when[2]], "earlier"), (["--until-gtid", f"{uuid}:{int(last) + 1}"], "do not have")]:
        command = [squall, "restore", "--backup", backup, "--binlogs", logs, "--datadir", top / f"none-{said}", "--squalld", options.squalld, *until]
        done = subprocess.run(command, capture_output=True, text=True)
        expect(f"{until}: {done.stderr[-500:]}", (done.returncode, said in done.stderr), (1, True))
    shutil.rmtree(top)
    print("restored to any point")


if __name__ == "__main__":
    main()
