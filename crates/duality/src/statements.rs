//! The statements of a change, each of one row. Values are parameters, so that rows that are written alike share a plan.

use syntax::ast::{
    Assignment, BinaryOp, ColumnName, Delete, DeleteTarget, Expr, ExprKind, Ident, Insert,
    InsertSource, Literal, LockStrength, LockWait, Locking, NamedTable, ObjectName, Priority,
    Query, Select, SelectItem, SelectItemKind, SetExpr, Statement, TableFactor, Update,
};
use types::{DataType, JsonValue, Value};

use crate::literal::typed;
use crate::shape::Node;

/// A column and what it gets; `None` is DEFAULT.
pub(crate) type Given<'a> = (&'a str, Option<JsonValue>);

/// A statement with the values of its parameters.
#[derive(Clone, Debug)]
pub struct RowStatement {
    /// The statement.
    pub statement: Statement,
    /// Its parameters' values.
    pub values: Vec<Value>,
    /// Their types.
    pub types: Vec<DataType>,
}

/// The parameters of a statement that is made.
#[derive(Default)]
struct Parameters {
    values: Vec<Value>,
    types: Vec<DataType>,
}

impl Parameters {
    /// The expression of a value; `None` is DEFAULT.
    fn add(&mut self, given: Option<&JsonValue>) -> Expr {
        let Some(given) = given else { return expr(ExprKind::Default(None)) };
        let Some((value, ty)) = typed(given) else {
            return expr(ExprKind::Literal(Literal::Null));
        };
        self.values.push(value);
        self.types.push(ty);
        expr(ExprKind::Param(self.values.len() as u32 - 1))
    }

    fn compared(&mut self, op: BinaryOp, name: &str, with: &JsonValue) -> Expr {
        let left = Box::new(expr(ExprKind::Column(Box::new(column(name)))));
        expr(ExprKind::Binary { op, left, right: Box::new(self.add(Some(with))) })
    }

    /// `key = value`.
    fn row_of(&mut self, node: &Node, key: &JsonValue) -> Expr {
        self.compared(BinaryOp::Eq, &node.key().name, key)
    }

    fn assignments(&mut self, given: &[Given<'_>]) -> Vec<Assignment> {
        let known = given.iter().filter(|(_, given)| given.is_some());
        known
            .map(|(name, given)| Assignment {
                column: column(name),
                value: self.add(given.as_ref()),
            })
            .collect()
    }

    fn of(self, statement: Statement) -> RowStatement {
        RowStatement { statement, values: self.values, types: self.types }
    }
}

fn expr(kind: ExprKind) -> Expr {
    Expr { kind, span: Default::default() }
}

fn table(node: &Node) -> ObjectName {
    ObjectName { schema: Some(Ident::new(&node.schema)), name: Ident::new(&node.table) }
}

fn named(node: &Node) -> NamedTable {
    NamedTable { name: table(node), ..NamedTable::default() }
}

fn column(name: &str) -> ColumnName {
    ColumnName { name: Ident::new(name), ..ColumnName::default() }
}

/// INSERT of a row; `or_change`: a row that is there gets what is given.
pub(crate) fn insert(node: &Node, row: &[Given<'_>], or_change: bool) -> RowStatement {
    let mut parameters = Parameters::default();
    let values = row.iter().map(|(_, given)| parameters.add(given.as_ref())).collect();
    let on_duplicate = if or_change { parameters.assignments(row) } else { Vec::new() };
    let insert = Insert {
        replace: false,
        priority: Priority::Normal,
        ignore: false,
        hints: None,
        table: table(node),
        partitions: Vec::new(),
        columns: Some(row.iter().map(|(name, _)| column(name)).collect()),
        source: InsertSource::Values(vec![values]),
        row_alias: None,
        on_duplicate,
        returning: Vec::new(),
    };
    parameters.of(Statement::Insert(Box::new(insert)))
}

/// UPDATE of the row with this key.
pub(crate) fn update(node: &Node, key: &JsonValue, row: &[Given<'_>]) -> RowStatement {
    let mut parameters = Parameters::default();
    let set = parameters.assignments(row);
    let update = Update {
        with: None,
        low_priority: false,
        ignore: false,
        hints: None,
        portion: None,
        tables: vec![TableFactor::Table(Box::new(named(node)))],
        set,
        filter: Some(parameters.row_of(node, key)),
        order_by: Vec::new(),
        limit: None,
        returning: Vec::new(),
    };
    parameters.of(Statement::Update(Box::new(update)))
}

/// DELETE of the row with this key.
pub(crate) fn delete(node: &Node, key: &JsonValue) -> RowStatement {
    let mut parameters = Parameters::default();
    let delete = Delete {
        with: None,
        low_priority: false,
        quick: false,
        ignore: false,
        hints: None,
        portion: None,
        target: DeleteTarget::Single(Box::new(named(node))),
        filter: Some(parameters.row_of(node, key)),
        order_by: Vec::new(),
        limit: None,
        returning: Vec::new(),
    };
    parameters.of(Statement::Delete(Box::new(delete)))
}

/// Locks the row with this key; for each value that is given, whether the row has it.
pub(crate) fn compare(node: &Node, key: &JsonValue, row: &[Given<'_>]) -> RowStatement {
    let mut parameters = Parameters::default();
    let mut items = Vec::with_capacity(row.len());
    for (name, given) in row {
        if let Some(with) = given {
            let expr = parameters.compared(BinaryOp::NullSafeEq, name, with);
            let kind = SelectItemKind::Expr { expr, alias: None };
            items.push(SelectItem { kind, span: Default::default() });
        }
    }
    let select = Select {
        items,
        from: vec![TableFactor::Table(Box::new(named(node)))],
        filter: Some(parameters.row_of(node, key)),
        ..Select::default()
    };
    let strength = LockStrength::Update;
    let query = Query {
        with: None,
        body: SetExpr::Select(Box::new(select)),
        order_by: Vec::new(),
        limit: None,
        locking: vec![Locking { strength, of: Vec::new(), wait: LockWait::Wait }],
        into: None,
        span: Default::default(),
    };
    parameters.of(Statement::Query(Box::new(query)))
}
