//! The points through the `sqlx` crate.

use std::time::Duration;

use sqlx::mysql::types::MySqlTime;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlRow, MySqlSslMode};
use sqlx::types::time::{Date, PrimitiveDateTime};
use sqlx::{ConnectOptions, Connection, Executor, Row};

use crate::{ERRORS, KILLS, Outcome, columns, every_type, variable, written};

const USERS: &str = "sqlx_sha2, sqlx_native, sqlx_strict, sqlx_peer@localhost, sqlx_stranger@localhost";

fn point(name: &str) {
    println!("  sqlx (Rust): {name}");
}

fn tcp(user: &str, password: &str, mode: MySqlSslMode) -> MySqlConnectOptions {
    MySqlConnectOptions::new()
        .host("localhost")
        .port(variable("PORT").parse().unwrap())
        .username(user)
        .password(password)
        .ssl_mode(mode)
        .ssl_ca(variable("CA"))
}

fn socket(user: &str) -> MySqlConnectOptions {
    MySqlConnectOptions::new().socket(variable("SOCKET")).username(user)
}

fn root(mode: MySqlSslMode) -> MySqlConnectOptions {
    tcp("root", &variable("PASSWORD"), mode)
}

/// Number of the error that logging in ends with: 0 for none, 1 for one of the driver.
async fn login(options: MySqlConnectOptions) -> u16 {
    match options.connect().await {
        Ok(mut connection) => u16::from(connection.ping().await.is_err()),
        Err(error) => number(&error).map_or(1, |(code, _)| code),
    }
}

fn number(error: &sqlx::Error) -> Option<(u16, String)> {
    let error = error.as_database_error()?.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>()?;
    Some((error.number(), error.code().unwrap_or_default().to_owned()))
}

async fn authentication(admin: &mut MySqlConnection) -> Outcome {
    const VERIFIED: MySqlSslMode = MySqlSslMode::VerifyIdentity;
    const PLAIN: MySqlSslMode = MySqlSslMode::Disabled;
    admin.execute(format!("DROP USER IF EXISTS {USERS}").as_str()).await?;
    admin.execute("CREATE USER sqlx_sha2 IDENTIFIED WITH caching_sha2_password BY 'secret'").await?;
    for mode in [VERIFIED, VERIFIED, PLAIN] {
        assert_eq!(login(tcp("sqlx_sha2", "secret", mode)).await, 0);
        assert_eq!(login(tcp("sqlx_sha2", "wrong", mode)).await, 1045);
    }
    point("caching sha2 password full and fast");
    admin.execute("ALTER USER sqlx_sha2 IDENTIFIED BY 'other secret'").await?;
    assert_eq!(login(tcp("sqlx_sha2", "other secret", PLAIN)).await, 0);
    assert_eq!(login(tcp("sqlx_sha2", "wrong", PLAIN)).await, 1045);
    point("caching sha2 password with the servers public key");
    admin.execute("CREATE USER sqlx_native IDENTIFIED WITH mysql_native_password BY 'secret'").await?;
    for mode in [VERIFIED, PLAIN] {
        assert_eq!(login(tcp("sqlx_native", "secret", mode)).await, 0);
        assert_eq!(login(tcp("sqlx_native", "wrong", mode)).await, 1045);
    }
    point("mysql native password");
    let me = variable("OS_USER");
    let create = format!("CREATE USER sqlx_peer@localhost IDENTIFIED WITH auth_socket AS '{me}'");
    admin.execute(create.as_str()).await?;
    admin.execute("CREATE USER sqlx_stranger@localhost IDENTIFIED WITH auth_socket AS 'nobody else'").await?;
    assert_eq!(login(socket("sqlx_peer")).await, 0);
    assert_ne!(login(tcp("sqlx_peer", "", PLAIN)).await, 0);
    assert_ne!(login(socket("sqlx_stranger")).await, 0);
    point("auth socket");
    admin.execute("CREATE USER sqlx_strict IDENTIFIED BY 'secret' REQUIRE SSL").await?;
    assert_eq!(login(tcp("sqlx_strict", "secret", MySqlSslMode::Required)).await, 0);
    assert_eq!(login(tcp("sqlx_strict", "secret", PLAIN)).await, 1045);
    assert_eq!(login(root(MySqlSslMode::VerifyCa).ssl_ca(variable("OTHER_CA"))).await, 1);
    point("tls required and verified");
    admin.execute(format!("DROP USER {USERS}").as_str()).await?;
    Ok(())
}

