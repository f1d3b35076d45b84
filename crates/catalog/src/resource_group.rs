//! Resource groups: processors and a priority that the statements of sessions are run with.

use std::collections::BTreeSet;
use std::sync::Arc;

use errors::Result;

use crate::fields::{FieldWriter, object_fields};

/// A resource group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceGroup {
    /// Name as created; groups' names compare without regard to case.
    pub name: Arc<str>,
    /// For threads of the server, not for those of sessions.
    pub is_system: bool,
    /// Sessions may be put into it.
    pub is_enabled: bool,
    /// By the kernel's numbers; none for all.
    pub processors: BTreeSet<u32>,
    /// Steps of niceness: from -20, the highest priority, to 19.
    pub priority: i32,
}

impl ResourceGroup {
    /// Whether it has this name.
    pub fn is_named(&self, name: &str) -> bool {
        self.name.to_lowercase() == name.to_lowercase()
    }
}

/// Steps of niceness are stored as their distance from the highest priority.
const PRIORITY_MIN: i32 = -20;

/// A resource group: name 1, for the server 2, enabled 3, a processor 4 (for each), priority 5 (counted from -20).
pub(crate) fn write_group(group: &ResourceGroup) -> Vec<u8> {
    let mut out = FieldWriter::object();
    out.text(1, &group.name);
    out.flag(2, group.is_system);
    out.flag(3, group.is_enabled);
    for processor in &group.processors {
        out.number(4, u64::from(*processor));
    }
    out.number(5, u64::from((group.priority - PRIORITY_MIN).unsigned_abs()));
    out.finish()
}

pub(crate) fn read_group(bytes: &[u8]) -> Result<ResourceGroup> {
    let mut group = ResourceGroup {
        name: "".into(),
        is_system: false,
        is_enabled: false,
        processors: BTreeSet::new(),
        priority: 0,
    };
    for field in object_fields(bytes)? {
        match field.tag {
            1 => group.name = field.text()?.into(),
            2 => group.is_system = field.flag()?,
            3 => group.is_enabled = field.flag()?,
            4 => {
                group.processors.insert(field.narrow()?);
            }
            5 => group.priority = i32::from(field.narrow::<u8>()?) + PRIORITY_MIN,
            _ => {}
        }
    }
    Ok(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read_as_they_were_written() {
        for (priority, processors) in [(-20, vec![]), (0, vec![0]), (19, vec![3, 70_000])] {
            let group = ResourceGroup {
                name: "Reports".into(),
                is_system: priority < 0,
                is_enabled: priority == 0,
                processors: processors.into_iter().collect(),
                priority,
            };
            assert_eq!(read_group(&write_group(&group)).unwrap(), group);
        }
    }
}
