#!/usr/bin/env python3
"""kill -9 while the firewall records, in a loop: no rule of a statement that was answered is lost, and the profile's mode stays.

    tests/crash/firewall.py [--rounds 100] [--squalld target/release/squalld] [--seed 1]

An account in mode RECORDING runs statements of ever new forms. After a kill the server is started again on the same folder: the mode is RECORDING, and every form that was
answered has a rule. Then the account is protected, and killed again: a recorded form runs and a new one does not.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import tempfile
import threading
import time

from kill_loop import Server, free_port

ACCOUNT = "app@%"


def client(port, user, *more):
    return ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", f"-u{user}", "-N", *more]


def run(port, user, sql):
    return subprocess.run(client(port, user, "-e", sql), capture_output=True, text=True)


def query(port, sql):
    done = run(port, "root", sql)
    if done.returncode:
        raise SystemExit(f"{sql}\n{done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]


class Application:
    """Sends statements of new forms until the server is gone; knows the last that was answered."""

    def __init__(self, port, number):
        self.answered = self.sent = number
        self.client = subprocess.Popen(client(port, "app", "--unbuffered"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.thread = threading.Thread(target=self.send)
        self.thread.start()

    def send(self):
        try:
            while True:
                self.sent = number = self.answered + 1
                self.client.stdin.write(f"SELECT {number} AS form{number};\n")
                self.client.stdin.flush()
                line = self.client.stdout.readline()
                if not line:
                    return
                self.answered = int(line)
        except (BrokenPipeError, ValueError):
            pass

    def join(self):
        self.thread.join()
        self.client.kill()
        self.client.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--squalld", default="target/release/squalld")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    server = Server(options.squalld, folder, port)
    query(port, f"INSTALL PLUGIN mysql_firewall; CREATE USER app; CALL mysql.sp_set_firewall_mode('{ACCOUNT}', 'RECORDING')")
    number, started = 0, time.perf_counter()
    for turn in range(1, options.rounds + 1):
        application = Application(port, number)
        time.sleep(chance.uniform(0.05, 0.4))
        server.kill()
        application.join()
        server = Server(options.squalld, folder, port)
        modes = query(port, "SELECT USERHOST, MODE FROM information_schema.MYSQL_FIREWALL_USERS")
        rules = {rule for (rule,) in query(port, "SELECT RULE FROM information_schema.MYSQL_FIREWALL_WHITELIST WHERE RULE LIKE '%form%'")}
        missing = {f"SELECT ? AS `form{n}`" for n in range(1, application.answered + 1)} - rules
        if modes != [[ACCOUNT, "RECORDING"]] or missing:
            raise SystemExit(f"round {turn}: profiles {modes}, lost rules {sorted(missing)[:5]}; kept in {folder}")
        number = application.sent
        # The form that was sent last may have no rule: it was not answered.
        run(port, "app", f"SELECT {number} AS form{number}")
    query(port, f"CALL mysql.sp_set_firewall_mode('{ACCOUNT}', 'PROTECTING')")
    server.kill()
    server = Server(options.squalld, folder, port)
    allowed, refused = run(port, "app", "SELECT 5 AS form1"), run(port, "app", "SELECT 5 AS other")
    if allowed.returncode or "1045" not in refused.stderr:
        raise SystemExit(f"after PROTECTING: {allowed.stderr}{refused.stdout}{refused.stderr}")
    server.kill()
    shutil.rmtree(folder)
    print(f"{options.rounds + 1} kills, {number} rules, none lost, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
