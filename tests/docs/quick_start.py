#!/usr/bin/env python3
"""Runs docs/quick-start.md: each block of commands and statements works, and answers what the page says.

    tests/docs/quick_start.py [--programs target/debug]

Blocks `sh` are run by bash in one folder, blocks `sql` by the client; a block `text` holds the last lines that the block before it printed. Port 3306 becomes a free one.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "crash"))

from kill_loop import free_port  # noqa: E402

PAGE = HERE.parent.parent / "docs/quick-start.md"
FAILED = "ERROR "


def run(kind, text, folder, environment):
    """What a block prints. A statement that fails prints its error; a shell's command must not fail."""
    command = ["bash", "-e"] if kind == "sh" else ["squall", "-S", "first/squall.sock", "--table", "--batch", "--force"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=folder, env=environment, timeout=300)
    if kind == "sh" and done.returncode:
        raise SystemExit(f"FAILED: {text}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default="target/debug")
    options = parser.parse_args()
    folder, port = pathlib.Path(tempfile.mkdtemp(prefix="quick-start-")), str(free_port())
    environment = {**os.environ, "PATH": f"{options.programs.resolve()}:{os.environ['PATH']}"}
    blocks = re.findall(r"^```(sh|sql|text)\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    if len(blocks) < 10:
        raise SystemExit(f"{PAGE} has only {len(blocks)} blocks")
    output, ran = "", 0
    try:
        for position, (kind, text) in enumerate(blocks):
            if kind == "text":
                if not output.rstrip().endswith(text.rstrip()):
                    raise SystemExit(f"FAILED: the page says\n{text}\nthe server says\n{output}")
                continue
            text = text.replace("squalld --datadir", f"squalld --port={port} --datadir").replace("3306", port)
            output = run(kind, text, folder, environment)
            expected = blocks[position + 1][1] if position + 1 < len(blocks) and blocks[position + 1][0] == "text" else ""
            if FAILED in output and FAILED not in expected:
                raise SystemExit(f"FAILED: {text}\n{output}")
            ran += 1
    finally:
        for pid in folder.glob("*/squalld.pid"):
            os.kill(int(pid.read_text()), signal.SIGTERM)
    shutil.rmtree(folder, ignore_errors=True)
    print(f"quick start: {ran} blocks ran, {len(blocks) - ran} answers are as the page says")


if __name__ == "__main__":
    main()
