//! Plans that break a promise, each in one way.

use types::DataType;

use super::broken_promises;
use crate::{
    CteId, Expr, JoinKind, Making, OutputColumn, Physical, Plan, QueryPlan, Register, SortKey,
    Subquery, SubqueryId, SubqueryKind,
};

fn column(register: u32) -> Expr {
    Expr::column(Register(register), DataType::bigint())
}

fn values(registers: &[u32]) -> Box<Physical> {
    let columns: Vec<Register> = registers.iter().map(|register| Register(*register)).collect();
    let zero = Expr::literal(types::Value::Int(0), DataType::bigint());
    Box::new(Physical::Values { rows: vec![vec![zero; columns.len()]], columns })
}

fn query(root: Physical, shown: u32, subqueries: Vec<Subquery>) -> Plan {
    let output = OutputColumn {
        name: "a".into(),
        expr: column(shown),
        source: None,
        making: Making::default(),
    };
    Plan::Query(QueryPlan {
        root,
        outputs: vec![output],
        subqueries,
        ctes: Vec::new(),
        registers: 4,
    })
}

fn sorted(kept: &[u32]) -> Physical {
    Physical::Sort {
        input: values(&[0, 1]),
        keys: vec![SortKey { expr: column(0), descending: false }],
        limit: None,
        columns: kept.iter().map(|register| Register(*register)).collect(),
    }
}

fn outer_join(nulled: &[u32]) -> Physical {
    Physical::NestedLoop {
        kind: JoinKind::Left,
        outer: values(&[0]),
        inner: values(&[1]),
        condition: Some(column(1)),
        inner_columns: nulled.iter().map(|register| Register(*register)).collect(),
    }
}

/// A subquery that reads register 0 of its outer query and declares that it reads `outer`.
fn correlated(outer: &[u32]) -> Plan {
    let exists = Expr::Subquery {
        id: SubqueryId(0),
        kind: SubqueryKind::Exists,
        negated: false,
        ty: DataType::boolean(),
    };
    let inside = Physical::Filter { input: values(&[1]), predicate: column(0) };
    let subquery = Subquery {
        root: inside,
        outputs: vec![column(1)],
        outer: outer.iter().map(|register| Register(*register)).collect(),
    };
    let root = Physical::Filter { input: values(&[0]), predicate: exists };
    query(root, 0, vec![subquery])
}

fn derived(correlated: bool) -> Physical {
    Physical::NestedLoop {
        kind: JoinKind::Inner,
        outer: values(&[0]),
        inner: Box::new(Physical::Materialize {
            id: CteId(0),
            input: values(&[1]),
            outputs: vec![column(0)],
            columns: vec![(Register(2), DataType::bigint())],
            correlated,
        }),
        condition: None,
        inner_columns: vec![Register(2)],
    }
}

#[test]
fn sound_plans_have_nothing_wrong() {
    for plan in [
        query(*values(&[0]), 0, Vec::new()),
        query(sorted(&[0, 1]), 1, Vec::new()),
        query(outer_join(&[1]), 1, Vec::new()),
        correlated(&[0]),
        query(derived(true), 2, Vec::new()),
    ] {
        assert_eq!(broken_promises(&plan), Vec::<String>::new());
    }
}

#[test]
fn each_broken_promise_is_named() {
    let unequal = Physical::Values { rows: vec![vec![column(0)]], columns: Vec::new() };
    let cases = [
        ("P1", query(*values(&[9]), 9, Vec::new()), "register 9 of 4"),
        ("P2", query(*values(&[0]), 1, Vec::new()), "reads register 1"),
        ("P2", query(sorted(&[0]), 1, Vec::new()), "reads register 1"),
        ("P2", query(outer_join(&[]), 1, Vec::new()), "reads register 1"),
        ("P3", correlated(&[]), "a filter reads register 0"),
        ("P4", query(derived(false), 2, Vec::new()), "a derived table reads register 0"),
        ("P5", query(unequal, 0, Vec::new()), "values of a row: 1 of 0"),
    ];
    for (rule, plan, expected) in cases {
        let found = broken_promises(&plan).join("\n");
        assert!(found.contains(expected), "{rule}: {expected} missing in {found}");
    }
}
