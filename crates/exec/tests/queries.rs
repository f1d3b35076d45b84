//! Plans written by hand, run on the memory engine: operators and expressions.

mod common;

use common::*;
use plan::*;
use types::{AggregateRef, AggregateRole, CollationId, DataType, TypeKind, Value};

fn people() -> (Database, Table) {
    let table = Table::new(
        2000,
        "people",
        0,
        &[("id", not_null(int())), ("dept", int()), ("name", text()), ("pay", int())],
    )
    .with_index(1, "dept", false, &[1]);
    let mut database = Database::new();
    database.create(&table);
    let row = |id: i64, dept: Option<i64>, name: &str, pay: i64| {
        vec![
            Value::Int(id),
            dept.map_or(Value::Null, Value::Int),
            Value::text(name),
            Value::Int(pay),
        ]
    };
    database.fill(
        &table,
        &[
            row(1, Some(10), "Ann", 300),
            row(2, Some(20), "bob", 100),
            row(3, Some(10), "Cid", 200),
            row(4, None, "dan", 400),
            row(5, Some(20), "Eve", 500),
        ],
    );
    (database, table)
}

fn unique(table: &Table, key: Expr) -> Physical {
    let key = vec![IndexKeySource {
        value: key,
        ty: not_null(int()),
        prefix_length: None,
        descending: false,
        null_safe: false,
    }];
    let access = Access::Unique { index: 0, key };
    Physical::Scan { table: table.access(), access, filter: None }
}

const SUM: AggregateRef = AggregateRef { name: "SUM", role: AggregateRole::Sum };
const GROUP_CONCAT: AggregateRef =
    AggregateRef { name: "GROUP_CONCAT", role: AggregateRole::GroupConcat };
const MAX: AggregateRef = AggregateRef { name: "MAX", role: AggregateRole::Maximum };
const AVG: AggregateRef = AggregateRef { name: "AVG", role: AggregateRole::Average };
const COUNT: AggregateRef = AggregateRef { name: "COUNT", role: AggregateRole::Count };

fn aggregate(function: AggregateRef, args: Vec<Expr>, output: u32, ty: DataType) -> AggregateCall {
    AggregateCall {
        function,
        args,
        distinct: false,
        order_by: Vec::new(),
        separator: None,
        output: Register(output),
        ty,
    }
}

fn sum(arg: Expr, output: u32) -> AggregateCall {
    aggregate(SUM, vec![arg], output, DataType::decimal(41, 0))
}

fn count(output: u32) -> AggregateCall {
    aggregate(COUNT, vec![], output, int())
}

#[test]
fn point_select_by_parameter() {
    let (mut database, table) = people();
    let parameter = Expr::Parameter { index: 0, ty: not_null(int()) };
    let plan = query(unique(&table, parameter), vec![table.column(2), table.column(0)]);
    let ask = |database: &mut Database, value: Value| {
        database.run_with(&plan, &[value]).expect("it runs").rows
    };
    assert_eq!(ask(&mut database, Value::Int(3)), ["Cid|3"]);
    assert!(ask(&mut database, Value::Int(9)).is_empty());
    assert!(ask(&mut database, Value::Null).is_empty(), "NULL matches nothing");
    let text = Expr::Parameter { index: 0, ty: text() };
    let plan = query(unique(&table, text), vec![table.column(2)]);
    let ask = |database: &mut Database, value: &str| {
        database.run_with(&plan, &[Value::text(value)]).expect("it runs").rows
    };
    assert_eq!(ask(&mut database, "3"), ["Cid"]);
    assert!(ask(&mut database, "3.5").is_empty(), "a fraction is no key");
}

#[test]
fn filter_project_sort_limit() {
    let (mut database, table) = people();
    let rich = binary(BinaryOp::GreaterOrEqual, table.column(3), number(200));
    let scan = table.scan(Some(rich));
    let project = Physical::Project {
        input: Box::new(scan),
        columns: vec![(Register(20), binary(BinaryOp::Multiply, table.column(3), number(2)))],
    };
    let doubled = Expr::column(Register(20), int());
    let sort = Physical::Sort {
        input: Box::new(project),
        keys: vec![descending(doubled.clone())],
        limit: Some(number(3)),
        columns: vec![table.register(2), Register(20)],
    };
    let limit = Physical::Limit {
        input: Box::new(sort),
        limit: Some(number(2)),
        offset: Some(number(1)),
        count_all: true,
    };
    let answer = database.run(&query(limit, vec![table.column(2), doubled])).expect("it runs");
    assert_eq!(answer.rows, ["dan|800", "Ann|600"]);
    assert_eq!(answer.outcome.found_rows, 3);
}

