//! ALTER TABLE: the actions edit a draft of the new definition (`edit`); the draft becomes a table (`complete`); the effect on the rows decides the
//! algorithm by which it is carried out (`choose`).

mod actions;
mod algorithm;
mod complete;
pub mod copy;
mod discard;
mod order;
mod partitions;
mod steps;
mod vacant;

use std::sync::Arc;

use catalog::{ColumnDefault, Table, same_name};
use errors::{Error, ErrorCode, Result, bail, err};
use syntax::ast::{
    AlterAction, AlterTable, ColumnDef, ColumnPosition, Expr, Ident, ObjectName, PartitionAction,
    TableConstraint, TableOption,
};

pub use self::algorithm::{
    Algorithm, AlgorithmClause, Choice, Facts, IndexChanges, LockClause, builds_online, choose,
    not_instant,
};
pub use self::complete::{Altered, complete};
pub use self::discard::check_transportable;
pub use self::steps::{algorithm_name, steps};

use self::actions::{
    change_column, column_of, convert_charset, drop_column, drop_constraint, drop_foreign_key,
    drop_index, find_check, move_column, place_for, refuse_dependents, rename_column,
};
use self::order::{Step, ordered_actions};
use self::partitions::alter_partitions;
use crate::columns::{add_built_column, build_column, column_default};
use crate::context::Context;
use crate::draft::{Draft, is_hidden};
use crate::encryption;
use crate::history;
use crate::indexes::add_constraint;
use crate::names::{check_column_name, check_table_name};
use crate::options::apply_table_options;
use crate::partitions::build_partitioning;
use crate::periods;
use crate::system_partitions;

/// Requests of the actions besides the new definition.
#[derive(Debug, Default)]
pub struct Request {
    /// ALGORITHM.
    pub algorithm: AlgorithmClause,
    /// LOCK.
    pub lock: LockClause,
    /// RENAME: schema and name.
    pub rename: Option<(Arc<str>, Arc<str>)>,
    /// FORCE, ENGINE=, ORDER BY: the rows are rewritten.
    pub rebuild: bool,
    /// ORDER BY: the reference copies, and reports the number of rows.
    pub orders: bool,
    /// PARTITION BY and REMOVE PARTITIONING: likewise.
    pub repartitions: bool,
    /// Partitions whose rows stay; `None` for all of them.
    pub kept: Option<Vec<Ident>>,
    /// Numbers of the partitions whose rows are deleted.
    pub gone: Vec<u16>,
    /// DISCARD TABLESPACE.
    pub discards: bool,
}

/// Applies the actions of an ALTER TABLE to a draft of `table`.
///
/// # Errors
/// Any error of an action.
pub fn edit(ctx: &mut dyn Context, table: &Table, alter: &AlterTable) -> Result<(Draft, Request)> {
    crate::sequences::check_alter(table, alter)?;
    history::check_alter(ctx, table, &alter.actions)?;
    let mut draft = Draft::of(table);
    let mut request = Request::default();
    // Columns may be renamed and dropped freely where the partitions that read them go.
    let removes = |action: &&AlterAction| matches!(action, AlterAction::Partition(action) if matches!(**action, PartitionAction::Remove));
    if let Some(remove) = alter.actions.iter().find(removes) {
        apply_action(ctx, &mut draft, table, remove, &mut request)?;
    } else if alter.partitioning.is_some() {
        draft.partitioning = None;
    }
    if let [action] = &alter.actions[..] {
        apply_action(ctx, &mut draft, table, action, &mut request)?;
    } else {
        for step in &ordered_actions(ctx, &mut draft, &alter.actions)? {
            match step {
                Step::Action(action) => {
                    apply_action(ctx, &mut draft, table, action, &mut request)?;
                }
                Step::Move(name, position) => move_column(&mut draft, &name.text, position)?,
            }
        }
    }
    // Positions of the others have no gaps.
    draft.columns.sort_by_key(|column| column.column.is_vacant());
    if draft.columns.iter().all(|column| is_hidden(&column.column)) {
        bail!(CANT_REMOVE_ALL_FIELDS);
    }
    if let Some(written) = &alter.partitioning {
        if table.temporary {
            bail!(PARTITION_NO_TEMPORARY);
        }
        draft.partitioning = None;
        let before = table.partitioning.as_deref().filter(|own| own.by_system_time());
        history::settle(&mut draft, false)?;
        let built = build_partitioning(ctx, &draft, written)?;
        draft.partitioning =
            Some(system_partitions::with_names_of(ctx, &draft, built, written, before)?);
        request.rebuild = true;
        request.repartitions = true;
    }
    Ok((draft, request))
}

