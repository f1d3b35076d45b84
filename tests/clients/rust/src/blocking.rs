//! The points through the `mysql` crate.

use std::path::PathBuf;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, SslOpts, TxOpts, Value};

use crate::{ERRORS, KILLS, Outcome, columns, every_type, variable, written};

const USERS: &str = "rust_sha2, rust_native, rust_strict, rust_peer@localhost, rust_stranger@localhost";

fn point(name: &str) {
    println!("  mysql (Rust): {name}");
}

fn base(user: &str, password: &str) -> OptsBuilder {
    OptsBuilder::new().user(Some(user)).pass(Some(password)).prefer_socket(false)
}

/// Over TCP; `tls` with the certificate and the name verified.
fn tcp(user: &str, password: &str, tls: bool) -> OptsBuilder {
    let ca = PathBuf::from(variable("CA"));
    let tls = tls.then(|| SslOpts::default().with_root_cert_path(Some(ca)));
    base(user, password)
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(variable("PORT").parse().unwrap())
        .ssl_opts(tls)
}

fn socket(user: &str) -> OptsBuilder {
    base(user, "").ip_or_hostname(None::<&str>).socket(Some(variable("SOCKET")))
}

fn root(schema: &str, tls: bool) -> OptsBuilder {
    tcp("root", &variable("PASSWORD"), tls).db_name(Some(schema).filter(|name| !name.is_empty()))
}

/// Number of the error that logging in ends with: 0 for none, 1 for one of the driver.
fn login(options: OptsBuilder) -> u16 {
    match Conn::new(options).and_then(|mut conn| conn.query_first::<String, _>("SELECT CURRENT_USER()")) {
        Ok(who) => u16::from(who.is_none()),
        Err(mysql::Error::MySqlError(error)) => error.code,
        Err(_) => 1,
    }
}

fn authentication(admin: &mut Conn) -> Outcome {
    admin.query_drop(format!("DROP USER IF EXISTS {USERS}"))?;
    admin.query_drop("CREATE USER rust_sha2 IDENTIFIED WITH caching_sha2_password BY 'secret'")?;
    for tls in [true, true, false] {
        assert_eq!(login(tcp("rust_sha2", "secret", tls)), 0);
        assert_eq!(login(tcp("rust_sha2", "wrong", tls)), 1045);
    }
    point("caching sha2 password full and fast");
    admin.query_drop("ALTER USER rust_sha2 IDENTIFIED BY 'other secret'")?;
    assert_eq!(login(tcp("rust_sha2", "other secret", false)), 0);
    assert_eq!(login(tcp("rust_sha2", "wrong", false)), 1045);
    point("caching sha2 password with the servers public key");
    admin.query_drop("CREATE USER rust_native IDENTIFIED WITH mysql_native_password BY 'secret'")?;
    for tls in [true, false] {
        assert_eq!(login(tcp("rust_native", "secret", tls)), 0);
        assert_eq!(login(tcp("rust_native", "wrong", tls)), 1045);
    }
    point("mysql native password");
    let me = variable("OS_USER");
    admin.query_drop(format!("CREATE USER rust_peer@localhost IDENTIFIED WITH auth_socket AS '{me}'"))?;
    admin.query_drop("CREATE USER rust_stranger@localhost IDENTIFIED WITH auth_socket AS 'nobody else'")?;
    assert_eq!(login(socket("rust_peer")), 0);
    assert_ne!(login(tcp("rust_peer", "", false)), 0);
    assert_ne!(login(socket("rust_stranger")), 0);
    point("auth socket");
    admin.query_drop("CREATE USER rust_strict IDENTIFIED BY 'secret' REQUIRE SSL")?;
    assert_eq!(login(tcp("rust_strict", "secret", true)), 0);
    assert_eq!(login(tcp("rust_strict", "secret", false)), 1045);
    assert_eq!(login(root("", false).ssl_opts(Some(SslOpts::default()))), 1);
    point("tls required and verified");
    admin.query_drop(format!("DROP USER {USERS}"))?;
    Ok(())
}

/// The text that the server would send.
fn canonical(kind: &str, value: Value) -> Option<String> {
    let hexadecimal = kind.starts_with("BIT") || kind.contains("BLOB") || kind.contains("BINARY");
    Some(match value {
        Value::NULL => return None,
        Value::Bytes(bytes) if hexadecimal => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("0x{digits}")
        }
        Value::Bytes(bytes) => String::from_utf8(bytes).expect("text is UTF-8"),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Double(number) => format!("{number:e}"),
        Value::Date(year, month, day, hour, minute, second, micros) => {
            let date = format!("{year:04}-{month:02}-{day:02}");
            let whole = format!("{date} {hour:02}:{minute:02}:{second:02}");
            match kind {
                "DATE" => date,
                "DATETIME" => whole,
                _ => format!("{whole}.{micros:06}"),
            }
        }
        Value::Time(negative, days, hour, minute, second, micros) => {
            let sign = if negative { "-" } else { "" };
            let hours = days * 24 + u32::from(hour);
            let whole = format!("{sign}{hours}:{minute:02}:{second:02}");
            if kind == "TIME" { whole } else { format!("{whole}.{micros:06}") }
        }
    })
}

