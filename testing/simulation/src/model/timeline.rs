//! The states that a client's rows had one after the other, and which of them a reader may see.

use std::sync::Arc;

use super::{Look, Rows, State};

/// States in the order of their commits. The last one may be under way.
#[derive(Debug)]
pub struct Timeline {
    states: Vec<Arc<State>>,
    /// The last one whose commit was acknowledged.
    acknowledged: usize,
    /// A reader saw the one that is under way.
    is_last_seen: bool,
}

/// What became of a commit whose answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It took place.
    Committed,
    /// It did not.
    Lost,
    /// The rows are of neither state.
    Neither,
}

impl Timeline {
    /// Of rows that are `state` from the start.
    pub fn new(state: State) -> Timeline {
        Timeline { states: vec![Arc::new(state)], acknowledged: 0, is_last_seen: false }
    }

    /// The state that is known to be committed.
    pub fn committed(&self) -> Arc<State> {
        self.states[self.acknowledged].clone()
    }

    /// A commit that is under way, or whose answer was lost.
    pub fn under_way(&self) -> Option<Arc<State>> {
        self.states.get(self.acknowledged + 1).cloned()
    }

    /// A commit is about to be sent.
    pub fn begin(&mut self, state: State) {
        assert!(self.under_way().is_none(), "a client commits one transaction at a time");
        self.states.push(Arc::new(state));
        self.is_last_seen = false;
    }

    /// The commit that is under way was acknowledged.
    pub fn acknowledge(&mut self) {
        self.acknowledged = self.states.len() - 1;
        self.is_last_seen = false;
    }

    /// The commit that is under way did not take place. False when a reader saw its state.
    #[must_use]
    pub fn withdraw(&mut self) -> bool {
        self.states.truncate(self.acknowledged + 1);
        !std::mem::take(&mut self.is_last_seen)
    }

    /// Decides by what is there now about a commit whose answer was lost.
    pub fn settle(&mut self, is_there: impl Fn(&State) -> bool) -> Settled {
        if let Some(last) = self.under_way()
            && is_there(&last)
        {
            self.acknowledge();
            return Settled::Committed;
        }
        match is_there(&self.committed()) {
            true if self.under_way().is_some() => Settled::Lost,
            true => Settled::Committed,
            false => Settled::Neither,
        }
    }

    /// Where a reader that begins now begins to look.
    pub fn floor(&self) -> usize {
        self.acknowledged
    }

    /// Whether the state shows `rows`. One that was withdrawn shows nothing.
    pub fn shows(&self, at: usize, owner: u32, look: Look, rows: &Rows) -> bool {
        self.states.get(at).is_some_and(|state| look.rows(owner, state) == *rows)
    }

    /// A reader has seen one of these states, and no other.
    pub fn see(&mut self, candidates: &[usize]) {
        self.is_last_seen |= candidates.iter().all(|at| *at > self.acknowledged);
    }

    /// A state in words.
    pub fn words(&self, at: usize) -> String {
        self.states.get(at).map_or(String::new(), |state| format!("{at}: {}", state.words()))
    }

    /// The numbers of all states so far.
    pub fn numbers(&self) -> std::ops::Range<usize> {
        0..self.states.len()
    }
}
