//! Expressions that belong to a table: generated columns, expression defaults, CHECK constraints.

use std::borrow::Cow;
use std::sync::Arc;

use catalog::Table;
use errors::{Error, Result};
use plan::{CastKind, Expr, InstanceId, Register, RegisterSet};
use plugin_api::Registry;
use syntax::ast;
use types::{DataType, DefinitionUse, RunsStatements, Volatility};

use crate::binder::Binder;
use crate::reader::{BoundTableExpression, Disallowed};
use crate::scope::{Clause, ScopeColumn, ScopeSource, ScopeTable, column_read};

/// Terms of an expression after virtual columns are replaced by their expressions: each may name the previous one twice.
const VIRTUAL_TERMS_MAX: u32 = 65_536;

impl<'a> Binder<'a> {
    /// Binds an expression of a table definition whose columns are `columns`; column `i` is register `i`. They may be qualified with the
    /// schema and the name of `table`.
    ///
    /// # Errors
    /// 1054 and every other fault of an expression.
    pub fn bind_table_expression(
        mut self,
        table: Option<(&Arc<str>, &Arc<str>)>,
        columns: &[(Arc<str>, DataType)],
        expr: &ast::Expr,
        source: &'a [u8],
    ) -> Result<BoundTableExpression> {
        self.source = Cow::Borrowed(source);
        self.registers = columns.len() as u32;
        let scope = columns
            .iter()
            .enumerate()
            .map(|(index, (name, ty))| ScopeColumn {
                name: name.clone(),
                expr: column_read(Register(index as u32), ty),
                source: None,
                invisible: false,
            })
            .collect();
        let expr = self.bind_in_scope(table, scope, expr)?;
        let mut read = RegisterSet::new();
        expr.add_registers(&|_| &[], &mut read);
        let disallowed = disallowed(&expr, self.input.registry);
        let columns = read.iter().map(|register| register.0 as usize).collect();
        Ok(BoundTableExpression { expr, columns, disallowed })
    }

    /// Binds `expr` where only `columns` can be seen.
    fn bind_in_scope(
        &mut self,
        table: Option<(&Arc<str>, &Arc<str>)>,
        columns: Vec<ScopeColumn>,
        expr: &ast::Expr,
    ) -> Result<Expr> {
        let count = self.block_count;
        let outside = std::mem::replace(&mut self.in_definition, true);
        let result = self.with_hidden(0, |binder| {
            binder.push_block();
            let block = binder.block();
            block.clause = Clause::Where;
            block.tables.push(ScopeTable {
                schema: table.map(|(schema, _)| schema.clone()),
                alias: table.map_or_else(|| Arc::from(""), |(_, name)| name.clone()),
                source: ScopeSource::Columns(columns),
                nullable: false,
                privilege: None,
                aliased: false,
                view: None,
            });
            let bound = binder.bind_single(expr)?;
            binder.blocks.pop();
            Ok(bound)
        });
        self.block_count = count;
        self.in_definition = outside;
        result
    }

    /// Binds the text of an expression of `table`, whose column `i` has register `base + i`. If the text is a column's own expression, it may
    /// only name virtual columns before that one.
    pub(crate) fn bind_text_over(
        &mut self,
        text: &str,
        table: &Table,
        base: Register,
    ) -> Result<Expr> {
        self.bind_text_before(text, table, base, &mut vec![None; table.columns.len()])
    }

    /// As `bind_text_over` for a text that may name the first `shown.len()` columns. `shown`: the expressions of the virtual ones among
    /// them, filled as they are needed; each is built only on earlier ones.
    pub(crate) fn bind_text_before(
        &mut self,
        text: &str,
        table: &Table,
        base: Register,
        shown: &mut [Option<Expr>],
    ) -> Result<Expr> {
        let sql = format!("DO {text}");
        let parsed = syntax::parse_one(&sql, &syntax::ParseOptions::default());
        let Ok((syntax::Statement::Do(items), _)) = parsed else {
            return Err(Error::internal(format!("stored expression of {}: {text}", table.name)));
        };
        let [ast::SelectItem { kind: ast::SelectItemKind::Expr { expr, .. }, .. }] = &*items else {
            return Err(Error::internal(format!("stored expression of {}: {text}", table.name)));
        };
        let mut columns = Vec::with_capacity(table.columns.len());
        for (index, column) in table.columns.iter().enumerate() {
            let register = Register(base.0 + index as u32);
            // A virtual column is replaced by its expression.
            let expr = match &column.generated {
                Some(generated)
                    if index < shown.len()
                        && column.stored.is_none()
                        && mentions(text, &column.name) =>
                {
                    let (before, from) = shown.split_at_mut(index);
                    let bound = match from[0].take() {
                        Some(bound) => bound,
                        None => {
                            let bound =
                                self.bind_text_before(&generated.expression, table, base, before)?;
                            bounded(stored_as(bound, &column.ty))?
                        }
                    };
                    from[0].insert(bound).clone()
                }
                _ => column_read(register, &column.ty),
            };
            columns.push(ScopeColumn {
                name: column.name.clone(),
                expr,
                source: None,
                invisible: false,
            });
        }
        let outer = std::mem::replace(&mut self.source, Cow::Owned(sql.into_bytes()));
        let insert_values = self.insert_values.take();
        // Names in it are no names of the statement.
        let spelling = self.spelling.take();
        let mut bound = self.bind_in_scope(None, columns, expr);
        if let (Ok(bound), true) = (&mut bound, table.partitioning.is_some()) {
            self.read_timestamps(bound)?;
        }
        self.insert_values = insert_values;
        self.spelling = spelling;
        self.source = outer;
        bound
    }

