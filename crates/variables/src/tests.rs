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

#[test]
fn words_numbers_and_lists_name_what_a_variable_may_be() {
    let text = |text: &str| Value::text(text);
    let ok = |result: Result<(String, bool)>| result.expect("valid").0;
    let code = |result: Result<(String, bool)>| result.expect_err("refused").code().0;
    assert_eq!(ok(converted("completion_type", text("chain"))), "CHAIN");
    assert_eq!(ok(converted("completion_type", Value::UInt(2))), "RELEASE");
    assert_eq!(code(converted("completion_type", Value::UInt(3))), 1231);
    assert_eq!(code(converted("completion_type", Value::Double(1.0))), 1232);
    assert_eq!(ok(converted("collation_connection", Value::Int(63))), "binary");
    assert_eq!(code(converted("collation_connection", text("klingon_ci"))), 1273);
    assert_eq!(ok(converted("character_set_client", Value::Int(8))), "latin1");
    assert_eq!(code(converted("character_set_client", text("klingon"))), 1115);
    assert_eq!(ok(converted("long_query_time", Value::Int(3))), "3.000000");
    assert_eq!(code(converted("long_query_time", text("3"))), 1232);
    assert_eq!(code(converted("time_zone", Value::Int(3))), 1298);
    assert_eq!(ok(converted("sql_mode", Value::Int(0))), "");
    assert_eq!(ok(converted("sql_mode", text("NO_AUTO_CREATE_USER,ANSI_QUOTES"))), "ANSI_QUOTES");
}

#[test]
fn switches_change_one_by_one_over_the_present_value() {
    let definitions = Definitions::new();
    let id = definitions.find("optimizer_switch").expect("known");
    let definition = definitions.get(id);
    let set = |value: &str, current: &Value| {
        convert(definition, &Value::text(value), current).map(|result| result.value)
    };
    let off = set("semijoin=off,mrr=off", &Value::Null).expect("valid");
    let one_on = as_text(&set("mrr=default", &off).expect("valid"));
    assert!(one_on.contains("semijoin=off") && one_on.contains("mrr=on"), "{one_on}");
    let all = set("default", &off).expect("valid");
    assert_eq!(as_text(&all), definition.default);
    for bad in ["semijoin", "semijoin=perhaps", "no_such_switch=on"] {
        assert_eq!(set(bad, &Value::Null).expect_err("refused").code().0, 1231, "{bad}");
    }
}

#[test]
fn options_may_have_units_and_flags_no_value() {
    let globals = Globals::new();
    let shown = |name: &str| {
        let id = globals.definitions.find(name).expect("known");
        (display_text(globals.definitions.get(id), &globals.get(id)), globals.provenance(id).origin)
    };
    let set = |name: &str, text: &str| {
        globals.set_option(name, text, &Provenance::of(Origin::CommandLine))
    };
    set("max-allowed-packet", "16M").expect("valid");
    assert_eq!(shown("max_allowed_packet"), ("16777216".into(), Origin::CommandLine));
    set("foreign_key_checks", "").expect("valid");
    set("READ_ONLY", "").expect("valid");
    assert_eq!(shown("read_only").0, "ON");
    assert_eq!(globals.read_only(), ReadOnly::Users);
    set("super_read_only", "ON").expect("valid");
    assert_eq!(globals.read_only(), ReadOnly::All);
    assert_eq!(set("no_such", "1").expect_err("refused").code().0, 1193);
    assert_eq!(set("wait_timeout", "soon").expect_err("refused").code().0, 1232);
    assert_eq!(parse_size("64k"), Some(65_536));
    assert_eq!(parse_size("18446744073709551615k"), None);
}

#[test]
fn a_session_keeps_the_values_of_its_start_under_its_own() {
    let globals = Globals::new();
    let id = globals.definitions.find("wait_timeout").expect("known");
    let other = globals.definitions.find("lock_wait_timeout").expect("known");
    let mut values = SessionValues::new(&globals);
    globals.set(&[(id, Value::UInt(7))], &Provenance::of(Origin::Dynamic));
    assert_eq!(values.get(id), &Value::UInt(28_800));
    values.set(id, Value::UInt(5));
    values.set(other, Value::UInt(9));
    values.set(id, Value::UInt(6));
    assert_eq!((values.get(id), values.get(other)), (&Value::UInt(6), &Value::UInt(9)));
    assert_eq!(SessionValues::new(&globals).get(id), &Value::UInt(7));
}