#[test]
fn texts_sort_and_compare_by_collation() {
    let (mut database, table) = people();
    let sort = Physical::Sort {
        input: Box::new(table.scan(None)),
        keys: vec![ascending(table.column(2))],
        limit: None,
        columns: vec![table.register(2)],
    };
    let rows = database.rows(&query(sort, vec![table.column(2)]));
    assert_eq!(rows, ["Ann", "bob", "Cid", "dan", "Eve"]);
    let scan = table.scan(Some(eq(table.column(2), string("BOB"))));
    assert_eq!(database.rows(&query(scan, vec![table.column(0)])), ["2"]);
    let like = Expr::Like {
        operand: Box::new(table.column(2)),
        pattern: Box::new(string("%N")),
        escape: None,
        negated: false,
        collation: CollationId::UTF8MB4_0900_AI_CI,
    };
    let rows = database.rows(&query(table.scan(Some(like)), vec![table.column(0)]));
    assert_eq!(rows, ["1", "4"]);
}

#[test]
fn ranges_of_an_index() {
    let (mut database, table) = people();
    let key = |value: Expr| IndexKeySource {
        value,
        ty: int(),
        prefix_length: None,
        descending: false,
        null_safe: false,
    };
    let scan = |ranges: Vec<RangeSpec>, backward| {
        let access = Access::Ranges { index: 1, ranges, backward, or_all: false, keys: false };
        let scan = Physical::Scan { table: table.access(), access, filter: None };
        query(scan, vec![table.column(0)])
    };
    let equal = |value: i64| RangeSpec { equal: vec![key(number(value))], ..RangeSpec::default() };
    assert_eq!(
        database.rows(&scan(vec![equal(20), equal(10), equal(20)], false)),
        ["1", "3", "2", "5"]
    );
    assert_eq!(database.rows(&scan(vec![equal(20), equal(10)], true)), ["5", "2", "3", "1"]);
    let below = |value| RangeSpec {
        upper: Some(RangeBound { key: key(number(value)), inclusive: false }),
        ..RangeSpec::default()
    };
    assert_eq!(database.rows(&scan(vec![below(20)], false)), ["1", "3"], "NULL is not below 20");
    let above = RangeSpec {
        lower: Some(RangeBound { key: key(number(10)), inclusive: false }),
        ..RangeSpec::default()
    };
    assert_eq!(database.rows(&scan(vec![above], false)), ["2", "5"]);
    let mut null_key = key(null());
    assert!(
        database
            .rows(&scan(
                vec![RangeSpec { equal: vec![null_key.clone()], ..RangeSpec::default() }],
                false
            ))
            .is_empty()
    );
    null_key.null_safe = true;
    assert_eq!(
        database
            .rows(&scan(vec![RangeSpec { equal: vec![null_key], ..RangeSpec::default() }], false)),
        ["4"]
    );
}

#[test]
fn aggregates() {
    let (mut database, table) = people();
    let calls = || {
        let mut distinct = aggregate(COUNT, vec![table.column(1)], 33, int());
        distinct.distinct = true;
        let mut concat = aggregate(GROUP_CONCAT, vec![table.column(2)], 34, text());
        concat.order_by = vec![descending(table.column(3))];
        vec![
            count(30),
            aggregate(COUNT, vec![table.column(1)], 31, int()),
            sum(table.column(3), 32),
            distinct,
            concat,
            aggregate(MAX, vec![table.column(2)], 35, text()),
            aggregate(AVG, vec![table.column(3)], 36, DataType::decimal(24, 4)),
        ]
    };
    let outputs = || {
        vec![
            Expr::column(Register(30), int()),
            Expr::column(Register(31), int()),
            Expr::column(Register(32), DataType::decimal(41, 0)),
            Expr::column(Register(33), int()),
            Expr::column(Register(34), text()),
            Expr::column(Register(35), text()),
            Expr::column(Register(36), DataType::decimal(24, 4)),
        ]
    };
    let scalar = |input| Physical::Aggregate {
        input: Box::new(input),
        mode: AggregateMode::Scalar,
        keys: vec![],
        aggregates: calls(),
        carried: vec![],
        sets: plan::GroupSets::One,
        grouping: vec![],
    };
    let rows = database.rows(&query(scalar(table.scan(None)), outputs()));
    assert_eq!(rows, ["5|4|1500|2|Eve,dan,Ann,Cid,bob|Eve|300.0000"]);
    let nobody = table.scan(Some(eq(table.column(0), number(99))));
    let rows = database.rows(&query(scalar(nobody), outputs()));
    assert_eq!(rows, ["0|0|NULL|0|NULL|NULL|NULL"]);
    for mode in [AggregateMode::Hash, AggregateMode::Sorted] {
        let input = Physical::Sort {
            input: Box::new(table.scan(None)),
            keys: vec![ascending(table.column(1))],
            limit: None,
            columns: (0..4).map(|column| table.register(column)).collect(),
        };
        let groups = Physical::Aggregate {
            input: Box::new(input),
            mode,
            keys: vec![(table.register(1), table.column(1))],
            aggregates: vec![count(30), sum(table.column(3), 32)],
            carried: vec![table.register(2)],
            sets: plan::GroupSets::One,
            grouping: vec![None],
        };
        let outputs = vec![
            table.column(1),
            Expr::column(Register(30), int()),
            Expr::column(Register(32), DataType::decimal(41, 0)),
            table.column(2),
        ];
        let rows = database.rows(&query(groups, outputs));
        assert_eq!(rows, ["NULL|1|400|dan", "10|2|500|Ann", "20|2|600|bob"], "{mode:?}");
    }
}

