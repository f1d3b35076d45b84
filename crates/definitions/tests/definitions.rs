//! Definitions from their statements: results and errors of CREATE TABLE, the order of ALTER TABLE's actions, and its algorithm.

use std::sync::Arc;

use binder::{BindInput, Binder, BoundTableExpression, VariableTypes, ViewReader};
use catalog::{CatalogSnapshot, CatalogView, Edit, Table};
use definitions::alter::{Algorithm, Choice, Facts, choose, complete, edit};
use definitions::{Context, Engines, create};
use engine_api::{IndexId, TableId};
use errors::{Diagnostics, Error, Result};
use plugin_api::{BindContext, Registry};
use syntax::Statement;
use syntax::ast::{Expr, ExprKind, Literal, SelectItemKind};
use types::{CollationId, DataType, Value};
use variables::{Globals, SessionValues, Settings};

/// A session that has default variables and computes literals only.
struct Session {
    globals: Globals,
    values: SessionValues,
    settings: Settings,
    registry: Registry,
    catalog: Arc<CatalogSnapshot>,
    conditions: Diagnostics,
}

struct NoVariables;

impl VariableTypes for NoVariables {
    fn user_variable(&self, _: &str) -> Option<DataType> {
        None
    }

    fn system_variable(
        &self,
        _: &str,
        _: Option<syntax::ast::VarScope>,
    ) -> Result<Option<DataType>> {
        Ok(None)
    }
}

impl Session {
    fn new() -> Session {
        let globals = Globals::new();
        let values = SessionValues::new(&globals);
        let settings = Settings::decode(&globals, &values, &|_| None, &Arc::default());
        let mut catalog = CatalogSnapshot::default();
        let collation = CollationId::UTF8MB4_0900_AI_CI;
        catalog
            .apply(&Edit::CreateSchema {
                name: "test".into(),
                options: catalog::SchemaOptions::of_collation(collation),
            })
            .expect("new");
        Session {
            globals,
            values,
            settings,
            registry: Registry::build(&[Box::new(functions_numeric::NumericFunctions)]),
            catalog: Arc::new(catalog),
            conditions: Diagnostics::default(),
        }
    }

    /// The table that a CREATE TABLE makes.
    fn create(&mut self, sql: &str) -> Result<Table> {
        let Statement::CreateTable(create) = parse(sql) else { panic!("{sql}") };
        let draft = create::write_draft(self, &create, &"test".into(), &"t".into())?;
        let (mut table, _) = create::complete(self, &create, draft)?;
        table.id = TableId(7);
        table.definition.id = table.id;
        Ok(table)
    }

    /// The new definition, and how an ALTER TABLE is carried out.
    fn alter(&mut self, table: &Table, sql: &str) -> Result<(Table, Choice)> {
        let Statement::AlterTable(alter) = parse(&format!("ALTER TABLE t {sql}")) else {
            panic!("{sql}")
        };
        let (draft, request) = edit(self, table, &alter)?;
        let mut altered = complete(self, table, draft, request.rename.as_ref())?;
        let facts =
            Facts { most_rows_go: false, checks_foreign_keys: true, engine_notes_rows: false };
        let choice = choose(table, &mut altered, &request, facts)?;
        Ok((altered.table, choice))
    }
}

fn parse(sql: &str) -> Statement {
    syntax::parse_one(sql, &syntax::ParseOptions::default()).expect(sql).0
}

impl Context for Session {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn variable(&self, name: &str) -> Value {
        let id = self.globals.definitions.find(name).expect(name);
        self.values.get(id).clone()
    }

    fn database(&self) -> Option<Arc<str>> {
        None
    }

