//! Turns of threads and the passing of time on a simulated machine.
//!
//! Threads are real ones. One of them has the turn; the others wait, each on its own condition, until they get it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, ScopedJoinHandle};
use std::time::Duration;

use super::faults::Faults;
use super::file_tree::FileTree;
use super::network::{Arrival, Network};
use super::trace::{Event, Record, Trace};
use crate::random::SplitMix;

/// Between two attempts to take a lock that another thread has, and while a thread spins.
const ATTEMPT: Duration = Duration::from_micros(1);
/// A life that is longer counts as stuck: threads that try a lock again and again are not seen to wait.
const LIFE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Stack of simulated threads without a wish of their own: tests are built without optimisation.
const STACK_BYTES: usize = 8 << 20;

/// The object of a thread's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// For time to pass.
    Time,
    /// A condition, by its address.
    Condition(usize),
    /// A word that threads park on, by its address.
    Parked(usize),
    /// The end of a thread.
    End(usize),
    /// Bytes of a pipe.
    Bytes(u64),
    /// Room in a pipe.
    Room(u64),
    /// An event of a poller.
    Poller(u64),
}

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The awaited event happened.
    Notified,
    /// Its time was up.
    TimedOut,
    /// Another thread interrupted it.
    Interrupted,
}

#[derive(Debug)]
enum Status {
    Ready,
    Waiting { key: Key, until: Option<Duration> },
    Ended,
}

struct Thread {
    name: String,
    status: Status,
    woken: Woken,
    turn: Arc<Condvar>,
    handle: Option<JoinHandle<()>>,
}

/// How a life ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Returned,
    Stuck(String),
    Aborted(String),
}

/// Everything that is simulated.
pub(crate) struct State {
    now: Duration,
    /// Since when the machine is up.
    life_began: Duration,
    random: SplitMix,
    threads: Vec<Thread>,
    /// Threads before this one are of earlier lives.
    first_of_life: usize,
    running: usize,
    /// A thread that has just ended; the next one to run waits until it is gone.
    leaving: Option<JoinHandle<()>>,
    arrivals: BTreeMap<(Duration, u64), Arrival>,
    next_arrival: u64,
    end: Option<End>,
    pub(crate) left: Vec<String>,
    pub(crate) trace: Trace,
    pub(crate) console: String,
    pub(crate) network: Network,
    pub(crate) files: FileTree,
    pub(crate) faults: Faults,
}

/// A simulated machine.
pub(crate) struct Core {
    state: Mutex<State>,
    /// A separate sequence: more entropy must not change the order of threads. Not under the lock of the rest, where maps are made
    /// whose keys come from here.
    entropy: Mutex<SplitMix>,
    ended: Condvar,
}

/// A thread's place in a machine.
#[derive(Clone)]
pub(crate) struct Here {
    pub(crate) core: Arc<Core>,
    thread: usize,
    turn: Arc<Condvar>,
}

/// A thread that can be waited for.
pub(crate) struct VirtualThread {
    core: Arc<Core>,
    thread: usize,
}