    /// Ensures that a virtual column of a table reference is computed when its rows are read.
    pub(crate) fn bind_virtual_column(
        &mut self,
        id: InstanceId,
        table: &Arc<Table>,
        index: usize,
    ) -> Result<()> {
        let instance = self.instance(id);
        let register = instance.register(index);
        if instance.virtuals.iter().any(|(known, _)| *known == register) {
            return Ok(());
        }
        let base = instance.base;
        let column = &table.columns[index];
        let Some(generated) = &column.generated else {
            return Err(Error::internal("a column that is neither stored nor generated"));
        };
        let expr = self.bind_text_over(&generated.expression.clone(), table, base)?;
        let expr = stored_as(expr, &column.ty);
        let virtuals = &mut self.instances[id.0 as usize].virtuals;
        let at = virtuals.partition_point(|(known, _)| *known < register);
        virtuals.insert(at, (register, expr));
        Ok(())
    }
}

/// Converts to a column's type, when they differ.
pub(crate) fn stored_as(expr: Expr, ty: &DataType) -> Expr {
    if expr.ty() == *ty {
        return expr;
    }
    let kind = if ty.kind == types::TypeKind::Timestamp {
        CastKind::TimestampToUtc
    } else {
        CastKind::Implicit
    };
    Expr::Cast { operand: Box::new(expr), kind, ty: ty.clone() }
}

/// 1235 for an expression with too many terms.
fn bounded(expr: Expr) -> Result<Expr> {
    let mut terms = 0;
    if expr.any(&mut |_| {
        terms += 1;
        terms > VIRTUAL_TERMS_MAX
    }) {
        return Err(Error::not_supported("virtual columns that expand to this many terms"));
    }
    Ok(expr)
}

/// Whether the text can name the column; a false alarm only costs time.
fn mentions(text: &str, name: &str) -> bool {
    text.to_lowercase().contains(&name.to_lowercase())
}

/// The first part of an expression that a table must not contain.
fn disallowed(expr: &Expr, registry: &Registry) -> Option<Disallowed> {
    let mut found = None;
    expr.any(&mut |node| {
        let here = match node {
            Expr::Subquery { .. }
            | Expr::Parameter { .. }
            | Expr::Stored { .. }
            | Expr::Match { .. } => Some(Disallowed::Other),
            Expr::UserVariable { .. }
            | Expr::AssignUserVariable { .. }
            | Expr::SystemVariable { .. } => Some(Disallowed::Variable),
            Expr::Function { function, .. }
                if function.traits.statements == RunsStatements::Yes
                    || registry.may_leave(function.name)
                    // As stored functions are.
                    || registry.function(function.name).is_some_and(|one| one.needs_schema()) =>
            {
                Some(Disallowed::Other)
            }
            Expr::Function { function, .. } => match function.traits.definition {
                DefinitionUse::Anywhere => None,
                DefinitionUse::Nowhere => Some(Disallowed::AnyCall(*function)),
                DefinitionUse::ByVolatility => (function.traits.volatility
                    != Volatility::Immutable)
                    .then_some(Disallowed::Function(*function)),
            },
            _ => None,
        };
        // Parts that are never allowed take precedence over those that defaults allow.
        if matches!(found, None | Some(Disallowed::Function(_))) && here.is_some() {
            found = here;
        }
        !matches!(found, None | Some(Disallowed::Function(_)))
    });
    found
}
