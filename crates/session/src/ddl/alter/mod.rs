//! ALTER TABLE: the actions edit a draft (`actions`); what the new definition asks of the rows decides whether it is instant, builds
//! indexes, or copies (`way`); then it is made true (`carry_out`).

mod actions;
mod carry_out;
mod exchange;
mod gone;
mod order;
mod partitions;
mod way;

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{ColumnDefault, PrivilegeSet, Table, same_name};
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{AlterAction, AlterTable, Ident, PartitionAction};

use self::actions::{column_of, find_check, move_column, place_for, rename_column};
use self::order::Step;
use super::check_table_name;
use super::draft::{Draft, is_hidden};
use crate::session::Session;
use crate::statement::Running;

/// How an ALTER TABLE may be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Default,
    Instant,
    Inplace,
    Copy,
}

impl Algorithm {
    fn named(word: &Ident) -> Result<Algorithm> {
        Ok(match word.text.to_ascii_uppercase().as_str() {
            "DEFAULT" => Algorithm::Default,
            "INSTANT" => Algorithm::Instant,
            "INPLACE" | "NOCOPY" => Algorithm::Inplace,
            "COPY" => Algorithm::Copy,
            _ => bail!(UNKNOWN_ALTER_ALGORITHM, word.text),
        })
    }
}

/// What others may do with the table meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lock {
    Default,
    None,
    Shared,
    Exclusive,
}

impl Lock {
    fn named(word: &Ident) -> Result<Lock> {
        Ok(match word.text.to_ascii_uppercase().as_str() {
            "DEFAULT" => Lock::Default,
            "NONE" => Lock::None,
            "SHARED" => Lock::Shared,
            "EXCLUSIVE" => Lock::Exclusive,
            _ => bail!(UNKNOWN_ALTER_LOCK, word.text),
        })
    }
}

/// What the actions ask besides the new definition.
struct Request {
    algorithm: Algorithm,
    lock: Lock,
    rename: Option<(Arc<str>, Arc<str>)>,
    /// FORCE, ENGINE=, ORDER BY: the rows are written anew.
    rebuild: bool,
    /// ORDER BY: the reference copies, and says how many rows.
    orders: bool,
    /// PARTITION BY and REMOVE PARTITIONING: likewise.
    repartitions: bool,
    /// Partitions whose rows stay; `None` for all of them.
    kept: Option<Vec<Ident>>,
    /// Numbers of those whose rows go.
    gone: Vec<u16>,
}

impl Session {
    /// ALTER TABLE.
    pub(crate) fn alter_table(
        &mut self,
        alter: &AlterTable,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.alter_with(alter, PrivilegeSet::ALTER, running, sink)
    }

