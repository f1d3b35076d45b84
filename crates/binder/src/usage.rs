//! The tables, views and stored functions that a statement names itself, not through views.

use std::borrow::Cow;
use std::sync::Arc;

use crate::binder::Binder;

/// An object: its schema and its name.
pub type Named = (Arc<str>, Arc<str>);

/// What a statement names, each once, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Tables and views.
    pub tables: Vec<Named>,
    /// Stored functions.
    pub routines: Vec<Named>,
}

impl<'a> Binder<'a> {
    /// What a statement names, whose spans refer to `source`; where it has a fault, what was found before.
    pub fn usage(mut self, statement: &syntax::Statement, source: &'a [u8]) -> Usage {
        self.source = Cow::Borrowed(source);
        self.usage = Some(Usage::default());
        // A view whose tables are gone still names the others.
        let _ = self.bind_statement(statement);
        let mut usage = self.usage.take().unwrap_or_default();
        for named in [&mut usage.tables, &mut usage.routines] {
            named.sort();
            named.dedup();
        }
        usage
    }

    pub(crate) fn uses_table(&mut self, schema: &Arc<str>, name: &Arc<str>) {
        if let (0, Some(usage)) = (self.view_depth, &mut self.usage) {
            usage.tables.push((schema.clone(), name.clone()));
        }
    }

    pub(crate) fn uses_routine(&mut self, schema: &Arc<str>, name: &Arc<str>) {
        if let (0, Some(usage)) = (self.view_depth, &mut self.usage) {
            usage.routines.push((schema.clone(), name.clone()));
        }
    }
}
