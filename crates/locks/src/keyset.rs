//! A set of keys in little memory: sorted, beginnings that neighbours share left out, and beyond a size as ranges that hold more than
//! was put in. Independent of locks.

/// Entries from one full key to the next: a search decodes at most this many.
const BLOCK_ENTRIES: usize = 64;
/// Neighbours that become one range when a set has to shrink.
const COARSE_ENTRIES: usize = 8;

/// How a set has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Membership {
    /// Put in as such.
    Exact,
    /// It is in a range that covers inserted keys.
    Covered,
}

/// Sorted entries, each a key or a range from one key to another, both included. Encoded: `shared << 1 | is_range`, the length of the
/// rest, the rest; for a range the second key follows alike, against the first.
#[derive(Default)]
struct Run {
    bytes: Vec<u8>,
    /// Where blocks begin; their first key is whole.
    starts: Vec<u32>,
    entries: usize,
    last: Vec<u8>,
}

fn put_number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads entries one after another.
struct Entries<'a> {
    rest: &'a [u8],
    from: Vec<u8>,
    /// Empty when the entry is one key.
    to: Vec<u8>,
    is_range: bool,
}

impl<'a> Entries<'a> {
    fn new(rest: &'a [u8]) -> Entries<'a> {
        Entries { rest, from: Vec::new(), to: Vec::new(), is_range: false }
    }

    fn number(&mut self) -> Option<usize> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= usize::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            shift += 7;
        }
    }

    /// The next entry; false at the end.
    fn next(&mut self) -> bool {
        if self.is_range {
            std::mem::swap(&mut self.from, &mut self.to);
        }
        let Some(head) = self.number() else { return false };
        self.is_range = head & 1 == 1;
        self.from.truncate(head >> 1);
        let Some(part) = self.part() else { return false };
        self.from.extend_from_slice(part);
        if self.is_range {
            let Some(shared) = self.number() else { return false };
            self.to.clear();
            self.to.extend_from_slice(&self.from[..shared.min(self.from.len())]);
            let Some(part) = self.part() else { return false };
            self.to.extend_from_slice(part);
        }
        true
    }

    fn part(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        let (part, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(part)
    }

    fn last(&self) -> &[u8] {
        if self.is_range { &self.to } else { &self.from }
    }
}

fn shared(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

impl Run {
    /// Adds an entry above all others.
    fn push(&mut self, from: &[u8], to: Option<&[u8]>) {
        let common = if self.entries.is_multiple_of(BLOCK_ENTRIES) {
            self.starts.push(self.bytes.len() as u32);
            0
        } else {
            shared(&self.last, from)
        };
        put_number(&mut self.bytes, common << 1 | usize::from(to.is_some()));
        put_number(&mut self.bytes, from.len() - common);
        self.bytes.extend_from_slice(&from[common..]);
        if let Some(to) = to {
            let common = shared(from, to);
            put_number(&mut self.bytes, common);
            put_number(&mut self.bytes, to.len() - common);
            self.bytes.extend_from_slice(&to[common..]);
        }
        self.last.clear();
        self.last.extend_from_slice(to.unwrap_or(from));
        self.entries += 1;
    }

    fn find(&self, key: &[u8]) -> Option<Membership> {
        let first_of = |start: u32| {
            let mut entries = Entries::new(&self.bytes[start as usize..]);
            entries.number();
            entries.part().unwrap_or_default()
        };
        let block = self.starts.partition_point(|start| first_of(*start) <= key).checked_sub(1)?;
        let end = self.starts.get(block + 1).map_or(self.bytes.len(), |end| *end as usize);
        let mut entries = Entries::new(&self.bytes[self.starts[block] as usize..end]);
        while entries.next() && entries.from.as_slice() <= key {
            match entries.is_range {
                false if entries.from == key => return Some(Membership::Exact),
                true if entries.to.as_slice() >= key => return Some(Membership::Covered),
                _ => {}
            }
        }
        None
    }

    fn size_bytes(&self) -> usize {
        self.bytes.capacity() + self.starts.capacity() * 4
    }
}

/// Builds a run from the entries of others; adjoining ones are merged.
#[derive(Default)]
struct Builder {
    run: Run,
    from: Vec<u8>,
    to: Vec<u8>,
    /// Entries in the one that is being made; ranges count as many.
    count: usize,
    is_range: bool,
}

impl Builder {
    /// Adds an entry that begins at or above all others. `group` entries become one range.
    fn add(&mut self, from: &[u8], to: &[u8], is_range: bool, group: usize) {
        let meets = self.count > 0 && from <= self.to.as_slice();
        if self.count > 0 && !meets && self.count >= group {
            self.flush();
        }
        if self.count == 0 {
            self.from.clear();
            self.from.extend_from_slice(from);
            self.is_range = is_range;
        } else {
            self.is_range |= is_range || from != self.from.as_slice();
        }
        if self.count == 0 || to > self.to.as_slice() {
            self.to.clear();
            self.to.extend_from_slice(to);
        }
        self.count += usize::from(!meets);
    }

    fn flush(&mut self) {
        if self.count > 0 {
            self.run.push(&self.from, self.is_range.then_some(self.to.as_slice()));
            self.count = 0;
        }
    }
}

/// Keys, in few runs: each is at least twice as long as the next.
#[derive(Default)]
pub(crate) struct KeySet {
    runs: Vec<Run>,
}

impl KeySet {
    /// Adds keys in order. Beyond `bytes_max` the set becomes coarser until it takes half of that.
    pub fn add_sorted(&mut self, keys: &[&[u8]], bytes_max: usize) {
        let Some(first) = keys.first() else { return };
        let run = match self.runs.last_mut() {
            Some(run) if run.last.as_slice() < *first => run,
            _ => {
                self.runs.push(Run::default());
                self.runs.last_mut().expect("pushed above")
            }
        };
        let mut before: Option<&[u8]> = None;
        for key in keys {
            if before != Some(key) {
                run.push(key, None);
            }
            before = Some(key);
        }
        while let [.., longer, last] = &self.runs[..]
            && longer.entries < last.entries * 2
        {
            self.merge_from(self.runs.len() - 2, 1);
        }
        let mut group = 1;
        while self.size_bytes() > bytes_max || group > 1 && self.size_bytes() * 2 > bytes_max {
            if group > 1 && self.runs[0].entries <= 1 {
                return;
            }
            group *= COARSE_ENTRIES;
            self.merge_from(0, COARSE_ENTRIES);
        }
    }

    /// Makes one run of those from `at` on.
    fn merge_from(&mut self, at: usize, group: usize) {
        let runs = self.runs.split_off(at);
        let mut sources: Vec<Entries<'_>> =
            runs.iter().map(|run| Entries::new(&run.bytes)).filter_map(Entries::started).collect();
        let mut builder = Builder::default();
        while let Some(least) =
            (0..sources.len()).min_by(|left, right| sources[*left].from.cmp(&sources[*right].from))
        {
            let source = &mut sources[least];
            builder.add(&source.from, source.last(), source.is_range, group);
            if !source.next() {
                sources.swap_remove(least);
            }
        }
        builder.flush();
        let mut run = builder.run;
        run.bytes.shrink_to_fit();
        run.starts.shrink_to_fit();
        self.runs.push(run);
    }

    /// Whether the set has a key.
    pub fn find(&self, key: &[u8]) -> Option<Membership> {
        let mut found = None;
        for run in &self.runs {
            match run.find(key) {
                Some(Membership::Exact) => return Some(Membership::Exact),
                Some(Membership::Covered) => found = Some(Membership::Covered),
                None => {}
            }
        }
        found
    }

    /// Memory.
    pub fn size_bytes(&self) -> usize {
        self.runs.iter().map(Run::size_bytes).sum()
    }

    /// Keys and ranges.
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.entries).sum()
    }
}

