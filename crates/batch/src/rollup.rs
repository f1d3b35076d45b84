//! WITH ROLLUP of a batch grouping: the groups in the order of their keys, and those of higher levels merged from them.

use rows::value_key::append_sort_key;
use types::CollationId;

use crate::groups::Grouped;
use crate::states::{StateKind, States};
use crate::{Fit, Unfit};

/// A row of the result.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The group that has its keys and carried values; for a higher level the last one in it.
    pub group: u32,
    /// The place in its level's states.
    pub at: u32,
    /// Keys that are not rolled up.
    pub live_keys: usize,
}

/// Groups merged level by level.
pub struct Rollup {
    /// Groups of all levels in the order of their keys.
    pub lines: Vec<Line>,
    /// By number of live keys, by group: its group of that level.
    into: Vec<Vec<u32>>,
    /// By group: its place in the order.
    ranks: Vec<u64>,
    /// By number of live keys: the groups of that level.
    counts: Vec<u32>,
}

/// The keys of all groups, so that bytes order as they do.
struct SortKeys {
    bytes: Vec<u8>,
    /// By group and key: where the key ends.
    ends: Vec<usize>,
    width: usize,
}

impl SortKeys {
    fn new(grouped: &Grouped, collations: &[CollationId]) -> Fit<SortKeys> {
        let (groups, width) = (grouped.first.len(), collations.len());
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(groups * width));
        for group in 0..groups {
            for (at, collation) in collations.iter().enumerate() {
                append_sort_key(&grouped.kept(at, group)?, *collation, false, &mut bytes);
                ends.push(bytes.len());
            }
        }
        Ok(SortKeys { bytes, ends, width })
    }

    /// The first `keys` keys of a group.
    fn prefix(&self, group: u32, keys: usize) -> &[u8] {
        let first = group as usize * self.width;
        let start = if first == 0 { 0 } else { self.ends[first - 1] };
        let end = if keys == 0 { start } else { self.ends[first + keys - 1] };
        &self.bytes[start..end]
    }

    /// How many leading keys two groups share.
    fn shared(&self, one: u32, other: u32) -> usize {
        let is_shared = |keys: &usize| self.prefix(one, *keys) == self.prefix(other, *keys);
        (1..=self.width).take_while(is_shared).count()
    }
}

impl Rollup {
    /// The lines of all levels: a group of a higher level follows those that it summarizes.
    pub fn new(grouped: &Grouped, collations: &[CollationId]) -> Fit<Rollup> {
        let (groups, width) = (grouped.first.len(), collations.len());
        let keys = SortKeys::new(grouped, collations)?;
        let mut order: Vec<u32> = (0..u32::try_from(groups).map_err(|_| Unfit)?).collect();
        order.sort_unstable_by(|a, b| keys.prefix(*a, width).cmp(keys.prefix(*b, width)));
        let mut into = vec![vec![0; groups]; width];
        let mut counts = vec![0; width];
        let mut lines = Vec::with_capacity(groups * 2);
        let mut ranks = vec![0; groups];
        let mut before = None;
        for (rank, group) in (0..).zip(order) {
            ranks[group as usize] = rank;
            let shared = before.map_or(0, |before| keys.shared(before, group));
            if let Some(before) = before {
                end_levels(shared + 1, before, &counts, &mut lines);
            }
            for level in 0..width {
                counts[level] += u32::from(before.is_none() || level > shared);
                into[level][group as usize] = counts[level] - 1;
            }
            lines.push(Line { group, at: group, live_keys: width });
            before = Some(group);
        }
        if let Some(before) = before {
            end_levels(0, before, &counts, &mut lines);
        }
        Ok(Rollup { lines, into, ranks, counts })
    }

    /// By number of live keys the states of its groups.
    pub fn states(&self, grouped: &Grouped, kinds: &[StateKind]) -> Fit<Vec<Vec<States>>> {
        let level = |(into, count): (&Vec<u32>, &u32)| {
            let states = kinds.iter().zip(&grouped.states).map(|(kind, finest)| {
                let mut states = States::new(*kind);
                states.grow(*count as usize);
                states.take_in_ranked(finest, into, |group| self.ranks[group])?;
                Ok(states)
            });
            states.collect::<Fit<Vec<_>>>()
        };
        self.into.iter().zip(&self.counts).map(level).collect()
    }
}

/// The current groups of the levels with `from` live keys and more, finest first.
fn end_levels(from: usize, last: u32, counts: &[u32], lines: &mut Vec<Line>) {
    for live_keys in (from..counts.len()).rev() {
        lines.push(Line { group: last, at: counts[live_keys] - 1, live_keys });
    }
}
