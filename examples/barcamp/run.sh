#!/usr/bin/env bash
# The BarCamp statement: one SELECT gets a schedule over HTTP, parses it in JavaScript, and leaves it in a table. See README.md.
#
# Starts a server of its own on free ports in a temporary directory, and stops and removes everything at the end. SQUALLD and SQUALL name the
# programs; without them they are built.
set -euo pipefail
cd "$(dirname "$0")"

if [ -z "${SQUALLD:-}" ] || [ -z "${SQUALL:-}" ]; then
    echo "building squalld and squall (once)"
    cargo build --quiet --bin squalld --bin squall
    target=$(cargo metadata --no-deps --format-version 1 | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')
    SQUALLD=$target/debug/squalld
    SQUALL=$target/debug/squall
fi

work=$(mktemp -d)
started=()
stop() {
    for process in "${started[@]}"; do
        kill "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap stop EXIT

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }
sql() { "$SQUALL" --socket "$work/socket" --user root "$@"; }
value() { sql --batch --skip-column-names --execute "$1"; }

say "1. A web server with the schedule"
mkdir "$work/www"
# The day after tomorrow, so that the talks are still to come.
sed "s/^Time [0-9-]*/Time $(date -d '2 days' +%F)/" live-schedule.txt > "$work/www/live-schedule.txt"
cat "$work/www/live-schedule.txt"
python3 - "$work" > "$work/www.log" 2>&1 <<'PYTHON' &
import functools, http.server, socket, sys
work = sys.argv[1]
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=work + "/www")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    with open(work + "/json-port", "w") as file:
        file.write(str(free.getsockname()[1]) + "\n")
with open(work + "/www-port", "w") as file:
    file.write(str(server.server_port) + "\n")
server.serve_forever()
PYTHON
started+=($!)

for attempt in $(seq 100); do
    [ -s "$work/www-port" ] && break
    sleep 0.1
done
[ -s "$work/www-port" ] || { cat "$work/www.log"; fail "the web server did not start"; }
json=127.0.0.1:$(cat "$work/json-port")

say "2. A database server with the plugins that the statement needs"
"$SQUALLD" --datadir="$work/data" --socket="$work/socket" --port=0 --json-server-port="${json#*:}" \
    --plugin-add=js --plugin-add=http_functions --plugin-add=execute --plugin-add=json_server \
    > "$work/squalld.log" 2>&1 &
started+=($!)
for attempt in $(seq 300); do
    value "SELECT 1" > /dev/null 2>&1 && break
    [ "$attempt" -lt 300 ] && kill -0 "${started[@]}" 2> /dev/null || { cat "$work/squalld.log"; fail "the server did not start"; }
    sleep 0.1
done
www=127.0.0.1:$(cat "$work/www-port")
value "SELECT MODULE_NAME FROM data_dictionary.MODULES WHERE MODULE_NAME IN ('js', 'http_functions', 'execute', 'json_server')"
# Nothing is allowed until it is named.
value "SET GLOBAL http_allowed_hosts = '$www'; CREATE DATABASE barcamp"

sed "s/127\.0\.0\.1:8000/$www/" barcamp.sql > "$work/barcamp.sql"
talks=$(grep -c '^Duration ' "$work/www/live-schedule.txt")
for run in first second; do
    say "3. The statement, $run time"
    [ "$run" = second ] || cat "$work/barcamp.sql"
    result=$(sql --batch --skip-column-names barcamp < "$work/barcamp.sql")
    echo "-> $result"
    [ "$result" = 1 ] || fail "EXECUTE returned '$result'"
    count=$(value "SELECT COUNT(*) FROM barcamp.schedule")
    echo "-> $count talks"
    [ "$count" = "$talks" ] || fail "$count rows in place of $talks"
done

say "4. What comes next"
cat follow-up.sql
rows=$(sql --batch barcamp < follow-up.sql)
echo "$rows"
[ "$(grep -c 'start_time: ' <<< "$rows")" = 2 ] || fail "not two rows"

say "5. The same over JSON"
python3 -c 'import json, sys; print(json.dumps({"sql": sys.stdin.read(), "schema": "barcamp"}))' \
    < "$work/barcamp.sql" > "$work/request.json"
password=$(cat "$work/data/root-password")
ask() { curl --silent --show-error --user "root:$password" --header 'Content-Type: application/json' --data-binary "$1" "http://$json/1.0/sql"; }
answer=$(ask "@$work/request.json")
echo "$answer"
[ "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["results"][0]["rows"])' <<< "$answer")" = '[[1]]' ] \
    || fail "the answer over JSON"
answer=$(ask '{"sql": "SELECT start_time, stage, mr1, mr2, duration FROM schedule ORDER BY start_time", "schema": "barcamp"}')
python3 -m json.tool --compact <<< "$answer"
[ "$(python3 -c 'import json, sys; print(len(json.load(sys.stdin)["results"][0]["rows"]))' <<< "$answer")" = "$talks" ] \
    || fail "the rows over JSON"

say "6. A title that breaks the SQL: an error, and the schedule stays as it was"
sed -i 's/^stage .*/stage Say "hello"/' "$work/www/live-schedule.txt"
if error=$(sql --batch barcamp < "$work/barcamp.sql" 2>&1); then
    fail "the statement with a quote succeeded"
fi
echo "$error"
grep -q 1064 <<< "$error" || fail "not a syntax error"
[ "$(value "SELECT COUNT(*) FROM barcamp.schedule WHERE stage = 'Welcome hello'")" = 1 ] || fail "the old rows are gone"

say "Done."