#[test]
fn rollup() {
    let (mut database, table) = people();
    let input = Physical::Sort {
        input: Box::new(table.scan(None)),
        keys: vec![ascending(table.column(1)), ascending(table.column(0))],
        limit: None,
        columns: (0..4).map(|column| table.register(column)).collect(),
    };
    let groups = Physical::Aggregate {
        input: Box::new(input),
        mode: AggregateMode::Sorted,
        keys: vec![(Register(40), table.column(1)), (Register(41), table.column(0))],
        aggregates: vec![sum(table.column(3), 32)],
        carried: vec![],
        sets: plan::GroupSets::Rollup,
        grouping: vec![Some(Register(42)), Some(Register(43))],
    };
    let outputs = vec![
        Expr::column(Register(40), int()),
        Expr::column(Register(41), int()),
        Expr::column(Register(32), DataType::decimal(41, 0)),
        Expr::column(Register(42), int()),
        Expr::column(Register(43), int()),
    ];
    let expected = [
        "NULL|4|400|0|0",
        "NULL|NULL|400|0|1",
        "10|1|300|0|0",
        "10|3|200|0|0",
        "10|NULL|500|0|1",
        "20|2|100|0|0",
        "20|5|500|0|0",
        "20|NULL|600|0|1",
        "NULL|NULL|1500|1|1",
    ];
    assert_eq!(database.rows(&query(groups, outputs)), expected);
}

fn departments(database: &mut Database) -> Table {
    let table = Table::new(2001, "departments", 10, &[("id", not_null(int())), ("title", text())]);
    database.create(&table);
    let row = |id: i64, title: &str| vec![Value::Int(id), Value::text(title)];
    database.fill(&table, &[row(10, "ten"), row(30, "thirty")]);
    table
}

#[test]
fn joins() {
    let (mut database, people) = people();
    let departments = departments(&mut database);
    let inner_columns = || vec![departments.register(0), departments.register(1)];
    let nested = |kind| Physical::NestedLoop {
        kind,
        outer: Box::new(people.scan(None)),
        inner: Box::new(unique(&departments, people.column(1))),
        condition: None,
        inner_columns: inner_columns(),
    };
    let hashed = |kind| Physical::HashJoin {
        kind,
        outer: Box::new(people.scan(None)),
        inner: Box::new(departments.scan(None)),
        keys: vec![(people.column(1), departments.column(0), CollationId::BINARY)],
        condition: None,
        inner_columns: inner_columns(),
    };
    let cases: [(JoinKind, &[&str]); 4] = [
        (JoinKind::Inner, &["Ann|ten", "Cid|ten"]),
        (JoinKind::Left, &["Ann|ten", "bob|NULL", "Cid|ten", "dan|NULL", "Eve|NULL"]),
        (JoinKind::Semi, &["Ann", "Cid"]),
        (JoinKind::Anti, &["bob", "dan", "Eve"]),
    ];
    for (kind, expected) in cases {
        let one_side = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let mut outputs = vec![people.column(2)];
        if !one_side {
            outputs.push(departments.column(1));
        }
        assert_eq!(
            database.rows(&query(nested(kind), outputs.clone())),
            expected,
            "nested {kind:?}"
        );
        assert_eq!(database.rows(&query(hashed(kind), outputs)), expected, "hash {kind:?}");
    }
}

