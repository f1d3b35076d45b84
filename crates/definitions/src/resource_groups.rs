//! Meaning of CREATE, ALTER and DROP RESOURCE GROUP.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use catalog::{CatalogSnapshot, Edit, ResourceGroup};
use errors::{Result, bail, err};
use syntax::ast::{self, Ident};

/// The group of sessions that are in no other.
pub const USER_DEFAULT: &str = "USR_default";
/// The group of the server's own threads.
pub const SYSTEM_DEFAULT: &str = "SYS_default";
/// Characters of a name.
const NAME_MAX: usize = 64;

/// What a statement changes.
#[derive(Debug)]
pub struct GroupChange {
    /// Of the catalog.
    pub edit: Edit,
    /// The group's name.
    pub name: Arc<str>,
    /// As what its sessions stay in it; `None` when they leave it.
    pub stays: Option<Arc<ResourceGroup>>,
    /// It must have no sessions.
    pub must_be_empty: bool,
}

/// All groups, those first that are always there.
pub fn resource_groups(snapshot: &CatalogSnapshot) -> Vec<Arc<ResourceGroup>> {
    let always = [(USER_DEFAULT, false), (SYSTEM_DEFAULT, true)].map(|(name, is_system)| {
        let (processors, priority) = (BTreeSet::new(), 0);
        let name = name.into();
        Arc::new(ResourceGroup { name, is_system, is_enabled: true, processors, priority })
    });
    always.into_iter().chain(snapshot.resource_groups().iter().cloned()).collect()
}

/// A group by its name in any case.
///
/// # Errors
/// 1059, 3651.
pub fn resource_group(snapshot: &CatalogSnapshot, name: &str) -> Result<Arc<ResourceGroup>> {
    check_length(name)?;
    let groups = resource_groups(snapshot);
    let found = groups.into_iter().find(|group| group.is_named(name));
    found.ok_or_else(|| err!(RESOURCE_GROUP_NOT_EXISTS, name))
}

/// What a statement means; `usable` are the processors that the server may use.
///
/// # Errors
/// 1059, 3650 to 3655, 3662.
pub fn change_resource_group(
    statement: &ast::ResourceGroup,
    snapshot: &CatalogSnapshot,
    usable: &BTreeSet<u32>,
) -> Result<GroupChange> {
    match statement {
        ast::ResourceGroup::Create { name, system, vcpus, priority, enabled } => {
            let name = checked(name)?;
            let priority = checked_priority(priority.unwrap_or(0), *system, &name)?;
            let group = Arc::new(ResourceGroup {
                name: name.clone(),
                is_system: *system,
                is_enabled: enabled.unwrap_or(true),
                processors: checked_processors(vcpus, usable)?,
                priority,
            });
            if resource_group(snapshot, &name).is_ok() {
                bail!(RESOURCE_GROUP_EXISTS, name);
            }
            let edit = Edit::PutResourceGroup(group.clone());
            Ok(GroupChange { edit, name, stays: Some(group), must_be_empty: false })
        }
        ast::ResourceGroup::Alter { name, vcpus, priority, enabled, force } => {
            let name = checked(name)?;
            if *force && *enabled != Some(false) {
                bail!(INVALID_USE_OF_FORCE_OPTION);
            }
            check_not_default(&name, "Alter")?;
            let processors = checked_processors(vcpus, usable)?;
            let mut group = ResourceGroup::clone(&*resource_group(snapshot, &name)?);
            // As in the reference: without one it is the normal priority again.
            group.priority = checked_priority(priority.unwrap_or(0), group.is_system, &name)?;
            if !vcpus.is_empty() {
                group.processors = processors;
            }
            group.is_enabled = enabled.unwrap_or(group.is_enabled);
            let group = Arc::new(group);
            let edit = Edit::PutResourceGroup(group.clone());
            Ok(GroupChange { edit, name, stays: (!force).then_some(group), must_be_empty: false })
        }
        ast::ResourceGroup::Drop { name, force } => {
            let name = checked(name)?;
            // The reference's words.
            check_not_default(&name, "Drop operation ")?;
            let name = resource_group(snapshot, &name)?.name.clone();
            let edit = Edit::DropResourceGroup(name.clone());
            Ok(GroupChange { edit, name, stays: None, must_be_empty: !force })
        }
    }
}

fn check_length(name: &str) -> Result<()> {
    if name.chars().count() > NAME_MAX {
        bail!(TOO_LONG_IDENT, name);
    }
    Ok(())
}

fn checked(name: &Ident) -> Result<Arc<str>> {
    check_length(&name.text)?;
    Ok(Arc::from(&*name.text))
}

fn check_not_default(name: &str, operation: &str) -> Result<()> {
    if [USER_DEFAULT, SYSTEM_DEFAULT].iter().any(|known| known.eq_ignore_ascii_case(name)) {
        bail!(DISALLOWED_OPERATION, operation, "default resource groups.");
    }
    Ok(())
}

fn checked_priority(priority: i64, is_system: bool, name: &str) -> Result<i32> {
    let (kind, range): (_, RangeInclusive<i64>) =
        if is_system { ("System", -20..=0) } else { ("User", 0..=19) };
    match i32::try_from(priority) {
        Ok(narrow) if range.contains(&priority) => Ok(narrow),
        Ok(_) | Err(_) => {
            bail!(INVALID_THREAD_PRIORITY, priority, kind, name, range.start(), range.end())
        }
    }
}

fn checked_processors(ranges: &[(u64, u64)], usable: &BTreeSet<u32>) -> Result<BTreeSet<u32>> {
    let mut processors = BTreeSet::new();
    for (first, last) in ranges {
        let usable = |number: u64| {
            let narrow = u32::try_from(number).ok().filter(|narrow| usable.contains(narrow));
            narrow.ok_or_else(|| err!(INVALID_VCPU_ID, number))
        };
        // Both ends first: then the range is not longer than the machine is large.
        usable(*first)?;
        usable(*last)?;
        if first > last {
            bail!(INVALID_VCPU_RANGE, first, last);
        }
        for number in *first..=*last {
            processors.insert(usable(number)?);
        }
    }
    Ok(processors)
}
