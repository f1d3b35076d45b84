//! The checker, after the idea of Elle: lists show the order of their writers, so a history gives a graph of the order of transactions,
//! and a level is a set of forbidden cycles.
//!
//! REPEATABLE READ has two nodes for each transaction, its snapshot and its end: plain reads happen at the former, writes and locking
//! reads at the latter. That graph may have no cycle; the graph with one node for each, which SERIALIZABLE uses, may.

use std::collections::{BTreeSet, HashMap};

use crate::graph::{Edge, Graph, Kinds, Why};
use crate::history::{Element, End, Key, Level, Op, Reading, Transaction};

/// The kinds of violations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// Two reads of a list differ in more than length, or contain an element that nobody appended, or one twice.
    BrokenList,
    /// G1a: read from a transaction that was rolled back.
    AbortedRead,
    /// G1b: read in the middle of a transaction.
    IntermediateRead,
    /// A transaction contradicts itself.
    Internal,
    /// G0: a cycle of overwriting.
    DirtyWrite,
    /// G1c: a cycle of overwriting and reading.
    CircularInformation,
    /// G-single: a cycle with one overwritten read.
    GSingle,
    /// G2-item, and G2 where the read was of a range.
    G2,
    /// A cycle that needs the clock: stale reads, commits that vanish.
    Time,
}

/// A violation, in words.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its kind.
    pub anomaly: Anomaly,
    /// The transactions, by their place in the history.
    pub text: String,
}

/// Result of checking a history.
#[derive(Debug, Default)]
pub struct Report {
    /// Violations of the level.
    pub forbidden: Vec<Finding>,
    /// Cycles that the level allows: they show that the history had conflicts.
    pub permitted: usize,
}

/// One committed read of a list.
struct View<'h> {
    transaction: u32,
    elements: &'h [Element],
    /// At the snapshot, not at the end.
    at_snapshot: bool,
}

struct Checker<'h> {
    history: &'h [Transaction],
    level: Level,
    /// The transaction that appended an element to a list, and whether the append was undone.
    writers: HashMap<(Key, Element), (u32, bool)>,
    committed: Vec<bool>,
    findings: Vec<Finding>,
}

/// Checks a history made under `level`.
pub fn check(history: &[Transaction], level: Level) -> Report {
    let mut checker = Checker {
        history,
        level,
        writers: HashMap::new(),
        committed: history.iter().map(|one| one.end == End::Committed).collect(),
        findings: Vec::new(),
    };
    checker.note_writers();
    checker.check_reads();
    for (number, transaction) in history.iter().enumerate() {
        checker.check_internal(number, transaction);
    }
    let views = checker.views();
    let split = level == Level::RepeatableRead;
    let edges = checker.edges(&views, split);
    let mut report = Report::default();
    let nodes = history.len() * 3;
    let cycles = find_cycles(&Graph::new(nodes, edges));
    let forbids = |anomaly: Anomaly| level != Level::ReadCommitted || anomaly < Anomaly::GSingle;
    let (forbidden, permitted): (Vec<_>, Vec<_>) =
        cycles.into_iter().partition(|(anomaly, _)| forbids(*anomaly));
    report.permitted = permitted.len();
    if split {
        let joined = checker.edges(&views, false);
        let seen = find_cycles(&Graph::new(nodes, joined));
        report.permitted += seen.len().saturating_sub(forbidden.len());
    }
    for (anomaly, cycle) in forbidden {
        checker.findings.push(Finding { anomaly, text: checker.describe(&cycle) });
    }
    report.forbidden = checker.findings;
    report
}

/// Cycles by the strongest name that fits each.
fn find_cycles(graph: &Graph) -> Vec<(Anomaly, Vec<Edge>)> {
    use Why::{ReadWrite, Time, Within, WriteRead, WriteWrite};
    let writes = Kinds::of(&[WriteWrite]);
    let information = Kinds::of(&[WriteWrite, WriteRead, Within]);
    let data = Kinds::of(&[WriteWrite, WriteRead, ReadWrite, Within]);
    let all = Kinds::of(&[WriteWrite, WriteRead, ReadWrite, Time, Within]);
    let steps = [
        (Anomaly::DirtyWrite, writes, WriteWrite, writes),
        (Anomaly::CircularInformation, information, WriteRead, information),
        (Anomaly::GSingle, data, ReadWrite, information),
        (Anomaly::G2, data, ReadWrite, data),
        // With the clock.
        (Anomaly::Time, all, WriteWrite, all),
        (Anomaly::Time, all, WriteRead, all),
        (Anomaly::Time, all, ReadWrite, all),
    ];
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for (anomaly, kinds, closing, rest) in steps {
        for cycle in graph.cycles(kinds, closing, rest) {
            if cycle.iter().all(|edge| seen.insert(edge.from)) {
                found.push((anomaly, cycle));
            }
        }
    }
    found
}

impl<'h> Checker<'h> {
    fn find(&mut self, anomaly: Anomaly, text: String) {
        self.findings.push(Finding { anomaly, text });
    }

