#!/usr/bin/env python3
"""A replica that verifies its source, by the authority that signed its certificate and by its name, and proves who it is itself; versions and ciphers of TLS; compression.

    tests/replication/encrypted.py [--squalld target/debug/squalld]
"""

import argparse
import pathlib
import shutil
import ssl
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from binary_log import rows  # noqa: E402
from log_settings import expect, start  # noqa: E402
from parallel import executed  # noqa: E402


def connected(replica, options):
    """Whether the replica connects with these options, and what it says."""
    rows(replica.port, f"CHANGE REPLICATION SOURCE TO {options}; START REPLICA")
    for _ in range(200):
        state, error = rows(replica.port, "SELECT Replica_IO_Running, Last_IO_Error FROM data_dictionary.REPLICA_STATUS")[0]
        if state == "Yes" or error:
            rows(replica.port, "STOP REPLICA")
            return state == "Yes", error
        time.sleep(0.05)
    raise SystemExit(f"{options}: neither connected nor refused")


def proves_itself(source, replica, top):
    """An account of REQUIRE X509."""
    folder = top / "source" / "data"
    rows(source.port, "CREATE USER known@'127.0.0.1' IDENTIFIED BY 'pw' REQUIRE X509; GRANT REPLICATION SLAVE ON *.* TO known@'127.0.0.1'")
    at = f"SOURCE_HOST = '127.0.0.1', SOURCE_USER = 'known', SOURCE_PASSWORD = 'pw', SOURCE_SSL = 1, SOURCE_SSL_CA = '{folder / 'ca.pem'}'"
    other = top / "replica" / "data"
    for what, wanted, said in [
        (f"{at}, SOURCE_SSL_CERT = ''", False, "denied"),
        (f"SOURCE_SSL_CERT = '{folder / 'client-cert.pem'}', SOURCE_SSL_KEY = '{folder / 'client-key.pem'}'", True, ""),
        (f"SOURCE_SSL_KEY = '{other / 'client-key.pem'}'", False, "key"),
        (f"SOURCE_SSL_CERT = '{other / 'client-cert.pem'}'", False, ""),
        (f"SOURCE_SSL_CERT = '{folder / 'client-cert.pem'}', SOURCE_SSL_KEY = '/nowhere.pem'", False, "nowhere.pem"),
        (f"SOURCE_SSL_KEY = '{folder / 'client-key.pem'}', SOURCE_TLS_VERSION = 'TLSv1.2'", True, ""),
        ("SOURCE_SSL_CIPHER = 'ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256'", True, ""),
        ("SOURCE_TLS_VERSION = 'TLSv1.3'", False, ""),
        ("SOURCE_TLS_CIPHERSUITES = 'TLS_AES_128_GCM_SHA256'", True, ""),
    ]:
        found, error = connected(replica, what)
        expect(f"{what}: {error}", (found, said in error), (wanted, True))
    names_of_certificate(source, replica, at)
    names = "SSL_CERTIFICATE, SSL_KEY, SSL_CIPHER, TLS_VERSION, TLS_CIPHERSUITES, COMPRESSION_ALGORITHM, ZSTD_COMPRESSION_LEVEL"
    shown = rows(replica.port, f"SELECT {names} FROM performance_schema.replication_connection_configuration")
    expect("shown", shown, [[str(folder / "client-cert.pem"), str(folder / "client-key.pem"), "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.3", "TLS_AES_128_GCM_SHA256", "uncompressed", "3"]])


def names_of_certificate(source, replica, at):
    """Accounts of REQUIRE SUBJECT and REQUIRE ISSUER."""
    certificate = ssl._ssl._test_decode_cert(str(source.folder / "data" / "client-cert.pem"))
    subject, issuer = (f"/CN={dict(part[0] for part in certificate[whose])['commonName']}" for whose in ("subject", "issuer"))
    for required, wanted in [
        (f"SUBJECT '{subject}'", True),
        (f"SUBJECT '{subject}x'", False),
        (f"ISSUER '{issuer}'", True),
        (f"ISSUER '{subject}'", False),
        (f"SUBJECT '{subject}' AND ISSUER '{issuer}'", True),
        (f"SUBJECT '{subject}' AND ISSUER '{issuer}' AND CIPHER 'NONE'", False),
    ]:
        rows(source.port, f"ALTER USER known@'127.0.0.1' REQUIRE {required}")
        found, error = connected(replica, at)
        expect(f"REQUIRE {required}: {error}", found, wanted)
    rows(source.port, "ALTER USER known@'127.0.0.1' REQUIRE X509")


