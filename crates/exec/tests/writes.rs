//! INSERT, UPDATE, DELETE: counts, errors, AUTO_INCREMENT, foreign keys.

mod common;

use std::sync::Arc;

use common::*;
use plan::*;
use types::{DataType, SqlMode, TypeKind, Value};

fn insert_into(target: TableWrite, targets: &[usize], rows: Vec<Vec<Option<Expr>>>) -> InsertPlan {
    InsertPlan {
        target,
        targets: targets.to_vec(),
        source: InsertSource::Values(rows),
        mode: InsertMode::Error,
        ignore: false,
        returning: Vec::new(),
        subqueries: Vec::new(),
        ctes: Vec::new(),
        registers: 100,
    }
}

fn row(values: &[Expr]) -> Vec<Option<Expr>> {
    values.iter().cloned().map(Some).collect()
}

fn t1() -> (Database, Table) {
    let small = DataType::varchar(3, types::CollationId::UTF8MB4_0900_AI_CI);
    let table =
        Table::new(2000, "t1", 0, &[("a", not_null(int())), ("b", int()), ("c", not_null(small))])
            .with_index(1, "b", true, &[1]);
    let mut database = Database::new();
    database.create(&table);
    (database, table)
}

fn update(table: &Table, filter: Option<Expr>, assignments: Vec<Assignment>) -> UpdatePlan {
    UpdatePlan {
        root: table.locked_scan(filter),
        targets: vec![(table.write(), table.locator(), assignments)],
        ignore: false,
        buffered: true,
        limit: None,
        returning: Vec::new(),
        old: Vec::new(),
        subqueries: Vec::new(),
        ctes: Vec::new(),
        registers: 100,
    }
}

fn delete(table: &Table, filter: Option<Expr>) -> DeletePlan {
    DeletePlan {
        root: table.locked_scan(filter),
        targets: vec![(table.write(), table.locator())],
        ignore: false,
        buffered: false,
        limit: None,
        returning: Vec::new(),
        subqueries: Vec::new(),
        ctes: Vec::new(),
        registers: 100,
    }
}

#[test]
fn insert_errors_name_column_and_row() {
    let (mut database, table) = t1();
    let insert = |rows| Plan::Insert(insert_into(table.write(), &[0, 1, 2], rows));
    let good = row(&[number(1), number(10), string("x")]);
    let answer = database.run(&insert(vec![good.clone()])).expect("it runs");
    assert_eq!((answer.outcome.affected, answer.outcome.info.as_str()), (1, ""));
    let error = database.fails(&insert(vec![row(&[number(2), null(), string("toolong")])]));
    assert_eq!(error.message(), "Data too long for column 'c' at row 1");
    let two = vec![row(&[number(2), null(), string("y")]), row(&[number(1), null(), string("z")])];
    let error = database.fails(&insert(two));
    assert_eq!(error.message(), "Duplicate entry '1' for key 't1.PRIMARY'");
    let error = database.fails(&insert(vec![row(&[number(2), number(10), string("y")])]));
    assert_eq!(error.message(), "Duplicate entry '10' for key 't1.b'");
    let error = database.fails(&insert(vec![row(&[number(2), null(), null()])]));
    assert_eq!((error.code().0, error.message()), (1048, "Column 'c' cannot be null"));
    let short = Plan::Insert(insert_into(table.write(), &[0], vec![row(&[number(5)])]));
    let error = database.fails(&short);
    assert_eq!(error.message(), "Field 'c' doesn't have a default value");
    assert_eq!(database.rows(&table.all()), ["1|10|x"], "failed statements left nothing");
    database.sql_mode = SqlMode::EMPTY;
    let answer = database.run(&short).expect("lenient");
    assert_eq!(answer.outcome.affected, 1);
    assert_eq!(database.warnings()[0].0, 1364);
    assert_eq!(database.rows(&table.all()), ["1|10|x", "5|NULL|"]);
}

