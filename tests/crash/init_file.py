#!/usr/bin/env python3
"""The statements of init_file run at each start, before clients are served, until one fails; a file that cannot be read stops the start.

    tests/crash/init_file.py [--squalld target/debug/squalld]
"""

import argparse
import pathlib
import shutil
import subprocess
import tempfile

from kill_loop import Server, free_port

STATEMENTS = """CREATE DATABASE IF NOT EXISTS made;
CREATE TABLE IF NOT EXISTS made.t (id INT AUTO_INCREMENT PRIMARY KEY, a INT); INSERT INTO made.t (a) VALUES (1), (2);
-- A comment; it ends no statement.
INSERT INTO made.t (a)
  SELECT 3;
SELECT a FROM made.t;
CREATE TRIGGER IF NOT EXISTS made.tr BEFORE INSERT ON made.t FOR EACH ROW BEGIN SET NEW.a = NEW.a + 10; END;
INSERT INTO made.t (a) VALUES (4);
CREATE USER IF NOT EXISTS u_init;
GRANT SELECT ON made.* TO u_init;
INSERT INTO made.nowhere VALUES (1);
INSERT INTO made.t (a) VALUES (5);
"""


def rows(port, user):
    command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", f"-u{user}", "-N", "-e", "SELECT a FROM made.t ORDER BY id"]
    return list(map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()))


def expect(name, found, wanted):
    if found != wanted:
        raise SystemExit(f"{name}: {found}, and not {wanted}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squalld", default="target/debug/squalld")
    options = parser.parse_args()
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    script = folder / "init.sql"
    script.write_text(STATEMENTS)
    option = [f"--init-file={script}"]
    server = Server(options.squalld, folder, port, option)
    expect("after the first start", rows(port, "u_init"), [1, 2, 3, 14])
    server.kill()
    server = Server(options.squalld, folder, port, option)
    expect("after the second start", rows(port, "root"), [1, 2, 3, 14, 11, 12, 13, 14])
    server.kill()
    log = (folder / "log").read_text()
    expect("errors in the log", log.count("a statement of init_file failed"), 2)
    if "1146" not in log:
        raise SystemExit(f"the log does not name the error:\n{log}")
    script.unlink()
    command = [options.squalld, f"--datadir={folder / 'data'}", f"--port={port}", f"--socket={folder / 's'}", *option]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode == 0 or "cannot be read" not in done.stderr + done.stdout:
        raise SystemExit(f"a start without the file: {done.returncode}\n{done.stderr}{done.stdout}")
    shutil.rmtree(folder)
    print("init_file: passed")


if __name__ == "__main__":
    main()