def compressed(source, replica):
    """The stream, with acknowledgements too."""
    rows(source.port, "SET GLOBAL rpl_semi_sync_source_enabled = 1; CREATE TABLE d.long (id INT PRIMARY KEY, t LONGTEXT)")
    rows(replica.port, "SET GLOBAL rpl_semi_sync_replica_enabled = 1")
    number = 0
    for what in ("zlib", "zstd", "zstd,zlib,uncompressed", "uncompressed"):
        rows(replica.port, f"CHANGE REPLICATION SOURCE TO SOURCE_COMPRESSION_ALGORITHMS = '{what}', SOURCE_ZSTD_COMPRESSION_LEVEL = 5")
        # Acknowledgements are waited for while the replica is there.
        rows(replica.port, "START REPLICA")
        for length in (0, 10, 100_000, 17_000_000 if what == "zstd" else 1_000_000):
            number += 1
            rows(source.port, f"INSERT INTO d.long VALUES ({number}, REPEAT('text{number}', {length} / 5))")
            executed(source, replica)
        expect(what, rows(replica.port, "SELECT COUNT(*), SUM(LENGTH(t)), SUM(CRC32(t)) FROM d.long"), rows(source.port, "SELECT COUNT(*), SUM(LENGTH(t)), SUM(CRC32(t)) FROM d.long"))
        rows(replica.port, "STOP REPLICA")
    known = rows(source.port, "SHOW STATUS LIKE 'Rpl_semi_sync_source_yes_tx'")[0][1]
    expect("acknowledged", int(known) > 6, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp())
    source = start(options.squalld, top, "source", "--log-bin", "--server-id=1", "--bind-address=127.0.0.1,127.0.0.2")
    replica = start(options.squalld, top, "replica", "--log-bin", "--server-id=2")
    own, other = (top / name / "data" / "ca.pem" for name in ("source", "replica"))
    at = f"SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {source.port}, SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1"
    for what, wanted, said in [
        ("SOURCE_SSL = 1", True, ""),
        (f"SOURCE_SSL_CA = '{own}'", True, ""),
        (f"SOURCE_SSL_CA = '{other}'", False, "ertificate"),
        ("SOURCE_SSL_CA = '/nowhere.pem'", False, "nowhere.pem"),
        ("SOURCE_SSL_CA = '', SOURCE_SSL_VERIFY_SERVER_CERT = 1", False, "SOURCE_SSL_CA"),
        (f"SOURCE_SSL_CA = '{own}'", True, ""),
        # Another name for the same place, which the certificate is not for.
        ("SOURCE_HOST = '127.0.0.2'", False, "ertificate"),
        ("SOURCE_SSL_VERIFY_SERVER_CERT = 0", True, ""),
    ]:
        found, error = connected(replica, f"{at}, {what}" if "HOST" not in what else f"{what}, SOURCE_PORT = {source.port}")
        expect(f"{what}: {error}", (found, said in error), (wanted, True))
        at = "SOURCE_AUTO_POSITION = 1"
    shown = rows(replica.port, "SELECT Source_SSL_CA_File, Source_SSL_Verify_Server_Cert FROM data_dictionary.REPLICA_STATUS")
    expect("shown", shown, [[str(own), "No"]])
    rows(source.port, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)")
    rows(replica.port, "START REPLICA")
    executed(source, replica)
    expect("rows", rows(replica.port, "SELECT * FROM d.t"), [["1"]])
    rows(replica.port, "STOP REPLICA")
    proves_itself(source, replica, top)
    compressed(source, replica)
    for server in (source, replica):
        server.process.terminate()
        server.process.wait()
    print("the replica trusts whom it is told to")
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
