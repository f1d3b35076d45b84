//! How a session that waits for a metadata lock takes its turn without making others wait for long.
//!
//! While a transaction or a long statement holds the table, new uses pass: the waiting session cannot have its lock yet, and whoever queued for
//! it would wait for nothing. Once only short uses are left, which would follow each other for ever, it closes the door for about as long as such a
//! use takes. How long that is grows with the time waited, so that overlapping statements of up to a second do not keep it away.

use std::time::Duration;

use hashbrown::HashMap;

/// Who uses the table while a session waits for its lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DdlWaitPolicy {
    /// Others, as long as the lock cannot be had.
    #[default]
    SkipAhead,
    /// Only those who used it before.
    Queue,
}

/// How a lock is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// The longest wait.
    pub timeout: Duration,
    /// What others may do in the meantime.
    pub policy: DdlWaitPolicy,
}

impl From<Duration> for LockWait {
    /// New uses queue.
    fn from(timeout: Duration) -> LockWait {
        LockWait { timeout, policy: DdlWaitPolicy::Queue }
    }
}

/// A session's transaction, or its statement outside one, that uses the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holder {
    pub owner: u64,
    pub releases: u32,
}

/// Whether new uses of the table pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    Closed,
}

/// The longest that the door is closed at first, and how long at least it is open afterwards, in such times.
const CLOSED_MIN: Duration = Duration::from_millis(5);
const CLOSED_MAX: Duration = Duration::from_secs(1);
const OPEN_TIMES: u32 = 4;
/// The share of the time waited that a use may take and be short.
const SHARE: u32 = 16;

/// The wait of one session.
#[derive(Debug)]
pub(crate) struct Turn {
    policy: DdlWaitPolicy,
    /// The holders, and when they were first seen.
    seen: HashMap<Holder, Duration>,
    door: Door,
    /// When the door may be moved again.
    until: Duration,
}

impl Turn {
    pub fn new(policy: DdlWaitPolicy) -> Turn {
        Turn { policy, seen: HashMap::new(), door: Door::Open, until: Duration::ZERO }
    }

    /// Whether it lets others pass.
    pub fn passes(&self) -> bool {
        self.policy == DdlWaitPolicy::SkipAhead
    }

    /// The door from now on, after a wait of `waited`. It is only closed when each of `holders` has come within the last while.
    pub fn door(&mut self, holders: impl FnOnce() -> Vec<Holder>, waited: Duration) -> Door {
        if self.policy == DdlWaitPolicy::Queue {
            return Door::Closed;
        }
        if self.door == Door::Closed && waited < self.until {
            return Door::Closed;
        }
        let short = (waited / SHARE).clamp(CLOSED_MIN, CLOSED_MAX);
        let now = holders();
        self.seen.retain(|known, _| now.contains(known));
        now.iter().for_each(|holder| {
            self.seen.entry(*holder).or_insert(waited);
        });
        if self.door == Door::Closed {
            (self.door, self.until) = (Door::Open, waited + short * OPEN_TIMES);
        } else if now.is_empty() {
            // Who comes in between is let out again.
            (self.door, self.until) = (Door::Closed, waited + short);
        } else if waited >= self.until.max(CLOSED_MIN)
            && self.seen.values().all(|since| waited - *since < short)
        {
            (self.door, self.until) = (Door::Closed, waited + short);
        }
        self.door
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_long_holder_keeps_the_door_open() {
        let mut turn = Turn::new(DdlWaitPolicy::SkipAhead);
        let long = Holder { owner: 1, releases: 0 };
        for now in 0..20_000 {
            let passing = Holder { owner: 2, releases: now as u32 };
            assert_eq!(turn.door(|| vec![long, passing], ms(now)), Door::Open, "{now}");
        }
    }

    #[test]
    fn short_holders_close_it_for_a_moment() {
        let mut turn = Turn::new(DdlWaitPolicy::SkipAhead);
        let of = |now: u64| Holder { owner: 2, releases: (now / 3) as u32 };
        let doors: Vec<Door> = (0..100).map(|now| turn.door(|| vec![of(now)], ms(now))).collect();
        let closed = doors.iter().filter(|door| **door == Door::Closed).count();
        assert!((5..=25).contains(&closed), "{doors:?}");
    }

    #[test]
    fn overlapping_statements_of_half_a_second_do_not_keep_it_open_for_ever() {
        let mut turn = Turn::new(DdlWaitPolicy::SkipAhead);
        let of =
            |owner: u64, now: u64| Holder { owner, releases: ((now + owner * 250) / 500) as u32 };
        let at = |now| turn.door(|| vec![of(1, now), of(2, now)], ms(now)) == Door::Closed;
        let closed: Vec<u64> = (0..60_000)
            .filter(|now| *now > 9_000)
            .scan(at, |at, now| Some((at(now), now)))
            .filter(|(closed, _)| *closed)
            .map(|(_, now)| now)
            .collect();
        // A door that is closed for as long as a statement takes lets the waiting session in.
        assert!(closed.len() > 500, "{}", closed.len());
    }

    #[test]
    fn a_free_table_is_taken_at_once() {
        let mut turn = Turn::new(DdlWaitPolicy::SkipAhead);
        assert_eq!(turn.door(Vec::new, ms(0)), Door::Closed);
    }

    #[test]
    fn a_queue_has_no_open_door() {
        let mut turn = Turn::new(DdlWaitPolicy::Queue);
        let long = Holder { owner: 1, releases: 0 };
        assert_eq!(turn.door(|| vec![long], ms(500)), Door::Closed);
    }
}
