//! What every client must be able to do, through the `mysql` and `sqlx` crates.

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, SslOpts};
use sqlx::Row;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlSslMode};
use sqlx::{ConnectOptions, Connection};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

fn options(schema: Option<&str>, tls: bool) -> OptsBuilder {
    let tls = tls.then(|| SslOpts::default().with_danger_accept_invalid_certs(true));
    OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(variable("PORT").parse().unwrap())
        .user(Some("root"))
        .pass(Some(variable("PASSWORD")))
        .prefer_socket(false)
        .db_name(schema)
        .ssl_opts(tls)
}

fn blocking(tls: bool) -> Outcome {
    let mut conn = Conn::new(options(None, tls))?;
    conn.query_drop("DROP DATABASE IF EXISTS clients_rust")?;
    conn.query_drop("CREATE DATABASE clients_rust")?;
    let mut conn = Conn::new(options(Some("clients_rust"), tls))?;
    conn.query_drop("CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, d DECIMAL(65,30), s VARCHAR(50), b LONGBLOB, z INT)")?;
    let blob = vec![0xab_u8; 17_000_000];
    conn.exec_drop("INSERT INTO t VALUES (?, ?, ?, ?, ?)", (u64::MAX, "1.5", "☃𝄢", &blob, None::<i32>))?;
    type Line = (u64, String, String, Vec<u8>, Option<i32>);
    let row: Option<Line> = conn.exec_first("SELECT * FROM t WHERE id = ?", (u64::MAX,))?;
    let (id, d, s, b, z) = row.ok_or("no row")?;
    assert_eq!((id, d.as_str(), s.as_str(), z), (u64::MAX, "1.500000000000000000000000000000", "☃𝄢", None));
    assert!(b == blob);
    let mut txn = conn.start_transaction(Default::default())?;
    txn.query_drop("UPDATE t SET z = 1")?;
    txn.rollback()?;
    assert_eq!(conn.query_first::<Option<i32>, _>("SELECT z FROM t")?, Some(None));
    match conn.exec_drop("INSERT INTO t (id) VALUES (?)", (u64::MAX,)) {
        Err(mysql::Error::MySqlError(error)) => assert_eq!((error.code, error.state.as_str()), (1062, "23000")),
        other => panic!("a duplicate was accepted: {other:?}"),
    }
    conn.query_drop("DELETE FROM t")?;
    Ok(())
}

async fn asynchronous(mode: MySqlSslMode) -> Result<(), sqlx::Error> {
    let mut conn: MySqlConnection = MySqlConnectOptions::new()
        .host("127.0.0.1")
        .port(variable("PORT").parse().unwrap())
        .username("root")
        .password(&variable("PASSWORD"))
        .database("clients_rust")
        .ssl_mode(mode)
        .connect()
        .await?;
    sqlx::query("INSERT INTO t (id, s, z) VALUES (?, ?, ?)").bind(7_u64).bind("𝄢").bind(-1).execute(&mut conn).await?;
    let row = sqlx::query("SELECT id, s, z, CAST(d AS CHAR) FROM t WHERE id = ?").bind(7_u64).fetch_one(&mut conn).await?;
    assert_eq!((row.get::<u64, _>(0), row.get::<String, _>(1), row.get::<i32, _>(2)), (7, "𝄢".to_owned(), -1));
    assert_eq!(row.get::<Option<String>, _>(3), None);
    let mut txn = conn.begin().await?;
    sqlx::query("DELETE FROM t").execute(&mut *txn).await?;
    txn.rollback().await?;
    let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM t").fetch_one(&mut conn).await?;
    assert_eq!(count, 1);
    sqlx::query("DELETE FROM t").execute(&mut conn).await?;
    conn.close().await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    for tls in [false, true] {
        blocking(tls)?;
    }
    println!("  mysql (Rust): TLS and plain, prepared, transactions, errors");
    for mode in [MySqlSslMode::Disabled, MySqlSslMode::Required] {
        asynchronous(mode).await?;
    }
    Conn::new(options(None, true))?.query_drop("DROP DATABASE clients_rust")?;
    println!("  sqlx (Rust): TLS and plain, prepared, transactions");
    Ok(())
}