    fn engines(&self) -> Engines<'_> {
        Engines { default: "squall", temporary: "memory", registry: &self.registry }
    }

    fn catalog(&self) -> Arc<CatalogSnapshot> {
        self.catalog.clone()
    }

    fn now_micros(&self) -> i64 {
        1
    }

    fn conditions(&mut self) -> &mut Diagnostics {
        &mut self.conditions
    }

    fn evaluate(&mut self, expr: &Expr) -> Result<(Value, DataType)> {
        match &expr.kind {
            ExprKind::Literal(Literal::Integer(number)) => {
                Ok((Value::Int(*number as i64), DataType::bigint()))
            }
            ExprKind::Literal(Literal::Null) => Ok((Value::Null, DataType::null())),
            ExprKind::Literal(Literal::String(text)) => {
                let ty = DataType::varchar(64, CollationId::UTF8MB4_0900_AI_CI);
                Ok((Value::Bytes(text.value.as_ref().into()), ty))
            }
            _ => Err(Error::internal("no literal")),
        }
    }

    fn evaluate_kept(&mut self, expr: &Expr, _: &str) -> Result<(Value, DataType)> {
        self.evaluate(expr)
    }

    fn bind(
        &self,
        table: Option<(&Arc<str>, &Arc<str>)>,
        columns: &[(Arc<str>, DataType)],
        text: &str,
    ) -> Result<BoundTableExpression> {
        let sql = format!("DO {text}");
        let Statement::Do(items) = parse(&sql) else { panic!("{sql}") };
        let SelectItemKind::Expr { expr, .. } = &items[0].kind else { panic!("{sql}") };
        let bind = BindContext {
            sql_mode: self.settings.sql_mode,
            collation_connection: CollationId::UTF8MB4_0900_AI_CI,
            div_precision_increment: 4,
            group_concat_max_len: 1024,
            max_allowed_packet: 1 << 26,
            history: plugin_api::HistorySettings::default(),
            cascades_fire_triggers: false,
        };
        let input = BindInput {
            catalog: &ViewReader { view: &CatalogView::default(), database: None },
            registry: &self.registry,
            bind: &bind,
            variables: &NoVariables,
            parameter_types: None,
        };
        Binder::new(input).bind_table_expression(table, columns, expr, sql.as_bytes())
    }

    fn has_dynamic(&self, _: &str) -> bool {
        true
    }

    fn require_references(&self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }
}

fn code<T>(result: Result<T>) -> u16 {
    result.err().expect("refused").code().0
}

fn names(table: &Table) -> Vec<&str> {
    let visible = table.columns.iter().filter(|column| !column.is_vacant());
    visible.map(|column| &*column.name).collect()
}

const BASE: &str = "CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR(10), KEY (b))";

#[test]
fn a_table_has_its_keys_in_order_and_its_columns_in_the_record() {
    let sql = "CREATE TABLE t (a INT NOT NULL, b INT, c VARCHAR(10) DEFAULT 'x', KEY (b), \
               UNIQUE (c), d INT AS (b + 1) VIRTUAL, PRIMARY KEY (a))";
    let table = Session::new().create(sql).expect("valid");
    let keys: Vec<&str> = table.indexes.iter().map(|index| &*index.name).collect();
    assert_eq!(keys, ["PRIMARY", "c", "b"]);
    assert_eq!(table.indexes[0].id, IndexId::CLUSTERED);
    let stored: Vec<Option<usize>> = table.columns.iter().map(|column| column.stored).collect();
    assert_eq!(stored, [Some(0), Some(1), Some(2), None]);
    assert!(!table.columns[0].ty.nullable && table.columns[1].ty.nullable);
    assert_eq!(table.engine.as_ref(), "squall");
}

#[test]
fn invalid_tables_are_refused_with_their_error_number() {
    let refused =
        |columns: &str| code(Session::new().create(&format!("CREATE TABLE t ({columns})")));
    assert_eq!(refused("a INT, A INT"), 1060);
    assert_eq!(refused("a INT, KEY k (a), KEY k (a)"), 1061);
    assert_eq!(refused("a INT PRIMARY KEY, b INT PRIMARY KEY"), 1068);
    assert_eq!(refused("a INT, KEY (b)"), 1072);
    assert_eq!(refused("a INT AUTO_INCREMENT"), 1075);
    assert_eq!(refused("a TEXT, KEY (a)"), 1170);
    assert_eq!(refused("a INT DEFAULT 'x'"), 1067);
    assert_eq!(refused("a INT AS (b + 1), b INT AS (a + 1)"), 3107);
    assert_eq!(refused("a INT, CHECK (b > 1)"), 3820);
    assert_eq!(refused("a INT CHECK (a + 1)"), 3812);
}

#[test]
fn partitions_are_numbered_and_their_column_is_hidden() {
    let sql = "CREATE TABLE t (a INT) PARTITION BY RANGE (a) \
               (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)";
    let table = Session::new().create(sql).expect("valid");
    let partitioning = table.partitioning.as_deref().expect("partitioned");
    let numbers: Vec<u16> = partitioning.partitions.iter().map(|own| own.number).collect();
    assert_eq!(numbers, [0, 1]);
    assert_eq!(table.partition_column(), Some(1));
    let bad = "CREATE TABLE t (a INT) PARTITION BY RANGE (a) \
               (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (10))";
    assert_eq!(code(Session::new().create(bad)), 1493);
    let bad = "CREATE TABLE t (a INT PRIMARY KEY, b INT) PARTITION BY HASH (b)";
    assert_eq!(code(Session::new().create(bad)), 1503);
}

