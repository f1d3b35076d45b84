//! System versioning in definitions: which columns tell the times of a row, what a definition must say of them, and what ALTER TABLE may do to a
//! table that keeps history.

use std::sync::Arc;

use catalog::{
    Column, ColumnDefault, ColumnHistory, ROW_END, ROW_START, Table, row_time_type, same_name,
};
use errors::{Error, Result, bail};
use syntax::ast::{AlterAction, Ident, IndexKind, TableConstraint};
use types::TypeKind;

use crate::context::Context;
use crate::draft::{Draft, DraftColumn};
use crate::quoting::quote;

/// The two columns of PERIOD FOR SYSTEM_TIME.
pub(crate) type SystemPeriod = (Arc<str>, Arc<str>);

/// Which of the two columns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Start,
    End,
}

impl Which {
    fn words(self) -> &'static str {
        match self {
            Which::Start => "AS ROW START",
            Which::End => "AS ROW END",
        }
    }

    fn is(self, history: ColumnHistory) -> bool {
        match history {
            ColumnHistory::RowStart { .. } => self == Which::Start,
            ColumnHistory::RowEnd { .. } => self == Which::End,
            ColumnHistory::Kept | ColumnHistory::NotKept => false,
        }
    }
}

/// Whether a period is that of system time.
pub(crate) fn is_system_time(period: &Ident) -> bool {
    period.text.eq_ignore_ascii_case("SYSTEM_TIME")
}

/// PERIOD FOR SYSTEM_TIME of a definition.
pub(crate) fn declare_period(draft: &mut Draft, start: &Ident, end: &Ident) {
    draft.system_period = Some((Arc::from(&*start.text), Arc::from(&*end.text)));
}

/// The period of a table that has declared columns.
pub(crate) fn declared_period(table: &Table) -> Option<SystemPeriod> {
    let times = table.row_times()?;
    let (start, end) = (&table.columns[times.start], &table.columns[times.end]);
    (!start.history.is_undeclared_time()).then(|| (start.name.clone(), end.name.clone()))
}

/// Completes what the statement says of history: adds the two columns, and checks declared ones.
///
/// # Errors
/// 4123 to 4126, 4134, 4137; 1063 for another type than TIMESTAMP(6), 1235 for numbers of transactions.
pub(crate) fn settle(draft: &mut Draft, is_new: bool) -> Result<()> {
    let asked = |column: &DraftColumn| column.history_written == Some(true);
    let is_implied = is_new && !draft.keeps_history && draft.columns.iter().any(asked);
    if is_implied {
        draft.keeps_history = true;
        for column in draft.columns.iter_mut().filter(|column| column.history_written.is_none()) {
            if !column.column.history.is_time() {
                column.column.history = ColumnHistory::NotKept;
            }
        }
    }
    let declares = draft.columns.iter().any(|column| is_declared(&column.column));
    if !draft.keeps_history {
        if declares || draft.system_period.is_some() {
            bail!(VERS_MISSING, draft.name, "WITH SYSTEM VERSIONING");
        }
        for column in &mut draft.columns {
            column.column.history = ColumnHistory::Kept;
        }
        return Ok(());
    }
    if draft.temporary {
        bail!(VERS_NOT_SUPPORTED, "CREATE TEMPORARY TABLE");
    }
    if declares || draft.system_period.is_some() {
        check_declared(draft)?;
    } else if !draft.columns.iter().any(|column| column.column.history.is_time()) {
        draft.columns.push(undeclared(ROW_START, ColumnHistory::RowStart { declared: false }));
        draft.columns.push(undeclared(ROW_END, ColumnHistory::RowEnd { declared: false }));
    }
    let is_kept = |column: &DraftColumn| column.column.history == ColumnHistory::Kept;
    if !draft.columns.iter().any(is_kept) {
        bail!(VERS_TABLE_MUST_HAVE_COLUMNS, draft.name);
    }
    // The others have positions without gaps.
    draft.columns.sort_by_key(|column| column.column.history.is_undeclared_time());
    Ok(())
}

fn is_declared(column: &Column) -> bool {
    column.history.is_time() && !column.history.is_undeclared_time()
}

fn undeclared(name: &str, history: ColumnHistory) -> DraftColumn {
    let column = Column {
        name: name.into(),
        ty: row_time_type(),
        stored: None,
        default: ColumnDefault::None,
        on_update_now: None,
        auto_increment: false,
        generated: None,
        invisible: true,
        comment: String::new(),
        collation_written: false,
        histogram: None,
        placement: catalog::Placement::default(),
        history,
    };
    DraftColumn { column, origin: None, null_written: Some(false), history_written: None }
}

fn check_declared(draft: &Draft) -> Result<()> {
    let start = declared_column(draft, Which::Start)?;
    let end = declared_column(draft, Which::End)?;
    let Some((first, last)) = &draft.system_period else {
        bail!(VERS_MISSING, draft.name, "PERIOD FOR SYSTEM_TIME")
    };
    if !same_name(first, &start.name) || !same_name(last, &end.name) {
        bail!(VERS_PERIOD_COLUMNS, start.name, end.name);
    }
    for column in [start, end] {
        if column.ty.kind == TypeKind::BigInt && column.ty.unsigned {
            return Err(Error::not_supported("transaction-precise system versioning"));
        }
        if column.ty.kind != TypeKind::Timestamp || column.ty.decimals != 6 {
            bail!(WRONG_FIELD_SPEC, column.name);
        }
    }
    Ok(())
}

