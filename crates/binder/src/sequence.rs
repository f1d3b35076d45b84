//! Sequences: their values in expressions, and what statements may do with the table that a sequence is.
//!
//! A call carries the number, schema and name of the sequence in front of its arguments.

use std::sync::Arc;

use catalog::{Relation, Table};
use errors::{Error, Result, SequenceError, bail};
use plan::{Expr, LogicalInsertSource};
use syntax::ast::{self, ExprKind};
use types::{CollationId, FunctionRole};

use crate::binder::Binder;
use crate::literal;
use crate::reader::PrivilegeKind;

impl Binder<'_> {
    /// `NEXT VALUE FOR name`.
    pub(crate) fn bind_next_value(&mut self, name: &ast::ObjectName) -> Result<Expr> {
        let args = self.used_sequence(name, &[PrivilegeKind::Insert, PrivilegeKind::Select])?;
        self.function(FunctionRole::SequenceNext, args)
    }

    /// `PREVIOUS VALUE FOR name`.
    pub(crate) fn bind_previous_value(&mut self, name: &ast::ObjectName) -> Result<Expr> {
        let args = self.used_sequence(name, &[PrivilegeKind::Select])?;
        self.function(FunctionRole::SequenceLast, args)
    }

    /// A call of a function that has the role `role` by its name: SETVAL of a sequence; for all others the name means a stored function.
    /// `None`: another function.
    pub(crate) fn bind_sequence_call(
        &mut self,
        role: Option<FunctionRole>,
        call: &ast::FunctionCall,
    ) -> Result<Option<Expr>> {
        const ROLES: [FunctionRole; 4] = [
            FunctionRole::SequenceNext,
            FunctionRole::SequenceLast,
            FunctionRole::SequenceSet,
            FunctionRole::SequenceRestored,
        ];
        let Some(role) = role.filter(|role| ROLES.contains(role)) else { return Ok(None) };
        let is_set = role == FunctionRole::SequenceSet;
        let named = match call.args.first().map(|first| &first.kind) {
            Some(ExprKind::Column(name)) if is_set && name.schema.is_none() => name,
            Some(_) | None => return self.bind_stored_function(call).map(Some),
        };
        let name = ast::ObjectName { schema: named.table.clone(), name: named.name.clone() };
        if self.in_definition {
            return Err(Error::not_supported("SETVAL in a table's definition"));
        }
        let mut args = self.used_sequence(&name, &[PrivilegeKind::Insert])?;
        for arg in &call.args[1..] {
            args.push(self.bind_single(arg)?);
        }
        self.function(FunctionRole::SequenceSet, args).map(Some)
    }

    /// A sequence that an expression uses, with these privileges on it. INSERT is for what moves it.
    fn used_sequence(
        &mut self,
        name: &ast::ObjectName,
        needed: &[PrivilegeKind],
    ) -> Result<Vec<Expr>> {
        if self.in_definition && name.schema.is_none() {
            // Defaults are stored with the schemas of their sequences.
            return Err(Error::not_supported("a sequence in a generated column or a CHECK"));
        }
        let schema = self.schema_of(name)?;
        let table = match self.input.catalog.relation(&schema, &name.name.text) {
            Some(Relation::Table(table)) if table.is_sequence() => table,
            Some(Relation::Table(_) | Relation::View(_)) => {
                let name = format!("{schema}.{}", name.name.text);
                return Err(SequenceError::NotASequence.about(name));
            }
            None if self.view_depth > 0 => {
                bail!(NO_SUCH_TABLE, schema, name.name.text)
            }
            None => return Err(SequenceError::Unknown.about(&name.name.text)),
        };
        self.spell_table(name, &schema);
        self.table_index(&table);
        for kind in needed {
            self.require(&table.schema, &table.name, *kind);
        }
        if needed.contains(&PrivilegeKind::Insert) {
            self.drawn.push(table.id.0);
        }
        Ok(sequence_args(&table))
    }

    /// The row of an INSERT into a sequence: there may be only one, and what sessions have drawn before does not count after it.
    pub(crate) fn restore_sequence(
        &mut self,
        table: &Arc<Table>,
        targets: &[usize],
        source: &mut LogicalInsertSource,
    ) -> Result<()> {
        let LogicalInsertSource::Values(rows) = source else {
            return Err(Error::not_supported("INSERT ... SELECT into a sequence"));
        };
        let [row] = &mut rows[..] else {
            return Err(Error::not_supported("INSERT of several rows into a sequence"));
        };
        for (target, value) in targets.iter().zip(row) {
            if *target == 0
                && let Some(value) = value
            {
                let mut args = sequence_args(table);
                args.push(value.clone());
                *value = self.function(FunctionRole::SequenceRestored, args)?;
            }
        }
        Ok(())
    }
}

/// The arguments that name a sequence.
fn sequence_args(table: &Table) -> Vec<Expr> {
    let text = |text: &str| literal::text(text.as_bytes(), CollationId::UTF8MB3_GENERAL_CI);
    vec![literal::integer(table.id.0), text(&table.schema), text(&table.name)]
}
