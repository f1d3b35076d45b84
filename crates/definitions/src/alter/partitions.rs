//! ALTER TABLE on partitions: edits the draft's partitioning and determines which partitions' rows stay.
//!
//! ADD of RANGE and LIST changes the definition only, DROP and TRUNCATE may delete the partitions in `gone`; everything else rewrites the rows
//! that stay.

use catalog::{
    Partition, PartitionKind, PartitionMethod, Partitioning, Table, discarded_numbers, same_name,
};
use errors::{Error, Result, bail, err};
use syntax::ast::{Ident, PartitionAction, PartitionDef, PartitionNames};
use types::partition::NO_PARTITION;

use super::{Request, discard};
use crate::context::Context;
use crate::draft::Draft;
use crate::partitions::{
    PARTITIONS_MAX, build_partition, check_names, check_values, name_subpartitions, unnamed, word,
};
use crate::system_partitions;

/// Applies one action on partitions.
pub(crate) fn alter_partitions(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    table: &Table,
    action: &PartitionAction,
    request: &mut Request,
) -> Result<()> {
    if let PartitionAction::Discard(names) = action {
        return discard::discard(ctx, draft, table, Some(names), request);
    }
    // REMOVE PARTITIONING came first, whatever its place in the statement.
    if request.repartitions {
        return Ok(());
    }
    let Some(mut partitioning) = draft.partitioning.clone() else {
        bail!(PARTITION_MGMT_ON_NONPARTITIONED)
    };
    let discarded = discarded_numbers(&draft.options);
    if !discarded.is_empty()
        && !matches!(action, PartitionAction::Drop { .. } | PartitionAction::Truncate(_))
    {
        // Their rows are missing, and the others have places among them.
        bail!(TABLESPACE_DISCARDED, draft.name);
    }
    match action {
        PartitionAction::Remove => {
            draft.partitioning = None;
            request.rebuild = true;
            request.repartitions = true;
            return Ok(());
        }
        PartitionAction::Add { partitions, count, .. } => {
            if partitioning.by_system_time() {
                add_history(ctx, draft, &mut partitioning, partitions, *count)?;
                request.rebuild |=
                    system_partitions::may_overflow(ctx, draft.partitioning.as_ref())?;
            } else {
                add_partitions(ctx, draft, &mut partitioning, partitions, *count)?;
            }
            request.rebuild |=
                draft.partitioning.as_ref().is_some_and(|old| !partitioning.keeps_numbers(old));
        }
        PartitionAction::Drop { names, .. } => {
            drop_partitions(draft, &mut partitioning, names, &discarded, request)?;
            discard::forget(draft, &request.gone);
        }
        PartitionAction::Truncate(names) => {
            request.gone = named(&partitioning, names, &draft.name)?;
            if request.gone.iter().any(|number| discarded.contains(number)) {
                bail!(TABLESPACE_DISCARDED, draft.name);
            }
            let without: Vec<u16> = request.gone.iter().chain(&discarded).copied().collect();
            request.kept = Some(untouched(&partitioning, &without));
            return Ok(());
        }
        PartitionAction::Coalesce { count, .. } => {
            coalesce(&mut partitioning, *count)?;
            request.rebuild = true;
        }
        PartitionAction::Reorganize { names, into, .. } => {
            reorganize(ctx, draft, &mut partitioning, names, into)?;
            request.rebuild = true;
        }
        PartitionAction::Rebuild { names, .. } => {
            if let PartitionNames::List(names) = names {
                places(&partitioning, names, "REBUILD")?;
            }
            request.rebuild = true;
            return Ok(());
        }
        PartitionAction::Exchange { .. } => {
            return Err(Error::not_supported("EXCHANGE PARTITION with other changes"));
        }
        PartitionAction::Discard(_) | PartitionAction::Import(_) => {
            return Err(discard::imported_alone());
        }
        PartitionAction::SecondaryLoad(_) | PartitionAction::SecondaryUnload(_) => {
            return Err(Error::not_supported("SECONDARY_LOAD"));
        }
        PartitionAction::Analyze { .. }
        | PartitionAction::Check { .. }
        | PartitionAction::Optimize { .. }
        | PartitionAction::Repair { .. } => {
            return Err(Error::not_supported("maintenance of partitions with other changes"));
        }
    }
    check_names(&partitioning)?;
    check_values(draft, &partitioning)?;
    system_partitions::set_ends(ctx, draft, &mut partitioning)?;
    if partitioning.leaves() as u64 > PARTITIONS_MAX {
        bail!(TOO_MANY_PARTITIONS_ERROR);
    }
    draft.partitioning = Some(partitioning);
    Ok(())
}

