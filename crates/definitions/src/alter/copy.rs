//! The statement that copies a table's rows into one of the new definition.

use catalog::{Column, ColumnDefault, Table};
use errors::{Error, ErrorCode, Result};
use syntax::Statement;
use syntax::ast::{self, Span};
use types::{DataType, Fixed, TypeKind, Value};

use crate::draft::is_hidden;

/// `INSERT INTO copy SELECT .. FROM old`. `origins`: each column's position in the old table; `partitions`: those whose rows are copied,
/// `None` for all; `into`: the partitions that may take them, when not all do.
///
/// # Errors
/// 1235 when no column of the old table stays and none of the new one may be NULL.
pub fn copy_statement(
    old: &Table,
    copy: &Table,
    origins: &[Option<usize>],
    partitions: Option<&[ast::Ident]>,
    into: &[ast::Ident],
) -> Result<Statement> {
    let (targets, items) = copied_columns(old, copy, origins)?;
    let partitions = partitions.map_or_else(Vec::new, <[_]>::to_vec);
    // Where history ends only current rows stay. Partitions by SYSTEM_TIME say themselves which rows they have.
    let by_partition = old.by_system_time() && !partitions.is_empty();
    let keeps_history = old.row_times().is_some() && copy.row_times().is_some();
    let system_time = (keeps_history && !by_partition).then_some(ast::SystemTime::All);
    let name = object(old);
    let from = ast::NamedTable { name, partitions, system_time, ..ast::NamedTable::default() };
    let select = ast::Select {
        items,
        from: vec![ast::TableFactor::Table(Box::new(from))],
        ..ast::Select::default()
    };
    let query = ast::Query {
        with: None,
        body: ast::SetExpr::Select(Box::new(select)),
        order_by: Vec::new(),
        limit: None,
        locking: Vec::new(),
        into: None,
        span: Span::default(),
    };
    let insert = ast::Insert {
        replace: false,
        priority: ast::Priority::Normal,
        ignore: false,
        hints: None,
        table: object(copy),
        partitions: into.to_vec(),
        columns: Some(targets),
        source: ast::InsertSource::Query(Box::new(query)),
        row_alias: None,
        on_duplicate: Vec::new(),
        returning: Vec::new(),
    };
    Ok(Statement::Insert(Box::new(insert)))
}

/// The columns that get values, and the values.
fn copied_columns(
    old: &Table,
    copy: &Table,
    origins: &[Option<usize>],
) -> Result<(Vec<ast::ColumnName>, Vec<ast::SelectItem>)> {
    let (mut targets, mut items) = (Vec::new(), Vec::new());
    for (column, origin) in copy.columns.iter().zip(origins) {
        if column.generated.is_some() || is_hidden(column) {
            continue;
        }
        let source = origin.and_then(|origin| old.columns.get(origin));
        if column.history.is_time() && source.is_none() {
            // The rows begin to be current now.
            continue;
        }
        let value = match source {
            Some(source) => ast::ExprKind::Column(Box::new(column_name(&source.name))),
            None if needs_value(column) => ast::ExprKind::Literal(implicit_value(&column.ty)),
            None => continue,
        };
        targets.push(column_name(&column.name));
        items.push(select_item(value));
    }
    if items.is_empty() {
        // No old column stays: each old row still produces a row.
        let is_null = |column: &&Column| {
            matches!(column.default, ColumnDefault::None | ColumnDefault::Constant(Value::Null))
                && column.ty.nullable
                && column.generated.is_none()
        };
        let Some(column) = copy.columns.iter().find(is_null) else {
            return Err(Error::not_supported("replacing every column by others with values"));
        };
        targets.push(column_name(&column.name));
        items.push(select_item(ast::ExprKind::Literal(ast::Literal::Null)));
    }
    Ok((targets, items))
}

