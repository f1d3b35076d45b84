#!/usr/bin/env python3
"""A replica that verifies its source: by the authority that signed its certificate, and by its name.

    tests/replication/encrypted.py [--squalld target/debug/squalld]
"""

import argparse
import pathlib
import shutil
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
    for server in (source, replica):
        server.process.terminate()
        server.process.wait()
    print("the replica trusts whom it is told to")
    shutil.rmtree(top)


if __name__ == "__main__":
    main()
