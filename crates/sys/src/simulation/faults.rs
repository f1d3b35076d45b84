//! What goes wrong on a simulated machine until a test says otherwise. When it does is drawn from the seed.

use std::io;
use std::time::Duration;

use super::scheduler::State;

/// The system's number of an input or output error.
const EIO: i32 = 5;

/// What is wrong with a machine. A life begins with nothing wrong but the wall clock, which stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// One of so many calls that read files fails; with 0 none does.
    pub failing_reads: u64,
    /// One of so many calls that write files fails, after a part of its bytes was written; with 0 none does.
    pub failing_writes: u64,
    /// One of so many syncs fails and drops what it should have made durable; with 0 none does.
    pub failing_syncs: u64,
    /// Calls to files take so many times as long; with 0 as long as always.
    pub disk_slowness: u32,
    /// Packets travel so many times as long; with 0 as long as always.
    pub network_slowness: u32,
    /// The wall clock differs by so many seconds from what it should show.
    pub wall_offset_secs: i64,
}

/// Changes what is wrong with the calling thread's machine; nothing on a real one.
pub fn change_faults(change: impl FnOnce(&mut Faults)) {
    if let Some(here) = super::current() {
        here.with(|state| change(&mut state.faults));
    }
}

/// Has files of the calling thread's machine get no new blocks but `spare` in each directory; with `None` they get as many as they like.
pub fn fill_disks(spare: Option<u64>) {
    if let Some(here) = super::current() {
        here.with(|state| state.files.fill(spare));
    }
}

/// Cuts a connection of the calling thread's machine, drawn from the seed: of what is under way a part arrives, and both ends see it end. False when
/// there is none.
pub fn cut_a_connection() -> bool {
    super::current().is_some_and(|here| here.with(State::cut_a_connection))
}

/// Has nothing that is sent over a connection, drawn from the seed, arrive for a while. False when there is none.
pub fn stall_a_connection(time: Duration) -> bool {
    super::current().is_some_and(|here| here.with(|state| state.stall_a_connection(time)))
}

/// Kinds of calls that fail apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fallible {
    Read,
    Write,
    Sync,
}

impl State {
    /// Whether a call fails.
    pub(super) fn draw_failure(&mut self, call: Fallible) -> bool {
        let one_in = match call {
            Fallible::Read => self.faults.failing_reads,
            Fallible::Write => self.faults.failing_writes,
            Fallible::Sync => self.faults.failing_syncs,
        };
        // No number is drawn where nothing can fail.
        one_in > 0 && self.below(one_in) == 0
    }
}

/// The error of a call that fails.
pub(super) fn broken() -> io::Error {
    io::Error::from_raw_os_error(EIO)
}