fn select_item(kind: ast::ExprKind) -> ast::SelectItem {
    let span = Span::default();
    let expr = ast::Expr { kind, span };
    ast::SelectItem { kind: ast::SelectItemKind::Expr { expr, alias: None }, span }
}

fn object(table: &Table) -> ast::ObjectName {
    ast::ObjectName {
        schema: Some(ast::Ident::new(&table.schema)),
        name: ast::Ident::new(&table.name),
    }
}

/// Whether old rows get a date in place of a missing default.
pub fn fills_dates(copy: &Table, origins: &[Option<usize>]) -> bool {
    copy.columns
        .iter()
        .zip(origins)
        .any(|(column, origin)| origin.is_none() && needs_value(column) && column.ty.has_date())
}

/// Whether old rows get a new column's implicit value: it must not be NULL and has no default.
fn needs_value(column: &Column) -> bool {
    matches!(column.default, ColumnDefault::None) && !column.ty.nullable && !column.auto_increment
}

/// The value in place of a missing default, as a statement would write it.
fn implicit_value(ty: &DataType) -> ast::Literal {
    let text = |text: &str| {
        let value = text.as_bytes().into();
        ast::Literal::String(Box::new(ast::StringLiteral { value, ..Default::default() }))
    };
    match ty.kind {
        TypeKind::Enum => ast::Literal::Integer(1),
        TypeKind::Fixed(Fixed::Uuid) => text("00000000-0000-0000-0000-000000000000"),
        TypeKind::Fixed(Fixed::Inet4) => text("0.0.0.0"),
        TypeKind::Fixed(Fixed::Inet6) => text("::"),
        TypeKind::Date => text("0000-00-00"),
        TypeKind::DateTime | TypeKind::Timestamp => text("0000-00-00 00:00:00"),
        TypeKind::Json => text("null"),
        // A geometry has no implicit value: if the table has rows, the statement is refused.
        TypeKind::Geometry => ast::Literal::Null,
        _ if ty.is_string() => text(""),
        _ => ast::Literal::Integer(0),
    }
}

/// Whether the copy's AUTO_INCREMENT column already was one in the old table.
pub fn was_auto_increment(old: &Table, copy: &Table, origins: &[Option<usize>]) -> bool {
    copy.columns.iter().zip(origins).any(|(column, origin)| {
        let source = origin.and_then(|origin| old.columns.get(origin));
        column.auto_increment && source.is_some_and(|source| source.auto_increment)
    })
}

fn column_name(name: &str) -> ast::ColumnName {
    ast::ColumnName { schema: None, table: None, name: ast::Ident::new(name) }
}

/// Errors of the copy name the table that the user knows.
pub fn word_copy_error(error: &Error, copy: &Table, old: &Table) -> Error {
    if [ErrorCode::BAD_NULL_ERROR_NOT_IGNORED, ErrorCode::BAD_NULL_ERROR].contains(&error.code()) {
        return Error::with(ErrorCode::INVALID_USE_OF_NULL, &[]);
    }
    let message = error.message().replace(&*copy.name, &old.name);
    Error::with_sqlstate(error.code(), error.sqlstate(), message)
}

/// `INSERT INTO table (columns) query`, of CREATE TABLE .. SELECT.
pub fn filling_statement(
    table: &Table,
    columns: &[&str],
    duplicates: ast::LoadDuplicates,
    query: &ast::Query,
) -> Statement {
    let insert = ast::Insert {
        replace: duplicates == ast::LoadDuplicates::Replace,
        priority: ast::Priority::Normal,
        ignore: duplicates == ast::LoadDuplicates::Ignore,
        hints: None,
        table: object(table),
        partitions: Vec::new(),
        columns: Some(columns.iter().map(|name| column_name(name)).collect()),
        source: ast::InsertSource::Query(Box::new(query.clone())),
        row_alias: None,
        on_duplicate: Vec::new(),
        returning: Vec::new(),
    };
    Statement::Insert(Box::new(insert))
}
