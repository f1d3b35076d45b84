//! Names of constraints: those that the server generates (`t_ibfk_1`, `t_chk_1`), the order by name, and how a table's new name
//! changes them. Foreign keys share one namespace in a schema, CHECK constraints another; case does not count.

use std::sync::Arc;

use errors::{Error, err};

use crate::{ForeignKey, Table};

/// The namespace of a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConstraintKind {
    /// FOREIGN KEY.
    ForeignKey,
    /// CHECK.
    Check,
}

impl ConstraintKind {
    /// The word between table and number in a generated name.
    fn word(self) -> &'static str {
        match self {
            ConstraintKind::ForeignKey => "ibfk",
            ConstraintKind::Check => "chk",
        }
    }

    /// The name that the server gives to constraint `number` of a table.
    pub fn made_name(self, table: &str, number: u64) -> String {
        format!("{table}_{}_{number}", self.word())
    }

    /// The number in a name that the server generated, or could have generated, for a constraint of `table`.
    pub fn made_number(self, table: &str, name: &str) -> Option<u64> {
        let (head, number) = name.rsplit_once('_')?;
        let (owner, word) = head.rsplit_once('_')?;
        let made = word == self.word() && crate::same_name(owner, table);
        number.parse().ok().filter(|_| made && !number.starts_with(['0', '+']))
    }

    /// The error for a name that is already used.
    pub fn duplicate(self, name: &str) -> Error {
        match self {
            ConstraintKind::ForeignKey => err!(FK_DUP_NAME, name),
            ConstraintKind::Check => err!(CHECK_CONSTRAINT_DUP_NAME, name),
        }
    }
}

impl Table {
    /// Kind and name of each foreign key and CHECK constraint.
    pub fn constraint_names(&self) -> impl Iterator<Item = (ConstraintKind, &Arc<str>)> {
        let keys = self.foreign_keys.iter().map(|key| (ConstraintKind::ForeignKey, &key.name));
        keys.chain(self.checks.iter().map(|check| (ConstraintKind::Check, &check.name)))
    }

    /// The number after those in the names that the server generated.
    pub fn next_made_number(&self, kind: ConstraintKind) -> u64 {
        let names = self.constraint_names().filter(|(known, _)| *known == kind);
        let numbers = names.filter_map(|(_, name)| kind.made_number(&self.name, name));
        numbers.max().unwrap_or(0).saturating_add(1)
    }

    /// Sorts constraints by name, the order in which they are shown and checked.
    pub fn sort_constraints(&mut self) {
        self.foreign_keys.sort_by_cached_key(|key| key.name.to_lowercase());
        self.checks.sort_by_cached_key(|check| check.name.to_lowercase());
    }

    /// Renames the table. Its foreign keys to itself follow, and the names of constraints that were generated from the old name.
    pub fn rename(&mut self, schema: &Arc<str>, name: &Arc<str>) {
        let (old_schema, old_name) = (self.schema.clone(), self.name.clone());
        self.redirect_foreign_keys((&old_schema, &old_name), (schema, name));
        let renamed = |kind: ConstraintKind, known: &mut Arc<str>| {
            if let Some(number) = kind.made_number(&old_name, known) {
                *known = kind.made_name(name, number).into();
            }
        };
        for key in &mut self.foreign_keys {
            renamed(ConstraintKind::ForeignKey, &mut key.name);
        }
        for check in &mut self.checks {
            renamed(ConstraintKind::Check, &mut check.name);
        }
        self.sort_constraints();
        self.schema = schema.clone();
        self.name = name.clone();
        self.definition.name = format!("{schema}.{name}");
    }

    /// Redirects foreign keys that refer to table `from` to `to`.
    pub fn redirect_foreign_keys(&mut self, from: (&str, &str), to: (&Arc<str>, &Arc<str>)) {
        let refers = |key: &&mut ForeignKey| {
            *key.referenced_schema == *from.0 && *key.referenced_table == *from.1
        };
        for key in self.foreign_keys.iter_mut().filter(refers) {
            key.referenced_schema = to.0.clone();
            key.referenced_table = to.1.clone();
        }
    }
}
