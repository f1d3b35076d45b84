#!/usr/bin/env python3
"""ALTER INSTANCE RELOAD TLS on the real server: new connections get the new certificate, old ones go on; broken files keep the one before.

    tests/crash/reload.py [--squalld target/debug/squalld]
"""

import argparse
import pathlib
import shutil
import socket
import ssl
import struct
import tempfile

import encryption
from encryption import Server, expect, free_port, run

CAPABILITIES = 0x000FAA05


class Client:
    """A connection that has begun TLS: as far as the certificate is shown."""

    def __init__(self, port):
        plain = socket.create_connection(("127.0.0.1", port), timeout=30)
        header = plain.recv(4, socket.MSG_WAITALL)
        greeting = plain.recv(int.from_bytes(header[:3], "little"), socket.MSG_WAITALL)
        after = greeting.index(b"\0", 1) + 1 + 4 + 8 + 1
        self.offers_tls = bool(int.from_bytes(greeting[after:after + 2], "little") & 0x800)
        self.socket, self.certificate = plain, None
        if self.offers_tls:
            body = struct.pack("<IIB23x", CAPABILITIES, 1 << 24, 255)
            plain.sendall(len(body).to_bytes(3, "little") + b"\1" + body)
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.socket = context.wrap_socket(plain)
            self.certificate = ssl.DER_cert_to_PEM_cert(self.socket.getpeercert(binary_form=True))

    def log_in(self):
        """As root, who has no password here; returns the first byte of the answer."""
        body = struct.pack("<IIB23x", CAPABILITIES, 1 << 24, 255) + b"root\0\0caching_sha2_password\0"
        self.socket.sendall(len(body).to_bytes(3, "little") + b"\2" + body)
        return self.packet()[0]

    def query(self, sql):
        self.socket.sendall((len(sql) + 1).to_bytes(3, "little") + b"\0\3" + sql)
        return self.packet()[0]

    def packet(self):
        header = self.read(4)
        return self.read(int.from_bytes(header[:3], "little"))

    def read(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            expect(part, "the connection ended")
            data += part
        return data


def fails(server, sql, text):
    said = run(server.port, sql, check=False)
    expect(text in said, sql, said)


def test(program, top):
    first, second = top / "first", top / "second"
    for folder in (first, second):
        folder.mkdir()
    # Another server makes another certificate.
    other = Server(program, second, free_port(), ("--json-server-port=0",))
    other.process.terminate()
    other.process.wait()
    server = Server(program, first, free_port(), ("--json-server-port=0",))
    names = ("server-cert.pem", "server-key.pem")
    old, new = ([(folder / "data" / name).read_text() for name in names] for folder in (first, second))

    def put(texts):
        for name, text in zip(names, texts):
            (first / "data" / name).write_text(text)

    before = Client(server.port)
    expect(before.certificate == old[0] and before.log_in() == 0, "the first certificate")
    put(new)
    expect(Client(server.port).certificate == old[0], "the certificate changed unasked")
    run(server.port, "ALTER INSTANCE RELOAD TLS")
    expect(Client(server.port).certificate == new[0], "not the new certificate")
    after = Client(server.port)
    expect(after.log_in() == 0 and after.query(b"DO 1") == 0, "no log-in with the new certificate")
    expect(before.query(b"DO 1") == 0, "the connection from before")
    for broken, text in [
        (("no PEM", new[1]), "Unable to get certificate"),
        ((new[0], "no PEM"), "Unable to get private key"),
        ((old[0], new[1]), "Private key does not match the certificate public key"),
    ]:
        put(broken)
        fails(server, "ALTER INSTANCE RELOAD TLS", f"ERROR 3888 (HY000) at line 1: Failed to set up SSL because of the following SSL library error: {text}")
        expect(Client(server.port).certificate == new[0], "a broken file changed the certificate")
    (first / "data" / names[0]).unlink()
    fails(server, "ALTER INSTANCE RELOAD TLS FOR CHANNEL mysql_main", "Unable to get certificate")
    expect(Client(server.port).certificate == new[0], "a lost file changed the certificate")
    fails(server, "ALTER INSTANCE RELOAD TLS NO ROLLBACK ON ERROR", "ERROR 3888")
    expect(not Client(server.port).offers_tls, "TLS without a certificate")
    expect(before.query(b"DO 1") == 0 and after.query(b"DO 1") == 0, "connections from before")
    put(old)
    run(server.port, "ALTER INSTANCE RELOAD TLS FOR CHANNEL mysql_main")
    expect(Client(server.port).certificate == old[0], "not the first certificate again")
    run(server.port, "CREATE USER u@localhost")
    said = encryption.subprocess.run(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{server.port}", "-uu", "-e", "ALTER INSTANCE RELOAD TLS"],
                                     capture_output=True, text=True).stderr
    expect("ERROR 1227" in said and "CONNECTION_ADMIN" in said, "without the privilege", said)
    expect("Seccomp:\t2" in pathlib.Path(f"/proc/{server.process.pid}/status").read_text(), "no filter of calls")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    program = parser.parse_args().squalld
    top = pathlib.Path(tempfile.mkdtemp())
    try:
        test(program, top)
    finally:
        encryption.end_all()
    shutil.rmtree(top)
    print("reload: passed")


if __name__ == "__main__":
    main()
