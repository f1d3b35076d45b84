//! The traces of the optimizer that a session keeps, for `information_schema.OPTIMIZER_TRACE`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use plugin_api::OptimizerTraceView;

/// Which traces a session keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceWindow {
    /// The first one, counted from the first statement; when negative, from the last.
    pub offset: i64,
    /// How many from there.
    pub limit: usize,
    /// Bytes of all of them.
    pub bytes_max: usize,
}

/// The traces of a session.
#[derive(Debug, Default)]
pub struct OptimizerTraces {
    window: TraceWindow,
    kept: VecDeque<OptimizerTraceView>,
    /// The newest one with the number of its statement, which does not see it: it may be one that reads traces.
    newest: Option<(u64, OptimizerTraceView)>,
    /// Statements before it since the window changed.
    seen: u64,
    /// The statement of the newest has read the traces: its own is not kept.
    is_reader: AtomicBool,
}

impl OptimizerTraces {
    /// Statement `number` begins and has this trace. Another window than before forgets all others.
    pub fn begin(&mut self, number: u64, trace: OptimizerTraceView, window: TraceWindow) {
        if window != self.window {
            *self = OptimizerTraces { window, ..OptimizerTraces::default() };
        }
        let is_reader = std::mem::take(self.is_reader.get_mut());
        if let Some((_, newest)) = self.newest.take().filter(|_| !is_reader) {
            self.keep(newest);
        }
        self.newest = Some((number, trace));
    }

    fn keep(&mut self, trace: OptimizerTraceView) {
        self.seen += 1;
        match u64::try_from(self.window.offset) {
            Ok(first) => {
                if self.seen > first && self.kept.len() < self.window.limit {
                    self.push(trace);
                }
            }
            Err(_) => {
                let last = self.window.offset.unsigned_abs();
                while self.kept.len() as u64 >= last {
                    self.kept.pop_front();
                }
                self.push(trace);
            }
        }
    }

    /// Keeps as much of a trace as there is room for.
    fn push(&mut self, mut trace: OptimizerTraceView) {
        let size = |kept: &OptimizerTraceView| kept.trace.len() + kept.query.len();
        let used: usize = self.kept.iter().map(size).sum();
        let mut room = self.window.bytes_max.saturating_sub(used);
        for text in [&mut trace.query, &mut trace.trace] {
            let end = text.floor_char_boundary(room.min(text.len()));
            room -= end;
            trace.missing_bytes += (text.len() - end) as u64;
            text.truncate(end);
        }
        self.kept.push_back(trace);
    }

    /// The traces of the statements before number `reader`, which reads them; none when they were kept by another window.
    pub fn read(&self, reader: u64, window: TraceWindow) -> Vec<OptimizerTraceView> {
        if window != self.window {
            return Vec::new();
        }
        let mut shown = OptimizerTraces {
            window,
            kept: self.kept.clone(),
            seen: self.seen,
            ..OptimizerTraces::default()
        };
        match &self.newest {
            // A mark for the next statement of the same session; nothing else is read after it.
            Some((number, _)) if *number == reader => self.is_reader.store(true, Ordering::Relaxed),
            Some((_, newest)) => shown.keep(newest.clone()),
            None => {}
        }
        shown.kept.truncate(window.limit);
        shown.kept.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: TraceWindow = TraceWindow { offset: -1, limit: 1, bytes_max: 1000 };

    fn trace(query: &str) -> OptimizerTraceView {
        OptimizerTraceView { query: query.into(), trace: "{}".into(), ..Default::default() }
    }

    /// The traces that are shown after these statements.
    fn shown(window: TraceWindow, queries: &[&str]) -> Vec<OptimizerTraceView> {
        let mut traces = OptimizerTraces::default();
        for (number, query) in queries.iter().enumerate() {
            traces.begin(number as u64, trace(query), window);
        }
        traces.read(100, window)
    }

    fn queries(shown: Vec<OptimizerTraceView>) -> Vec<String> {
        shown.into_iter().map(|trace| trace.query).collect()
    }

    #[test]
    fn the_last_ones_are_kept() {
        assert_eq!(queries(shown(LAST, &["a", "b", "c"])), ["c"]);
        let two = TraceWindow { offset: -2, limit: 2, ..LAST };
        assert_eq!(queries(shown(two, &["a", "b", "c"])), ["b", "c"]);
        let first_of_two = TraceWindow { offset: -2, ..LAST };
        assert_eq!(queries(shown(first_of_two, &["a", "b", "c"])), ["b"]);
    }

    #[test]
    fn the_first_ones_are_kept() {
        let window = TraceWindow { offset: 1, limit: 2, ..LAST };
        assert_eq!(queries(shown(window, &["a", "b", "c", "d"])), ["b", "c"]);
    }

    #[test]
    fn a_statement_that_reads_traces_leaves_none() {
        let mut traces = OptimizerTraces::default();
        traces.begin(1, trace("a"), LAST);
        for number in 2..4 {
            traces.begin(number, trace("reads"), LAST);
            assert_eq!(queries(traces.read(number, LAST)), ["a"]);
        }
    }

    #[test]
    fn another_window_forgets() {
        let mut traces = OptimizerTraces::default();
        traces.begin(1, trace("a"), LAST);
        let two = TraceWindow { limit: 2, ..LAST };
        assert!(traces.read(2, two).is_empty());
        traces.begin(3, trace("b"), two);
        assert_eq!(queries(traces.read(4, two)), ["b"]);
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let kept = shown(TraceWindow { offset: -2, limit: 2, bytes_max: 4 }, &["a", "bcdef"]);
        assert_eq!(kept[1].trace, "");
        assert_eq!((kept[1].query.as_str(), kept[1].missing_bytes), ("b", 6));
    }
}
