#!/usr/bin/env python3
"""Keys in HashiCorp Vault on the real server, with a small Vault in this process: a start that cannot have its keys, rotation beside a load, a Vault that
fails while the server runs, kill and restart; the token and the keys are in no file, list or message.

    tests/crash/vault.py [--squalld target/debug/squalld]
"""

import argparse
import http.server
import json
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

import encryption
from encryption import MARKER, Server, expect, free_port, run, written

TOKEN = "hvs.TokenThatNobodyMayRead"
ENGINE = "/v1/secret/data/squall/"


class Vault:
    """Key/value secrets of version 2, in memory."""

    def __init__(self):
        self.secrets, self.mood, self.token = {}, "well", TOKEN
        vault = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                vault.answer(self, None)

            def do_POST(self):
                vault.answer(self, json.loads(self.rfile.read(int(self.headers["content-length"]))))

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, request, body):
        status, answer = self.outcome(request, body)
        text = json.dumps(answer).encode()
        try:
            request.send_response(status)
            request.send_header("content-length", str(len(text)))
            request.end_headers()
            request.wfile.write(text)
        except OSError:
            # A client that waits no longer.
            pass

    def outcome(self, request, body):
        if self.mood == "slow":
            time.sleep(3)
        if self.mood == "sealed":
            return 503, {"errors": ["Vault is sealed"]}
        if request.headers.get("x-vault-token") != self.token:
            return 403, {"errors": ["permission denied"]}
        path = request.path.replace("/metadata/", "/data/")
        if body is not None:
            if path in self.secrets:
                return 400, {"errors": ["check-and-set parameter did not match"]}
            self.secrets[path] = body["data"]
            return 200, {"data": {"version": 1}}
        if path.endswith("?list=true"):
            names = [name.removeprefix(ENGINE) for name in self.secrets]
            return (200, {"data": {"keys": names}}) if names else (404, {"errors": []})
        if path in self.secrets:
            return 200, {"data": {"data": self.secrets[path], "metadata": {}}}
        return 404, {"errors": []}

    def keys(self):
        return [secret["key"] for secret in self.secrets.values()]


def refused(program, folder, options, *texts):
    """The server does not start, says why, and leaves all as it is."""
    def state():
        return {name: data for name, data in written(folder / "data" / "storage", []) if name != "lock"}

    before = state()
    command = [program, f"--datadir={folder / 'data'}", f"--port={free_port()}", f"--socket={folder / 's'}", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    said = done.stdout + done.stderr
    expect(done.returncode and all(text in said for text in texts), "no refusal", texts, said[-2000:])
    expect(TOKEN not in said, "the token is in the log")
    expect(state() == before, "a refused start changed files")


def fails(server, sql, *texts):
    said = run(server.port, sql, check=False)
    expect(all(text in said for text in texts) and TOKEN not in said, sql, texts, said)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    program = parser.parse_args().squalld
    top = pathlib.Path(tempfile.mkdtemp())
    folder = top / "own"
    folder.mkdir()
    try:
        test(program, top, folder)
    finally:
        encryption.end_all()
    shutil.rmtree(top)
    print("vault: passed")


def from_file(program, top, vault, own):
    """Keys move from a file to Vault by hand."""
    folder, keys = top / "moved", top / "file"
    folder.mkdir()
    server = Server(program, folder, free_port(), ("--json-server-port=0", f"--keyring-file-data={keys}"))
    run(server.port, "CREATE DATABASE moved")
    server.process.terminate()
    server.process.wait()
    for line in keys.read_text().splitlines():
        if line.startswith("key "):
            _, name, key = line.split()
            vault.secrets[ENGINE + name] = {"key": key}
    server = Server(program, folder, free_port(), own)
    run(server.port, "USE moved; ALTER INSTANCE ROTATE INNODB MASTER KEY")
    server.process.terminate()
    server.process.wait()


def test(program, top, folder):
    vault = Vault()
    token = top / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    def options(url):
        return ("--json-server-port=0", "--log-bin", f"--keyring-hashicorp-server-url={url}", f"--keyring-hashicorp-store-path={ENGINE}",
                f"--keyring-hashicorp-token-file={token}", "--keyring-hashicorp-timeout=1")

    own = options(vault.url)
    nobody = options(f"http://127.0.0.1:{free_port()}")
    # A new directory.
    refused(program, folder, nobody, "the keyring in Vault at", "efused")
    expect([path.name for path in (folder / "data" / "storage").glob("*")] == ["lock"], "files of a directory without a key")
    server = Server(program, folder, free_port(), own)
    encryption.fill(server)
    expect(run(server.port, "SELECT @@storage_encryption; SELECT COUNT(*) FROM performance_schema.keyring_keys") == "1\n1", "not encrypted")
    status = run(server.port, "SELECT * FROM performance_schema.keyring_component_status; SHOW VARIABLES LIKE 'keyring%'; SHOW FULL PROCESSLIST")
    expect("Component_status\tActive" in status and str(token) in status and TOKEN not in status, "status", status)
    encryption.rotate_beside_writers(server)
    expect(len(vault.secrets) == 7, "not a key for each rotation", len(vault.secrets))
    # It fails while the server runs: that server goes on, and keeps its key.
    vault.mood = "sealed"
    fails(server, "ALTER INSTANCE ROTATE INNODB MASTER KEY", "ERROR 3185", "503")
    fails(server, "ALTER INSTANCE RELOAD KEYRING", "ERROR 4035")
    vault.mood = "slow"
    fails(server, "ALTER INSTANCE ROTATE INNODB MASTER KEY", "ERROR 3185", "no answer within")
    encryption.check_rows(server.port)
    vault.mood, vault.token = "well", "hvs.another"
    fails(server, "ALTER INSTANCE RELOAD KEYRING", "ERROR 4035")
    token.write_text(vault.token)
    run(server.port, "ALTER INSTANCE RELOAD KEYRING; ALTER INSTANCE ROTATE INNODB MASTER KEY")
    server.kill()
    # An encrypted directory.
    refused(program, folder, nobody, "efused")
    token.write_text("hvs.wrong")
    refused(program, folder, own, "403", "permission denied")
    token.write_text(vault.token)
    vault.mood = "sealed"
    refused(program, folder, own, "503", "unseal")
    vault.mood = "slow"
    refused(program, folder, own, "no answer within")
    vault.mood = "well"
    token.chmod(0o644)
    refused(program, folder, own, "chmod")
    token.chmod(0o600)
    kept, vault.secrets = vault.secrets, {}
    refused(program, folder, own, "has no key")
    vault.secrets = kept
    refused(program, folder, (*own, f"--keyring-file-data={top / 'keys'}"), "in one keyring")
    server = Server(program, folder, free_port(), own)
    encryption.check_rows(server.port)
    server.process.terminate()
    server.process.wait()
    from_file(program, top, vault, own)
    hidden = [MARKER, TOKEN, vault.token]
    for name, data in [*written(folder, []), ("log", (folder / "log").read_bytes())]:
        found = [text for text in hidden if text.encode() in data and not (name == "log" and text == MARKER)]
        keys = [key for key in vault.keys() if key.encode() in data or bytes.fromhex(key) in data]
        expect(not found and not keys, "a secret is in", name, found)


if __name__ == "__main__":
    main()
