//! Plugins that are told of rows: observers while statements write them, and sinks when transactions have committed.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::sync::{Arc, Mutex};

use errors::{Error, Result};
use plugin_api::{
    ChangeSink, CommittedTransaction, EventSet, Observer, Plugin, PluginInfo, Registrar, RowChange,
    RowEvent,
};
use support::Harness;
use types::Value;

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn note(&self, text: String) {
        self.0.lock().expect("the test's own").push(text);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("the test's own"))
    }
}

/// `INSERT w {"id":1}`, or with an arrow between the old row and the new one.
fn shown(change: &RowChange<'_>) -> String {
    let row = |row: Option<&[Value]>| row.map(|row| change.json(row).expect("its own types"));
    let rows: Vec<String> = [row(change.old), row(change.new)].into_iter().flatten().collect();
    format!(
        "{} {} {}",
        format!("{:?}", change.kind()).to_uppercase(),
        change.table,
        rows.join(" -> ")
    )
}

/// Observes the tables whose names begin with `w`; refuses rows whose `v` is 13.
struct Watcher {
    before: Notes,
    after: Notes,
}

impl Observer for Watcher {
    fn name(&self) -> &'static str {
        "watcher"
    }

    fn events(&self) -> EventSet {
        EventSet::ROWS
    }

    fn wants_rows_of(&self, schema: &str, table: &str) -> bool {
        schema == "t" && table.starts_with('w')
    }

    fn before_row(&self, event: &RowEvent<'_>) -> Result<()> {
        assert_eq!((event.session.user, event.session.account), ("root", "root@localhost"));
        if event.change.new_value("V") == Some(&Value::Int(13)) {
            return Err(Error::not_supported("this number"));
        }
        self.before.note(shown(&event.change));
        Ok(())
    }

    fn after_row(&self, event: &RowEvent<'_>) {
        self.after.note(shown(&event.change));
    }
}

/// Takes the changes of the tables whose names begin with `w` or `s`.
#[derive(Default)]
struct Sink {
    told: Notes,
    numbers: Mutex<Vec<(u64, i64)>>,
}

impl ChangeSink for Sink {
    fn name(&self) -> &'static str {
        "sink"
    }

    fn is_active(&self) -> bool {
        true
    }

    fn wants_table(&self, _: &str, table: &str) -> bool {
        table.starts_with(['w', 's'])
    }

    fn committed(&self, transaction: &CommittedTransaction<'_>) {
        let changes: Vec<String> = transaction.changes.iter().map(shown).collect();
        let lost = match transaction.lost {
            0 => String::new(),
            lost => format!(" and {lost} lost"),
        };
        if let [RowChange { new: Some([_, Value::Int(value)]), table: "s", .. }] =
            transaction.changes
        {
            let numbers = (transaction.number, *value);
            self.numbers.lock().expect("the test's own").push(numbers);
            return;
        }
        // Large rows are not shown.
        match changes.len() {
            0..20 => self.told.note(format!("{}{lost}", changes.join("; "))),
            count => self.told.note(format!("{count} changes{lost}")),
        }
    }
}

struct Both(Arc<Watcher>, Arc<Sink>);

impl Plugin for Both {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("both", "Observer and sink of this test.").by_default()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.observer(self.0.clone());
        registrar.change_sink(self.1.clone());
    }
}

fn start() -> (Harness, Arc<Watcher>, Arc<Sink>) {
    let watcher = Arc::new(Watcher { before: Notes::default(), after: Notes::default() });
    let sink = Arc::new(Sink::default());
    let harness = Harness::with(vec![Box::new(Both(watcher.clone(), sink.clone()))]);
    (harness, watcher, sink)
}