    fn note_writers(&mut self) {
        let history = self.history;
        for (number, transaction) in history.iter().enumerate() {
            for op in &transaction.ops {
                let Op::Append { key, element, undone } = op else { continue };
                let gone = *undone || transaction.end == End::Aborted;
                let before = self.writers.insert((*key, *element), (number as u32, gone));
                if before.is_some() {
                    self.find(Anomaly::BrokenList, format!("{element} appended twice to {key}"));
                }
            }
        }
        // A commit without an acknowledgement took place if another transaction saw it.
        for transaction in history.iter().filter(|one| one.end == End::Committed) {
            for op in &transaction.ops {
                let Op::Read { key, elements, .. } = op else { continue };
                for element in elements {
                    let Some((writer, _)) = self.writers.get(&(*key, *element)) else { continue };
                    let writer = *writer as usize;
                    self.committed[writer] |= history[writer].end == End::Unknown;
                }
            }
        }
    }

    /// G1a, G1b, unknown elements. Also for reads of transactions that failed later: no transaction may see such elements.
    fn check_reads(&mut self) {
        let mut last_of: HashMap<(u32, Key), Element> = HashMap::new();
        for (number, transaction) in self.history.iter().enumerate() {
            for op in &transaction.ops {
                if let Op::Append { key, element, undone: false } = op {
                    last_of.insert((number as u32, *key), *element);
                }
            }
        }
        let history = self.history;
        for (number, transaction) in history.iter().enumerate() {
            for op in &transaction.ops {
                let Op::Read { key, elements, .. } = op else { continue };
                for (at, element) in elements.iter().enumerate() {
                    let Some((writer, gone)) = self.writers.get(&(*key, *element)).copied() else {
                        let text = format!("T{number} read {element} in {key}: never appended");
                        self.find(Anomaly::BrokenList, text);
                        continue;
                    };
                    if writer as usize == number {
                        continue;
                    }
                    let text = format!("T{number} read {element} of T{writer} in {key}");
                    let is_last = at + 1 == elements.len();
                    if gone {
                        self.find(Anomaly::AbortedRead, text);
                    } else if is_last && last_of.get(&(writer, *key)) != Some(element) {
                        self.find(Anomaly::IntermediateRead, text);
                    }
                }
            }
        }
    }

    /// Checks a transaction's reads against its own operations.
    fn check_internal(&mut self, number: usize, transaction: &Transaction) {
        // Only gap locks can protect a row that does not exist.
        let locks_gaps = self.level != Level::ReadCommitted;
        let mut snapshot: HashMap<Key, &[Element]> = HashMap::new();
        // The expected contents of a locked list: as read, followed by own elements.
        let mut locked: HashMap<Key, Vec<Element>> = HashMap::new();
        let mut own: HashMap<Key, Vec<(Element, bool)>> = HashMap::new();
        for (at, op) in transaction.ops.iter().enumerate() {
            match op {
                Op::Append { key, element, undone } => {
                    own.entry(*key).or_default().push((*element, *undone));
                    if let Some(list) = locked.get_mut(key) {
                        if *undone {
                            // The history does not record when it was undone; the next read starts from scratch.
                            locked.remove(key);
                        } else {
                            list.push(*element);
                        }
                    }
                }
                Op::Read { key, elements, reading } => {
                    let appended = own.get(key);
                    let is_own =
                        appended.is_some_and(|list| list.iter().any(|(_, undone)| !undone));
                    let current = *reading == Reading::Locking || is_own;
                    let ends_own = appended.is_none_or(|list| {
                        let kept = list.iter().rfind(|(_, undone)| !undone);
                        let last = elements.last();
                        kept.is_none_or(|(element, _)| last == Some(element))
                            || list.iter().any(|(element, undone)| *undone && last == Some(element))
                    });
                    let steady = match (self.level, current) {
                        (Level::ReadCommitted, false) => true,
                        (Level::RepeatableRead, false) => {
                            *snapshot.entry(*key).or_insert(elements) == elements.as_slice()
                        }
                        _ => {
                            let undone = appended.is_some_and(|l| l.iter().any(|(_, u)| *u));
                            let is_locked = locks_gaps || !elements.is_empty();
                            if !undone && is_locked && !locked.contains_key(key) {
                                locked.insert(*key, elements.clone());
                            }
                            undone || locked.get(key).is_none_or(|list| list == elements)
                        }
                    };
                    if !ends_own || !steady {
                        let text = format!("T{number}, operation {at}: {:?}", transaction.ops);
                        self.find(Anomaly::Internal, text);
                        return;
                    }
                }
            }
        }
    }

