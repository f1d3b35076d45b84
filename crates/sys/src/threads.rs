//! Threads: named, joined, and numbered for structures that are divided by thread.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::affinity::{self, Inheritance};
use crate::share;
use crate::simulation::{self, VirtualThread};
use crate::topology::Sizes;
use crate::turns::Turns;
use crate::usage::Reporting;
use crate::waits::{self, Wait};

/// A running thread; joined when asked, else detached on drop.
pub struct Thread(Handle);

enum Handle {
    Real(std::thread::JoinHandle<()>),
    Virtual(VirtualThread),
}

impl Thread {
    /// Waits for its end. A panic inside it is swallowed: it was reported when it happened.
    pub fn join(self) {
        match self.0 {
            Handle::Real(thread) => {
                let _panicked = thread.join();
            }
            Handle::Virtual(thread) => thread.join(),
        }
    }
}

/// Starts a named thread.
///
/// # Errors
/// The operating system refused.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    spawn_sized(name, None, body)
}

/// Starts a named thread that has `stack_bytes` for its stack.
///
/// # Errors
/// The operating system refused.
pub fn spawn_with_stack(
    name: &str,
    stack_bytes: usize,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<Thread> {
    spawn_sized(name, Some(stack_bytes), body)
}

fn spawn_sized(
    name: &str,
    stack_bytes: Option<usize>,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<Thread> {
    if let Some(here) = simulation::current() {
        return here.spawn(name, stack_bytes, body).map(|thread| Thread(Handle::Virtual(thread)));
    }
    let mut builder = std::thread::Builder::new().name(name.to_string());
    if let Some(stack_bytes) = stack_bytes {
        builder = builder.stack_size(stack_bytes);
    }
    builder.spawn(seen(body)).map(|thread| Thread(Handle::Real(thread)))
}

/// A thread that others see from its start, not only from its first wait, and that is not bound to its parent's processor.
fn seen<T>(body: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let inherited = Inheritance::here();
    move || {
        inherited.give_up();
        waits::slot();
        body()
    }
}

#[cfg(not(any(loom, shuttle)))]
static NEXT_NUMBER: AtomicUsize = AtomicUsize::new(0);

#[cfg(loom)]
loom::lazy_static! {
    // Anew in each execution of a model, which must go the same way when it is repeated.
    static ref NEXT_NUMBER: AtomicUsize = AtomicUsize::new(0);
}

#[cfg(not(any(loom, shuttle)))]
thread_local! {
    static NUMBER: usize = match simulation::current() {
        Some(here) => here.number(),
        None => NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
    };
}

#[cfg(loom)]
loom::thread_local! {
    static NUMBER: usize = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
}

/// A small number that is this thread's own for its life: spreads threads over lanes and shards, names nothing.
#[cfg(not(shuttle))]
pub fn number() -> usize {
    NUMBER.with(|number| *number)
}

/// Under shuttle the model's own numbers, which are the same each time.
#[cfg(shuttle)]
pub fn number() -> usize {
    shuttle::current::me().into()
}

/// The operating system's number of the calling thread.
pub(crate) fn system_number() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// Ends the process when the calling thread unwinds: for state that a bug left half changed and that no other thread may see. A restart recovers.
pub fn abort_if_panicking(why: &str) {
    if is_panicking() {
        crate::process::abort(why);
    }
}

/// Whether the calling thread unwinds after a panic.
pub fn is_panicking() -> bool {
    std::thread::panicking()
}

/// Gives the processor to another thread.
pub fn yield_now() {
    #[cfg(any(loom, shuttle))]
    crate::sync::spin_hint();
    #[cfg(not(any(loom, shuttle)))]
    match simulation::current() {
        Some(here) => here.give_way(),
        None => std::thread::yield_now(),
    }
}

/// Sleeps; under a model only yields.
pub fn sleep(time: Duration) {
    if cfg!(any(loom, shuttle)) {
        yield_now();
        return;
    }
    let _waiting = waits::enter(Wait::Sleep);
    match simulation::current() {
        Some(here) => here.pause(time),
        None => std::thread::sleep(time),
    }
}

/// What follows from the processors that this process may use: read when first asked for, and the same from then on.
pub fn sizes() -> Sizes {
    match cfg!(any(loom, shuttle)) || simulation::current().is_some() {
        true => Sizes::SIMULATED,
        false => Sizes::of_process(),
    }
}

/// Processors this process may use, at least 1.
pub fn processors() -> usize {
    sizes().processors
}

/// The one of `parts` parts of a structure that the calling thread uses first. The parts belong to `nodes` nodes of memory in turn: a thread that is
/// bound to a node uses one of its node's.
pub fn part_of(parts: usize, nodes: usize) -> usize {
    part_for(number(), affinity::node(), parts, nodes)
}

fn part_for(number: usize, node: Option<usize>, parts: usize, nodes: usize) -> usize {
    match node {
        Some(node) if nodes > 1 && parts.is_multiple_of(nodes) => {
            number % (parts / nodes) * nodes + node % nodes
        }
        Some(_) | None => number % parts,
    }
}

/// The most helper threads that all users together may have at one time.
pub struct HelperLimit {
    free: AtomicUsize,
    /// As many large scans run at a time as there are processors, each helper counted as one.
    pub turns: Turns,
}

/// Helpers that were granted, until this is dropped.
pub struct Helpers<'l> {
    limit: &'l HelperLimit,
    count: usize,
}

impl HelperLimit {
    /// A limit of `count` threads.
    pub fn new(count: usize) -> HelperLimit {
        HelperLimit { free: AtomicUsize::new(count), turns: Turns::new(processors()) }
    }

    /// Grants up to `wanted` helpers, as many as are free. Does not wait.
    pub fn take(&self, wanted: usize) -> Helpers<'_> {
        let rest = |free: usize| Some(free.saturating_sub(wanted));
        let free = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        Helpers { limit: self, count: free.map_or(0, |free| free.min(wanted)) }
    }
}