#[test]
fn settings_decode_what_the_variables_say() {
    let globals = Globals::new();
    let mut values = SessionValues::new(&globals);
    let mut set = |name: &str, value: Value| {
        let id = globals.definitions.find(name).expect("known");
        let definition = globals.definitions.get(id);
        let converted = convert(definition, &value, values.get(id)).expect("valid");
        values.set(id, converted.value);
    };
    set("autocommit", Value::Int(0));
    set("character_set_results", Value::Null);
    set("transaction_isolation", Value::text("SERIALIZABLE"));
    set("execution_mode", Value::text("batch"));
    set("sql_big_selects", Value::Int(0));
    set("max_join_size", Value::Int(12));
    set("session_track_system_variables", Value::text(" SQL_Mode , autocommit,"));
    let settings = Settings::decode(&globals, &values, &|_| None, &Arc::default());
    assert!(!settings.autocommit && settings.charset_results.is_none());
    assert_eq!(settings.isolation, engine_api::IsolationLevel::Serializable);
    assert_eq!(settings.execution_mode, plan::ExecutionMode::Batch);
    assert_eq!((settings.max_join_size, settings.sql_select_limit), (Some(12), None));
    assert!(settings.tracks("sql_mode") && settings.tracks("autocommit"));
    assert!(!settings.tracks("time_zone"));
}

#[test]
fn old_names_are_the_new_variables_and_collations_follow_character_sets() {
    let definitions = Definitions::new();
    let find = |name: &str| definitions.find(name).expect("known");
    let isolation = find("transaction_isolation");
    assert_eq!(definitions.canonical(find("tx_isolation")), isolation);
    assert_eq!(definitions.canonical(isolation), isolation);
    let partner = |name: &str, value: &str| definitions.partner(find(name), value);
    let collation = partner("character_set_server", "latin1").expect("valid");
    let latin = Value::text("latin1_swedish_ci");
    assert_eq!(collation, Some((find("collation_server"), latin)));
    let charset = partner("collation_connection", "utf8mb4_bin").expect("valid");
    assert_eq!(charset, Some((find("character_set_connection"), Value::text("utf8mb4"))));
    assert_eq!(partner("character_set_client", "latin1").expect("valid"), None);
    assert_eq!(partner("collation_server", "klingon").expect_err("refused").code().0, 1273);
}

static ROOM: Definition =
    Definition::global("guest_room", plugin_api::variable::uint(1, 100), "7", "Guests at a time");

#[test]
fn variables_of_plugins_hide_until_their_plugin_is_loaded() {
    let global = GlobalValue::default();
    let variable = PluginVariable { definition: &ROOM, global: global.clone(), check: None };
    let globals = Globals::with_plugins(&[variable]);
    assert_eq!(global.number(), 7);
    let definitions = &globals.definitions;
    assert!(definitions.find("guest_room").is_none());
    assert!(definitions.iter().all(|(_, definition)| definition.name != "guest_room"));
    // An option may set it all the same, and the plugin sees the value.
    globals.set_option("guest-room", "12", &Provenance::of(Origin::CommandLine)).unwrap();
    assert_eq!(global.number(), 12);
    definitions.show_plugins(&["guest_room"]);
    let id = definitions.find("GUEST_ROOM").unwrap();
    globals.set(&[(id, Value::UInt(3))], &Provenance::of(Origin::Dynamic));
    assert_eq!((global.number(), globals.integer("guest_room")), (3, 3));
    definitions.show_plugins(&[]);
    assert!(definitions.find("guest_room").is_none());
    // A plugin takes no name of the server's own.
    static AUTOCOMMIT: Definition = Definition::global("autocommit", Kind::Text, "", "Not this");
    let variable =
        PluginVariable { definition: &AUTOCOMMIT, global: GlobalValue::default(), check: None };
    let definitions = Definitions::with_plugins(&[variable]);
    let id = definitions.find("autocommit").unwrap();
    assert_eq!(definitions.get(id).kind, Kind::Bool);
}

#[test]
fn a_constant_keeps_its_default_and_says_why() {
    let globals = Globals::new();
    let given = Provenance::of(Origin::CommandLine);
    let name = "innodb_flush_log_at_trx_commit";
    let set = |text: &str| globals.set_option(name, text, &given);
    let reason = set("2").expect("accepted").expect("a reason");
    assert_eq!(reason.code().0, 1235);
    assert!(reason.message().contains("innodb_flush_log_at_trx_commit = 2"));
    assert_eq!(globals.integer(name), 1);
    assert!(set("1").expect("accepted").is_none());
    assert!(set("3").is_err() || globals.integer(name) == 1);
    let refused = globals.set_option("disabled_storage_engines", "MyISAM", &given);
    assert_eq!(refused.expect_err("only the default").code().0, 1235);
}