#[test]
fn subqueries() {
    let (mut database, people) = people();
    let departments = departments(&mut database);
    let subquery = |outer: Vec<Register>, filter| Subquery {
        root: departments.scan(filter),
        outputs: vec![departments.column(0)],
        outer,
    };
    let ask = |kind, negated| Expr::Subquery {
        id: SubqueryId(0),
        kind,
        negated,
        ty: DataType::boolean(),
    };
    let run = |database: &mut Database, expr: Expr, subquery: Subquery| {
        database.rows(&query_with(people.scan(Some(expr)), vec![people.column(2)], vec![subquery]))
    };
    let is_in = |negated| ask(SubqueryKind::In(vec![people.column(1)]), negated);
    assert_eq!(run(&mut database, is_in(false), subquery(vec![], None)), ["Ann", "Cid"]);
    assert_eq!(
        run(&mut database, is_in(true), subquery(vec![], None)),
        ["bob", "Eve"],
        "NULL NOT IN is unknown"
    );
    let same = eq(departments.column(0), people.column(1));
    let correlated = subquery(vec![people.register(1)], Some(same));
    let exists = ask(SubqueryKind::Exists, true);
    assert_eq!(run(&mut database, exists, correlated), ["bob", "dan", "Eve"]);
    let any = ask(
        SubqueryKind::Quantified(vec![people.column(1)], BinaryOp::Less, QuantifiedOp::All),
        false,
    );
    let big = binary(BinaryOp::Greater, departments.column(0), number(15));
    assert_eq!(run(&mut database, any, subquery(vec![], Some(big))), ["Ann", "bob", "Cid", "Eve"]);
    let scalar = eq(people.column(1), ask(SubqueryKind::Scalar(0), false));
    let plan =
        query_with(people.scan(Some(scalar)), vec![people.column(2)], vec![subquery(vec![], None)]);
    assert_eq!(database.fails(&plan).code().0, 1242);
}

#[test]
fn set_operations_and_distinct() {
    let mut database = Database::new();
    let values = |numbers: &[i64], register: u32| {
        let rows = numbers.iter().map(|value| vec![number(*value)]).collect();
        let values = Physical::Values { rows, columns: vec![Register(register)] };
        (values, vec![Expr::column(Register(register), int())])
    };
    let mut run = |operation| {
        let set = Physical::SetOperation {
            operation,
            inputs: vec![values(&[1, 2, 2, 3, 3], 1), values(&[2, 3, 3, 3, 4], 2)],
            columns: vec![(Register(5), int())],
        };
        database.rows(&query(set, vec![Expr::column(Register(5), int())])).join("")
    };
    assert_eq!(run(SetOperation::UnionAll), "1223323334");
    assert_eq!(run(SetOperation::UnionDistinct), "1234");
    assert_eq!(run(SetOperation::IntersectAll), "233");
    assert_eq!(run(SetOperation::IntersectDistinct), "23");
    assert_eq!(run(SetOperation::ExceptAll), "12");
    assert_eq!(run(SetOperation::ExceptDistinct), "1");
}

#[test]
fn recursion() {
    let mut database = Database::new();
    let register = Expr::column(Register(7), int());
    let step = Physical::Filter {
        input: Box::new(Physical::CteScan { id: CteId(0), columns: vec![(Register(7), int())] }),
        predicate: binary(BinaryOp::Less, register.clone(), number(5)),
    };
    let recursive = |limit: i64| Physical::RecursiveCte {
        id: CteId(0),
        seed: Box::new(Physical::OneRow),
        seed_outputs: vec![number(1)],
        step: Box::new(step.clone()),
        step_outputs: vec![binary(BinaryOp::Add, register.clone(), number(limit))],
        distinct: false,
        columns: vec![(Register(8), int())],
        names: vec!["n".into()],
    };
    let plan = |limit| query(recursive(limit), vec![Expr::column(Register(8), int())]);
    assert_eq!(database.rows(&plan(1)), ["1", "2", "3", "4", "5"]);
    assert_eq!(database.fails(&plan(0)).code().0, 3636);
}

