"""What every client must be able to do, run through each Python driver; a line for each point.

    scenario.py DRIVER      DRIVER: pymysql, connector-pure, connector-c, mysqlclient

PORT, PASSWORD, CA, OTHER_CA (that did not sign the server) and SOCKET come from the environment.
"""

import datetime
import decimal
import os
import pathlib
import sys
import threading
import time

DRIVER = sys.argv[1]
PORT, PASSWORD, SOCKET = int(os.environ["PORT"]), os.environ["PASSWORD"], os.environ["SOCKET"]
CA, OTHER_CA = os.environ["CA"], os.environ["OTHER_CA"]
CONNECTOR = DRIVER.startswith("connector")
SCHEMA = "clients_" + DRIVER.replace("-", "_")
COLUMNS = [line.split("\t") for line in pathlib.Path(__file__, "../../columns.tsv").resolve()
           .read_text("utf-8").splitlines()]

# What the driver misreads in a prepared cursor, from every server: YEAR and negative TIME; unsigned extremes.
MISREAD = {"connector-pure": ("YEAR", "TIME"), "connector-c": ("BIGINT UNSIGNED",)}.get(DRIVER, ())


class Skipped(Exception):
    """The driver cannot do it; says why."""


def connect(user="root", password=PASSWORD, database=None, tls=True, ca=CA, socket=None, **more):
    """`tls`: encrypted and the server's certificate and name verified against `ca`."""
    if DRIVER == "pymysql":
        import pymysql
        where = {"unix_socket": socket} if socket else {"host": "127.0.0.1", "port": PORT}
        if tls and not socket:
            where |= {"ssl_ca": ca, "ssl_verify_cert": True, "ssl_verify_identity": True}
        return pymysql.connect(user=user, password=password, database=database, charset="utf8mb4",
                               ssl_disabled=not tls, **where, **more)
    if DRIVER == "mysqlclient":
        import MySQLdb
        where = {"unix_socket": socket} if socket else {"host": "127.0.0.1", "port": PORT}
        if tls and not socket:
            where |= {"ssl": {"ca": ca}, "ssl_mode": "VERIFY_IDENTITY"}
        return MySQLdb.connect(user=user, password=password, database=database or "",
                               charset="utf8mb4", use_unicode=True, **where, **more)
    import mysql.connector
    where = {"unix_socket": socket} if socket else {"host": "127.0.0.1", "port": PORT}
    if tls and not socket:
        where |= {"ssl_ca": ca, "ssl_verify_cert": True, "ssl_verify_identity": True}
    return mysql.connector.connect(user=user, password=password, database=database,
                                   use_pure=DRIVER == "connector-pure", charset="utf8mb4",
                                   ssl_disabled=not tls, **where, **more)


def error_of(action, *args, **more):
    """Number of the error that an action ends with."""
    try:
        action(*args, **more)
    except Exception as error:
        return getattr(error, "errno", None) or error.args[0]
    raise AssertionError(f"{args} {more} was accepted")


def one(connection, sql, values=None):
    cursor = connection.cursor()
    cursor.execute(sql, values) if values is not None else cursor.execute(sql)
    row = cursor.fetchone()
    cursor.fetchall()
    cursor.close()
    return row


def run(connection, *statements):
    for sql in statements:
        cursor = connection.cursor()
        cursor.execute(sql)
        cursor.close()


def logs_in(user, **how):
    connection = connect(user=user, **how)
    assert one(connection, "SELECT CURRENT_USER()")[0].startswith(user + "@"), user
    connection.close()


def caching_sha2_password_full_and_fast(admin):
    run(admin, "CREATE USER sha2 IDENTIFIED WITH caching_sha2_password BY 'secret'")
    # Without a cached secret the whole password has to travel: encrypted, or not at all.
    if CONNECTOR:
        assert error_of(connect, user="sha2", password="secret", tls=False) in (1045, 2061)
    logs_in("sha2", password="secret")
    if DRIVER != "mysqlclient":
        logs_in("sha2", password="secret", tls=False)
    logs_in("sha2", password="secret")
    assert error_of(connect, user="sha2", password="wrong") == 1045
    run(admin, "DROP USER sha2")


