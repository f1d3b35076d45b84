//! Folded stacks: lines `outermost;..;innermost count`, the input of flame graph tools.

use std::collections::BTreeMap;

use plugin_api::ProfileFrame;

/// Stacks with what they count, in order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folded(BTreeMap<String, u64>);

/// A frame's name as folded stacks may have it.
pub(crate) fn clean(name: &str) -> String {
    name.replace(';', ",").replace(['\n', '\r', '\t'], " ")
}

impl Folded {
    /// Adds to the count of a stack.
    pub(crate) fn add(&mut self, stack: &str, count: u64) {
        match self.0.get_mut(stack) {
            Some(known) => *known += count,
            None => drop(self.0.insert(stack.to_owned(), count)),
        }
    }

    /// The own nanoseconds of each frame.
    pub(crate) fn of(frame: &ProfileFrame) -> Folded {
        let mut folded = Folded::default();
        folded.add_frame(frame, "");
        folded
    }

    fn add_frame(&mut self, frame: &ProfileFrame, above: &str) {
        let separator = if above.is_empty() { "" } else { ";" };
        let stack = format!("{above}{separator}{}", clean(&frame.name));
        let own = frame.own_nanos();
        if own > 0 {
            self.add(&stack, own);
        }
        frame.parts.iter().for_each(|part| self.add_frame(part, &stack));
    }

    pub(crate) fn stacks(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(stack, count)| (&**stack, *count))
    }

    /// One line for each stack.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.stacks().map(|(stack, count)| format!("{stack} {count}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_counts_what_its_parts_do_not() {
        let frame = |name: &str, nanos, parts| ProfileFrame {
            name: name.to_owned(),
            nanos,
            parts,
            ..ProfileFrame::default()
        };
        let scan = frame("Filter: (a = ';')", 30, vec![frame("Table scan", 30, Vec::new())]);
        let folded = Folded::of(&frame("query", 100, vec![scan, frame("never", 0, Vec::new())]));
        assert_eq!(folded.lines(), ["query 70", "query;Filter: (a = ',');Table scan 30"]);
    }
}
