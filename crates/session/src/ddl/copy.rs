//! ALTER TABLE by copy: a table of the new definition is filled from the old one by an INSERT ... SELECT, and takes its place.

use std::sync::Arc;

use catalog::{Column, ColumnDefault, Table};
use engine_api::IsolationLevel;
use errors::{Error, ErrorCode, Result};
use exec::TransactionSource;
use syntax::Statement;
use syntax::ast;
use types::{DataType, SqlMode, TypeKind, Value};

use super::draft::is_hidden;
use crate::session::Session;
use crate::statement::{Origin, Running};

/// What a copy takes over.
pub(crate) struct Copied<'a> {
    /// Each new column's place in the old table.
    pub origins: &'a [Option<usize>],
    /// AUTO_INCREMENT as the statement gives it.
    pub next: Option<u64>,
    /// Partitions whose rows are copied; `None`: all.
    pub partitions: Option<&'a [ast::Ident]>,
    /// Dates that the SQL mode forbids are errors even where they stay what they are.
    pub checks_dates: bool,
}

impl Session {
    /// Copies rows of `old` into a table defined as `new`.
    pub(crate) fn alter_by_copy(
        &mut self,
        old: &Arc<Table>,
        mut new: Table,
        what: &Copied<'_>,
    ) -> Result<(u64, Option<engine_api::CommitHandle>)> {
        let Copied { origins, next, partitions, checks_dates } = *what;
        self.draw_ids(&mut new)?;
        for column in &mut new.definition.columns {
            column.instant_default = None;
        }
        let engine = if old.temporary {
            self.server.temporary_engine.name()
        } else {
            self.server.default_engine.name()
        };
        let cancel = self.shared.cancel.clone();
        // What others committed before the lock was granted must be in the copy's snapshot.
        sys::blocking::blocking(|| self.server.catalog.settle(&cancel))?;
        let txn = self.transactions.transaction(engine)?;
        for part in new.engine_tables() {
            txn.create_table(&part).map_err(|error| error.into_error(&cancel))?;
        }
        // While it is filled the copy has a name that no statement can write, and its foreign keys to itself look at the old table.
        let mut copy = new.clone();
        let (own_name, old_name) = ((&*new.schema, &*new.name), (&old.schema, &old.name));
        copy.redirect_foreign_keys(own_name, old_name);
        copy.name = format!("#copy-{}", new.id.0).into();
        let copy = Arc::new(copy);
        let mode = self.settings.sql_mode;
        let fills_dates = copy.columns.iter().zip(origins).any(|(column, origin)| {
            origin.is_none() && needs_value(column) && column.ty.has_date()
        });
        if !checks_dates && !fills_dates {
            let kept = mode.0 & !(SqlMode::NO_ZERO_DATE.0 | SqlMode::NO_ZERO_IN_DATE.0);
            self.settings.sql_mode = SqlMode(kept | SqlMode::ALLOW_INVALID_DATES.0);
        }
        let copied =
            sys::blocking::blocking(|| self.copy_rows(old, &copy, origins, partitions, &[]));
        self.settings.sql_mode = mode;
        let copied = match copied {
            Ok(count) => count,
            Err(error) => {
                // The copy goes with the transaction that made it.
                let _ = self.transactions.rollback();
                return Err(word_copy_error(&error, &copy, old));
            }
        };
        let counter = self.copied_counter(old, &new)?;
        let txn = self.transactions.transaction(engine)?;
        for part in old.engine_tables() {
            txn.drop_table(part.id).map_err(|error| error.into_error(&cancel))?;
        }
        let new = Arc::new(new);
        let commit = self.publish_altered(old, new.clone())?;
        self.set_next_auto_increment(&new, next.or(counter))?;
        Ok((copied, commit))
    }

    /// The AUTO_INCREMENT counter that the copy goes on with.
    fn copied_counter(&self, old: &Table, new: &Table) -> Result<Option<u64>> {
        let both =
            [old, new].iter().all(|table| table.columns.iter().any(|column| column.auto_increment));
        if !both {
            return Ok(None);
        }
        let engine = self.transactions.engine(&old.engine)?;
        let next = engine.auto_increment_next(old.id);
        next.map(Some).map_err(|error| error.into_error(&self.shared.cancel))
    }