/// Applies one action.
fn apply_action(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    table: &Table,
    action: &AlterAction,
    request: &mut Request,
) -> Result<()> {
    use AlterAction as A;
    match action {
        A::AddColumn { column, if_not_exists, position } => {
            add_column(ctx, draft, column, *if_not_exists, position.as_ref())?;
        }
        A::ChangeColumn { old, if_exists, column, position } => {
            change_column(ctx, draft, old, *if_exists, column, position.as_ref())?;
        }
        A::ModifyColumn { column, if_exists, position } => {
            change_column(ctx, draft, &column.name, *if_exists, column, position.as_ref())?;
        }
        A::DropColumn { name, if_exists } => {
            drop_column(ctx, draft, table, &name.text, *if_exists)?;
        }
        A::AlterColumnDefault { name, default, parenthesised } => {
            set_default(ctx, draft, &name.text, default.as_ref(), *parenthesised)?;
        }
        A::AlterColumnVisible { name, visible } => {
            let at = column_of(draft, &name.text, &table.name)?;
            draft.columns[at].column.invisible = !visible;
        }
        A::RenameColumn { old, new } => rename(ctx, draft, old, new)?,
        A::AddConstraint(constraint) => {
            request.rebuild |= matches!(&**constraint, TableConstraint::Index(index) if periods::looks_at_rows(index));
            add_constraint(ctx, draft, constraint)?;
        }
        A::DropForeignKey { name, if_exists } => {
            drop_foreign_key(ctx.conditions(), draft, &name.text, *if_exists)?;
        }
        A::DropPrimaryKey => drop_index(ctx.conditions(), draft, "PRIMARY", false)?,
        A::DropIndex { name, if_exists } => {
            drop_index(ctx.conditions(), draft, &name.text, *if_exists)?;
        }
        A::DropCheck(name) => {
            let at = check_of(draft, name)?;
            draft.checks.remove(at);
        }
        A::DropConstraint { name, if_exists } => {
            drop_constraint(ctx.conditions(), draft, &name.text, *if_exists)?;
        }
        A::AlterIndexVisible { name, visible } => {
            let at = index_of(draft, name, table)?;
            draft.indexes[at].visible = *visible;
        }
        A::AlterConstraintEnforced { name, enforced, .. } => {
            let at = check_of(draft, name)?;
            draft.checks[at].1.enforced = *enforced;
        }
        A::RenameIndex { old, new } => rename_index(draft, old, new, table)?,
        A::RenameTable(to) => {
            let to = new_name(draft, to)?;
            if to.0 != draft.schema {
                let (catalog, choice) = (ctx.catalog(), encryption::choice(ctx));
                let conditions = ctx.conditions();
                encryption::check_move(&catalog, &draft.options, &to.0, choice, conditions)?;
            }
            request.rename = Some(to);
        }
        A::ConvertCharset { charset, collation } => {
            convert_charset(ctx, draft, charset.as_ref(), collation.as_ref())?;
        }
        A::Option(option) => {
            request.rebuild |=
                matches!(option, TableOption::Engine(_) | TableOption::SystemVersioning);
            apply_table_options(ctx, draft, std::iter::once(option))?;
        }
        A::Algorithm(word) => request.algorithm = AlgorithmClause::named(word)?,
        A::Lock(word) => request.lock = LockClause::named(word)?,
        A::Force => request.rebuild = true,
        A::OrderBy(_) => (request.rebuild, request.orders) = (true, true),
        A::DisableKeys | A::EnableKeys => {
            ctx.conditions().note(ErrorCode::ILLEGAL_HA, &[&table.name]);
        }
        A::Validation(_) => {}
        A::Partition(action) => alter_partitions(ctx, draft, table, action, request)?,
        A::DiscardTablespace => discard::discard(ctx, draft, table, None, request)?,
        A::ImportTablespace => return Err(discard::imported_alone()),
        A::SecondaryLoad | A::SecondaryUnload => {
            return Err(Error::not_supported("SECONDARY_LOAD"));
        }
        A::AddPeriod { .. } | A::DropPeriod { .. } => {
            request.rebuild |= change_period(ctx, draft, action)?;
        }
        A::DropSystemVersioning => {
            history::end(draft)?;
            request.rebuild = true;
        }
    }
    Ok(())
}