    /// ALTER TABLE, CREATE INDEX and DROP INDEX, which need different privileges.
    pub(crate) fn alter_with(
        &mut self,
        alter: &AlterTable,
        needed: PrivilegeSet,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if let [AlterAction::Partition(action)] = &alter.actions[..]
            && let PartitionAction::Exchange { name, table, .. } = &**action
            && alter.partitioning.is_none()
        {
            return self.exchange_partition(&alter.name, name, table, sink);
        }
        if let [AlterAction::Partition(action)] = &alter.actions[..]
            && let Some(done) = self.maintain_partitions(&alter.name, action, sink)
        {
            return done;
        }
        let (schema, name) = self.qualify(&alter.name)?;
        let found = self.find_table(&schema, &name);
        let table = match found {
            Err(error) if alter.if_exists && error.code() == ErrorCode::NO_SUCH_TABLE => {
                self.working.push_error(errors::Level::Note, &error);
                return self.send_ok(sink, OkInfo::default());
            }
            found => found?,
        };
        if !table.temporary {
            self.require_on_table(&schema, &name, needed)?;
            self.check_writable()?;
        }
        let ids = if table.temporary { Vec::new() } else { vec![table.id] };
        let mut guard = self.lock_for_ddl(&ids)?;
        // Under the lock the definition stands still.
        let table = self.find_table(&schema, &name)?;
        let mut draft = Draft::of(&table);
        let mut request = Request {
            algorithm: Algorithm::Default,
            lock: Lock::Default,
            rename: None,
            rebuild: false,
            orders: false,
            repartitions: false,
            kept: None,
            gone: Vec::new(),
        };
        if let [action] = &alter.actions[..] {
            self.apply_action(&mut draft, &table, action, &mut request, running)?;
        } else {
            for step in &self.ordered_actions(&mut draft, &alter.actions)? {
                match step {
                    Step::Action(action) => {
                        self.apply_action(&mut draft, &table, action, &mut request, running)?;
                    }
                    Step::Move(name, position) => move_column(&mut draft, &name.text, position)?,
                }
            }
        }
        if draft.columns.iter().all(|column| is_hidden(&column.column)) {
            bail!(CANT_REMOVE_ALL_FIELDS);
        }
        if let Some(written) = &alter.partitioning {
            if table.temporary {
                bail!(PARTITION_NO_TEMPORARY);
            }
            draft.partitioning = None;
            draft.partitioning = Some(self.build_partitioning(&draft, written, running)?);
            request.rebuild = true;
            request.repartitions = true;
        }
        let outcome = self.carry_out(&table, draft, &request, &mut guard)?;
        drop(guard);
        let (affected_rows, commit) = outcome;
        // Renames say nothing of rows, and TRUNCATE does not count them.
        let is_silent = |action: &AlterAction| match action {
            AlterAction::RenameTable(_) => true,
            AlterAction::Partition(action) => matches!(**action, PartitionAction::Truncate(_)),
            _ => false,
        };
        let info = if !alter.actions.is_empty() && alter.actions.iter().all(is_silent) {
            String::new()
        } else {
            let warnings = self.working.warning_count();
            format!("Records: {affected_rows}  Duplicates: 0  Warnings: {warnings}")
        };
        self.services.row_count = affected_rows as i64;
        self.send_ok(sink, OkInfo { affected_rows, info, commit, ..OkInfo::default() })
    }