#[test]
fn windows() {
    let (mut database, table) = people();
    let sort = Physical::Sort {
        input: Box::new(table.scan(None)),
        keys: vec![ascending(table.column(1)), ascending(table.column(3))],
        limit: None,
        columns: (0..4).map(|column| table.register(column)).collect(),
    };
    let whole = WindowFrame {
        unit: FrameUnit::Range,
        start: FrameBound::UnboundedPreceding,
        end: FrameBound::CurrentRow,
    };
    let rows = WindowFrame {
        unit: FrameUnit::Rows,
        start: FrameBound::Preceding(number(1)),
        end: FrameBound::Following(number(1)),
    };
    let call = |function: WindowFunction, args: Vec<Expr>, frame: &WindowFrame, output, ty| {
        WindowCall { function, args, frame: frame.clone(), output: Register(output), ty }
    };
    let decimal = DataType::decimal(41, 0);
    let window = Physical::Window {
        input: Box::new(sort),
        partition_by: vec![table.column(1)],
        order_by: vec![ascending(table.column(3))],
        calls: vec![
            call(WindowFunction::RowNumber, vec![], &whole, 50, int()),
            call(
                WindowFunction::Aggregate(SUM),
                vec![table.column(3)],
                &whole,
                51,
                decimal.clone(),
            ),
            call(
                WindowFunction::Lag,
                vec![table.column(2), number(1), string("-")],
                &whole,
                52,
                text(),
            ),
            call(WindowFunction::LastValue, vec![table.column(2)], &rows, 53, text()),
            call(WindowFunction::Aggregate(SUM), vec![table.column(3)], &rows, 54, decimal.clone()),
        ],
        columns: (0..4).map(|column| table.register(column)).collect(),
    };
    let outputs = vec![
        table.column(2),
        Expr::column(Register(50), int()),
        Expr::column(Register(51), decimal.clone()),
        Expr::column(Register(52), text()),
        Expr::column(Register(53), text()),
        Expr::column(Register(54), decimal),
    ];
    let expected = [
        "dan|1|400|-|dan|400",
        "Cid|1|200|-|Ann|500",
        "Ann|2|500|Cid|Ann|500",
        "bob|1|100|-|Eve|600",
        "Eve|2|600|bob|Eve|600",
    ];
    assert_eq!(database.rows(&query(window, outputs)), expected);
}

#[test]
fn arithmetic_and_logic() {
    let mut database = Database::new();
    let mut value =
        |expr: Expr| database.run(&query(Physical::OneRow, vec![expr])).map(|a| a.rows[0].clone());
    use BinaryOp::*;
    assert_eq!(value(binary(Add, number(1), number(2))).expect("runs"), "3");
    assert_eq!(
        value(binary(Add, number(i64::MAX), number(1))).expect_err("overflow").code().0,
        1690
    );
    assert_eq!(value(binary(Divide, number(1), number(3))).expect("runs"), "0.3333");
    assert_eq!(value(binary(Divide, number(1), number(0))).expect("runs"), "NULL");
    assert_eq!(value(binary(IntegerDivide, number(-7), number(2))).expect("runs"), "-3");
    assert_eq!(value(binary(Modulo, number(-7), number(2))).expect("runs"), "-1");
    assert_eq!(value(binary(BitXor, number(6), number(3))).expect("runs"), "5");
    assert_eq!(value(binary(ShiftLeft, number(1), number(64))).expect("runs"), "0");
    assert_eq!(value(eq(null(), number(1))).expect("runs"), "NULL");
    assert_eq!(value(binary(NullSafeEqual, null(), null())).expect("runs"), "1");
    assert_eq!(value(binary(And, null(), number(0))).expect("runs"), "0");
    assert_eq!(value(binary(Or, null(), number(7))).expect("runs"), "1");
    assert_eq!(value(binary(Xor, number(1), null())).expect("runs"), "NULL");
    assert_eq!(value(eq(string("1.0"), number(1))).expect("runs"), "1", "compared as doubles");
    let list: Vec<Expr> = (0..20).map(|item| number(item * 2)).chain([null()]).collect();
    let is_in = |item: i64, negated| Expr::InList {
        operand: Box::new(number(item)),
        list: list.clone(),
        negated,
        collation: CollationId::BINARY,
    };
    assert_eq!(value(is_in(6, false)).expect("runs"), "1");
    assert_eq!(value(is_in(7, false)).expect("runs"), "NULL");
    assert_eq!(value(is_in(6, true)).expect("runs"), "0");
    let case = Expr::Case {
        operand: Some(Box::new(number(2))),
        branches: vec![(number(1), string("one")), (number(2), string("two"))],
        otherwise: None,
        collation: CollationId::BINARY,
        ty: text(),
    };
    assert_eq!(value(case).expect("runs"), "two");
    let cast = Expr::Cast {
        operand: Box::new(string("12abc")),
        kind: CastKind::Explicit,
        ty: DataType::new(TypeKind::BigInt, 21, 0),
    };
    assert_eq!(value(cast).expect("runs"), "12");
    assert_eq!(database.warnings().len(), 1);
}