/// DROP PARTITION.
fn drop_partitions(
    draft: &Draft,
    partitioning: &mut Partitioning,
    names: &[Ident],
    discarded: &[u16],
    request: &mut Request,
) -> Result<()> {
    if !partitioning.by_system_time() {
        only_by_value(&partitioning.method, "DROP")?;
    }
    let places = places(partitioning, names, "DROP")?;
    if partitioning.by_system_time() {
        system_partitions::check_dropped(draft, partitioning, &places)?;
    }
    if places.len() == partitioning.partitions.len() {
        bail!(DROP_LAST_PARTITION);
    }
    request.gone.extend(places.iter().flat_map(|at| partitioning.numbers_of(*at)));
    let is_kept = |at: &usize| !places.contains(at);
    let kept = (0..partitioning.partitions.len()).filter(is_kept);
    let kept: Vec<Partition> = kept.map(|at| partitioning.partitions[at].clone()).collect();
    partitioning.partitions = kept;
    // Of those without rows nothing is copied.
    request.kept = Some(untouched(partitioning, discarded));
    Ok(())
}

/// COALESCE PARTITION.
fn coalesce(partitioning: &mut Partitioning, count: u64) -> Result<()> {
    if is_by_value(&partitioning.method) || partitioning.by_system_time() {
        bail!(COALESCE_ONLY_ON_HASH_PARTITION);
    }
    if count == 0 {
        bail!(COALESCE_PARTITION_NO_PARTITION);
    }
    let left = (partitioning.partitions.len() as u64).saturating_sub(count);
    if left == 0 {
        bail!(DROP_LAST_PARTITION);
    }
    partitioning.partitions.truncate(left as usize);
    Ok(())
}

fn add_partitions(
    ctx: &mut dyn Context,
    draft: &Draft,
    partitioning: &mut Partitioning,
    written: &[PartitionDef],
    count: Option<u64>,
) -> Result<()> {
    let subs = partitioning.partitions.first().map_or(0, |own| own.subpartitions.len());
    if is_by_value(&partitioning.method) {
        if written.is_empty() {
            let word = word(partitioning.method.kind);
            bail!(PARTITIONS_MUST_BE_DEFINED_ERROR, word);
        }
        for definition in written {
            let mut built = build_partition(ctx, draft, partitioning, definition)?;
            let last = partitioning.partitions.iter().map(|own| own.number).max();
            built.number = last.map_or(0, |last| last + 1);
            partitioning.partitions.push(built);
        }
        let numbers = u64::from(partitioning.subpartitions())
            * partitioning.partitions.last().map_or(0, |own| u64::from(own.number) + 1);
        if numbers >= u64::from(NO_PARTITION) {
            partitioning.renumber();
        }
        name_subpartitions(partitioning, subs);
        return Ok(());
    }
    if count == Some(0) {
        bail!(ADD_PARTITION_NO_NEW_PARTITION);
    }
    if count.is_some_and(|count| count > PARTITIONS_MAX) {
        bail!(TOO_MANY_PARTITIONS_ERROR);
    }
    for definition in written {
        let built = build_partition(ctx, draft, partitioning, definition)?;
        partitioning.partitions.push(built);
        partitioning.listed = true;
    }
    for _ in 0..count.unwrap_or(0) {
        let name = format!("p{}", partitioning.partitions.len());
        partitioning.partitions.push(unnamed(name));
    }
    partitioning.renumber();
    Ok(())
}

/// ADD PARTITION of SYSTEM_TIME.
fn add_history(
    ctx: &mut dyn Context,
    draft: &Draft,
    partitioning: &mut Partitioning,
    written: &[PartitionDef],
    count: Option<u64>,
) -> Result<()> {
    system_partitions::check_added(draft, written, count)?;
    let subs = partitioning.partitions.first().map_or(0, |own| own.subpartitions.len());
    for definition in written {
        let built = build_partition(ctx, draft, partitioning, definition)?;
        system_partitions::put_before_current(partitioning, built);
        partitioning.listed = true;
    }
    for name in system_partitions::made_names(partitioning, count.unwrap_or(0)) {
        system_partitions::put_before_current(partitioning, unnamed(name));
    }
    name_subpartitions(partitioning, subs);
    system_partitions::warn_of_rotation(ctx, partitioning);
    Ok(())
}

