#!/usr/bin/env python3
"""HTTP against the real server, with documents and tables on: the OpenAPI document by openapi-spec-validator; a busy port;
`/metrics` and the dashboard that reads it; and with --soak the calls that schemathesis makes of the document.

    tests/http/run.py [--squalld target/debug/squalld] [--soak SECONDS] [--tables N] [--seed N] [--schemathesis PROGRAM]
        [OPTION OF SCHEMATHESIS ..]

`pip install openapi-spec-validator prometheus-client schemathesis` brings the tools; a check whose tool is missing is left out, and a line says so.
"""

import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "crash"))
from kill_loop import free_port  # noqa: E402

ROOT = HERE.parent.parent
USER, PASSWORD = "soak", "soak"
START_SECONDS = 60
# Checks of answers that say something of a correct server. Left out: `positive_data_acceptance` and `negative_data_rejection`, because whether a
# text is SQL and a name that of a table is beyond any schema; `missing_required_header` and `unsupported_method` have tests of their own.
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance"


def expect(condition, *what):
    if not condition:
        raise SystemExit(f"http: {what}")


def command(squalld, folder, port, http_port, plugins):
    return [
        squalld, f"--datadir={folder}", f"--port={port}", "--insecure-root", f"--json-server-port={http_port}",
        f"--socket={folder}/s", *(f"--plugin-add={name}" for name in plugins),
    ]


class Server:
    def __init__(self, squalld, folder, plugins=("json_server", "metrics")):
        self.folder, self.http_port = folder, free_port()
        self.log = open(folder.parent / f"{folder.name}.log", "w+")
        arguments = command(squalld, folder, free_port(), self.http_port, plugins)
        self.process = subprocess.Popen(arguments, stdout=self.log, stderr=self.log)
        self.root = ("root", "")
        for _ in range(START_SECONDS * 10):
            try:
                self.get("/version")
                return
            except urllib.error.URLError:
                time.sleep(0.1)
                expect(self.process.poll() is None, "the server ended", self.lines())
        expect(False, "the server does not answer", self.lines())

    def lines(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text()[-3000:]

    def request(self, method, path, body=None, login=None, headers=()):
        user, password = login or self.root
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.http_port}{path}", data, method=method)
        request.add_header("Authorization", f"Basic {token}")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in headers:
            request.add_header(name, value)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode(), answer.headers

    def get(self, path, **more):
        return self.request("GET", path, **more)[1]

    def sql(self, text):
        return json.loads(self.request("POST", "/1.0/sql", {"sql": text})[1])

    def is_alive(self):
        return self.process.poll() is None

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def check_document(server):
    text = server.get("/openapi.json")
    try:
        from openapi_spec_validator import validate
    except ImportError:
        print("http: the OpenAPI document is not validated, because openapi-spec-validator is missing")
        return
    validate(json.loads(text))
    print("http: the OpenAPI document is valid")


