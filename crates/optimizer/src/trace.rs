//! The trace of a statement's planning, for `information_schema.OPTIMIZER_TRACE`; `traced.rs` writes it.

use std::cell::RefCell;

use crate::json::{Json, object};

/// The parts of a trace that may be left out.
#[derive(Clone, Copy, Debug)]
pub struct TraceParts {
    /// The orders of joins that were tried.
    pub orders: bool,
    /// The ways to read a table that were tried.
    pub paths: bool,
}

/// The trace of one statement, while it is planned.
#[derive(Debug)]
pub struct Trace {
    pub(crate) parts: TraceParts,
    /// The ways to read tables that were tried since somebody took them.
    pub(crate) tables: RefCell<Vec<Json>>,
    pub(crate) orders: RefCell<Vec<Json>>,
    /// Finished joins, those inside others first.
    pub(crate) blocks: RefCell<Vec<Json>>,
}

impl Trace {
    /// An empty trace.
    pub fn new(parts: TraceParts) -> Trace {
        let empty = || RefCell::new(Vec::new());
        Trace { parts, tables: empty(), orders: empty(), blocks: empty() }
    }

    /// The document: `query` is the statement as it was understood, `plan` the text of EXPLAIN FORMAT=TREE.
    pub fn print(self, query: Option<&str>, plan: &str, one_line: bool) -> String {
        let mut steps = Vec::new();
        if let Some(query) = query {
            let query = object([("expanded_query", Json::text(query))]);
            steps.push(object([("join_preparation", stepped(vec![query]))]));
        }
        steps.extend(self.blocks.into_inner());
        let lines = Json::texts(plan.lines().map(str::to_owned));
        steps.push(object([("join_execution", stepped(vec![object([("plan", lines)])]))]));
        let document = stepped(steps);
        if one_line { document.print_in_line() } else { document.print() }
    }

    /// Whether no relation was planned.
    pub fn is_empty(&self) -> bool {
        self.blocks.borrow().is_empty()
    }

    /// The ways that were tried since the last call.
    pub(crate) fn take_tables(&self) -> Vec<Json> {
        self.tables.take()
    }
}

/// An object with a list of steps.
pub(crate) fn stepped(steps: Vec<Json>) -> Json {
    object([("steps", Json::List(steps))])
}