    /// The reads of committed transactions by list.
    fn views(&self) -> HashMap<Key, Vec<View<'h>>> {
        let mut views: HashMap<Key, Vec<View<'h>>> = HashMap::new();
        for (number, transaction) in self.history.iter().enumerate() {
            if !self.committed[number] {
                continue;
            }
            let mut own = BTreeSet::new();
            for op in &transaction.ops {
                match op {
                    // After an undone append the row is again that of the snapshot.
                    Op::Append { undone: true, .. } => {}
                    Op::Append { key, .. } => drop(own.insert(*key)),
                    Op::Read { key, elements, reading } => {
                        let at_snapshot = *reading == Reading::Plain && !own.contains(key);
                        let transaction = number as u32;
                        let view = View { transaction, elements, at_snapshot };
                        views.entry(*key).or_default().push(view);
                    }
                }
            }
        }
        views
    }

    /// The graph: nodes 3n (snapshot), 3n+1 (end), 3n+2 (a point in time).
    fn edges(&mut self, views: &HashMap<Key, Vec<View<'h>>>, split: bool) -> Vec<Edge> {
        let end = |number: u32| number * 3 + 1;
        let read_at = |view: &View<'_>| match split && view.at_snapshot {
            true => view.transaction * 3,
            false => end(view.transaction),
        };
        let mut edges = Vec::new();
        let mut unseen: HashMap<Key, Vec<u32>> = HashMap::new();
        let mut orders: HashMap<Key, &[Element]> = HashMap::new();
        for (key, views) in views {
            let longest = views.iter().map(|view| view.elements).max_by_key(|list| list.len());
            let order = longest.unwrap_or_default();
            orders.insert(*key, order);
            if views.iter().any(|view| !order.starts_with(view.elements)) {
                let text = format!("reads of {key} do not fit each other");
                if !self.findings.iter().any(|finding| finding.text == text) {
                    self.find(Anomaly::BrokenList, text);
                }
            }
        }
        for ((key, element), (writer, gone)) in &self.writers {
            let seen = orders.get(key).is_some_and(|order| order.contains(element));
            if !seen && !gone && self.committed[*writer as usize] {
                unseen.entry(*key).or_default().push(*writer);
            }
        }
        let mut add = |from: u32, to: u32, why: Why, key: Key| {
            if from / 3 != to / 3 {
                edges.push(Edge { from, to, why, key });
            }
        };
        for (key, views) in views {
            let order = orders[key];
            let writer = |element: &Element| self.writers.get(&(*key, *element)).map(|w| w.0);
            for pair in order.windows(2) {
                let (Some(first), Some(second)) = (writer(&pair[0]), writer(&pair[1])) else {
                    continue;
                };
                add(end(first), end(second), Why::WriteWrite, *key);
            }
            for view in views {
                // The writers that it read before its own elements, and the writers after those it saw.
                let others = view.elements.iter().rev().filter_map(writer);
                let last = others.clone().find(|writer| *writer != view.transaction);
                if let Some(last) = last {
                    add(end(last), read_at(view), Why::WriteRead, *key);
                }
                match order.get(view.elements.len()).and_then(writer) {
                    Some(next) => add(read_at(view), end(next), Why::ReadWrite, *key),
                    None => {
                        for next in unseen.get(key).into_iter().flatten() {
                            add(read_at(view), end(*next), Why::ReadWrite, *key);
                        }
                    }
                }
            }
        }
        self.add_time(&mut edges, split);
        edges
    }

    /// Orders transactions that ended before others began, through a chain of points in time instead of an edge for each pair.
    fn add_time(&self, edges: &mut Vec<Edge>, split: bool) {
        let mut add = |from, to, why| edges.push(Edge { from, to, why, key: 0 });
        let numbers = || (0..self.history.len() as u32).filter(|n| self.committed[*n as usize]);
        let acknowledged = |number: &u32| self.history[*number as usize].end == End::Committed;
        let mut ended: Vec<u32> = numbers().filter(acknowledged).collect();
        ended.sort_by_key(|number| self.history[*number as usize].ended);
        for number in &ended {
            add(number * 3 + 1, number * 3 + 2, Why::Time);
        }
        for pair in ended.windows(2) {
            add(pair[0] * 3 + 2, pair[1] * 3 + 2, Why::Time);
        }
        for number in numbers() {
            let began = self.history[number as usize].began;
            let before = ended.partition_point(|n| self.history[*n as usize].ended < began);
            let start = if split { number * 3 } else { number * 3 + 1 };
            if before > 0 {
                add(ended[before - 1] * 3 + 2, start, Why::Time);
            }
            if split {
                add(number * 3, number * 3 + 1, Why::Within);
            }
        }
    }

    fn describe(&self, cycle: &[Edge]) -> String {
        let node = |at: u32| {
            format!("T{}{}", at / 3, ["'s snapshot", "", "'s clock node"][at as usize % 3])
        };
        let mut text = String::new();
        for edge in cycle {
            text += &format!("{} -{:?} {}-> ", node(edge.from), edge.why, edge.key);
        }
        let members: BTreeSet<u32> = cycle.iter().map(|edge| edge.from / 3).collect();
        text += "start";
        for number in members.into_iter().take(6) {
            text += &format!("\n    T{number}: {:?}", self.history[number as usize]);
        }
        text
    }
}
