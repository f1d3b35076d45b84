//! FULLTEXT indexes: writes keep the entries, and the check finds entries that differ from the rows.

mod common;

use common::*;
use engine_api::{CancelToken, TableId};
use exec::{FulltextTable, TransactionSource, check_fulltext};
use plan::*;
use types::fulltext::{Analyzer, entry, entry_key, entry_types};
use types::{CollationId, Value};

const COLLATION: CollationId = CollationId::UTF8MB4_0900_AI_CI;
const ENTRIES: u64 = 2001;

/// A table with two rows, written by a plan, and the entries of its words.
fn indexed() -> (Database, Table) {
    let table = Table::new(2000, "t", 0, &[("id", not_null(int())), ("words", text())]);
    let [word, row, count] = entry_types();
    let mut entries =
        Table::new(ENTRIES, "t#words", 20, &[("word", word), ("row", row), ("count", count)]);
    entries.def.indexes[0].parts.push(engine_api::KeyPart {
        column: 1,
        prefix_length: None,
        descending: false,
        elements: None,
    });
    let mut database = Database::new();
    database.create(&table);
    database.create(&entries);
    let mut target = table.write();
    target.fulltext = vec![FulltextWrite {
        entries: ENTRIES,
        columns: vec![1],
        collation: COLLATION,
        parser: Default::default(),
    }];
    target.key =
        vec![KeyColumn { column: 0, ty: not_null(int()), prefix_length: None, descending: false }];
    let row = |id, words: &str| {
        let id = Expr::literal(Value::Int(id), not_null(int()));
        vec![Some(id), Some(Expr::literal(Value::text(words), text()))]
    };
    let insert = InsertPlan {
        target,
        targets: vec![0, 1],
        source: InsertSource::Values(vec![row(1, "red green red"), row(2, "the green stone")]),
        mode: InsertMode::Error,
        ignore: false,
        returning: Vec::new(),
        subqueries: Vec::new(),
        ctes: Vec::new(),
        registers: 100,
    };
    database.run(&Plan::Insert(insert)).expect("insert");
    database.commit();
    (database, table)
}

fn faults(database: &mut Database, table: &Table) -> Vec<String> {
    let index = FulltextWrite {
        entries: ENTRIES,
        columns: vec![1],
        collation: COLLATION,
        parser: Default::default(),
    };
    let checked = FulltextTable {
        table: table.def.id.0,
        layout: table.types(),
        missing: vec![Value::Null; 2],
        indexes: vec![("words".into(), index)],
    };
    let txn = database.source.transaction("MEMORY").expect("transaction");
    let faults = check_fulltext(&checked, txn, &CancelToken::new()).expect("read");
    database.commit();
    faults
}

fn record(word: &[u8], locator: &[u8], count: u32) -> Vec<u8> {
    let mut record = Vec::new();
    let layout = types::RecordLayout::new(&entry_types());
    layout.encode(&entry(word, locator, count), &mut record).expect("values of the column types");
    record
}

#[test]
fn the_check_finds_what_differs() {
    let (mut database, table) = indexed();
    assert!(faults(&mut database, &table).is_empty());
    let (red, blue) = (Analyzer::new(COLLATION).key("red"), Analyzer::new(COLLATION).key("blue"));
    let mut locator = Vec::new();
    types::key::encode_part(&Value::Int(1), &not_null(int()), None, false, &mut locator);
    let key = entry_key(&red, &locator);
    let entries = TableId(ENTRIES);
    let mut change = |work: &dyn Fn(&mut dyn engine_api::Transaction)| {
        work(database.source.transaction("MEMORY").expect("transaction"));
        database.commit();
        faults(&mut database, &table)
    };
    let counted = change(&|txn| {
        txn.update(entries, &key, &record(&red, &locator, 3)).expect("update");
    });
    assert_eq!(counted, ["index words: the entry of a word of a row is not there"]);
    let missing = change(&|txn| txn.delete(entries, &key).expect("delete"));
    assert_eq!(missing.len(), 2, "{missing:?}");
    let mended = change(&|txn| {
        txn.insert(entries, &record(&red, &locator, 2)).expect("insert");
    });
    assert!(mended.is_empty());
    let more = change(&|txn| {
        txn.insert(entries, &record(&blue, &locator, 1)).expect("insert");
    });
    assert_eq!(more, ["index words: 5 entries for 4 words of rows"]);
}