def caching_sha2_password_with_the_servers_public_key(admin):
    if CONNECTOR:
        raise Skipped("the driver sends a password over TLS only")
    run(admin, "CREATE USER rsa IDENTIFIED WITH caching_sha2_password BY 'secret'")
    try:
        logs_in("rsa", password="secret", tls=False)
        assert error_of(connect, user="rsa", password="wrong", tls=False) == 1045
    except Exception as error:
        if DRIVER == "mysqlclient" and error.args[0] == 2061:
            raise Skipped("the client library was built without RSA") from error
        raise
    finally:
        run(admin, "DROP USER rsa")


def mysql_native_password(admin):
    run(admin, "CREATE USER native IDENTIFIED WITH mysql_native_password BY 'secret'")
    for tls in (True, False):
        logs_in("native", password="secret", tls=tls)
        assert error_of(connect, user="native", password="wrong", tls=tls) == 1045
    run(admin, "DROP USER native")


def auth_socket(admin):
    owner = one(admin, "SELECT CURRENT_USER()")[0].split("@")[0]
    assert owner == "root"
    import pwd
    name = pwd.getpwuid(os.getuid()).pw_name
    run(admin, f"CREATE USER peer@localhost IDENTIFIED WITH auth_socket AS '{name}'",
        "CREATE USER stranger@localhost IDENTIFIED WITH auth_socket AS 'nobody else'")
    logs_in("peer", password="", socket=SOCKET)
    assert error_of(connect, user="peer", password="") in (1045, 1698)
    assert error_of(connect, user="stranger", password="", socket=SOCKET) in (1045, 1698)
    run(admin, "DROP USER peer@localhost, stranger@localhost")


def tls_required_and_verified(admin):
    assert one(admin, "SHOW STATUS LIKE 'Ssl_cipher'")[1], "the connection is not encrypted"
    run(admin, "CREATE USER strict IDENTIFIED WITH caching_sha2_password BY 'secret' REQUIRE SSL")
    logs_in("strict", password="secret")
    refused = error_of(connect, user="strict", password="secret", tls=False)
    assert refused in (1045, 2061), refused
    run(admin, "DROP USER strict")
    assert error_of(connect, ca=OTHER_CA) in (2003, 2026, 2055)


def canonical(kind, value):
    """The text that the server sends; drivers differ in how they hand out values."""
    if isinstance(value, set):
        value = ",".join(sorted(value))
    if isinstance(value, datetime.timedelta):
        negative = value < datetime.timedelta(0)
        value = abs(value)
        seconds = value.days * 86400 + value.seconds
        text = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}.{value.microseconds:06}"
        text = text if "(6)" in kind else text[:-7]
        return ("-" if negative else "") + text
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ", "microseconds" if "(6)" in kind else "seconds")
    if isinstance(value, bool) or value is None:
        return value
    if kind.startswith("BIT") and isinstance(value, int):
        return "0x" + f"{value:0{16 if kind == 'BIT(64)' else 2}x}"
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(value)
        binary = kind.startswith("BIT") or "BLOB" in kind or "BINARY" in kind
        return "0x" + value.hex() if binary else value.decode()
    if isinstance(value, float):
        return repr(value).replace("e+", "e")
    return str(value)


def written(text):
    return bytes.fromhex(text[2:]) if text.startswith("0x") else text


