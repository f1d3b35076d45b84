//! Plugins that observe sessions and deny objects.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::sync::{Arc, Mutex};

use errors::{Error, Result};
use plugin_api::{
    Authorizer, ConnectionEvent, EventSet, LoginFailure, Object, Observer, Plugin, PluginInfo,
    Registrar, SchemaChange, StatementEnd, StatementEvent, Subject,
};
use support::Harness;

/// Keeps what it is told.
#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    fn note(&self, text: String) {
        self.0.lock().expect("the test's own").push(text);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("the test's own"))
    }
}

struct Shared(Arc<Recorder>);

impl Plugin for Shared {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("recorder", "Observer of this test.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.observer(self.0.clone());
    }
}

impl Observer for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn events(&self) -> EventSet {
        EventSet::STATEMENTS
            | EventSet::SCHEMA_CHANGES
            | EventSet::CONNECT
            | EventSet::DISCONNECT
            | EventSet::LOGIN_FAILURE
    }

    fn before_statement(&self, event: &StatementEvent<'_>) -> Result<()> {
        let text = String::from_utf8_lossy(event.text);
        if text.contains("forbidden") {
            return Err(Error::not_supported("this text"));
        }
        self.note(format!("before {} {text}", event.command));
        Ok(())
    }

    fn after_statement(&self, event: &StatementEvent<'_>, end: &StatementEnd<'_>) {
        let code = end.error.map_or(0, |error| error.code().0);
        let StatementEnd { rows_sent, rows_affected, .. } = end;
        self.note(format!("after {} {code} {rows_sent} {rows_affected}", event.verb()));
    }

    fn before_schema_change(&self, change: &SchemaChange<'_>) -> Result<()> {
        match change.table {
            Some("kept") => Err(Error::not_supported("a change of this table")),
            _ => Ok(()),
        }
    }

    fn after_schema_change(&self, change: &SchemaChange<'_>, error: Option<&Error>) {
        let table = change.table.unwrap_or("-");
        let (kind, schema) = (change.kind.name(), change.schema);
        self.note(format!("{kind} {schema} {table} {}", error.is_none()));
    }

    fn connected(&self, event: &ConnectionEvent<'_>) {
        self.note(format!("connect {} {}", event.session.user, event.channel));
    }

    fn disconnected(&self, event: &ConnectionEvent<'_>) {
        self.note(format!("disconnect {}", event.session.user));
    }

    fn login_failed(&self, failure: &LoginFailure<'_>) {
        self.note(format!("failed {}", failure.user));
    }
}

#[test]
fn observers_learn_what_sessions_do_and_may_refuse_it() {
    let recorder = Arc::new(Recorder::default());
    let harness = Harness::with(vec![Box::new(Shared(recorder.clone()))]);
    let mut root = harness.root();
    assert_eq!(recorder.take()[0], "connect root Socket");
    root.run("CREATE TABLE a (i INT)");
    let created =
        ["before Query CREATE TABLE a (i INT)", "CREATE TABLE t a true", "after CREATE 0 0 0"];
    assert_eq!(recorder.take(), created);
    root.run("INSERT INTO a VALUES (1), (2); SELECT i FROM a");
    let both = [
        "before Query INSERT INTO a VALUES (1), (2)",
        "after INSERT 0 0 2",
        "before Query SELECT i FROM a",
        "after SELECT 0 2 0",
    ];
    assert_eq!(recorder.take(), both);
    root.run("CREATE USER u IDENTIFIED BY 'pass'");
    assert_eq!(recorder.take()[0], "before Query CREATE USER u IDENTIFIED BY '<secret>'");
    assert!(root.run("SELECT 'forbidden'").contains("1235"));
    assert_eq!(recorder.take(), ["after SELECT 1235 0 0"]);
    root.run("CREATE TABLE kept (i INT)");
    assert!(root.run("SELECT * FROM kept").contains("1146"), "the observer refused to create it");
    recorder.take();
    let observers = root.run("SELECT COUNT(*) FROM data_dictionary.EVENT_OBSERVERS");
    assert_eq!(observers, "7");
    recorder.take();
    drop(root);
    assert_eq!(recorder.take(), ["disconnect root"]);
    assert!(harness.connect("nobody").is_err());
    assert_eq!(recorder.take(), ["failed nobody"]);
}

/// Denies one schema and one table to everybody.
struct Denier;

impl Plugin for Denier {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("denier", "Policy of this test.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.authorizer(Arc::new(Denier));
    }
}

impl Authorizer for Denier {
    fn name(&self) -> &'static str {
        "denier"
    }

    fn denies(&self, _: &Subject<'_>, object: &Object<'_>) -> bool {
        match object {
            Object::Schema(schema) => *schema == "hidden",
            Object::Table(schema, table) => (*schema, *table) == ("t", "secret"),
            Object::Process(_) => false,
        }
    }
}

#[test]
fn policies_deny_what_privileges_allow() {
    let harness = Harness::with(vec![Box::new(Denier)]);
    let mut root = harness.root();
    assert!(root.run("CREATE DATABASE hidden").contains("1044"));
    assert!(root.run("CREATE TABLE secret (i INT)").contains("1142"));
    root.run("CREATE TABLE plain (i INT)");
    assert!(root.run("RENAME TABLE plain TO secret").contains("1142"));
    assert!(root.run("SELECT * FROM secret").contains("114"));
    assert_eq!(root.run("SELECT COUNT(*) FROM plain"), "0");
    assert!(root.run("USE hidden").contains("10"));
}
