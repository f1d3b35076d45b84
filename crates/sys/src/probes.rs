//! Probes for tracers (USDT, as SystemTap's notes describe them): places where bpftrace, perf or gdb may stop by and see some numbers.
//!
//! A probe is one instruction that does nothing, and a note in the program that says where it is and in which registers its arguments are. So an argument
//! must be at hand: nothing is computed for a probe. `docs/probes.md` lists them; a test compares the list with the built program.

use probe::probe;

/// What ends when it is dropped: the second probe of a pair.
pub struct Pair<const WHICH: u8>(u64);

const QUERY: u8 = 0;
const PARSE: u8 = 1;
const PLAN: u8 = 2;
const LOCK: u8 = 3;
const LATCH: u8 = 4;

impl<const WHICH: u8> Drop for Pair<WHICH> {
    #[inline(always)]
    fn drop(&mut self) {
        match WHICH {
            QUERY => probe!(squall, query__done, self.0),
            PARSE => probe!(squall, parse__done, self.0),
            PLAN => probe!(squall, plan__done, self.0),
            LOCK => probe!(squall, lock__done, self.0),
            _ => probe!(squall, latch__done, self.0),
        }
    }
}

/// A client's text with its statements begins: connection, text, length. `query__done` when it has ended: connection.
#[inline(always)]
pub fn query(connection: u64, text: &[u8]) -> Pair<QUERY> {
    probe!(squall, query__start, connection, text.as_ptr(), text.len());
    Pair(connection)
}

/// A prepared statement is executed: connection, its number. `query__done` when it has ended: connection.
#[inline(always)]
pub fn execute(connection: u64, statement: u32) -> Pair<QUERY> {
    probe!(squall, execute__start, connection, statement);
    Pair(connection)
}

/// A text is parsed: text, length; `parse__done`: length.
#[inline(always)]
pub fn parse(text: &[u8]) -> Pair<PARSE> {
    probe!(squall, parse__start, text.as_ptr(), text.len());
    Pair(text.len() as u64)
}

/// A statement is bound, planned and compiled: text, length; `plan__done`: length.
#[inline(always)]
pub fn plan(text: &[u8]) -> Pair<PLAN> {
    probe!(squall, plan__start, text.as_ptr(), text.len());
    Pair(text.len() as u64)
}

/// A transaction begins to wait for a row lock: transaction; `lock__done`: transaction.
#[inline(always)]
pub fn lock_wait(transaction: u64) -> Pair<LOCK> {
    probe!(squall, lock__wait, transaction);
    Pair(transaction)
}

/// A thread begins to wait for the latch of a page: its address; `latch__done`: its address.
#[inline(always)]
pub fn latch_wait(address: usize) -> Pair<LATCH> {
    probe!(squall, latch__wait, address);
    Pair(address as u64)
}

/// A page is read from its file: page, frame.
#[inline(always)]
pub fn page_read(page: u32, frame: u32) {
    probe!(squall, page__read, page, frame);
}

/// A commit is decided: transaction, ticket.
#[inline(always)]
pub fn commit(transaction: u64, ticket: u64) {
    probe!(squall, commit, transaction, ticket);
}

/// Recovery says how far it is: phase (0 redo, 1 analysis, 2 rollback, 3 done), done, of how much.
#[inline(always)]
pub fn recovery(phase: u8, done: u64, total: u64) {
    probe!(squall, recovery, phase, done, total);
}

/// A file is made durable: class of the file.
#[inline(always)]
pub(crate) fn fsync_start(class: u8) {
    probe!(squall, fsync__start, class);
}

/// It is durable: class of the file, nanoseconds.
#[inline(always)]
pub(crate) fn fsync_done(class: u8, nanos: u64) {
    probe!(squall, fsync__done, class, nanos);
}