#[test]
fn actions_see_the_table_as_it_was_and_columns_move_last() {
    let mut session = Session::new();
    let table = session.create(BASE).expect("valid");
    let mut columns = |sql: &str| {
        let (new, _) = session.alter(&table, sql).expect(sql);
        names(&new).join(" ")
    };
    assert_eq!(columns("RENAME COLUMN b TO c, RENAME COLUMN c TO b"), "a c b");
    assert_eq!(columns("ADD COLUMN c INT, DROP COLUMN c"), "a b c");
    assert_eq!(columns("MODIFY c INT FIRST, ADD d INT AFTER c"), "c d a b");
    assert_eq!(columns("CHANGE b e INT AFTER c, ADD f INT"), "a c e f");
    let mut session = Session::new();
    let table = session.create(BASE).expect("valid");
    assert_eq!(code(session.alter(&table, "DROP COLUMN a, DROP COLUMN b, DROP COLUMN c")), 1090);
    assert_eq!(code(session.alter(&table, "RENAME COLUMN b TO x, RENAME COLUMN b TO y")), 1054);
    assert_eq!(code(session.alter(&table, "DROP KEY nothing")), 1091);
}

#[test]
fn rows_are_copied_only_where_they_must_change() {
    let mut session = Session::new();
    let table = session.create(BASE).expect("valid");
    let mut algorithm = |sql: &str| session.alter(&table, sql).expect(sql).1.algorithm;
    for sql in [
        "ADD COLUMN d INT",
        "ADD COLUMN d INT NOT NULL DEFAULT 5",
        "ADD COLUMN d INT FIRST",
        "MODIFY c VARCHAR(20)",
        "RENAME COLUMN b TO d",
        "ALTER b SET DEFAULT 4",
        "COMMENT = 'x'",
        "DROP COLUMN c",
    ] {
        let Algorithm::InPlace(changes) = algorithm(sql) else { panic!("{sql} copies") };
        assert!(changes.added.is_empty() && changes.dropped.is_empty(), "{sql}");
    }
    for sql in [
        "MODIFY b BIGINT",
        "MODIFY b INT NOT NULL",
        "MODIFY c VARCHAR(5)",
        "DROP PRIMARY KEY",
        "ADD CHECK (b > 1)",
        "FORCE",
        "ADD COLUMN d INT, ALGORITHM = COPY",
        "ADD FULLTEXT (c)",
    ] {
        assert_eq!(algorithm(sql), Algorithm::Copy, "{sql}");
    }
    let Algorithm::InPlace(changes) = algorithm("ADD KEY (c), DROP KEY b") else {
        panic!("indexes come and go in place")
    };
    assert_eq!((changes.added.len(), changes.dropped.len()), (1, 1));
}

#[test]
fn clauses_that_request_the_impossible_are_refused() {
    let mut session = Session::new();
    let table = session.create(BASE).expect("valid");
    let mut refused = |sql: &str| code(session.alter(&table, sql));
    assert_eq!(refused("MODIFY b BIGINT, ALGORITHM = INSTANT"), 1846);
    assert_eq!(refused("ADD KEY (c), ALGORITHM = INSTANT"), 1845);
    assert_eq!(refused("MODIFY b BIGINT, ALGORITHM = INPLACE"), 1846);
    assert_eq!(refused("MODIFY b BIGINT, LOCK = NONE"), 1846);
    assert_eq!(refused("ADD COLUMN d INT, ADD KEY (d), LOCK = NONE"), 1846);
    assert_eq!(refused("ADD FULLTEXT (c), LOCK = NONE"), 1846);
    assert_eq!(refused("ADD COLUMN d INT, ALGORITHM = INSTANT, LOCK = NONE"), 1221);
    assert_eq!(refused("ADD COLUMN d INT, ALGORITHM = MAGIC"), 1800);
    assert_eq!(refused("ADD COLUMN d INT, LOCK = MAGIC"), 1801);
}

#[test]
fn rows_are_counted_where_the_reference_copies() {
    let mut session = Session::new();
    let table = session.create(BASE).expect("valid");
    let mut counts = |sql: &str| session.alter(&table, sql).expect(sql).1.counts_rows;
    assert!(counts("MODIFY b BIGINT") && counts("ORDER BY b") && counts("ADD CHECK (b > 1)"));
    assert!(!counts("FORCE") && !counts("DROP COLUMN c") && !counts("ADD COLUMN d INT"));
}

#[test]
fn warnings_are_those_of_the_statement() {
    let mut session = Session::new();
    session.create("CREATE TABLE t (a INT(5), KEY k1 (a), KEY k2 (a))").expect("valid");
    let codes: Vec<u16> =
        session.conditions.conditions().iter().map(|condition| condition.code.0).collect();
    // Display width, and an index that duplicates another.
    assert_eq!(codes, [1681, 1831]);
}
