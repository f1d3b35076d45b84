//! Restrictions of global privileges: schemas in which some of them do not hold. REVOKE makes them under `partial_revokes`.

use std::collections::BTreeMap;

use crate::privilege::PrivilegeSet;

/// Schemas by their exact names, and the global privileges that do not hold in them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Restrictions(BTreeMap<Box<str>, PrivilegeSet>);

impl Restrictions {
    /// Whether every global privilege holds everywhere.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In order of schemas.
    pub fn iter(&self) -> impl Iterator<Item = (&str, PrivilegeSet)> {
        self.0.iter().map(|(schema, set)| (&**schema, *set))
    }

    /// What does not hold in a schema.
    pub fn on(&self, schema: &str) -> PrivilegeSet {
        match self.0.is_empty() {
            true => PrivilegeSet::NONE,
            false => self.0.get(schema).copied().unwrap_or_default(),
        }
    }

    /// What does not hold in some schema.
    pub fn anywhere(&self) -> PrivilegeSet {
        self.0.values().fold(PrivilegeSet::NONE, |all, set| all | *set)
    }

    /// Adds a restriction.
    pub fn add(&mut self, schema: &str, set: PrivilegeSet) {
        if !set.is_empty() {
            *self.0.entry(schema.into()).or_default() |= set;
        }
    }

    /// Ends a restriction.
    pub fn lift(&mut self, schema: &str, set: PrivilegeSet) {
        if let Some(held) = self.0.get_mut(schema) {
            *held = held.without(set);
            if held.is_empty() {
                self.0.remove(schema);
            }
        }
    }

    /// Keeps restrictions of these privileges only: others restrict nothing.
    pub fn keep(&mut self, global: PrivilegeSet) {
        self.0.values_mut().for_each(|set| *set = *set & global);
        self.0.retain(|_, set| !set.is_empty());
    }

    /// The restrictions of whoever has the privileges of two holders: what one of them may do in a schema is not restricted there. Each holder is a set
    /// of global privileges and their restrictions; `self` belongs to `own`.
    pub fn merge(&mut self, own: PrivilegeSet, other: PrivilegeSet, of_other: &Restrictions) {
        if self.is_empty() && of_other.is_empty() {
            return;
        }
        let mut merged = Restrictions::default();
        for schema in self.0.keys().chain(of_other.0.keys()) {
            let held = own.without(self.on(schema)) | other.without(of_other.on(schema));
            merged.add(schema, (own | other).without(held));
        }
        debug_assert!((own | other).contains(merged.anywhere()), "of privileges that are held");
        *self = merged;
    }
}