#[test]
fn ignore_replace_and_update_count_as_the_reference_does() {
    let (mut database, table) = t1();
    let rows = || {
        vec![row(&[number(1), number(10), string("x")]), row(&[number(2), number(20), string("y")])]
    };
    let insert = |mode, rows| {
        let ignore = matches!(mode, InsertMode::Ignore);
        Plan::Insert(InsertPlan { mode, ignore, ..insert_into(table.write(), &[0, 1, 2], rows) })
    };
    let answer = database.run(&insert(InsertMode::Error, rows())).expect("it runs");
    assert_eq!(answer.outcome.info, "Records: 2  Duplicates: 0  Warnings: 0");
    let mut more = rows();
    more.push(row(&[number(3), number(30), string("z")]));
    let answer = database.run(&insert(InsertMode::Ignore, more)).expect("it runs");
    assert_eq!(answer.outcome.affected, 1);
    assert_eq!(answer.outcome.info, "Records: 3  Duplicates: 2  Warnings: 2");
    let both = vec![row(&[number(1), number(20), string("new")])];
    let answer = database.run(&insert(InsertMode::Replace, both)).expect("it runs");
    assert_eq!(answer.outcome.affected, 3, "one inserted, two deleted");
    assert_eq!(database.rows(&table.all()), ["1|20|new", "3|30|z"]);
    let new_columns = vec![Register(60), Register(61), Register(62)];
    let value = Expr::column(Register(62), text());
    let assignments =
        vec![set(2, value), set(1, binary(BinaryOp::Add, table.column(1), number(1)))];
    let mode = InsertMode::Update { assignments, new_columns };
    let rows = vec![row(&[number(3), null(), string("w")]), row(&[number(4), null(), string("v")])];
    let answer = database.run(&insert(mode, rows)).expect("it runs");
    assert_eq!(answer.outcome.affected, 3, "one changed counts 2, one inserted 1");
    assert_eq!(answer.outcome.info, "Records: 2  Duplicates: 1  Warnings: 0");
    assert_eq!(database.rows(&table.all()), ["1|20|new", "3|31|w", "4|NULL|v"]);
    let same = InsertMode::Update {
        assignments: vec![set(2, string("w"))],
        new_columns: vec![Register(60), Register(61), Register(62)],
    };
    let rows = vec![row(&[number(3), null(), string("q")])];
    let answer = database.run(&insert(same, rows)).expect("it runs");
    assert_eq!(answer.outcome.affected, 0, "nothing changed");
}

#[test]
fn auto_increment() {
    let table = Table::new(2000, "t1", 0, &[("a", not_null(int())), ("b", int())]);
    let mut database = Database::new();
    database.create(&table);
    let mut write = table.write();
    write.columns[0].auto_increment = true;
    let named = |values: Vec<Expr>| {
        let rows = values.into_iter().map(|value| row(&[value, number(0)])).collect();
        Plan::Insert(insert_into(write.clone(), &[0, 1], rows))
    };
    let unnamed = |count: i64| {
        let rows = (0..count).map(|b| row(&[number(b)])).collect();
        Plan::Insert(insert_into(write.clone(), &[1], rows))
    };
    let outcome = database.run(&unnamed(3)).expect("it runs").outcome;
    assert_eq!((outcome.generated_id, outcome.insert_id), (Some(1), 1));
    let outcome =
        database.run(&named(vec![null(), number(100), number(0)])).expect("it runs").outcome;
    assert_eq!(outcome.generated_id, Some(4));
    let keys = |database: &mut Database| -> Vec<String> {
        let plan = query(table.scan(None), vec![table.column(0)]);
        database.rows(&plan)
    };
    assert_eq!(keys(&mut database), ["1", "2", "3", "4", "100", "101"]);
    let outcome = database.run(&named(vec![number(200)])).expect("it runs").outcome;
    assert_eq!((outcome.generated_id, outcome.insert_id), (None, 200), "an explicit value");
    let outcome = database.run(&unnamed(1)).expect("it runs").outcome;
    assert_eq!(outcome.generated_id, Some(201));
    database.sql_mode = SqlMode(SqlMode::DEFAULT.0 | SqlMode::NO_AUTO_VALUE_ON_ZERO.0);
    database.run(&named(vec![number(0)])).expect("it runs");
    assert_eq!(keys(&mut database)[0], "0");
}