/// ADD and DROP PERIOD. Whether all rows must be looked at.
fn change_period(ctx: &mut dyn Context, draft: &mut Draft, action: &AlterAction) -> Result<bool> {
    use AlterAction as A;
    if let A::AddPeriod { name, start, end, if_not_exists } = action {
        if history::is_system_time(name) {
            history::declare_period(draft, start, end);
            return Ok(false);
        }
        return periods::add(ctx, draft, (name, *if_not_exists), (start, end));
    }
    if let A::DropPeriod { name, if_exists } = action {
        if history::is_system_time(name) {
            history::drop_period(draft, name)?;
        }
        periods::remove(ctx, draft, name, *if_exists)?;
    }
    Ok(false)
}

fn add_column(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    column: &ColumnDef,
    if_not_exists: bool,
    position: Option<&ColumnPosition>,
) -> Result<()> {
    if draft.column(&column.name.text).is_some() {
        if if_not_exists {
            ctx.conditions().note(ErrorCode::DUP_FIELDNAME, &[&column.name.text]);
            return Ok(());
        }
        bail!(DUP_FIELDNAME, column.name.text);
    }
    let built = build_column(ctx, draft, column)?;
    let at = place_for(draft, position, None)?;
    add_built_column(ctx, draft, built, at)
}

/// ALTER COLUMN .. SET DEFAULT and DROP DEFAULT.
fn set_default(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    name: &str,
    default: Option<&Expr>,
    parenthesised: bool,
) -> Result<()> {
    let at = column_of(draft, name, &draft.name)?;
    let ty = draft.columns[at].column.ty.clone();
    draft.columns[at].column.default = match default {
        Some(expr) => column_default(ctx, name, &ty, expr, parenthesised)?,
        None => ColumnDefault::None,
    };
    Ok(())
}

/// RENAME COLUMN.
fn rename(ctx: &dyn Context, draft: &mut Draft, old: &Ident, new: &Ident) -> Result<()> {
    let at = column_of(draft, &old.text, &draft.name)?;
    if !same_name(&old.text, &new.text) && draft.column(&new.text).is_some() {
        bail!(DUP_FIELDNAME, new.text);
    }
    check_column_name(&new.text)?;
    refuse_dependents(ctx, draft, at)?;
    rename_column(draft, at, &new.text);
    Ok(())
}

fn rename_index(draft: &mut Draft, old: &Ident, new: &Ident, table: &Table) -> Result<()> {
    let at = index_of(draft, old, table)?;
    if !same_name(&old.text, &new.text) && draft.index(&new.text).is_some() {
        bail!(DUP_KEYNAME, new.text);
    }
    draft.indexes[at].name = Some(Arc::from(&*new.text));
    Ok(())
}

/// Schema and name of RENAME TO.
fn new_name(draft: &Draft, to: &ObjectName) -> Result<(Arc<str>, Arc<str>)> {
    let schema = match &to.schema {
        Some(schema) => Arc::from(&*schema.text),
        None => draft.schema.clone(),
    };
    check_table_name(&to.name.text)?;
    Ok((schema, Arc::from(&*to.name.text)))
}

fn index_of(draft: &Draft, name: &Ident, table: &Table) -> Result<usize> {
    draft.index(&name.text).ok_or_else(|| err!(KEY_DOES_NOT_EXITS, name.text, table.name))
}

fn check_of(draft: &Draft, name: &Ident) -> Result<usize> {
    find_check(draft, &name.text).ok_or_else(|| err!(CHECK_CONSTRAINT_NOT_FOUND, name.text))
}
