//! DISCARD TABLESPACE: the rows go, of the table or of partitions, and until IMPORT TABLESPACE brings others no statement reads or writes there.

use catalog::{Partitioning, Table, discarded_numbers, set_discarded};
use errors::{Error, ErrorCode, Result, bail};
use syntax::ast::PartitionNames;

use super::Request;
use super::partitions::{named, untouched};
use crate::context::Context;
use crate::draft::Draft;

/// DISCARD TABLESPACE, or PARTITION .. TABLESPACE.
///
/// # Errors
/// 1031, 1235, 1451, 1505, 1735, 3007.
pub(super) fn discard(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    table: &Table,
    partitions: Option<&PartitionNames>,
    request: &mut Request,
) -> Result<()> {
    check_transportable(ctx.engines().default, table)?;
    let catalog = ctx.catalog();
    let is_parent =
        catalog.children_of(&table.schema, &table.name).any(|child| child.id != table.id);
    if is_parent && ctx.settings().foreign_key_checks {
        bail!(ROW_IS_REFERENCED_2, "");
    }
    let mut discarded = table.discarded_partitions();
    request.discards = true;
    match (&table.partitioning, partitions) {
        (None, Some(_)) => bail!(PARTITION_MGMT_ON_NONPARTITIONED),
        (None, None) => {
            if table.is_discarded() {
                note_missing(ctx, table, "");
            }
            set_discarded(&mut draft.options, None);
            empty(request);
        }
        (Some(partitioning), None) => {
            set_discarded(&mut draft.options, Some(&partitioning.numbers()));
            empty(request);
        }
        (Some(partitioning), Some(names)) => {
            let numbers = named(partitioning, names, &table.name)?;
            for number in &numbers {
                match discarded.contains(number) {
                    true => note_missing(ctx, table, &leaf(partitioning, *number)),
                    false => discarded.push(*number),
                }
            }
            discarded.sort_unstable();
            set_discarded(&mut draft.options, Some(&discarded));
            request.kept = Some(untouched(partitioning, &discarded));
            request.gone = numbers;
        }
    }
    Ok(())
}

/// Whether the rows of a table can go and come as files.
///
/// # Errors
/// 3007, 1031, 1235.
pub fn check_transportable(default_engine: &str, table: &Table) -> Result<()> {
    if table.temporary {
        bail!(CANNOT_DISCARD_TEMPORARY_TABLE);
    }
    if *table.engine != *default_engine {
        bail!(ILLEGAL_HA, table.name);
    }
    if table.is_sequence() {
        return Err(Error::not_supported("moving a sequence between servers"));
    }
    Ok(())
}

/// IMPORT, which needs no draft: only EXPLAIN asks for one.
pub(super) fn imported_alone() -> Error {
    Error::not_supported("EXPLAIN of IMPORT TABLESPACE")
}

/// All rows go: an empty table takes the place of this one.
fn empty(request: &mut Request) {
    request.rebuild = true;
    request.kept = Some(Vec::new());
}

fn note_missing(ctx: &mut dyn Context, table: &Table, leaf: &str) {
    let shown = format!("{}/{}{leaf}", table.schema, table.name);
    ctx.conditions().warn(ErrorCode::TABLESPACE_MISSING, &[&shown]);
}

fn leaf(partitioning: &Partitioning, number: u16) -> String {
    partitioning.leaf_name(number).map_or_else(String::new, |name| format!("#p#{name}"))
}

/// The partitions with these numbers are dropped.
pub(super) fn forget(draft: &mut Draft, gone: &[u16]) {
    let mut discarded = discarded_numbers(&draft.options);
    if !discarded.is_empty() {
        discarded.retain(|number| !gone.contains(number));
        set_discarded(&mut draft.options, Some(&discarded));
    }
}