    #[allow(clippy::too_many_lines)]
    fn apply_action(
        &mut self,
        draft: &mut Draft,
        table: &Table,
        action: &AlterAction,
        request: &mut Request,
        running: &Running<'_>,
    ) -> Result<()> {
        match action {
            AlterAction::AddColumn { column, if_not_exists, position } => {
                if draft.column(&column.name.text).is_some() {
                    if *if_not_exists {
                        self.working.note(ErrorCode::DUP_FIELDNAME, &[&column.name.text]);
                        return Ok(());
                    }
                    bail!(DUP_FIELDNAME, column.name.text);
                }
                let built = self.build_column(draft, column, running)?;
                let at = place_for(draft, position.as_ref(), None)?;
                self.add_built_column(draft, built, at)
            }
            AlterAction::ChangeColumn { old, if_exists, column, position } => {
                self.change_column(draft, old, *if_exists, column, position.as_ref(), running)
            }
            AlterAction::ModifyColumn { column, if_exists, position } => {
                let old = column.name.clone();
                self.change_column(draft, &old, *if_exists, column, position.as_ref(), running)
            }
            AlterAction::DropColumn { name, if_exists } => {
                self.drop_column(draft, table, &name.text, *if_exists)
            }
            AlterAction::AddConstraint(constraint) => self.add_constraint(draft, constraint),
            AlterAction::DropForeignKey { name, if_exists } => {
                self.drop_foreign_key(draft, &name.text, *if_exists)
            }
            AlterAction::DropPrimaryKey => self.drop_index_of(draft, "PRIMARY", false),
            AlterAction::DropIndex { name, if_exists } => {
                self.drop_index_of(draft, &name.text, *if_exists)
            }
            AlterAction::DropCheck(name) => {
                match find_check(draft, &name.text) {
                    Some(position) => draft.checks.remove(position),
                    None => bail!(CHECK_CONSTRAINT_NOT_FOUND, name.text),
                };
                Ok(())
            }
            AlterAction::DropConstraint { name, if_exists } => {
                self.drop_constraint(draft, &name.text, *if_exists)
            }
            AlterAction::AlterColumnDefault { name, default, parenthesised } => {
                let at = column_of(draft, &name.text, &table.name)?;
                let ty = draft.columns[at].column.ty.clone();
                let value = match default {
                    Some(expr) => {
                        self.column_default(&name.text, &ty, expr, *parenthesised, running)?
                    }
                    None => ColumnDefault::None,
                };
                draft.columns[at].column.default = value;
                Ok(())
            }
            AlterAction::AlterColumnVisible { name, visible } => {
                let at = column_of(draft, &name.text, &table.name)?;
                draft.columns[at].column.invisible = !visible;
                Ok(())
            }
            AlterAction::AlterIndexVisible { name, visible } => {
                let at = draft
                    .index(&name.text)
                    .ok_or_else(|| err!(KEY_DOES_NOT_EXITS, name.text, table.name))?;
                draft.indexes[at].visible = *visible;
                Ok(())
            }
            AlterAction::AlterConstraintEnforced { name, enforced, .. } => {
                let at = find_check(draft, &name.text)
                    .ok_or_else(|| err!(CHECK_CONSTRAINT_NOT_FOUND, name.text))?;
                draft.checks[at].1.enforced = *enforced;
                Ok(())
            }
            AlterAction::RenameColumn { old, new } => {
                let at = column_of(draft, &old.text, &table.name)?;
                if !same_name(&old.text, &new.text) && draft.column(&new.text).is_some() {
                    bail!(DUP_FIELDNAME, new.text);
                }
                super::columns::check_column_name(&new.text)?;
                self.refuse_dependents(draft, at)?;
                rename_column(draft, at, &new.text);
                Ok(())
            }
            AlterAction::RenameIndex { old, new } => {
                let at = draft
                    .index(&old.text)
                    .ok_or_else(|| err!(KEY_DOES_NOT_EXITS, old.text, table.name))?;
                if !same_name(&old.text, &new.text) && draft.index(&new.text).is_some() {
                    bail!(DUP_KEYNAME, new.text);
                }
                draft.indexes[at].name = Some(Arc::from(&*new.text));
                Ok(())
            }
            AlterAction::RenameTable(to) => {
                let schema = match &to.schema {
                    Some(schema) => Arc::from(&*schema.text),
                    None => draft.schema.clone(),
                };
                check_table_name(&to.name.text)?;
                request.rename = Some((schema, Arc::from(&*to.name.text)));
                Ok(())
            }
            AlterAction::ConvertCharset { charset, collation } => {
                self.convert_charset(draft, charset.as_ref(), collation.as_ref())
            }
            AlterAction::Option(option) => {
                if matches!(option, syntax::ast::TableOption::Engine(_)) {
                    request.rebuild = true;
                }
                self.apply_table_options(draft, std::iter::once(option))
            }
            AlterAction::Algorithm(word) => {
                request.algorithm = Algorithm::named(word)?;
                Ok(())
            }
            AlterAction::Lock(word) => {
                request.lock = Lock::named(word)?;
                Ok(())
            }
            AlterAction::Force | AlterAction::OrderBy(_) => {
                request.rebuild = true;
                request.orders |= matches!(action, AlterAction::OrderBy(_));
                Ok(())
            }
            AlterAction::DisableKeys | AlterAction::EnableKeys => {
                self.working.note(ErrorCode::ILLEGAL_HA, &[&table.name]);
                Ok(())
            }
            AlterAction::Validation(_) => Ok(()),
            AlterAction::Partition(action) => {
                self.alter_partitions(draft, action, request, running)
            }
            AlterAction::DiscardTablespace | AlterAction::ImportTablespace => {
                Err(Error::not_supported("DISCARD and IMPORT TABLESPACE"))
            }
            AlterAction::SecondaryLoad | AlterAction::SecondaryUnload => {
                Err(Error::not_supported("SECONDARY_LOAD"))
            }
            AlterAction::AddPeriod(..)
            | AlterAction::DropPeriod(_)
            | AlterAction::DropSystemVersioning => {
                Err(Error::not_supported("system-versioned tables"))
            }
        }
    }
}
