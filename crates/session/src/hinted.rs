//! `SET_VAR` hints: variables that have another value while one statement runs.

use std::sync::Arc;

use catalog::ResourceGroup;
use errors::Result;
use statements::hints::{self, changes_surroundings, hints_of};
use syntax::ast::Statement;
use syntax::{Hint, Hints, parse_hints};

use crate::resource_groups;
use crate::session::Session;

impl Session {
    /// Runs `body` under the variables that the statement's hints set; restores them afterwards.
    pub(crate) fn under_hints<T>(
        &mut self,
        statement: &Statement,
        body: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        if !changes_surroundings(statement) {
            return body(self);
        }
        let hints = parse_hints(hints_of(statement).unwrap_or(""));
        let shared = self.shared.clone();
        let group = self.hinted_group(&hints);
        let _group = group.map(|group| shared.group.enter_hinted(&group));
        let saved = self.services.values.clone();
        let definitions = &self.server.globals.definitions;
        hints::set_variables(&hints, definitions, &mut self.services.values, &mut self.working);
        self.refresh_settings();
        let result = body(self);
        self.services.values = saved;
        self.refresh_settings();
        result
    }

    /// The group of the last hint that names one. A client's own statement has it, not those of programs and prepared ones.
    fn hinted_group(&mut self, hints: &Hints) -> Option<Arc<ResourceGroup>> {
        let is_own = self.programs.frame().is_none() && self.statement.depth == 1;
        let name = hints.list.iter().rev().find_map(|hint| {
            let Hint::ResourceGroup(name) = hint else { return None };
            is_own.then_some(name)
        })?;
        match resource_groups::hinted(self, name) {
            Ok(group) => Some(group),
            Err(error) => {
                self.working.push_error(errors::Level::Warning, &error);
                None
            }
        }
    }
}