fn every_column_type(conn: &mut Conn, how: &str) -> Outcome {
    let (create, names, marks) = every_type();
    conn.query_drop("DROP TABLE IF EXISTS every_type, large")?;
    conn.query_drop(create)?;
    let values: Vec<Value> = columns().iter().map(|(_, text)| Value::Bytes(written(text))).collect();
    let nulls = vec![Value::NULL; values.len()];
    let insert = format!("INSERT INTO every_type ({names}) VALUES ({marks})");
    conn.exec_drop(&insert, values)?;
    assert_eq!((conn.last_insert_id(), conn.affected_rows()), (1, 1));
    conn.exec_drop(&insert, nulls)?;
    let select = format!("SELECT {names} FROM every_type WHERE id > ");
    let text: Vec<mysql::Row> = conn.query(format!("{select} 0 ORDER BY id"))?;
    let binary: Vec<mysql::Row> = conn.exec(format!("{select} ? ORDER BY id"), (0,))?;
    for rows in [text, binary] {
        let [values, nulls] = <[_; 2]>::try_from(rows).expect("two rows");
        for ((kind, text), value) in columns().into_iter().zip(values.unwrap()) {
            assert_eq!(canonical(kind, value).as_deref(), Some(text), "{kind} {how}");
        }
        assert!(nulls.unwrap().iter().all(|cell| *cell == Value::NULL));
    }
    conn.query_drop("UPDATE every_type SET c0 = 5 WHERE id = 2")?;
    conn.exec_drop("DELETE FROM every_type WHERE c0 = ?", (5,))?;
    assert_eq!(conn.affected_rows(), 1);
    point(&format!("every column type, text and binary protocol, {how}"));
    let blob = vec![0xab_u8; 17_000_000];
    conn.query_drop("CREATE TABLE large (body LONGBLOB)")?;
    conn.exec_drop("INSERT INTO large VALUES (?)", (&blob,))?;
    assert!(conn.query_first::<Vec<u8>, _>("SELECT body FROM large")?.as_ref() == Some(&blob));
    let read = conn.exec_first::<Vec<u8>, _, _>("SELECT body FROM large WHERE LENGTH(body) > ?", (1,))?;
    assert!(read.as_ref() == Some(&blob));
    conn.query_drop("DROP TABLE large")?;
    point(&format!("values over 16 mib, {how}"));
    Ok(())
}

fn statements(conn: &mut Conn) -> Outcome {
    let mut results = conn.query_iter("SELECT 1; DO 0; SELECT 2")?;
    let mut seen = Vec::new();
    while let Some(set) = results.iter() {
        for row in set {
            seen.push(mysql::from_row::<u8>(row?));
        }
    }
    drop(results);
    assert_eq!(seen, [1, 2]);
    point("several statements in one");
    let statement = conn.prep("SELECT ? + 1, ?")?;
    for number in 0..50_u8 {
        let row = conn.exec_first::<(u8, String), _, _>(&statement, (number, "☃"))?;
        assert_eq!(row, Some((number + 1, "☃".to_owned())));
    }
    conn.close(statement)?;
    point("statements are prepared");
    println!("  mysql (Rust): SKIPPED server side cursors: the driver has none; rows are streamed");
    Ok(())
}

fn transactions(conn: &mut Conn) -> Outcome {
    conn.query_drop("DROP TABLE IF EXISTS t")?;
    conn.query_drop("CREATE TABLE t (id INT PRIMARY KEY, z INT)")?;
    conn.query_drop("INSERT INTO t VALUES (1, NULL)")?;
    let mut txn = conn.start_transaction(TxOpts::default())?;
    txn.query_drop("UPDATE t SET z = 1")?;
    txn.rollback()?;
    assert_eq!(conn.query_first::<Option<i32>, _>("SELECT z FROM t")?, Some(None));
    let mut txn = conn.start_transaction(TxOpts::default())?;
    txn.query_drop("UPDATE t SET z = 2")?;
    txn.commit()?;
    assert_eq!(conn.query_first::<Option<i32>, _>("SELECT z FROM t")?, Some(Some(2)));
    point("transactions");
    for (sql, code, state) in ERRORS {
        match conn.query_drop(sql) {
            Err(mysql::Error::MySqlError(error)) => {
                assert_eq!((error.code, error.state.as_str()), (code, state), "{sql}");
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
    point("errors have numbers");
    Ok(())
}

fn kill(admin: &mut Conn) -> Outcome {
    for (kill, sql, expected) in KILLS {
        let mut victim = Conn::new(root("", false))?;
        let id = victim.connection_id();
        let stopped = std::thread::spawn(move || match victim.query::<u64, _>(sql) {
            Ok(slept) => slept[0],
            Err(mysql::Error::MySqlError(error)) => error.code.into(),
            Err(_) => 0,
        });
        let running = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND info LIKE 'SELECT SLEEP%'"
        );
        while admin.query_first::<u8, _>(&running)? == Some(0) {
            std::thread::sleep(Duration::from_millis(5));
        }
        admin.query_drop(format!("{kill} {id}"))?;
        assert_eq!(stopped.join().expect("the victim ends"), expected, "{kill} {sql}");
    }
    point("kill from a second connection");
    Ok(())
}

pub fn run() -> Outcome {
    let mut admin = Conn::new(root("", true))?;
    authentication(&mut admin)?;
    admin.query_drop("DROP DATABASE IF EXISTS clients_rust")?;
    admin.query_drop("CREATE DATABASE clients_rust")?;
    for (how, options) in [
        ("plain", root("clients_rust", false)),
        ("TLS", root("clients_rust", true)),
        ("socket", socket("root").pass(Some(variable("PASSWORD"))).db_name(Some("clients_rust"))),
    ] {
        every_column_type(&mut Conn::new(options)?, how)?;
    }
    let mut conn = Conn::new(root("clients_rust", false))?;
    statements(&mut conn)?;
    transactions(&mut conn)?;
    kill(&mut admin)?;
    admin.query_drop("DROP DATABASE clients_rust")?;
    Ok(())
}
