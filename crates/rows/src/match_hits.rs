//! Rows that fit a part of a query, in the order of their locators, as an index returns the entries of a word; two such lists are merged
//! in one pass.

use std::cmp::Ordering;

use types::SqlBytes;

/// A word by its number in the query, and how often a row has it.
pub type Count = (u32, u32);

/// A row that fits, and why.
pub struct Hit {
    /// The row.
    pub locator: SqlBytes,
    /// By how much operators move it.
    pub moved: f32,
    first: Count,
    more: Vec<Count>,
}

impl Hit {
    /// A hit of one word.
    pub fn new(locator: SqlBytes, count: Count) -> Hit {
        Hit { locator, moved: 0.0, first: count, more: Vec::new() }
    }

    /// The words by which it fits.
    pub fn words(&self) -> impl Iterator<Item = Count> {
        std::iter::once(self.first).chain(self.more.iter().copied())
    }

    /// Operators move a row by one at most.
    fn shift(&mut self, by: f32) {
        self.moved = (self.moved + by).clamp(-1.0, 1.0);
    }

    fn join(&mut self, other: &Hit) {
        self.shift(other.moved);
        for count in other.words() {
            if !self.words().any(|known| known.0 == count.0) {
                self.more.push(count);
            }
        }
    }
}

/// Which rows of two lists stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Those of both.
    Both,
    /// Those of the first.
    First,
    /// Those of either.
    All,
}

/// Rows that fit.
#[derive(Default)]
pub struct Hits(Vec<Hit>);

impl Hits {
    /// Hits in the order of their locators.
    pub fn sorted(hits: Vec<Hit>) -> Hits {
        debug_assert!(hits.is_sorted_by(|one, two| one.locator[..] < two.locator[..]));
        Hits(hits)
    }

    /// Hits in any order. If a row has several, the last one counts.
    pub fn unsorted(mut hits: Vec<Hit>) -> Hits {
        hits.reverse();
        hits.sort_by(|one, two| one.locator[..].cmp(&two.locator[..]));
        hits.dedup_by(|next, kept| next.locator[..] == kept.locator[..]);
        Hits(hits)
    }

    /// The hits in the order of their locators.
    pub fn iter(&self) -> impl Iterator<Item = &Hit> {
        self.0.iter()
    }

    /// Moves all of them.
    pub fn shift(&mut self, by: f32) {
        self.0.iter_mut().for_each(|hit| hit.shift(by));
    }

    /// Only those for which `fits` is true.
    ///
    /// # Errors
    /// Those of `fits`; then the list is empty.
    pub fn try_retain<E>(
        &mut self,
        mut fits: impl FnMut(&Hit) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut kept = Vec::new();
        for hit in std::mem::take(&mut self.0) {
            if fits(&hit)? {
                kept.push(hit);
            }
        }
        self.0 = kept;
        Ok(())
    }

    /// Both lists; a row in both gets both hits.
    pub fn merge(self, other: Hits, keep: Keep) -> Hits {
        if self.0.is_empty() && keep == Keep::All {
            return other;
        }
        let mut merged = Vec::with_capacity(self.0.len());
        let (mut ones, mut others) =
            (self.0.into_iter().peekable(), other.0.into_iter().peekable());
        while let Some(order) = order(ones.peek(), others.peek()) {
            let one = if order.is_le() { ones.next() } else { None };
            let two = if order.is_ge() { others.next() } else { None };
            match (one, two) {
                (Some(mut one), Some(two)) => {
                    one.join(&two);
                    merged.push(one);
                }
                (Some(one), None) if keep != Keep::Both => merged.push(one),
                (None, Some(two)) if keep == Keep::All => merged.push(two),
                _ => {}
            }
        }
        Hits(merged)
    }

    /// Those that are not in `other`.
    pub fn without(mut self, other: &Hits) -> Hits {
        let mut others = other.0.iter().peekable();
        self.0.retain(|hit| {
            while others.next_if(|other| other.locator[..] < hit.locator[..]).is_some() {}
            others.peek().is_none_or(|other| other.locator[..] != hit.locator[..])
        });
        self
    }
}

/// Which of two hits comes first; `None` at the end of both lists.
fn order(one: Option<&Hit>, two: Option<&Hit>) -> Option<Ordering> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.locator[..].cmp(&two.locator[..])),
        (Some(_), None) => Some(Ordering::Less),
        (None, Some(_)) => Some(Ordering::Greater),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use types::SqlBytes;

    use super::{Hit, Hits, Keep};

    fn hits(word: u32, rows: &[u8]) -> Hits {
        Hits::sorted(rows.iter().map(|row| Hit::new(SqlBytes::new(&[*row]), (word, 1))).collect())
    }

    fn shown(hits: &Hits) -> Vec<(u8, Vec<u32>)> {
        let row = |hit: &Hit| (hit.locator[0], hit.words().map(|count| count.0).collect());
        hits.iter().map(row).collect()
    }

    #[test]
    fn lists_are_put_together_by_rows() {
        let lists = || (hits(1, &[1, 3, 5]), hits(2, &[2, 3, 6]));
        let merged = |keep| {
            let (one, two) = lists();
            shown(&one.merge(two, keep))
        };
        assert_eq!(merged(Keep::Both), [(3, vec![1, 2])]);
        assert_eq!(merged(Keep::First), [(1, vec![1]), (3, vec![1, 2]), (5, vec![1])]);
        let all = [(1, vec![1]), (2, vec![2]), (3, vec![1, 2]), (5, vec![1]), (6, vec![2])];
        assert_eq!(merged(Keep::All), all);
        let (one, two) = lists();
        assert_eq!(shown(&one.without(&two)), [(1, vec![1]), (5, vec![1])]);
    }

    #[test]
    fn of_several_entries_of_a_row_the_last_counts() {
        let hit = |row: u8, count| Hit::new(SqlBytes::new(&[row]), (1, count));
        let found = Hits::unsorted(vec![hit(2, 1), hit(1, 2), hit(2, 3), hit(2, 4)]);
        let counts: Vec<_> = found.iter().map(|hit| (hit.locator[0], hit.first.1)).collect();
        assert_eq!(counts, [(1, 2), (2, 4)]);
    }

    #[test]
    fn operators_move_a_row_by_one_at_most() {
        let mut found = hits(1, &[1]);
        found.shift(1.0);
        let mut again = hits(2, &[1]);
        again.shift(1.0);
        let merged = found.merge(again, Keep::All);
        assert_eq!(merged.iter().map(|hit| hit.moved).collect::<Vec<_>>(), [1.0]);
    }
}
