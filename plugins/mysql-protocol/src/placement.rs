//! The choice of connections that get their own threads.
//!
//! Busy ones, while they are few: then a thread that waits for the commands of one connection is cheaper than a reactor. At every tick
//! each reactor checks the activity of its connections, and all reactors together decide by the sums. Knows no sockets and no queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use sys::interrupt::Waiting;

use crate::connection::Server;

/// Commands between two ticks that make a connection a busy one.
const BUSY_COMMANDS: u32 = 64;
/// Busy connections for each reactor that get their own threads. Measured on two processors: a thread for each is cheaper
/// than a reactor up to 8 per processor and more expensive from 32 on.
const ALONE_PER_REACTOR: usize = 8;
/// One that often waits for pages counts this share: handing a reactor over for each wait costs more than a thread, even with
/// four times as many.
const WAITING_SHARE: usize = 4;
/// A busy connection often waits for pages when more than one in this many of its commands, or of its steps in its own thread, waits for one.
const COMMANDS_PER_WAIT: u32 = 4;
/// The same for connections that often wait for the log: a reactor writes it for all its connections at once, and wakes no thread for each.
const COMMITTING_ALONE_PER_REACTOR: usize = 2;
/// A busy connection often waits for the log when more than one in this many of its commands, or of its steps in its own thread, waits.
const COMMANDS_PER_COMMIT: u32 = 16;
/// The activity of a connection between the last two ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Activity {
    #[default]
    Little,
    /// It ran many commands.
    Busy,
    /// And often waited for pages.
    Waiting,
    /// And often waited for the log.
    Committing,
}

impl Activity {
    /// Its weight among the busy ones, in shares of one.
    fn weight(self) -> usize {
        match self {
            Activity::Little => 0,
            Activity::Waiting => 1,
            Activity::Busy | Activity::Committing => WAITING_SHARE,
        }
    }
}

/// The place of a connection's next turn.
#[derive(Debug, Default)]
enum Place {
    /// In its reactor.
    #[default]
    Reactor,
    /// It is busy: the next turn is on its own thread.
    Promoted,
    /// It is on its own thread.
    Alone(Arc<Waiting>),
}

/// The measurements of one connection, and its place.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    /// Commands that its connection had run at the last tick; on its own thread, steps of its waits.
    seen: u32,
    commits: Arc<AtomicU32>,
    /// The value of `commits` at the last tick.
    commits_seen: u32,
    waits: Arc<AtomicU32>,
    /// The value of `waits` at the last tick.
    waits_seen: u32,
    activity: Activity,
    place: Place,
}

impl Placement {
    /// A new connection, which counts its waits for commits and for pages.
    pub(crate) fn of(commits: Arc<AtomicU32>, waits: Arc<AtomicU32>) -> Placement {
        Placement { commits, waits, ..Placement::default() }
    }

    /// Its activity between the last two ticks.
    pub(crate) fn activity(&self) -> Activity {
        self.activity
    }

    /// Its next turn is to be on its own thread.
    pub(crate) fn is_promoted(&self) -> bool {
        matches!(self.place, Place::Promoted)
    }

    /// It moves to its own thread, whose waits are interrupted through the returned value.
    pub(crate) fn leave(&mut self) -> Arc<Waiting> {
        let waiting = Arc::new(Waiting::default());
        self.seen = 0;
        self.place = Place::Alone(waiting.clone());
        waiting
    }

    /// A turn has ended, after `commands` in all. Returns whether it was on its own thread.
    pub(crate) fn come_back(&mut self, commands: u32) -> bool {
        let was_alone = matches!(self.place, Place::Alone(_));
        if was_alone {
            self.place = Place::Reactor;
            self.seen = commands;
        }
        was_alone
    }

    /// Evaluates the connection's activity since the last tick; `commands` it has run in all, where it is available. One that did little, or
    /// `is_killed`, loses its own thread, or else is chosen for one.
    pub(crate) fn look(&mut self, commands: Option<u32>, is_killed: bool) -> Activity {
        let now = match (commands, &self.place) {
            (Some(commands), _) => commands,
            // Two steps a command: it takes fewer of them to keep a thread than to get one.
            (None, Place::Alone(waiting)) => waiting.steps(),
            (None, Place::Reactor | Place::Promoted) => {
                self.activity = Activity::Little;
                return self.activity;
            }
        };
        let commands = now.wrapping_sub(std::mem::replace(&mut self.seen, now));
        let commits = self.commits.load(Ordering::Relaxed);
        let committed = commits.wrapping_sub(std::mem::replace(&mut self.commits_seen, commits));
        let waits = self.waits.load(Ordering::Relaxed);
        let waited = waits.wrapping_sub(std::mem::replace(&mut self.waits_seen, waits));
        let is_busy = commands >= BUSY_COMMANDS;
        let is_long = match &self.place {
            Place::Alone(waiting) if !is_busy || is_killed => {
                waiting.interrupt();
                // Inside a long statement it holds its thread.
                now.is_multiple_of(2)
            }
            Place::Alone(_) => false,
            Place::Reactor | Place::Promoted => {
                self.place = if is_busy { Place::Promoted } else { Place::Reactor };
                false
            }
        };
        self.activity = match is_busy || is_long {
            true if committed.saturating_mul(COMMANDS_PER_COMMIT) > commands => {
                Activity::Committing
            }
            true if waited.saturating_mul(COMMANDS_PER_WAIT) > commands => Activity::Waiting,
            true => Activity::Busy,
            false => Activity::Little,
        };
        self.activity
    }