#[test]
fn update_counts_and_checks() {
    let (mut database, table) = t1();
    let mut write = table.write();
    let positive = binary(BinaryOp::Greater, table.column(1), number(0));
    write.checks.push((Arc::from("b_positive"), positive));
    let insert = insert_into(
        write.clone(),
        &[0, 1, 2],
        (1..=3).map(|a| row(&[number(a), number(a * 10), string("x")])).collect(),
    );
    database.run(&Plan::Insert(insert)).expect("it runs");
    let mut plan = update(&table, None, vec![set(2, string("y"))]);
    let outcome = database.run(&Plan::Update(plan.clone())).expect("it runs").outcome;
    assert_eq!((outcome.matched, outcome.changed), (3, 3));
    let outcome = database.run(&Plan::Update(plan.clone())).expect("it runs").outcome;
    assert_eq!((outcome.matched, outcome.changed, outcome.affected), (3, 0, 0));
    assert_eq!(outcome.info, "Rows matched: 3  Changed: 0  Warnings: 0");
    plan.limit = Some(number(1));
    plan.targets[0].2 = vec![set(2, string("z"))];
    assert_eq!(database.run(&Plan::Update(plan)).expect("it runs").outcome.matched, 1);
    // Left to right: the second assignment sees the result of the first.
    let add = |column: usize, by: i64| binary(BinaryOp::Add, table.column(column), number(by));
    let filter = Some(eq(table.column(0), number(3)));
    let plan = update(&table, filter, vec![set(1, add(1, 1)), set(0, add(1, 0))]);
    database.run(&Plan::Update(plan)).expect("it runs");
    assert_eq!(database.rows(&table.all()), ["1|10|z", "2|20|y", "31|31|y"]);
    let mut plan = update(&table, None, vec![set(1, number(-1))]);
    plan.targets[0].0 = write;
    let error = database.fails(&Plan::Update(plan));
    assert_eq!(
        (error.code().0, error.message()),
        (3819, "Check constraint 'b_positive' is violated.")
    );
    let error = database.fails(&Plan::Update(update(&table, None, vec![set(1, number(5))])));
    assert_eq!(error.message(), "Duplicate entry '5' for key 't1.b'");
    assert_eq!(database.rows(&table.all()), ["1|10|z", "2|20|y", "31|31|y"], "all or nothing");
}

#[test]
fn delete_with_limit_and_returning() {
    let (mut database, table) = t1();
    let rows = (1..=4).map(|a| row(&[number(a), number(a * 10), string("x")])).collect();
    database.run(&Plan::Insert(insert_into(table.write(), &[0, 1, 2], rows))).expect("it runs");
    let mut plan = delete(&table, Some(binary(BinaryOp::Greater, table.column(0), number(1))));
    plan.limit = Some(number(2));
    plan.returning = vec![output(table.column(1))];
    let answer = database.run(&Plan::Delete(plan)).expect("it runs");
    assert_eq!(answer.outcome.affected, 2);
    assert_eq!(answer.rows, ["20", "30"]);
    assert_eq!(database.rows(&table.all()), ["1|10|x", "4|40|x"]);
}

#[test]
fn insert_from_the_same_table_ends() {
    let (mut database, table) = t1();
    let rows = (1..=3).map(|a| row(&[number(a), null(), string("x")])).collect();
    database.run(&Plan::Insert(insert_into(table.write(), &[0, 1, 2], rows))).expect("it runs");
    let source = Table { def: table.def.clone(), base: 30 };
    let outputs = [binary(BinaryOp::Add, source.column(0), number(10)), source.column(2)];
    let select = QueryPlan {
        root: source.scan(None),
        outputs: outputs.into_iter().map(output).collect(),
        subqueries: Vec::new(),
        ctes: Vec::new(),
        registers: 100,
    };
    let mut plan = insert_into(table.write(), &[0, 2], Vec::new());
    plan.source = InsertSource::Query(Box::new(select));
    let outcome = database.run(&Plan::Insert(plan)).expect("it runs").outcome;
    assert_eq!(outcome.affected, 3);
    let keys = query(table.scan(None), vec![table.column(0)]);
    assert_eq!(database.rows(&keys), ["1", "2", "3", "11", "12", "13"]);
}

struct Family {
    database: Database,
    parent: Table,
    child: Table,
}

fn family() -> Family {
    let parent = Table::new(2001, "parent", 0, &[("id", not_null(int())), ("x", int())]);
    let child = Table::new(2002, "child", 10, &[("id", not_null(int())), ("pid", int())])
        .with_index(1, "pid", false, &[1]);
    let mut database = Database::new();
    database.create(&parent);
    database.create(&child);
    let numbers = |a: i64, b: i64| vec![Value::Int(a), Value::Int(b)];
    database.fill(&parent, &[numbers(1, 0), numbers(2, 0)]);
    database.fill(&child, &[numbers(11, 1), numbers(12, 1), numbers(21, 2)]);
    Family { database, parent, child }
}

const KEY: &str = "`test`.`child`, CONSTRAINT `fk` FOREIGN KEY (`pid`) REFERENCES `parent` (`id`)";

