#!/usr/bin/env python3
"""ALTER SYSTEM SET .. APPLY: listeners move to other addresses, connections stay, later starts use what is kept.

    tests/crash/addresses.py [--rounds 20] [--squalld target/debug/squalld] [--seed 1]

Ends with kill -9 at a random time around a statement that gives the port and the socket another number, in a loop: later starts have both or neither.
"""

import argparse
import atexit
import http.client
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from kill_loop import free_port


def client(*arguments):
    return ["mariadb", "--no-defaults", "-uroot", "-N", *arguments]


def tcp(port, address="127.0.0.1"):
    return [f"-h{address}", f"-P{port}"]


def ask(place, sql):
    """The answer, or the error's number."""
    done = subprocess.run(client(*place, "-e", sql), capture_output=True, text=True)
    if done.returncode:
        return int(done.stderr.split("ERROR ")[1].split()[0])
    return done.stdout.strip()


def expect(what, found, wanted):
    if found != wanted:
        raise SystemExit(f"{what}: {found!r}, expected {wanted!r}")


def refuses(port, address="127.0.0.1"):
    try:
        socket.create_connection((address, port), timeout=5).close()
        return False
    except ConnectionRefusedError:
        return True


def soon_refuses(port):
    """json_server closes its old address when its accepting task is next run."""
    deadline = time.perf_counter() + 10
    while time.perf_counter() < deadline:
        if refuses(port):
            return True
        time.sleep(0.01)
    return False


def greets(port, address):
    with socket.create_connection((address, port), timeout=5) as connection:
        return b"caching_sha2_password" in connection.recv(1000)