impl Entries<'_> {
    fn started(mut self) -> Option<Self> {
        self.next().then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sys::entropy::SplitMix;

    use super::*;

    const PLENTY: usize = 1 << 30;

    fn add(set: &mut KeySet, keys: &mut [Vec<u8>], bytes_max: usize) {
        keys.sort();
        let sorted: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        set.add_sorted(&sorted, bytes_max);
    }

    #[test]
    fn a_set_has_what_was_put_in() {
        for seed in 0..20 {
            let mut random = SplitMix::new(seed);
            let (mut set, mut model) = (KeySet::default(), BTreeSet::new());
            let longest = 1 + random.below(6);
            for _ in 0..random.below(30) {
                let mut keys: Vec<Vec<u8>> = (0..1 + random.below(90))
                    .map(|_| (0..random.below(longest)).map(|_| random.below(9) as u8).collect())
                    .collect();
                model.extend(keys.iter().cloned());
                add(&mut set, &mut keys, PLENTY);
            }
            assert!(model.iter().all(|key| set.find(key) == Some(Membership::Exact)), "{seed}");
            for _ in 0..500 {
                let key: Vec<u8> = (0..random.below(7)).map(|_| random.below(10) as u8).collect();
                assert_eq!(set.find(&key).is_some(), model.contains(&key), "{seed}: {key:?}");
            }
        }
    }

    #[test]
    fn dense_keys_take_few_bytes() {
        for backward in [false, true] {
            let mut set = KeySet::default();
            for batch in 0..100_u64 {
                let batch = if backward { 99 - batch } else { batch };
                let keys = (0..1000).map(|id| (batch * 1000 + id).to_be_bytes().to_vec());
                add(&mut set, &mut keys.collect::<Vec<_>>(), PLENTY);
            }
            assert_eq!(set.len(), 100_000);
            assert!(set.size_bytes() < 800_000, "{}", set.size_bytes());
            assert!(set.find(&77_777_u64.to_be_bytes()) == Some(Membership::Exact));
            assert!(set.find(&100_000_u64.to_be_bytes()).is_none());
        }
    }

    #[test]
    fn memory_has_a_bound_beyond_which_ranges_cover_more() {
        const BYTES_MAX: usize = 20_000;
        let mut random = SplitMix::new(7);
        let (mut set, mut all) = (KeySet::default(), Vec::new());
        for _ in 0..60 {
            let mut keys: Vec<Vec<u8>> =
                (0..1000).map(|_| random.below(u64::MAX / 2).to_be_bytes().to_vec()).collect();
            all.extend(keys.iter().cloned());
            add(&mut set, &mut keys, BYTES_MAX);
            assert!(set.size_bytes() <= BYTES_MAX, "{}", set.size_bytes());
        }
        assert!(all.iter().all(|key| set.find(key).is_some()));
        assert!(set.find(&[0xFF; 8]).is_none());
        // So little that everything is one range.
        let mut keys = vec![vec![1; 300], vec![9; 300]];
        let mut set = KeySet::default();
        add(&mut set, &mut keys, 100);
        assert_eq!((set.len(), set.find(&[5])), (1, Some(Membership::Covered)));
    }
}