def every_column_type(admin):
    body = ", ".join(f"c{i} {kind} NULL" for i, (kind, _) in enumerate(COLUMNS))
    run(admin, f"CREATE TABLE every_type (id INT PRIMARY KEY AUTO_INCREMENT, {body})")
    names = ", ".join(f"c{i}" for i in range(len(COLUMNS)))
    marks = ", ".join(["%s"] * len(COLUMNS))
    insert = f"INSERT INTO every_type ({names}) VALUES ({marks})"
    prepared = [{}, {"prepared": True}] if CONNECTOR else [{}]
    for how in prepared:
        cursor = admin.cursor(**how)
        cursor.execute(insert, tuple(written(text) for _, text in COLUMNS))
        assert cursor.lastrowid, "no AUTO_INCREMENT value"
        first = cursor.lastrowid
        cursor.execute(insert, (None,) * len(COLUMNS))
        cursor.close()
        for how in prepared:
            shown = [i for i, (kind, _) in enumerate(COLUMNS) if not how or kind not in MISREAD]
            select = f"SELECT {', '.join(f'c{i}' for i in shown)} FROM every_type WHERE id = %s"
            cursor = admin.cursor(**how)
            cursor.execute(select, (first,))
            for i, read in zip(shown, cursor.fetchone()):
                kind, text = COLUMNS[i]
                assert canonical(kind, read) == text, (kind, text, read, how)
            cursor.fetchall()
            cursor.execute(select, (first + 1,))
            assert all(cell is None for cell in cursor.fetchone())
            cursor.fetchall()
            cursor.close()
    admin.commit()
    text = [kind for kind, _ in COLUMNS].index("VARCHAR(40)")
    run(admin, f"UPDATE every_type SET c0 = 5, c{text} = '\U0001F4A9' WHERE id = 2")
    assert one(admin, f"SELECT c0, c{text} FROM every_type WHERE id = 2") == (5, "\U0001F4A9")
    run(admin, "DELETE FROM every_type WHERE id = 2")
    assert one(admin, "SELECT COUNT(*) FROM every_type WHERE id = 2") == (0,)
    admin.commit()


def values_over_16_mib(admin):
    run(admin, "CREATE TABLE large (id INT PRIMARY KEY, body LONGBLOB)")
    body = bytes(range(256)) * 65536 + b"tail"
    for number, how in enumerate([{}, {"prepared": True}] if CONNECTOR else [{}]):
        cursor = admin.cursor(**how)
        cursor.execute("INSERT INTO large VALUES (%s, %s)", (number, body))
        if how and DRIVER == "connector-pure":
            # It also misreads rows of several packets in a prepared cursor.
            cursor.close()
            cursor = admin.cursor()
        cursor.execute("SELECT LENGTH(body), body FROM large WHERE id = %s", (number,))
        length, read = cursor.fetchone()
        assert length == len(body) and bytes(read) == body
        cursor.fetchall()
        cursor.close()
    run(admin, "DROP TABLE large")
    admin.commit()


def several_statements_in_one(admin):
    more = {}
    if DRIVER == "pymysql":
        from pymysql.constants import CLIENT
        more = {"client_flag": CLIENT.MULTI_STATEMENTS}
    if DRIVER == "mysqlclient":
        more = {"client_flag": 1 << 16}
    connection = connect(database=SCHEMA, **more)
    cursor = connection.cursor()
    cursor.execute("SELECT 1; DO 0; SELECT 2, 3")
    seen = []
    while True:
        if cursor.description:
            seen.append(cursor.fetchall()[0])
        if not cursor.nextset():
            break
    assert seen == [(1,), (2, 3)], seen
    connection.close()


def statements_are_prepared(admin):
    if not CONNECTOR:
        raise Skipped("the driver has text statements only")
    cursor = admin.cursor(prepared=True)
    for number in range(50):
        cursor.execute("SELECT %s + 1, %s", (number, "\u2603"))
        assert cursor.fetchall() == [(number + 1, "\u2603")]
    cursor.close()


def server_side_cursors(admin):
    raise Skipped("the driver has none; rows are streamed instead, see the next point")


def rows_are_streamed(admin):
    more = {}
    if DRIVER == "pymysql":
        from pymysql.cursors import SSCursor
        more = {"cursor": SSCursor}
    if DRIVER == "mysqlclient":
        from MySQLdb.cursors import SSCursor
        more = {"cursorclass": SSCursor}
    sql = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n"
    cursor = admin.cursor(**more)
    cursor.execute(sql)
    assert sum(row[0] for row in cursor) == 500500
    cursor.close()