def check_busy_ports(squalld, folder):
    """A port that is taken: the message names the address, the error of the system, and what helps."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        cases = [
            (taken, free_port(), ("port",)),
            (free_port(), taken, ("json_server_port",)),
        ]
        for number, (port, http_port, words) in enumerate(cases):
            data = folder / f"busy{number}"
            arguments = command(squalld, data, port, http_port, ["json_server"])
            done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
            text = done.stdout + done.stderr
            expect(done.returncode != 0, "it starts", text)
            for word in (f"127.0.0.1:{taken}", "errno: 98", "set " + words[0], "1081"):
                expect(word in text, word, text)
            expect("Internal error" not in text, text)
    print("http: a busy port is named")


def check_metrics(server, tables):
    """Both formats, who may read them, the time of a scrape, and that each name in the dashboard is there."""
    for _ in range(3):
        server.sql("CREATE DATABASE IF NOT EXISTS many; SELECT 1")
    for start in range(0, tables, 500):
        made = server.sql("; ".join(f"CREATE TABLE many.t{at} (a INT)" for at in range(start, start + 500)))
        expect("error" not in made, made)
    text = server.get("/metrics")
    names = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if line and line[0] != "#"}
    dashboard = (ROOT / "docs/grafana/squall.json").read_text()
    json.loads(dashboard)
    used = set(re.findall(r"squall_[a-z0-9_]+", dashboard))
    expect(len(used) > 20 and used <= names, "the dashboard names what is not there", used - names)
    open_text = server.get("/metrics", headers=[("Accept", "application/openmetrics-text")])
    expect(open_text.endswith("# EOF\n"), open_text[-200:])
    check_formats(text, open_text)
    status = {row[0].lower() for row in server.sql("SHOW GLOBAL STATUS")["results"][0]["rows"] if row[1]}
    shown = {name.removeprefix("squall_status_") for name in names}
    # A counter's metric ends so; some variables do themselves.
    shown |= {name.removesuffix("_total") for name in shown}
    lost = {name for name in status - shown if f'"{name}"' not in text.lower()}
    expect(not lost, "status variables without a metric", lost)
    server.sql("CREATE USER plain IDENTIFIED BY 'p'")
    for login, wanted in ((("plain", "p"), 403), (("nobody", ""), 401)):
        expect(status_of(server, "/metrics", login) == wanted, login)
    server.sql("SET GLOBAL metrics_public = ON")
    expect(status_of(server, "/metrics", ("nobody", "")) == 200, "public")
    server.sql("SET GLOBAL metrics_public = OFF")
    times = []
    for _ in range(9):
        began = time.monotonic()
        server.get("/metrics")
        times.append(time.monotonic() - began)
    print(f"http: a scrape of {len(text)} bytes takes {sorted(times)[4] * 1000:.1f} ms with {tables} tables")
    expect(tables == 0 or sorted(times)[4] < 0.05, "a scrape takes too long", times)


def check_formats(text, open_text):
    try:
        from prometheus_client import parser
        from prometheus_client.openmetrics import parser as open_parser
    except ImportError:
        print("http: the formats are not parsed, because prometheus-client is missing")
        return
    expect(len(list(parser.text_string_to_metric_families(text))) > 100, "Prometheus")
    expect(len(list(open_parser.text_string_to_metric_families(open_text))) > 100, "OpenMetrics")


def status_of(server, path, login):
    try:
        return server.request("GET", path, login=login)[0]
    except urllib.error.HTTPError as error:
        return error.code


def prepare(server):
    """An account that may do much, but not end the server or itself."""
    made = server.sql(
        "CREATE DATABASE soak; CREATE TABLE soak.t (id INT PRIMARY KEY, name VARCHAR(20), amount DECIMAL(9,2), at DATETIME, "
        "body JSON, bits BIT(3), raw VARBINARY(10)); INSERT INTO soak.t VALUES (1, 'a', 1.5, NOW(), '{}', b'1', 'x'), "
        "(2, NULL, NULL, NULL, NULL, NULL, NULL); CREATE TABLE soak.two (a INT, b VARCHAR(9), PRIMARY KEY (a, b)); "
        f"CREATE USER {USER} IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON soak.* TO {USER}; GRANT ALL ON json.* TO {USER}; "
        "SET GLOBAL json_server_schema = 'soak'; SET GLOBAL json_server_table = 'people'"
    )
    expect("error" not in made, made)
    server.request("POST", "/1.0/docs/soak", {"name": "notes"})
    server.request("POST", "/1.0/docs/soak/notes", {"_id": "1", "a": [1, {"b": None}]})


def soak(server, seconds, seed, program, more):
    if not shutil.which(program):
        print("http: no soak, because schemathesis is missing")
        return
    prepare(server)
    address = f"http://127.0.0.1:{server.http_port}"
    arguments = [
        program, "run", f"{address}/openapi.json", "--url", address, "--auth", f"{USER}:{PASSWORD}", "--checks", CHECKS,
        "--max-time", str(seconds), "--seed", str(seed), "--continue-on-failure", "--no-color", "--request-timeout", "60",
        # It would end its own log-in.
        "--exclude-path", "/1.0/login", *more,
    ]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": str(HERE / "hooks.py")}
    done = subprocess.run(arguments, text=True, env=environment, cwd=HERE)
    expect(server.is_alive(), "the server ended", server.lines())
    expect("panicked" not in server.lines(), server.lines())
    expect(done.returncode == 0, "schemathesis found something: see above")
    print(f"http: {seconds} s of schemathesis, seed {seed}: nothing found")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--squalld", default="target/debug/squalld")
    parser.add_argument("--soak", type=int, default=0, help="seconds of schemathesis")
    parser.add_argument("--tables", type=int, default=0, help="tables beside which metrics are read, in steps of 500")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schemathesis", default="schemathesis")
    options, more = parser.parse_known_args()
    squalld = str(pathlib.Path(options.squalld).resolve())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="squall-http-"))
    server = Server(squalld, folder / "data")
    try:
        check_document(server)
        check_busy_ports(squalld, folder)
        check_metrics(server, options.tables)
        if options.soak > 0:
            soak(server, options.soak, options.seed, options.schemathesis, more)
    finally:
        server.stop()
    shutil.rmtree(folder)
    print("http: passed")


if __name__ == "__main__":
    main()
