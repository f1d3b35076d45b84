//! A consumer of rows without a client protocol: every type is sent as JSON, from records, from computed values, and in
//! the two forms that a TIMESTAMP has.

#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use plugin_api::test_support::JsonSink;
use support::{Client, Harness};

fn json(client: &mut Client, sql: &str) -> Vec<String> {
    let mut sink = JsonSink::default();
    client.session.query(sql.as_bytes(), &[], &mut sink).expect("the sink never fails");
    assert!(sink.errors.is_empty(), "{:?}", sink.errors);
    sink.rows
}

const TABLE: &str = "CREATE TABLE all_types (
    id INT PRIMARY KEY, tiny TINYINT, small SMALLINT UNSIGNED, medium MEDIUMINT, large BIGINT UNSIGNED ZEROFILL, yes BOOL,
    price DECIMAL(10,3), single FLOAT, twice DOUBLE, bits BIT(12), years YEAR,
    day DATE, clock TIME(2), at DATETIME(6), stamp TIMESTAMP,
    short VARCHAR(300), fixed CHAR(5), long_text TEXT, raw VARBINARY(8), `blob` BLOB,
    pick ENUM('a','b'), some SET('x','y','z'), doc JSON, place POINT, direction VECTOR(3))";

const ROWS: &str = "INSERT INTO all_types VALUES
    (1, -7, 65535, -8388608, 42, TRUE, -12.5, 1.5, -2.25e-7, b'101000000001', 2024,
     '2024-02-29', '-101:02:03.45', '2024-02-29 23:59:59.000001', '2024-03-01 12:00:00',
     'say \"ä\\\\\"\\n', 'ab', REPEAT('x', 260), X'00FF', X'', 'b', 'x,z', '{\"a\": [1, 2.50, null, \"q\"]}',
     X'000000000101000000000000000000F03F00000000000000C0', X'0000803F0000C0BF00000000'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)";

fn expected(stamp: &str) -> String {
    let long = "x".repeat(260);
    format!(
        concat!(
            r#"[1,-7,65535,-8388608,42,1,-12.500,1.5,-0.000000225,2561,2024,"#,
            r#""2024-02-29","-101:02:03.45","2024-02-29 23:59:59.000001","{stamp}","#,
            r#""say \"ä\\\"\n","ab","{long}","00ff","","b","x,z",{{"a": [1, 2.5, null, "q"]}},"#,
            r#""000000000101000000000000000000f03f00000000000000c0",[1,-1.5,0]]"#
        ),
        stamp = stamp,
        long = long,
    )
}

#[test]
fn every_type_leaves_as_json() {
    let mut client = Harness::new().root();
    client.run("SET time_zone = '+00:00'");
    client.run(TABLE);
    client.run(ROWS);
    let nulls = format!("[2{}]", ",null".repeat(24));
    let both = vec![expected("2024-03-01 12:00:00"), nulls];
    // By key, as a plain scan, through a sort that keeps records, and through registers.
    assert_eq!(json(&mut client, "SELECT * FROM all_types WHERE id = 1"), both[..1]);
    assert_eq!(json(&mut client, "SELECT * FROM all_types"), both);
    assert_eq!(json(&mut client, "SELECT * FROM all_types ORDER BY id"), both);
    let joined =
        "SELECT a.* FROM all_types a JOIN (SELECT 1 AS one) d ON a.id >= d.one ORDER BY a.id + 0";
    assert_eq!(json(&mut client, joined), both);
    client.run("SET time_zone = '+05:30'");
    let shifted = [expected("2024-03-01 17:30:00")];
    assert_eq!(json(&mut client, "SELECT * FROM all_types WHERE id = 1"), shifted);
}

#[test]
fn columns_added_later_leave_as_their_defaults() {
    let mut client = Harness::new().root();
    client.run("CREATE TABLE old (id INT PRIMARY KEY)");
    client.run("INSERT INTO old VALUES (1)");
    client.run("ALTER TABLE old ADD COLUMN d DECIMAL(4,2) NOT NULL DEFAULT 1.5, ADD COLUMN n TEXT");
    assert_eq!(json(&mut client, "SELECT * FROM old WHERE id = 1"), ["[1,1.50,null]"]);
}

#[test]
fn computed_values_and_the_servers_own_rows_leave_as_json() {
    let mut client = Harness::new().root();
    let row = "SELECT 1 + 1, 0.10 * 3, 'a', NULL, DATE '2024-01-02', 1e0";
    assert_eq!(json(&mut client, row), [r#"[2,0.30,"a",null,"2024-01-02",1]"#]);
    client.run("CREATE TABLE shown (id INT)");
    assert_eq!(json(&mut client, "SHOW TABLES"), [r#"["shown"]"#]);
}