impl Helpers<'_> {
    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl Drop for Helpers<'_> {
    fn drop(&mut self) {
        self.limit.free.fetch_add(self.count, Ordering::Relaxed);
    }
}

/// Runs `work` with the numbers from 0 to `count - 1`, number 0 on the calling thread and each other on a helper thread, and
/// returns their results in order. Helpers run at a lower priority than threads that answer clients. If the thread for a number cannot
/// be started, the number is left out.
///
/// # Panics
/// When a `work` does.
pub fn together<T: Send>(name: &str, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    if let Some(here) = simulation::current() {
        let (mut helped, own) =
            here.alongside(name, count.saturating_sub(1), &|at| work(at + 1), || work(0));
        helped.insert(0, own);
        return helped;
    }
    let reporting = Reporting::here();
    std::thread::scope(|scope| {
        let work = &work;
        let helpers: Vec<_> = (1..count)
            .filter_map(|number| {
                let inherited = Inheritance::of_helpers();
                let body = move || {
                    inherited.give_up();
                    waits::slot();
                    share::lower_priority(HELPER_NICENESS);
                    reporting.helped(|| work(number))
                };
                std::thread::Builder::new().name(name.to_string()).spawn_scoped(scope, body).ok()
            })
            .collect();
        let mut results = vec![work(0)];
        for helper in helpers {
            match helper.join() {
                Ok((result, used)) => {
                    reporting.add(&used);
                    results.push(result);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    })
}

/// Steps of niceness by which a helper lowers its priority.
const HELPER_NICENESS: i32 = 5;

/// How the pieces of one job are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crew {
    /// Each on a separate thread.
    Threads,
    /// One after another on the caller's thread, so that a test sees the same order each time.
    InTurn,
}

/// Runs `piece(0)` to `piece(count - 1)` concurrently with `meanwhile`, which stays on the caller's thread, and returns when all are done.
pub fn alongside<R: Send, T>(
    crew: Crew,
    count: usize,
    piece: impl Fn(usize) -> R + Sync,
    meanwhile: impl FnOnce() -> T,
) -> (Vec<R>, T) {
    if crew == Crew::InTurn {
        let results = (0..count).map(piece).collect();
        return (results, meanwhile());
    }
    let piece = &piece;
    if let Some(here) = simulation::current() {
        return here.alongside("piece", count, piece, meanwhile);
    }
    let reporting = Reporting::here();
    std::thread::scope(|scope| {
        let inherited = Inheritance::of_helpers();
        let helped = |index| {
            let inherited = inherited.clone();
            move || {
                inherited.give_up();
                reporting.helped(|| piece(index))
            }
        };
        let running: Vec<_> = (0..count).map(|index| scope.spawn(helped(index))).collect();
        let other = meanwhile();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok((result, used)) => {
                reporting.add(&used);
                result
            }
            Err(panic) => std::panic::resume_unwind(panic),
        };
        (running.into_iter().map(join).collect(), other)
    })
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{HelperLimit, part_for};

    #[test]
    fn a_thread_of_a_node_uses_parts_of_that_node() {
        let parts: Vec<usize> = (0..5).map(|number| part_for(number, None, 8, 2)).collect();
        assert_eq!(parts, [0, 1, 2, 3, 4]);
        let of_second = |number| part_for(number, Some(1), 8, 2);
        assert_eq!((0..5).map(of_second).collect::<Vec<_>>(), [1, 3, 5, 7, 1]);
        // A node beyond those that the parts were made for, parts that are not the same for each, and one part only.
        assert_eq!(part_for(3, Some(2), 8, 2), 6);
        assert_eq!(part_for(9, Some(1), 7, 2), 2);
        assert_eq!((part_for(9, Some(1), 1, 1), part_for(9, Some(0), 1, 2)), (0, 0));
    }

    #[test]
    fn helpers_are_granted_while_there_are_some() {
        let limit = HelperLimit::new(3);
        let two = limit.take(2);
        let rest = limit.take(2);
        assert_eq!((two.count(), rest.count(), limit.take(1).count()), (2, 1, 0));
        drop(two);
        assert_eq!(limit.take(5).count(), 2);
        drop(rest);
        assert_eq!(limit.take(5).count(), 3);
    }
}