fn declared_column(draft: &Draft, which: Which) -> Result<&Column> {
    let mut found = draft
        .columns
        .iter()
        .map(|column| &column.column)
        .filter(|column| which.is(column.history) && is_declared(column));
    let Some(first) = found.next() else { bail!(VERS_MISSING, draft.name, which.words()) };
    match (found.next(), which) {
        (None, _) => Ok(first),
        (Some(second), Which::Start) => bail!(VERS_DUPLICATE_ROW_START_END, "START", second.name),
        (Some(second), Which::End) => bail!(VERS_DUPLICATE_ROW_START_END, "END", second.name),
    }
}

/// WITH SYSTEM VERSIONING, ADD SYSTEM VERSIONING.
///
/// # Errors
/// 4135.
pub(crate) fn begin(draft: &mut Draft) -> Result<()> {
    if draft.keeps_history {
        bail!(VERS_ALREADY_VERSIONED, draft.name);
    }
    draft.keeps_history = true;
    Ok(())
}

/// DROP SYSTEM VERSIONING. Declared columns are dropped by the same statement.
///
/// # Errors
/// 4124, 4125.
pub(crate) fn end(draft: &mut Draft) -> Result<()> {
    if !draft.keeps_history {
        bail!(VERS_NOT_VERSIONED, draft.name);
    }
    if let Some(column) = draft.columns.iter().find(|column| is_declared(&column.column)) {
        bail!(VERS_MISSING, draft.name, format!("DROP COLUMN {}", quote(&column.column.name)));
    }
    if draft.partitioning.as_ref().is_some_and(catalog::Partitioning::by_system_time) {
        bail!(VERS_DROP_PARTITIONED, draft.name);
    }
    draft.keeps_history = false;
    draft.system_period = None;
    draft.columns.retain(|column| !column.column.history.is_time());
    Ok(())
}

/// Whether an ALTER TABLE begins or ends history: every row is written anew.
pub fn changes(old: &Table, new: &Table) -> bool {
    old.row_times().is_some() != new.row_times().is_some()
}

/// Checks what an ALTER TABLE does to a table that keeps history: what old rows were like must not change unless the session says so.
///
/// # Errors
/// 4119; 1060, 1091 and 4130 for the hidden columns; 1235.
pub(crate) fn check_alter(ctx: &dyn Context, table: &Table, actions: &[AlterAction]) -> Result<()> {
    if table.row_times().is_none() {
        return Ok(());
    }
    let drops = |action: &AlterAction| matches!(action, AlterAction::DropSystemVersioning);
    let is_ended = actions.iter().any(drops);
    // ENUM: 0 is ERROR.
    let variable = variables::as_text(&ctx.variable("system_versioning_alter_history"));
    let keeps = variable.eq_ignore_ascii_case("KEEP");
    for action in actions {
        check_times(table, action, is_ended)?;
        if !is_ended && !keeps && rewrites_history(action) {
            bail!(VERS_ALTER_NOT_ALLOWED, quote(&table.schema), quote(&table.name));
        }
    }
    Ok(())
}

/// Whether an action changes what history tells.
fn rewrites_history(action: &AlterAction) -> bool {
    use AlterAction as A;
    if let A::AddConstraint(constraint) = action {
        let TableConstraint::Index(index) = &**constraint else { return false };
        return matches!(index.kind, IndexKind::Primary | IndexKind::Unique);
    }
    matches!(
        action,
        A::AddColumn { .. }
            | A::DropColumn { .. }
            | A::ChangeColumn { .. }
            | A::ModifyColumn { .. }
    )
}

/// What an action says of the columns of the times.
fn check_times(table: &Table, action: &AlterAction, is_ended: bool) -> Result<()> {
    use AlterAction as A;
    let time = |name: &Ident| {
        let column = table.column(&name.text).map(|at| &table.columns[at]);
        column.map(|column| column.history).filter(|history| history.is_time())
    };
    if let A::DropColumn { name, .. } = action
        && let Some(history) = time(name)
    {
        if history.is_undeclared_time() {
            bail!(CANT_DROP_FIELD_OR_KEY, name.text);
        }
        if !is_ended {
            return Err(Error::not_supported(
                "dropping the columns of PERIOD FOR SYSTEM_TIME without DROP SYSTEM VERSIONING",
            ));
        }
    }
    if let A::ChangeColumn { old: name, .. }
    | A::RenameColumn { old: name, .. }
    | A::AlterColumnDefault { name, .. } = action
        && time(name).is_some()
    {
        bail!(VERS_ALTER_SYSTEM_FIELD, name.text);
    }
    if let A::ModifyColumn { column, .. } = action
        && time(&column.name).is_some()
    {
        bail!(VERS_ALTER_SYSTEM_FIELD, column.name.text);
    }
    if let A::AlterColumnVisible { name, .. } = action
        && time(name).is_some_and(ColumnHistory::is_undeclared_time)
    {
        bail!(VERS_ALTER_SYSTEM_FIELD, name.text);
    }
    Ok(())
}

/// DROP PERIOD FOR SYSTEM_TIME.
///
/// # Errors
/// 1235, 1091.
pub(crate) fn drop_period(draft: &Draft, name: &Ident) -> Result<()> {
    if draft.system_period.is_some() {
        return Err(Error::not_supported("DROP PERIOD FOR SYSTEM_TIME"));
    }
    bail!(CANT_DROP_FIELD_OR_KEY, name.text)
}