impl Core {
    pub(crate) fn new(seed: u64) -> Core {
        let mut random = SplitMix::new(seed);
        let entropy = Mutex::new(SplitMix::new(random.next_u64()));
        Core {
            entropy,
            state: Mutex::new(State {
                now: Duration::ZERO,
                life_began: Duration::ZERO,
                random,
                threads: Vec::new(),
                first_of_life: 0,
                running: 0,
                leaving: None,
                arrivals: BTreeMap::new(),
                next_arrival: 0,
                end: None,
                left: Vec::new(),
                trace: Trace::default(),
                console: String::new(),
                network: Network::default(),
                files: FileTree::new(),
                faults: Faults::default(),
            }),
            ended: Condvar::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the first thread of a life.
    pub(crate) fn begin_life(self: &Arc<Self>, name: &str, body: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        state.first_of_life = state.threads.len();
        state.life_began = state.now;
        state.end = None;
        state.left.clear();
        state.running = state.threads.len();
        let started = self.start(state, name, STACK_BYTES, body);
        started.expect("a thread for the machine can be had");
    }

    /// Ends the life of which the calling thread is a part.
    pub(crate) fn end_life(&self, end: End) {
        let mut state = self.lock();
        state.end(end);
        drop(state);
        self.ended.notify_all();
    }

    pub(crate) fn wait_for_end(&self) -> End {
        let mut state = self.lock();
        loop {
            if let Some(end) = state.end.clone() {
                let first = state.first_of_life;
                let mut over = vec![state.leaving.take()];
                // The first thread is on its way out then, and must be out before another life begins.
                if matches!(end, End::Returned) {
                    over.push(state.threads[first].handle.take());
                }
                drop(state);
                over.into_iter().flatten().for_each(|thread| drop(thread.join()));
                return end;
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn start(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        name: &str,
        stack_bytes: usize,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<VirtualThread> {
        let here = state.add_thread(self, name);
        let thread = here.thread;
        let builder = Builder::new().name(name.to_owned()).stack_size(stack_bytes);
        match builder.spawn(move || here.live(body)) {
            Ok(handle) => {
                state.threads[thread].handle = Some(handle);
                Ok(VirtualThread { core: self.clone(), thread })
            }
            Err(error) => {
                state.threads.pop();
                Err(error)
            }
        }
    }
}

impl State {
    fn add_thread(&mut self, core: &Arc<Core>, name: &str) -> Here {
        let (thread, turn) = (self.threads.len(), Arc::new(Condvar::new()));
        self.threads.push(Thread {
            name: name.to_owned(),
            status: Status::Ready,
            woken: Woken::Notified,
            turn: turn.clone(),
            handle: None,
        });
        Here { core: core.clone(), thread, turn }
    }

    fn end(&mut self, end: End) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(end);
        let running = self.running;
        for (index, thread) in self.threads.iter_mut().enumerate().skip(self.first_of_life) {
            if !matches!(thread.status, Status::Ended) && index != running {
                self.left.push(thread.name.clone());
            }
            thread.status = Status::Ended;
        }
        self.arrivals.clear();
        self.network = Network::default();
        self.files.unlock_all();
        self.files.fill(None);
        let wall_offset_secs = self.faults.wall_offset_secs;
        self.faults = Faults { wall_offset_secs, ..Faults::default() };
    }

    /// A number below `limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    /// A duration from `least` to twice as much and a little more.
    pub(crate) fn latency(&mut self, least: Duration) -> Duration {
        least + Duration::from_nanos(self.random.below(least.as_nanos() as u64 + 1000))
    }

    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    pub(crate) fn record(&mut self, event: Event) {
        let thread = self.threads[self.running].name.clone();
        self.trace.records.push(Record { at: self.now, thread, event });
    }

    /// Takes away what travels and is of no use any more.
    pub(super) fn lose_arrivals(&mut self, is_lost: impl FnMut(&Arrival) -> bool) -> Vec<Arrival> {
        let mut is_lost = is_lost;
        let lost = self.arrivals.extract_if(.., |_, arrival| is_lost(arrival));
        lost.map(|(_, arrival)| arrival).collect()
    }

    /// Has something arrive at a time.
    pub(crate) fn arrive(&mut self, at: Duration, arrival: Arrival) {
        self.next_arrival += 1;
        self.arrivals.insert((at, self.next_arrival), arrival);
    }

    /// Wakes all threads that wait for `key`.
    pub(crate) fn wake_all(&mut self, key: Key) {
        for thread in &mut self.threads[self.first_of_life..] {
            if matches!(thread.status, Status::Waiting { key: waited, .. } if waited == key) {
                (thread.status, thread.woken) = (Status::Ready, Woken::Notified);
            }
        }
    }

    /// Wakes one of them.
    fn wake_one(&mut self, key: Key) {
        let waits = |index: &usize| matches!(self.threads[*index].status, Status::Waiting { key: waited, .. } if waited == key);
        let waiting: Vec<usize> = (self.first_of_life..self.threads.len()).filter(waits).collect();
        if let Some(index) = self.draw(&waiting) {
            let thread = &mut self.threads[index];
            (thread.status, thread.woken) = (Status::Ready, Woken::Notified);
        }
    }

    fn draw(&mut self, from: &[usize]) -> Option<usize> {
        let at = self.random.below(from.len() as u64) as usize;
        from.get(at).copied()
    }

    /// Chooses the next thread to run. Lets time pass until one can run. `Err` if none ever will.
    fn choose(&mut self) -> Result<usize, String> {
        loop {
            let is_ready = |index: &usize| matches!(self.threads[*index].status, Status::Ready);
            let ready: Vec<usize> =
                (self.first_of_life..self.threads.len()).filter(is_ready).collect();
            if let Some(next) = self.draw(&ready) {
                return Ok(next);
            }
            let ends = self.threads[self.first_of_life..].iter().filter_map(|thread| match thread
                .status
            {
                Status::Waiting { until, .. } => until,
                Status::Ready | Status::Ended => None,
            });
            let first_arrival = self.arrivals.keys().next().map(|(at, _)| *at);
            let Some(next) = ends.chain(first_arrival).min() else { return Err(self.describe()) };
            assert!(next >= self.now, "nothing happens in the past");
            self.now = next;
            if self.now.saturating_sub(self.life_began) > LIFE_MAX {
                return Err(self.describe());
            }
            self.let_happen();
        }
    }

    /// The timers that are due now.
    fn let_happen(&mut self) {
        let now = self.now;
        while let Some(entry) = self.arrivals.first_entry()
            && entry.key().0 <= now
        {
            let arrival = entry.remove();
            self.receive(arrival);
        }
        for thread in &mut self.threads[self.first_of_life..] {
            if matches!(thread.status, Status::Waiting { until: Some(until), .. } if until <= now) {
                (thread.status, thread.woken) = (Status::Ready, Woken::TimedOut);
            }
        }
    }

    fn describe(&self) -> String {
        let live = self.threads[self.first_of_life..].iter();
        let live = live.filter(|thread| !matches!(thread.status, Status::Ended));
        let lines = live.map(|thread| format!("  {}: {:?}\n", thread.name, thread.status));
        format!("{}  at {:?}", lines.collect::<String>(), self.now)
    }

    pub(crate) fn lose_power(&mut self) {
        let seed = self.random.next_u64();
        self.files.lose_power(seed);
    }
}

impl Here {
    /// Looks at the machine. The caller must not wait inside.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.core.lock())
    }

    pub(crate) fn now(&self) -> Duration {
        self.core.lock().now
    }

    /// Fills `buf` with bytes that the seed decides.
    pub(crate) fn fill_entropy(&self, buf: &mut [u8]) {
        let mut entropy = self.core.entropy.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in buf.chunks_mut(8) {
            let bytes = entropy.next_u64().to_le_bytes();
            piece.copy_from_slice(&bytes[..piece.len()]);
        }
    }

    /// The thread's number on its machine.
    pub(crate) fn number(&self) -> usize {
        self.with(|state| self.thread - state.first_of_life)
    }

    /// The same, as another thread's interrupt takes it.
    pub(crate) fn id(&self) -> i32 {
        i32::try_from(self.thread).unwrap_or(i32::MAX)
    }

    /// Waits for `key`, for `limit` at most.
    pub(crate) fn wait(&self, key: Key, limit: Option<Duration>) -> Woken {
        let mut state = self.core.lock();
        assert_eq!(state.running, self.thread, "only the thread whose turn it is can wait");
        let until = limit.map(|limit| state.now.saturating_add(limit));
        state.threads[self.thread].status = Status::Waiting { key, until };
        let state = self.give_turn(state);
        state.threads[self.thread].woken
    }

    /// Lets `time` pass.
    pub(crate) fn pause(&self, time: Duration) {
        self.wait(Key::Time, Some(time));
    }

    /// Lets about as much time pass as `least`, and twice that at most.
    pub(crate) fn pause_about(&self, least: Duration) {
        let time = self.with(|state| state.latency(least));
        self.pause(time);
    }

    /// Gives others a turn before the next attempt at something that is not there yet.
    pub(crate) fn give_way(&self) {
        self.pause_about(ATTEMPT);
    }

    pub(crate) fn wake_one(&self, key: Key) {
        self.with(|state| state.wake_one(key));
    }

    pub(crate) fn wake_all(&self, key: Key) {
        self.with(|state| state.wake_all(key));
    }

    /// Ends another thread's wait for bytes.
    pub(crate) fn interrupt(&self, id: i32) {
        self.with(|state| {
            let Some(thread) = usize::try_from(id).ok().and_then(|id| state.threads.get_mut(id))
            else {
                return;
            };
            if matches!(thread.status, Status::Waiting { key: Key::Bytes(_), .. }) {
                (thread.status, thread.woken) = (Status::Ready, Woken::Interrupted);
            }
        });
    }

    /// Ends the machine's life: the process aborted.
    pub(crate) fn abort(&self, reason: &str) -> ! {
        self.core.end_life(End::Aborted(reason.to_owned()));
        self.never_again(self.core.lock())
    }

    /// Starts a thread.
    pub(crate) fn spawn(
        &self,
        name: &str,
        stack_bytes: Option<usize>,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<VirtualThread> {
        self.core.start(self.core.lock(), name, stack_bytes.unwrap_or(STACK_BYTES), body)
    }

    /// Runs `piece(0)` to `piece(count - 1)`, each on its own thread, and `meanwhile` on this one.
    pub(crate) fn alongside<R: Send, T>(
        &self,
        name: &str,
        count: usize,
        piece: &(impl Fn(usize) -> R + Sync),
        meanwhile: impl FnOnce() -> T,
    ) -> (Vec<R>, T) {
        std::thread::scope(|scope| {
            let mut ends = Ends(Vec::new());
            let mut running = Vec::new();
            for index in 0..count {
                let place = self.with(|state| state.add_thread(&self.core, name));
                ends.0.push(VirtualThread { core: self.core.clone(), thread: place.thread });
                let body = move || {
                    let mut result = None;
                    place.live(|| result = Some(piece(index)));
                    result
                };
                let builder = Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
                running.push(builder.spawn_scoped(scope, body).expect("a thread can be had"));
            }
            let other = meanwhile();
            drop(ends);
            let join = |thread: ScopedJoinHandle<'_, Option<R>>| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            (running.into_iter().filter_map(join).collect(), other)
        })
    }

    /// A thread's life: waits for its first turn, runs `body`, and leaves.
    pub(crate) fn live(self, body: impl FnOnce()) {
        drop(self.await_turn(self.core.lock()));
        super::enter(&self);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        self.leave();
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    }

    fn leave(&self) {
        let mut state = self.core.lock();
        if state.end.is_some() {
            return;
        }
        let me = &mut state.threads[self.thread];
        me.status = Status::Ended;
        let handle = me.handle.take();
        state.leaving = handle;
        state.wake_all(Key::End(self.thread));
        match state.choose() {
            Ok(next) => hand_over(&mut state, next),
            Err(why) => self.get_stuck(&mut state, why),
        }
    }

    fn get_stuck(&self, state: &mut State, why: String) {
        state.end(End::Stuck(why));
        self.core.ended.notify_all();
    }

    /// Lets the next thread run, and returns when it is this one's turn again.
    fn give_turn<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        if state.end.is_some() {
            self.never_again(state);
        }
        match state.choose() {
            Ok(next) if next == self.thread => state,
            Ok(next) => {
                hand_over(&mut state, next);
                self.await_turn(state)
            }
            Err(why) => {
                self.get_stuck(&mut state, why);
                self.never_again(state)
            }
        }
    }

    fn await_turn<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        while state.running != self.thread || state.end.is_some() {
            state = self.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(left) = state.leaving.take() {
            // Its destructors run before any other thread continues.
            drop(state);
            let _panicked = left.join();
            return self.core.lock();
        }
        state
    }

    /// The machine has stopped.
    fn never_again(&self, mut state: MutexGuard<'_, State>) -> ! {
        loop {
            state = self.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Threads that must have ended before those of the real machine are waited for: otherwise no thread would have the turn.
struct Ends(Vec<VirtualThread>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.iter().for_each(VirtualThread::join);
    }
}

fn hand_over(state: &mut State, next: usize) {
    assert!(matches!(state.threads[next].status, Status::Ready), "who waits has no turn");
    state.running = next;
    state.threads[next].turn.notify_one();
}

impl VirtualThread {
    /// Waits until the thread has ended.
    pub(crate) fn join(&self) {
        let Some(here) = super::current() else { return };
        loop {
            let is_over = !Arc::ptr_eq(&here.core, &self.core)
                || here.with(|state| matches!(state.threads[self.thread].status, Status::Ended));
            if is_over {
                return;
            }
            here.wait(Key::End(self.thread), None);
        }
    }
}