/// A cell of the text protocol: bytes as they came.
fn text_cell(row: &MySqlRow, at: usize) -> Option<Vec<u8>> {
    row.get_unchecked(at)
}

/// A cell of the binary protocol as the text that the server would send.
fn binary_cell(row: &MySqlRow, at: usize, kind: &str) -> Option<Vec<u8>> {
    let text = match kind.split([' ', '(']).next().unwrap_or_default() {
        "TINYINT" | "BOOLEAN" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT" | "YEAR" => {
            if kind.ends_with("UNSIGNED") || kind == "YEAR" {
                row.get_unchecked::<Option<u64>, _>(at)?.to_string()
            } else {
                row.get_unchecked::<Option<i64>, _>(at)?.to_string()
            }
        }
        "FLOAT" => row.get_unchecked::<Option<f32>, _>(at)?.to_string(),
        "DOUBLE" => format!("{:e}", row.get_unchecked::<Option<f64>, _>(at)?),
        "DATE" => row.get_unchecked::<Option<Date>, _>(at)?.to_string(),
        "DATETIME" | "TIMESTAMP" => {
            let time = row.get_unchecked::<Option<PrimitiveDateTime>, _>(at)?;
            let (hour, minute, second, micros) = time.as_hms_micro();
            let whole = format!("{} {hour:02}:{minute:02}:{second:02}", time.date());
            if kind.ends_with("(6)") { format!("{whole}.{micros:06}") } else { whole }
        }
        "TIME" => {
            let time = row.get_unchecked::<Option<MySqlTime>, _>(at)?;
            let sign = if time.sign().is_negative() { "-" } else { "" };
            let (minutes, seconds) = (time.minutes(), time.seconds());
            let whole = format!("{sign}{}:{minutes:02}:{seconds:02}", time.hours());
            if kind.ends_with("(6)") { format!("{whole}.{:06}", time.microseconds()) } else { whole }
        }
        _ => return row.get_unchecked(at),
    };
    Some(text.into_bytes())
}

async fn every_column_type(connection: &mut MySqlConnection, how: &str) -> Outcome {
    let (create, names, marks) = every_type();
    connection.execute("DROP TABLE IF EXISTS every_type, large").await?;
    connection.execute(create.as_str()).await?;
    let insert = format!("INSERT INTO every_type ({names}) VALUES ({marks})");
    let (mut values, mut nulls) = (sqlx::query(&insert), sqlx::query(&insert));
    for (_, text) in columns() {
        values = match text.starts_with("0x") {
            true => values.bind(written(text)),
            false => values.bind(text),
        };
        nulls = nulls.bind(None::<String>);
    }
    let done = values.execute(&mut *connection).await?;
    assert_eq!((done.last_insert_id(), done.rows_affected()), (1, 1));
    nulls.execute(&mut *connection).await?;
    let select = format!("SELECT {names} FROM every_type WHERE id > ");
    let text = connection.fetch_all(format!("{select} 0 ORDER BY id").as_str()).await?;
    let query = format!("{select} ? ORDER BY id");
    let binary = sqlx::query(&query).bind(0).fetch_all(&mut *connection).await?;
    for (at, (kind, text_value)) in columns().into_iter().enumerate() {
        let expected = Some(written(text_value));
        assert_eq!(text_cell(&text[0], at), expected, "{kind} {how}");
        assert_eq!(text_cell(&text[1], at), None, "{kind} {how}");
        assert_eq!(binary_cell(&binary[0], at, kind), expected, "{kind} {how}");
        assert_eq!(binary_cell(&binary[1], at, kind), None, "{kind} {how}");
    }
    connection.execute("UPDATE every_type SET c0 = 5 WHERE id = 2").await?;
    let deleted = sqlx::query("DELETE FROM every_type WHERE c0 = ?").bind(5).execute(&mut *connection).await?;
    assert_eq!(deleted.rows_affected(), 1);
    point(&format!("every column type, text and binary protocol, {how}"));
    let blob = vec![0xab_u8; 17_000_000];
    connection.execute("CREATE TABLE large (body LONGBLOB)").await?;
    sqlx::query("INSERT INTO large VALUES (?)").bind(&blob).execute(&mut *connection).await?;
    let text = connection.fetch_one("SELECT body FROM large").await?;
    let binary = sqlx::query("SELECT body FROM large").fetch_one(&mut *connection).await?;
    assert!(text.get::<Vec<u8>, _>(0) == blob && binary.get::<Vec<u8>, _>(0) == blob);
    connection.execute("DROP TABLE large").await?;
    point(&format!("values over 16 mib, {how}"));
    Ok(())
}