impl Family {
    fn parent_write(&self, action: ForeignKeyAction) -> TableWrite {
        let mut write = self.parent.write();
        write.children.push(ForeignKeyCheck {
            name: Arc::from("fk"),
            text: Arc::from(KEY),
            other: Arc::new(self.child.write()),
            columns: vec![0],
            other_columns: vec![1],
            other_index: 1,
            only_current: false,
            on_update: action,
            on_delete: action,
        });
        write
    }

    fn child_write(&self) -> TableWrite {
        let mut write = self.child.write();
        write.parents.push(ForeignKeyCheck {
            name: Arc::from("fk"),
            text: Arc::from(KEY),
            other: Arc::new(self.parent.write()),
            columns: vec![1],
            other_columns: vec![0],
            other_index: 0,
            only_current: false,
            on_update: ForeignKeyAction::Restrict,
            on_delete: ForeignKeyAction::Restrict,
        });
        write
    }

    fn delete_parent(&self, action: ForeignKeyAction) -> Plan {
        let mut plan = delete(&self.parent, Some(eq(self.parent.column(0), number(1))));
        plan.targets[0].0 = self.parent_write(action);
        Plan::Delete(plan)
    }

    fn move_parent(&self, action: ForeignKeyAction) -> Plan {
        let filter = Some(eq(self.parent.column(0), number(1)));
        let mut plan = update(&self.parent, filter, vec![set(0, number(7))]);
        plan.targets[0].0 = self.parent_write(action);
        Plan::Update(plan)
    }

    fn children(&mut self) -> Vec<String> {
        let plan = self.child.all();
        self.database.rows(&plan)
    }
}

#[test]
fn foreign_keys_of_children() {
    let mut family = family();
    let insert = |pid: Expr, id| {
        Plan::Insert(insert_into(family.child_write(), &[0, 1], vec![row(&[number(id), pid])]))
    };
    let (good, bad, none) = (insert(number(2), 31), insert(number(9), 32), insert(null(), 33));
    family.database.run(&good).expect("the parent is there");
    family.database.run(&none).expect("NULL has no parent");
    let error = family.database.fails(&bad);
    assert_eq!(error.code().0, 1452);
    assert_eq!(
        error.message(),
        format!("Cannot add or update a child row: a foreign key constraint fails ({KEY})")
    );
    family.database.settings.foreign_key_checks = false;
    family.database.run(&bad).expect("not checked");
}

#[test]
fn foreign_keys_of_parents() {
    use ForeignKeyAction::{Cascade, Restrict, SetNull};
    let mut restricted = family();
    for plan in [restricted.delete_parent(Restrict), restricted.move_parent(Restrict)] {
        assert_eq!(restricted.database.fails(&plan).code().0, 1451);
    }
    let mut cascading = family();
    let plan = cascading.delete_parent(Cascade);
    let outcome = cascading.database.run(&plan).expect("it runs").outcome;
    assert_eq!(outcome.affected, 1, "children do not count");
    assert_eq!(cascading.children(), ["21|2"]);
    let mut moving = family();
    let plan = moving.move_parent(Cascade);
    moving.database.run(&plan).expect("it runs");
    assert_eq!(moving.children(), ["11|7", "12|7", "21|2"]);
    let mut nulling = family();
    let plan = nulling.delete_parent(SetNull);
    nulling.database.run(&plan).expect("it runs");
    assert_eq!(nulling.children(), ["11|NULL", "12|NULL", "21|2"]);
}

#[test]
fn generated_columns_and_defaults() {
    let table =
        Table::new(2000, "t1", 0, &[("a", not_null(int())), ("b", int()), ("double_b", int())]);
    let mut database = Database::new();
    database.create(&table);
    let mut write = table.write();
    write.columns[1].default = Some(number(5));
    write.columns[2].default = None;
    write.columns[2].generated = Some(binary(BinaryOp::Multiply, table.column(1), number(2)));
    let rows = vec![row(&[number(1)]), row(&[number(2)])];
    database.run(&Plan::Insert(insert_into(write.clone(), &[0], rows))).expect("it runs");
    let mut plan = update(&table, Some(eq(table.column(0), number(2))), vec![set(1, number(8))]);
    plan.targets[0].0 = write;
    database.run(&Plan::Update(plan)).expect("it runs");
    assert_eq!(database.rows(&table.all()), ["1|5|10", "2|8|16"]);
    assert_eq!(TypeKind::BigInt, int().kind);
}