    /// Inserts the rows of `old`, or of some of its partitions, into `copy`, which no statement but this one knows by its name. `into`
    /// are the partitions that may take them, when not all do.
    pub(in crate::ddl) fn copy_rows(
        &mut self,
        old: &Arc<Table>,
        copy: &Arc<Table>,
        origins: &[Option<usize>],
        partitions: Option<&[ast::Ident]>,
        into: &[ast::Ident],
    ) -> Result<u64> {
        if partitions.is_some_and(<[_]>::is_empty) {
            return Ok(0);
        }
        let (mut targets, mut items) = (Vec::new(), Vec::new());
        for (column, origin) in copy.columns.iter().zip(origins) {
            if column.generated.is_some() || is_hidden(column) {
                continue;
            }
            let source = origin.and_then(|origin| old.columns.get(origin));
            let kind = match source {
                Some(source) => ast::ExprKind::Column(Box::new(column_name(&source.name))),
                None if needs_value(column) => ast::ExprKind::Literal(implicit_value(&column.ty)),
                None => continue,
            };
            targets.push(column_name(&column.name));
            let span = ast::Span::default();
            let expr = ast::Expr { kind, span };
            let kind = ast::SelectItemKind::Expr { expr, alias: None };
            items.push(ast::SelectItem { kind, span });
        }
        if items.is_empty() {
            // No old column stays: each row still becomes one.
            let is_null = |column: &&Column| {
                matches!(column.default, ColumnDefault::None | ColumnDefault::Constant(Value::Null))
                    && column.ty.nullable
                    && column.generated.is_none()
            };
            let Some(column) = copy.columns.iter().find(is_null) else {
                return Err(Error::not_supported("replacing every column by others with values"));
            };
            targets.push(column_name(&column.name));
            let span = ast::Span::default();
            let expr = ast::Expr { kind: ast::ExprKind::Literal(ast::Literal::Null), span };
            let kind = ast::SelectItemKind::Expr { expr, alias: None };
            items.push(ast::SelectItem { kind, span });
        }
        let object = |table: &Table| ast::ObjectName {
            schema: Some(ast::Ident::new(&table.schema)),
            name: ast::Ident::new(&table.name),
        };
        let partitions = partitions.map_or_else(Vec::new, <[_]>::to_vec);
        let from = ast::NamedTable { name: object(old), partitions, ..ast::NamedTable::default() };
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
            span: ast::Span::default(),
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
        let statement = Statement::Insert(Box::new(insert));
        let running = Running { source: b"", parameters: &[], origin: Origin::Text, kept: None };
        // A stored 0 in an AUTO_INCREMENT column stays 0; in one that becomes one it asks for a value.
        let mode = self.settings.sql_mode;
        if was_auto_increment(old, copy, origins) {
            self.settings.sql_mode = SqlMode(mode.0 | SqlMode::NO_AUTO_VALUE_ON_ZERO.0);
        }
        let privileges = std::mem::replace(
            &mut self.privileges,
            Arc::new(catalog::EffectivePrivileges::everything()),
        );
        let limit = self.settings.sql_select_limit.take();
        // Nobody else can change the old table meanwhile: its rows need no locks, which reads of an INSERT take above this level.
        let own_level = &mut self.transactions.characteristics.isolation;
        let isolation = std::mem::replace(own_level, IsolationLevel::ReadCommitted);
        let result = self.run_on_new_table(copy, &statement, &running);
        self.transactions.characteristics.isolation = isolation;
        self.settings.sql_select_limit = limit;
        self.privileges = privileges;
        self.settings.sql_mode = mode;
        result.map(|(rows, _)| rows)
    }
}

/// Whether old rows get a new column's implicit value: it must not be NULL and has no default.
fn needs_value(column: &Column) -> bool {
    matches!(column.default, ColumnDefault::None) && !column.ty.nullable && !column.auto_increment
}

/// The value that stands in where there is no default, as a statement would write it.
fn implicit_value(ty: &DataType) -> ast::Literal {
    let text = |text: &str| {
        let value = text.as_bytes().into();
        ast::Literal::String(Box::new(ast::StringLiteral { value, ..Default::default() }))
    };
    match ty.kind {
        TypeKind::Enum => ast::Literal::Integer(1),
        TypeKind::Date => text("0000-00-00"),
        TypeKind::DateTime | TypeKind::Timestamp => text("0000-00-00 00:00:00"),
        TypeKind::Json => text("null"),
        // Nothing stands in for a geometry: where there are rows it is refused.
        TypeKind::Geometry => ast::Literal::Null,
        _ if ty.is_string() => text(""),
        _ => ast::Literal::Integer(0),
    }
}

/// Whether the copy's AUTO_INCREMENT column was one before.
fn was_auto_increment(old: &Table, copy: &Table, origins: &[Option<usize>]) -> bool {
    copy.columns.iter().zip(origins).any(|(column, origin)| {
        let source = origin.and_then(|origin| old.columns.get(origin));
        column.auto_increment && source.is_some_and(|source| source.auto_increment)
    })
}

/// Errors of the copy name the table that the user knows.
fn word_copy_error(error: &Error, copy: &Table, old: &Table) -> Error {
    if error.code() == ErrorCode::BAD_NULL_ERROR_NOT_IGNORED {
        return Error::with(ErrorCode::INVALID_USE_OF_NULL, &[]);
    }
    let message = error.message().replace(&*copy.name, &old.name);
    Error::with_sqlstate(error.code(), error.sqlstate(), message)
}

fn column_name(name: &str) -> ast::ColumnName {
    ast::ColumnName { schema: None, table: None, name: ast::Ident::new(name) }
}
