//! Stacks of threads as stacks of operators: the functions of the program that belong to an operator or a part of the server become one frame with its
//! name, all others are left out.

use std::collections::HashMap;
use std::sync::Arc;

use sys::waits::Wait;

/// A part of the server on a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    name: Arc<str>,
    /// An operator of a plan.
    is_operator: bool,
}

/// Functions whose frames are known; they are forgotten when there are more.
const KNOWN_MAX: usize = 65_536;

/// The frames of functions, by their addresses.
#[derive(Default)]
pub(crate) struct Frames {
    known: HashMap<u64, Option<Frame>>,
}

/// A stack of operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoldedStack {
    /// The names of the frames with `;` between them, the outermost first.
    pub(crate) stack: String,
    /// The innermost operator.
    pub(crate) operator: Option<Arc<str>>,
}

impl Frames {
    /// The stack of operators of a thread: addresses of instructions, the innermost first.
    pub(crate) fn fold(&mut self, addresses: &[u64], wait: Wait) -> FoldedStack {
        if self.known.len() > KNOWN_MAX {
            self.known.clear();
        }
        let mut frames: Vec<Frame> = Vec::new();
        for address in addresses.iter().rev() {
            let known = self.known.entry(*address).or_insert_with(|| {
                let names = sys::stacks::symbolise(&[*address]);
                names.first().and_then(|name| frame_of(name))
            });
            let Some(frame) = known else { continue };
            // Methods of one operator call each other.
            if frames.last() != Some(frame) {
                frames.push(frame.clone());
            }
        }
        let operator = frames.iter().rev().find(|frame| frame.is_operator);
        let operator = operator.map(|frame| frame.name.clone());
        let mut names: Vec<&str> = frames.iter().map(|frame| &*frame.name).collect();
        let waits_for = format!("wait: {}", wait.name());
        if wait != Wait::Running {
            names.push(&waits_for);
        }
        let stack = if names.is_empty() { "other".to_owned() } else { names.join(";") };
        FoldedStack { stack, operator }
    }
}

/// How the name of a method of an operator goes on after its type.
const OPERATOR: &str = " as exec::operator::Operator";

/// The part of the server that a function belongs to.
fn frame_of(symbol: &str) -> Option<Frame> {
    let inner = symbol.trim_start_matches(['<', '&', '(']);
    let inner = inner.strip_prefix("dyn ").unwrap_or(inner);
    let (krate, rest) = inner.split_once("::")?;
    if krate == "exec"
        && let Some((path, _)) = inner.split_once(OPERATOR)
    {
        let path = path.split('<').next().unwrap_or(path);
        // Its kinds of grouping are types of their own.
        let is_grouping = path.contains("::aggregate::");
        let name = if is_grouping { "Aggregate" } else { path.rsplit("::").next().unwrap_or(path) };
        return (name != "Measured").then(|| Frame { name: name.into(), is_operator: true });
    }
    let name = match krate {
        "syntax" => "parse",
        "binder" => "bind",
        "optimizer" => "optimize",
        "exec" => return exec_frame(rest),
        "batch" => "batch program",
        "engine" | "txn" if rest.contains("commit") => "commit",
        "engine" | "txn" => "engine",
        "btree" => "b-tree",
        "bufpool" => "buffer pool",
        "wal" => "log",
        "locks" => "row locks",
        "engine_memory" => "memory engine",
        "aggregates" => "aggregates",
        "wire" => "result",
        krate if krate.starts_with("functions_") => "functions",
        _ => return None,
    };
    Some(Frame { name: name.into(), is_operator: false })
}

/// Parts of the executor that are no operators: statements that write, and what is done before a plan runs.
fn exec_frame(rest: &str) -> Option<Frame> {
    const PARTS: &[(&str, &str, bool)] = &[
        ("program::compile", "compile", false),
        ("ops::compile", "compile", false),
        ("write::insert", "Insert", true),
        ("write::update", "Update", true),
        ("write::delete", "Delete", true),
        ("write::point", "Point write", true),
        ("query::", "Query", true),
        ("pipelines::", "Batch", true),
        ("expr::", "expressions", false),
    ];
    let (_, name, is_operator) = PARTS.iter().find(|(start, ..)| rest.starts_with(start))?;
    Some(Frame { name: (*name).into(), is_operator: *is_operator })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(symbol: &str) -> Option<(String, bool)> {
        frame_of(symbol).map(|frame| (frame.name.to_string(), frame.is_operator))
    }

    #[test]
    fn functions_become_the_part_that_they_belong_to() {
        let operator = |name: &str| Some((name.to_owned(), true));
        let part = |name: &str| Some((name.to_owned(), false));
        for (symbol, expected) in [
            ("<exec::ops::scan::Scan as exec::operator::Operator>::next", operator("Scan")),
            ("<exec::ops::sort::Sort<'_> as exec::operator::Operator<'_>>::open", operator("Sort")),
            ("<exec::ops::measured::Measured as exec::operator::Operator>::next", None),
            ("exec::write::insert::InsertProgram::run", operator("Insert")),
            ("<exec::query::QueryProgram>::run", operator("Query")),
            ("<btree::tree::Tree>::get", part("b-tree")),
            ("<&dyn bufpool::pool::Pages>::read", part("buffer pool")),
            ("txn::manager::Transactions::commit", part("commit")),
            ("functions_string::search::locate", part("functions")),
            ("session::statement::run_all", None),
            ("core::ops::function::FnOnce::call_once", None),
            ("__libc_start_main", None),
        ] {
            assert_eq!(name(symbol), expected, "{symbol}");
        }
    }

    #[test]
    fn a_thread_without_a_stack_still_says_what_it_waits_for() {
        let mut frames = Frames::default();
        assert_eq!(frames.fold(&[], Wait::Running).stack, "other");
        assert_eq!(frames.fold(&[], Wait::RowLock).stack, "wait: row lock");
    }
}