#[test]
fn observers_see_each_row_and_may_refuse_it() {
    let (harness, watcher, _) = start();
    let mut root = harness.root();
    root.run("CREATE TABLE w (id INT PRIMARY KEY, v INT); CREATE TABLE other (id INT PRIMARY KEY)");
    assert_eq!(root.run("INSERT INTO w VALUES (1, 1), (2, 2)"), "ok 2");
    let two = [r#"INSERT w {"id":1,"v":1}"#, r#"INSERT w {"id":2,"v":2}"#];
    assert_eq!(watcher.before.take(), two);
    assert_eq!(watcher.after.take(), two);
    // By the whole key, and by a scan.
    root.run("UPDATE w SET v = 5 WHERE id = 1");
    root.run("UPDATE w SET v = v + 1");
    let updates = [
        r#"UPDATE w {"id":1,"v":1} -> {"id":1,"v":5}"#,
        r#"UPDATE w {"id":1,"v":5} -> {"id":1,"v":6}"#,
        r#"UPDATE w {"id":2,"v":2} -> {"id":2,"v":3}"#,
    ];
    assert_eq!(watcher.after.take(), updates);
    watcher.before.take();
    // A refusal undoes the whole statement.
    assert!(root.run("INSERT INTO w VALUES (3, 3), (4, 13)").contains("1235"));
    assert!(root.run("UPDATE w SET v = 13 WHERE id = 1").contains("1235"));
    assert_eq!(root.run("SELECT * FROM w"), "1|6\n2|3");
    assert_eq!(watcher.after.take(), [r#"INSERT w {"id":3,"v":3}"#]);
    root.run("INSERT INTO w VALUES (1, 7) ON DUPLICATE KEY UPDATE v = 8");
    root.run("REPLACE INTO w VALUES (2, 9)");
    root.run("DELETE FROM w WHERE id = 1; DELETE FROM w");
    let rest = [
        r#"UPDATE w {"id":1,"v":6} -> {"id":1,"v":8}"#,
        r#"DELETE w {"id":2,"v":3}"#,
        r#"INSERT w {"id":2,"v":9}"#,
        r#"DELETE w {"id":1,"v":8}"#,
        r#"DELETE w {"id":2,"v":9}"#,
    ];
    assert_eq!(watcher.after.take(), rest);
    root.run("INSERT INTO other VALUES (1); DELETE FROM other");
    root.run("CREATE TEMPORARY TABLE wt (i INT); INSERT INTO wt VALUES (1)");
    assert!(watcher.after.take().is_empty());
    root.file = b"1\t1\n2\t2\n".to_vec();
    assert_eq!(root.run("LOAD DATA LOCAL INFILE 'x' INTO TABLE w"), "ok 2");
    assert_eq!(watcher.after.take(), two);
}

#[test]
fn rows_of_triggers_cascades_and_computed_columns_count() {
    let (harness, watcher, sink) = start();
    let mut root = harness.root();
    root.run("CREATE TABLE p (id INT PRIMARY KEY)");
    root.run(
        "CREATE TABLE w1 (id INT PRIMARY KEY, p INT, g INT AS (id * 2) STORED, n INT AS (p) VIRTUAL,
              FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    );
    root.run("CREATE TABLE w2 (id INT AUTO_INCREMENT PRIMARY KEY, what TEXT)");
    root.run(
        "CREATE TRIGGER tr AFTER INSERT ON p FOR EACH ROW INSERT INTO w2 (what) VALUES (NEW.id)",
    );
    root.run("INSERT INTO p VALUES (1), (2)");
    let by_trigger = [r#"INSERT w2 {"id":1,"what":"1"}"#, r#"INSERT w2 {"id":2,"what":"2"}"#];
    assert_eq!(watcher.after.take(), by_trigger);
    assert_eq!(sink.told.take(), [by_trigger.join("; ")]);
    root.run("INSERT INTO w1 (id, p) VALUES (1, 1)");
    root.run("UPDATE p SET id = 3 WHERE id = 1; DELETE FROM p WHERE id = 3");
    let cascades = [
        r#"INSERT w1 {"id":1,"p":1,"g":2}"#,
        r#"UPDATE w1 {"id":1,"p":1,"g":2} -> {"id":1,"p":3,"g":2}"#,
        r#"DELETE w1 {"id":1,"p":3,"g":2}"#,
    ];
    assert_eq!(watcher.after.take(), cascades);
    assert_eq!(sink.told.take(), cascades);
}

#[test]
fn sinks_get_what_was_committed_in_order() {
    let (harness, _, sink) = start();
    let mut root = harness.root();
    root.run(
        "CREATE TABLE w (id INT PRIMARY KEY, v INT); CREATE TABLE s (id INT PRIMARY KEY, v INT)",
    );
    root.run("BEGIN; INSERT INTO w VALUES (1, 1); ROLLBACK");
    root.run("INSERT INTO w VALUES (1, 1), (1, 2)");
    assert!(sink.told.take().is_empty(), "nothing was committed");
    root.run("BEGIN; INSERT INTO w VALUES (1, 1); SAVEPOINT a; INSERT INTO w VALUES (2, 2)");
    root.run("ROLLBACK TO a; UPDATE w SET v = 3; INSERT INTO w VALUES (5, 5), (1, 2)");
    assert!(sink.told.take().is_empty(), "nothing is committed yet");
    root.run("COMMIT");
    let kept = r#"INSERT w {"id":1,"v":1}; UPDATE w {"id":1,"v":1} -> {"id":1,"v":3}"#;
    assert_eq!(sink.told.take(), [kept]);
    // DDL commits before it begins.
    root.run("BEGIN; DELETE FROM w; CREATE TABLE x (i INT)");
    assert_eq!(sink.told.take(), [r#"DELETE w {"id":1,"v":3}"#]);
    // Several sessions: the numbers rise as the rows say.
    root.run("INSERT INTO s VALUES (1, 0)");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = harness.root();
                for _ in 0..25 {
                    assert_eq!(client.run("UPDATE s SET v = v + 1 WHERE id = 1"), "ok 1");
                }
            });
        }
    });
    let numbers = sink.numbers.lock().expect("the test's own");
    assert_eq!(
        numbers.iter().map(|(_, value)| *value).collect::<Vec<_>>(),
        Vec::from_iter(0..=100)
    );
    assert!(numbers.is_sorted_by(|one, two| one.0 + 1 == two.0), "each in its turn");
}

#[test]
fn what_a_large_transaction_cannot_keep_is_counted() {
    let (harness, _, sink) = start();
    let mut root = harness.root();
    root.run("CREATE TABLE w (id INT PRIMARY KEY, v INT, t LONGTEXT)");
    root.run("BEGIN");
    for id in 0..40 {
        assert_eq!(
            root.run(&format!("INSERT INTO w VALUES ({id}, 1, REPEAT('x', 1 << 20))")),
            "ok 1"
        );
    }
    root.run("COMMIT");
    assert_eq!(sink.told.take(), ["31 changes and 9 lost"]);
    root.run("DELETE FROM w WHERE id > 1");
    assert_eq!(sink.told.take(), ["31 changes and 7 lost"]);
    root.run("UPDATE w SET v = 2, t = '' WHERE id = 1");
    assert_eq!(sink.told.take().len(), 1, "the next one begins anew");
}