    /// Its turns take place in the reactor from the next one on.
    pub(crate) fn call_back(&mut self) {
        match &self.place {
            Place::Reactor => {}
            Place::Promoted => self.place = Place::Reactor,
            Place::Alone(waiting) => waiting.recall(),
        }
    }
}

/// The busy connections of one reactor, as part of those of all reactors.
pub(crate) struct Crowd {
    /// Their weights, as reported to the server.
    busy: usize,
    /// Those that often wait for the log, as reported to the server.
    committing: usize,
    /// All of those are in reactors.
    gathers: bool,
    /// The number of reactors.
    reactors: usize,
}

/// Connections that are to leave their threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MustLeave {
    None,
    /// Those that often wait for the log.
    Committing,
    All,
}

impl MustLeave {
    pub(crate) fn includes(self, activity: Activity) -> bool {
        match self {
            MustLeave::None => false,
            MustLeave::Committing => activity == Activity::Committing,
            MustLeave::All => true,
        }
    }
}

impl Crowd {
    pub(crate) fn of(reactors: usize) -> Crowd {
        Crowd { busy: 0, committing: 0, gathers: false, reactors }
    }

    /// Counts the activity of this reactor's connections, and decides by that of all. A stopping server calls all back.
    pub(crate) fn weigh(
        &mut self,
        activities: impl Iterator<Item = Activity>,
        server: &Server,
        is_stopping: bool,
    ) -> MustLeave {
        let (mut busy, mut committing) = (0, 0);
        for activity in activities {
            busy += activity.weight();
            committing += usize::from(activity == Activity::Committing);
        }
        let busy = share(&server.busy, &mut self.busy, busy);
        let committing = share(&server.committing, &mut self.committing, committing);
        let limit = self.reactors * COMMITTING_ALONE_PER_REACTOR;
        self.gathers = are_too_many(committing, limit, self.gathers);
        let recalled = server.recall.load(Ordering::Relaxed);
        let too_many =
            are_too_many(busy, self.reactors * ALONE_PER_REACTOR * WAITING_SHARE, recalled);
        let recall = is_stopping || too_many;
        server.recall.store(recall, Ordering::Relaxed);
        match (recall, self.gathers) {
            (true, _) => MustLeave::All,
            (false, true) => MustLeave::Committing,
            (false, false) => MustLeave::None,
        }
    }
}

/// Updates this reactor's part of a number that all reactors share. Returns the whole.
fn share(all: &AtomicUsize, part: &mut usize, now: usize) -> usize {
    let change = now.wrapping_sub(std::mem::replace(part, now));
    all.fetch_add(change, Ordering::Relaxed).wrapping_add(change)
}

/// Whether `count` connections are too many for their own threads. Returns to threads only when they are clearly few again.
fn are_too_many(count: usize, limit: usize, were: bool) -> bool {
    count > if were { limit - limit / 4 } else { limit }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection that is on its own thread and has run `commands` there, `commits` of which waited for the log and
    /// `waits` for pages.
    fn alone(commands: u32, commits: u32, waits: u32) -> Placement {
        let counts = |count| Arc::new(AtomicU32::new(count));
        let mut placement = Placement::of(counts(commits), counts(waits));
        let waiting = placement.leave();
        for _ in 0..commands {
            waiting.wait(|| Ok(())).expect("no error");
        }
        placement
    }

    #[test]
    fn connections_that_often_commit_are_told_from_others() {
        assert_eq!(alone(1000, 0, 0).look(None, false), Activity::Busy);
        // One wait in five statements, and in each: the first has twice the weight.
        let (busy, waiting) =
            (alone(1000, 0, 200).look(None, false), alone(1000, 0, 1000).look(None, false));
        assert_eq!((busy, waiting), (Activity::Busy, Activity::Waiting));
        assert_eq!(busy.weight(), WAITING_SHARE * waiting.weight());
        // One transaction in twenty statements, and in six.
        assert_eq!(alone(1000, 50, 0).look(None, false), Activity::Busy);
        assert_eq!(alone(1000, 166, 166).look(None, false), Activity::Committing);
        let mut placement = alone(1000, 1000, 0);
        assert_eq!(placement.look(None, false), Activity::Committing);
        placement.call_back();
        assert!(matches!(&placement.place, Place::Alone(waiting) if waiting.is_recalled()));
    }

    #[test]
    fn few_again_are_clearly_fewer_than_too_many() {
        assert!(are_too_many(5, 4, false) && !are_too_many(4, 4, false));
        assert!(are_too_many(4, 4, true) && !are_too_many(3, 4, true));
    }
}