/// REORGANIZE PARTITION .. INTO: the named ones become others.
fn reorganize(
    ctx: &mut dyn Context,
    draft: &Draft,
    partitioning: &mut Partitioning,
    names: &[Ident],
    into: &[PartitionDef],
) -> Result<()> {
    if names.is_empty() {
        if is_by_value(&partitioning.method) {
            bail!(REORG_NO_PARAM_ERROR);
        }
        return Ok(());
    }
    if !is_by_value(&partitioning.method) && names.len() != into.len() {
        bail!(REORG_HASH_ONLY_ON_SAME_NO);
    }
    let mut places = places(partitioning, names, "REORGANIZE")?;
    places.sort_unstable();
    let first = places[0];
    let is_range = partitioning.method.kind == PartitionKind::Range;
    if is_range && places.iter().enumerate().any(|(at, place)| *place != first + at) {
        bail!(CONSECUTIVE_REORG_PARTITIONS);
    }
    let subs = partitioning.partitions.first().map_or(0, |own| own.subpartitions.len());
    let mut made = Vec::with_capacity(into.len());
    for definition in into {
        made.push(build_partition(ctx, draft, partitioning, definition)?);
    }
    let end = places[places.len() - 1];
    let is_last = end + 1 == partitioning.partitions.len();
    let bound = |own: Option<&Partition>| own.map(|own| own.values.clone());
    let before = bound(partitioning.partitions.get(end));
    if is_range && !is_last && before != bound(made.last()) {
        bail!(REORG_OUTSIDE_RANGE);
    }
    let mut kept = Vec::with_capacity(partitioning.partitions.len() + made.len());
    let mut made = Some(made);
    for (at, own) in std::mem::take(&mut partitioning.partitions).into_iter().enumerate() {
        if at == first {
            kept.extend(made.take().into_iter().flatten());
        }
        if !places.contains(&at) {
            kept.push(own);
        }
    }
    partitioning.partitions = kept;
    partitioning.listed = true;
    name_subpartitions(partitioning, subs);
    partitioning.renumber();
    check_names(partitioning)
}

fn is_by_value(method: &PartitionMethod) -> bool {
    matches!(method.kind, PartitionKind::Range | PartitionKind::List)
}

fn only_by_value(method: &PartitionMethod, what: &str) -> Result<()> {
    if is_by_value(method) { Ok(()) } else { Err(err!(ONLY_ON_RANGE_LIST_PARTITION, what)) }
}

/// Positions of partitions; 1507 for an unknown name.
fn places(partitioning: &Partitioning, names: &[Ident], what: &str) -> Result<Vec<usize>> {
    let place = |name: &Ident| {
        let found = partitioning.partitions.iter().position(|own| same_name(&own.name, &name.text));
        found.ok_or_else(|| err!(DROP_PARTITION_NON_EXISTENT, what))
    };
    names.iter().map(place).collect()
}

/// Numbers of the partitions and subpartitions that TRUNCATE names; 1735.
pub(super) fn named(
    partitioning: &Partitioning,
    names: &PartitionNames,
    table: &str,
) -> Result<Vec<u16>> {
    let PartitionNames::List(names) = names else {
        return Ok(partitioning.numbers());
    };
    let mut gone = Vec::new();
    for name in names {
        match partitioning.named(&name.text) {
            Some(numbers) => gone.extend(numbers),
            None => bail!(UNKNOWN_PARTITION, name.text, table),
        }
    }
    gone.sort_unstable();
    gone.dedup();
    Ok(gone)
}

/// Partitions that keep their rows, or subpartitions of those that are named in part.
pub(super) fn untouched(partitioning: &Partitioning, gone: &[u16]) -> Vec<Ident> {
    let mut kept = Vec::new();
    for (at, own) in partitioning.partitions.iter().enumerate() {
        let numbers = partitioning.numbers_of(at);
        if own.subpartitions.is_empty() {
            if !gone.contains(&own.number) {
                kept.push(Ident::new(&own.name));
            }
            continue;
        }
        for (number, (name, _)) in numbers.zip(&own.subpartitions) {
            if !gone.contains(&number) {
                kept.push(Ident::new(name));
            }
        }
    }
    kept
}