class Open:
    """A connection that stays open."""

    def __init__(self, place):
        self.client = subprocess.Popen(client("--unbuffered", *place), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.ask("SELECT 1")

    def ask(self, sql):
        self.client.stdin.write(sql + ";\n")
        self.client.stdin.flush()
        return self.client.stdout.readline().strip()

    def close(self):
        self.client.stdin.close()
        self.client.wait()


class Server:
    def __init__(self, program, folder, *options):
        self.log = folder / "log"
        log = open(self.log, "ab")
        self.before = log.tell()
        self.process = subprocess.Popen([program, f"--datadir={folder / 'data'}", *options], stdout=log, stderr=log)
        atexit.register(self.process.kill)
        deadline = time.perf_counter() + 120
        while "ready for connections" not in self.text():
            if self.process.poll() is not None or time.perf_counter() > deadline:
                raise SystemExit("the server did not open:\n" + self.text()[-4000:])
            time.sleep(0.01)

    def text(self):
        return self.log.read_bytes()[self.before:].decode()

    def end(self, with_signal):
        os.kill(self.process.pid, with_signal)
        self.process.wait()


def check_moves(program, folder):
    first, second, web, other_web = (free_port() for _ in range(4))
    root = "--insecure-root"
    server = Server(program, folder, root, f"--port={first}", "--plugin-add=json_server", f"--json-server-port={web}")
    old = Open(tcp(first))
    kept_alive = http.client.HTTPConnection("127.0.0.1", web, timeout=10)
    kept_alive.request("GET", "/")
    status = kept_alive.getresponse()
    status.read()

    expect("EXPLAIN", ask(tcp(first), f"EXPLAIN ALTER SYSTEM SET port = {second} APPLY").split("\t")[2], "listen on the new address beside the present one")
    expect("the port after EXPLAIN", old.ask("SELECT @@port"), str(first))
    expect("a move", ask(tcp(first), f"ALTER SYSTEM SET port = {second}, json_server_port = {other_web} APPLY"), "")
    expect("the old connection", old.ask("SELECT @@port, @@json_server_port"), f"{second}\t{other_web}")
    expect("the new port", ask(tcp(second), "SELECT 1"), "1")
    expect("the old port refuses", refuses(first), True)
    expect("the old web port refuses", soon_refuses(web), True)
    kept_alive.request("GET", "/")
    expect("the old HTTP connection", kept_alive.getresponse().status, status.status)
    new_web = http.client.HTTPConnection("127.0.0.1", other_web, timeout=10)
    new_web.request("GET", "/")
    expect("the new HTTP connection", new_web.getresponse().status, status.status)

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for settings in (f"socket = 'x.sock', port = {port}", f"port = {first}, json_server_port = {port}", "port = 0, socket = '/no/such/place/x.sock'"):
            expect(settings, ask(tcp(second), f"ALTER SYSTEM SET {settings} APPLY"), 1081)
    expect("the port after errors", old.ask("SELECT @@port, @@socket"), f"{second}\t{folder / 'data' / 'squall.sock'}")
    expect("what is kept", old.ask("SELECT GROUP_CONCAT(VARIABLE_VALUE) FROM performance_schema.persisted_variables WHERE VARIABLE_NAME IN ('port', 'socket')"), str(second))
    expect("a port that was bound for a moment", refuses(first), True)
    expect("a socket that was bound for a moment", (folder / "data" / "x.sock").exists(), False)
    expect("the port still accepts", ask(tcp(second), "SELECT 1"), "1")
    expect("exposing", ask(tcp(second), "ALTER SYSTEM SET bind_address = '*' APPLY"), 1290)

    expect("two addresses", ask(tcp(second), "ALTER SYSTEM SET bind_address = '127.0.0.1,127.0.0.2' APPLY"), "")
    expect("the second address", ask(tcp(second, "127.0.0.2"), "SELECT @@bind_address"), "127.0.0.1,127.0.0.2")
    expect("any port", ask(tcp(second), "ALTER SYSTEM SET bind_address = '127.0.0.2', port = 0 APPLY"), "")
    third = int(old.ask("SELECT @@port"))
    expect("any port accepts", ask(tcp(third, "127.0.0.2"), "SELECT 1"), "1")
    expect("the address that was left", (refuses(second), refuses(third)), (True, True))
    # The kernel may give a port of its choice to others while the server is down.
    third = free_port()
    expect("a port of ours", ask(tcp(int(old.ask("SELECT @@port")), "127.0.0.2"), f"ALTER SYSTEM SET port = {third} APPLY"), "")
    by_socket = Open([f"--socket={folder / 'data' / 'squall.sock'}"])
    expect("a socket", ask(tcp(third, "127.0.0.2"), "ALTER SYSTEM SET socket = 'new.sock', bind_address = DEFAULT APPLY"), "")
    expect("the old socket", ((folder / "data" / "squall.sock").exists(), by_socket.ask("SELECT 2")), (False, "2"))
    expect("the new socket", ask([f"--socket={folder / 'data' / 'new.sock'}"], "SELECT 3"), "3")
    old.close()
    by_socket.close()
    server.end(signal.SIGTERM)

    server = Server(program, folder, root, "--plugin-add=json_server")
    expect("the kept port", ask(tcp(third), "SELECT @@port, @@json_server_port"), f"{third}\t{other_web}")
    expect("the kept socket", ask([f"--socket={folder / 'data' / 'new.sock'}"], "SELECT 3"), "3")
    source = "SELECT SOURCE FROM data_dictionary.GLOBAL_VARIABLES WHERE VARIABLE_NAME = 'port'"
    expect("where it comes from", ask(tcp(third), source), "PERSISTED")
    server.end(signal.SIGTERM)

    server = Server(program, folder, root, f"--port={first}")
    expect("the command line's port", ask(tcp(first), "SELECT @@port"), str(first))
    expect("where it comes from", ask(tcp(first), source), "COMMAND_LINE")
    expect("a warning", f"the option port={first} is used, and not the kept value {third}" in server.text(), True)
    server.end(signal.SIGTERM)

    # All addresses and one of them, on the same port. Root's password is not known: the system's user comes in by the socket.
    server = Server(program, folder, f"--port={first}")
    place = [f"--socket={folder / 'data' / 'new.sock'}"]
    for address in ("*", "127.0.0.1", "0.0.0.0", "127.0.0.1,127.0.0.2", "*"):
        expect(address, ask(place, f"ALTER SYSTEM SET bind_address = '{address}' APPLY"), "")
        expect("loopback", greets(first, "127.0.0.1"), True)
        expect("its neighbour", refuses(first, "127.0.0.2"), address == "127.0.0.1")
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", first))
            raise SystemExit("another process can share the port")
        except OSError:
            pass
    server.end(signal.SIGTERM)
    failed = subprocess.run([program, f"--datadir={folder / 'data'}", root], capture_output=True, text=True, timeout=60)
    expect("exposing by what is kept", (failed.returncode, "--insecure-root" in failed.stderr), (1, True))
    server = Server(program, folder, root, "--bind-address=127.0.0.1")
    expect("the kept port with another address", ask(tcp(third), "SELECT @@port"), str(third))
    expect("an address again", ask(tcp(third), "ALTER SYSTEM SET bind_address = '127.0.0.1' APPLY"), "")
    return server, third


def check_kills(program, folder, server, port, rounds, chance):
    counts = {"kept": 0, "not kept": 0}
    name = "new.sock"
    for number in range(rounds):
        old = Open(tcp(port))
        next_port, next_name = free_port(), f"{number}.sock"
        old.client.stdin.write(f"ALTER SYSTEM SET port = {next_port}, socket = '{next_name}' APPLY; SELECT 'done';\n")
        old.client.stdin.flush()
        acknowledged = number % 4 == 0 and old.client.stdout.readline().strip() == "done"
        time.sleep(0 if acknowledged else chance.uniform(0, 0.01))
        server.end(signal.SIGKILL)
        acknowledged = acknowledged or old.client.stdout.readline().strip() == "done"
        old.close()
        server = Server(program, folder, "--insecure-root")
        # The log says which port it has.
        port_now = int(server.text().split("ready for connections")[1].split("port=")[1].split()[0].strip('"'))
        found = ask(tcp(port_now), "SELECT @@port, @@socket").split("\t")
        found = (int(found[0]), pathlib.Path(found[1]).name)
        expect(f"round {number}, acknowledged: {acknowledged}", found in [(next_port, next_name)] + [(port, name)] * (not acknowledged), True)
        counts["kept" if found[0] == next_port else "not kept"] += 1
        port, name = found
    print(f"{rounds} kills: {counts['kept']} statements kept, {counts['not kept']} not")
    server.end(signal.SIGKILL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    folder = pathlib.Path(tempfile.mkdtemp())
    server, port = check_moves(options.squalld, folder)
    check_kills(options.squalld, folder, server, port, options.rounds, random.Random(options.seed))
    shutil.rmtree(folder)
    print("ok")


if __name__ == "__main__":
    main()