def transactions(admin):
    run(admin, "CREATE TABLE accounts (id INT PRIMARY KEY, amount DECIMAL(10,2)) ENGINE=InnoDB",
        "INSERT INTO accounts VALUES (1, 10), (2, 20)")
    admin.commit()
    run(admin, "UPDATE accounts SET amount = amount - 5 WHERE id = 1")
    admin.rollback()
    assert one(admin, "SELECT amount FROM accounts WHERE id = 1")[0] == decimal.Decimal("10.00")
    cursor = admin.cursor()
    cursor.execute("UPDATE accounts SET amount = amount - 5")
    assert cursor.rowcount == 2
    other = connect(database=SCHEMA)
    assert one(other, "SELECT SUM(amount) FROM accounts")[0] == decimal.Decimal("30.00")
    admin.commit()
    other.commit()
    assert one(other, "SELECT SUM(amount) FROM accounts")[0] == decimal.Decimal("20.00")
    other.close()
    admin.commit()


def errors_have_numbers(admin):
    run(admin, "CREATE TABLE numbers (id INT PRIMARY KEY)", "INSERT INTO numbers VALUES (1)")
    for sql, number in [("SELEC 1", 1064), ("SELECT * FROM nowhere", 1146),
                        ("SELECT nothing FROM numbers", 1054),
                        ("INSERT INTO numbers VALUES (1)", 1062),
                        ("INSERT INTO numbers VALUES ('x')", 1366)]:
        assert error_of(run, admin, sql) == number, sql
    admin.rollback()


def kill_from_a_second_connection(admin):
    for kill, sql, expected in [
            ("KILL QUERY", "SELECT SLEEP(30)", {1}),
            ("KILL QUERY", "SELECT SLEEP(30) FROM (SELECT 1 UNION ALL SELECT 2) AS two", {1317}),
            ("KILL", "SELECT SLEEP(30)", {2006, 2013, 2026, 2055})]:
        victim = connect(database=SCHEMA)
        number = one(victim, "SELECT CONNECTION_ID()")[0]
        outcome = []

        def sleeper(victim=victim, sql=sql, outcome=outcome):
            try:
                outcome.append(one(victim, sql)[0])
            except Exception as error:
                outcome.append(getattr(error, "errno", None) or error.args[0])

        thread = threading.Thread(target=sleeper)
        thread.start()
        for _ in range(500):
            if one(admin, "SELECT COUNT(*) FROM information_schema.processlist"
                          f" WHERE id = {number} AND info LIKE 'SELECT SLEEP%'")[0]:
                break
            time.sleep(0.01)
        run(admin, f"{kill} {number}")
        thread.join(10)
        assert not thread.is_alive() and outcome[0] in expected, (kill, sql, outcome)


def main():
    admin = connect()
    run(admin, f"DROP DATABASE IF EXISTS {SCHEMA}", f"CREATE DATABASE {SCHEMA}", f"USE {SCHEMA}",
        "DROP USER IF EXISTS sha2, rsa, native, strict, peer@localhost, stranger@localhost")
    for point in (caching_sha2_password_full_and_fast,
                  caching_sha2_password_with_the_servers_public_key, mysql_native_password,
                  auth_socket, tls_required_and_verified, every_column_type, values_over_16_mib,
                  several_statements_in_one, statements_are_prepared, server_side_cursors,
                  rows_are_streamed, transactions, errors_have_numbers,
                  kill_from_a_second_connection):
        name = point.__name__.replace("_", " ")
        try:
            point(admin)
            print(f"  {DRIVER}: {name}")
        except Skipped as reason:
            print(f"  {DRIVER}: SKIPPED {name}: {reason}")
    run(admin, f"DROP DATABASE {SCHEMA}")


main()
