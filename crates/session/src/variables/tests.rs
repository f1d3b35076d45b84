//! The table is consistent, and SET converts as the reference does.

use types::Value;

use super::*;

fn converted(name: &str, value: Value) -> Result<(String, bool)> {
    let globals = Globals::new();
    let id = globals.definitions.find(name).expect("known");
    let definition = globals.definitions.get(id);
    let result = convert(definition, &value, &globals.get(id))?;
    Ok((display_text(definition, &result.value), result.truncated))
}

#[test]
fn every_default_is_a_value_of_its_kind() {
    let globals = Globals::new();
    let mut last = "";
    for (id, definition) in globals.definitions.iter() {
        assert!(last < definition.name, "{} is listed twice", definition.name);
        last = definition.name;
        let nullable = matches!(definition.kind, Kind::NullableText | Kind::NullableCharset);
        assert!(nullable || !globals.get(id).is_null(), "{}", definition.name);
    }
}

#[test]
fn names_of_the_connect_path_exist_and_others_do_not() {
    let definitions = Definitions::new();
    for name in [
        "auto_increment_increment",
        "AUTOCOMMIT",
        "character_set_filesystem",
        "gtid_purged",
        "lower_case_table_names",
        "tx_isolation",
        "innodb_io_capacity",
        "wait_timeout",
        "information_schema_stats_expiry",
        "sql_safe_updates",
        "version_compile_os",
    ] {
        assert!(definitions.find(name).is_some(), "{name}");
    }
    for name in ["aurora_version", "tokudb_version", "tidb_snapshot", "wsrep_on"] {
        assert!(definitions.find(name).is_none(), "{name}");
    }
}

#[test]
fn values_are_converted_and_bounded() {
    let text = |text: &str| Value::text(text);
    let ok = |result: Result<(String, bool)>| result.expect("valid");
    assert_eq!(ok(converted("autocommit", text("off"))), ("OFF".into(), false));
    assert_eq!(ok(converted("autocommit", Value::Int(1))), ("ON".into(), false));
    assert!(converted("autocommit", Value::Int(2)).is_err());
    assert_eq!(ok(converted("wait_timeout", Value::Int(0))), ("1".into(), true));
    assert_eq!(ok(converted("net_buffer_length", Value::Int(2000))), ("1024".into(), true));
    assert!(converted("wait_timeout", text("5")).is_err());
    let mode = ok(converted("sql_mode", text("ansi")));
    assert_eq!(
        mode.0,
        "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI"
    );
    assert!(converted("sql_mode", text("nonsense")).is_err());
    let switches = ok(converted("optimizer_switch", text("semijoin=off"))).0;
    assert!(switches.contains("semijoin=off") && switches.contains("mrr=on"));
    assert_eq!(ok(converted("character_set_results", Value::Null)).0, "");
    assert!(converted("character_set_client", Value::Null).is_err());
    assert_eq!(ok(converted("transaction_isolation", Value::Int(1))).0, "READ-COMMITTED");
}