async fn statements(connection: &mut MySqlConnection) -> Outcome {
    let rows = connection.fetch_all("SELECT 1; DO 0; SELECT 2").await?;
    assert_eq!(rows.iter().map(|row| row.get::<i64, _>(0)).collect::<Vec<_>>(), [1, 2]);
    point("several statements in one");
    for number in 0..50_i64 {
        let row = sqlx::query("SELECT ? + 1, ?").bind(number).bind("☃").fetch_one(&mut *connection).await?;
        assert_eq!(row.get::<i64, _>(0), number + 1);
        assert_eq!(row.get::<String, _>(1), "☃");
    }
    point("statements are prepared");
    println!("  sqlx (Rust): SKIPPED server side cursors: the driver has none; rows are streamed");
    Ok(())
}

async fn transactions(connection: &mut MySqlConnection) -> Outcome {
    connection.execute("CREATE TABLE t (id INT PRIMARY KEY, z INT); INSERT INTO t VALUES (1, NULL)").await?;
    let mut txn = connection.begin().await?;
    txn.execute("UPDATE t SET z = 1").await?;
    txn.rollback().await?;
    let z: Option<i32> = sqlx::query_scalar("SELECT z FROM t").fetch_one(&mut *connection).await?;
    assert_eq!(z, None);
    let mut txn = connection.begin().await?;
    txn.execute("UPDATE t SET z = 2").await?;
    txn.commit().await?;
    let z: Option<i32> = sqlx::query_scalar("SELECT z FROM t").fetch_one(&mut *connection).await?;
    assert_eq!(z, Some(2));
    point("transactions");
    for (sql, code, state) in ERRORS {
        let error = connection.execute(sql).await.expect_err("an error");
        assert_eq!(number(&error), Some((code, state.to_owned())), "{sql}");
        let error = sqlx::query(sql).execute(&mut *connection).await.expect_err("an error");
        assert_eq!(number(&error), Some((code, state.to_owned())), "{sql} prepared");
    }
    point("errors have numbers");
    Ok(())
}

async fn kill(admin: &mut MySqlConnection) -> Outcome {
    for (kill, sql, expected) in KILLS {
        let mut victim = root(MySqlSslMode::Disabled).connect().await?;
        let id: u64 = sqlx::query_scalar("SELECT CONNECTION_ID()").fetch_one(&mut victim).await?;
        let stop = async {
            let running = format!(
                "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND info LIKE 'SELECT SLEEP%'"
            );
            while admin.fetch_one(running.as_str()).await?.get::<i64, _>(0) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            admin.execute(format!("{kill} {id}").as_str()).await
        };
        let (stopped, killed) = tokio::join!(victim.fetch_all(sql), stop);
        killed?;
        let outcome = match stopped {
            Ok(rows) => rows[0].get::<i64, _>(0) as u64,
            Err(error) => number(&error).map_or(0, |(code, _)| code.into()),
        };
        assert_eq!(outcome, expected, "{kill} {sql}");
    }
    point("kill from a second connection");
    Ok(())
}

pub async fn run() -> Outcome {
    let mut admin = root(MySqlSslMode::VerifyIdentity).connect().await?;
    authentication(&mut admin).await?;
    admin.execute("DROP DATABASE IF EXISTS clients_sqlx; CREATE DATABASE clients_sqlx").await?;
    for (how, options) in [
        ("plain", root(MySqlSslMode::Disabled)),
        ("TLS", root(MySqlSslMode::VerifyCa)),
        ("socket", socket("root").password(&variable("PASSWORD"))),
    ] {
        let mut connection = options.database("clients_sqlx").connect().await?;
        every_column_type(&mut connection, how).await?;
    }
    let mut connection = root(MySqlSslMode::Disabled).database("clients_sqlx").connect().await?;
    statements(&mut connection).await?;
    transactions(&mut connection).await?;
    kill(&mut admin).await?;
    admin.execute("DROP DATABASE clients_sqlx").await?;
    Ok(())
}
