//! Reactors led by threads that may block: a blocking leader hands its reactor to a standby thread.
//!
//! A pool has a fixed number of reactors and a growing number of threads. One thread *leads* a reactor: it
//! asks for the next task and runs it itself, so that a short task meets no hand-off. Leadership ends in two
//! ways: the task says that it will block ([`blocking`]), or the watchdog sees one task run for too long. In
//! both cases a standby thread takes the reactor; the first thread finishes its task, gives it back from
//! outside, and becomes a standby. A task may also ask for a thread of its own ([`Turn::Detach`]): the leader
//! leaves with it at once. Independent of sockets and protocols.
//!
//! Ownership of a reactor is one word per slot: an epoch, and whether its leader runs a task. Every change of
//! hands is a compare-and-swap on that word, so two threads never believe to lead the same reactor.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::affinity::{self, Seat};
use crate::sync::{Condvar, Mutex, MutexGuard, Waited};
use crate::threads::Thread;

/// The time that a standby waits for work before it ends, if there are more than [`STANDBY_MIN`].
const STANDBY_IDLE_MAX: Duration = Duration::from_secs(10);
/// Standby threads that stay.
const STANDBY_MIN: usize = 2;
/// The watchdog's step; a task is overdue after one to two of them.
const WATCHDOG_STEP: Duration = Duration::from_millis(5);
/// Steps without any task after which the watchdog sleeps until it is woken.
const WATCHDOG_IDLE_STEPS: u32 = 200;
/// Stack of a worker: statements recurse over expressions, and only touched pages cost memory.
const WORKER_STACK_BYTES: usize = 8 << 20;

/// The reactor's next request to its leader.
pub enum Turn<T> {
    /// Run this.
    Run(T),
    /// Run this on a separate thread until it returns; as [`Turn::Run`] if no thread is available.
    Detach(T),
    /// Nothing to do yet (a wait was interrupted or only housekeeping happened).
    Again,
    /// The reactor has ended.
    Stop,
}

/// A source of tasks that one thread at a time leads.
pub trait Reactor: Send + Sized + 'static {
    /// A unit of work; moves between threads with its leader.
    type Task: Send;
    /// Buffers of a worker thread.
    type Scratch: Default;
    /// A handle by which a task comes back from a thread that does not lead any more.
    type Remote: Send + Sync + 'static;

    /// Waits for the next task.
    fn next(&mut self) -> Turn<Self::Task>;
    /// Runs a task. Not called while the reactor is borrowed: the task may block.
    fn run(task: &mut Self::Task, scratch: &mut Self::Scratch);
    /// Runs a task on a thread that leads nothing, for as long as the task likes.
    fn run_detached(task: &mut Self::Task, scratch: &mut Self::Scratch);
    /// The task panicked; it comes back next.
    fn panicked(task: &mut Self::Task);
    /// Takes a task back.
    fn put_back(&mut self, task: Self::Task);
    /// Takes a task back from another thread.
    fn give_back(remote: &Self::Remote, task: Self::Task);
}

/// Limits of a pool.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Prefix of thread names.
    pub name: String,
    /// Bound on worker threads. When all of them block, reactors wait.
    pub threads_max: usize,
    /// Seats of the leaders, one for each reactor; none where the kernel decides. A thread that loses its reactor while its task runs gives up
    /// the seat.
    pub seats: Vec<Seat>,
}

/// Low bit: the leader runs a task. The rest: the epoch of the leadership.
const RUNNING: u64 = 1;
const EPOCH_STEP: u64 = 2;

struct Slot<R: Reactor> {
    /// Locked by the leader while it polls; never contended, as the word decides who leads.
    reactor: Mutex<R>,
    remote: R::Remote,
    word: AtomicU64,
    /// Tasks begun. Written by the leader only, read by the watchdog.
    turns: AtomicU64,
    /// The system's number of the thread that has the slot's seat, 0 for none. Read and changed under the lock of the state, but for the leader's own.
    leader: AtomicU32,
}

struct State {
    /// Slots that wait for a leader.
    orphans: VecDeque<usize>,
    standby: usize,
    threads: usize,
    running_slots: usize,
}

struct Shared<R: Reactor> {
    slots: Vec<Slot<R>>,
    state: Mutex<State>,
    wake: Condvar,
    ended: Condvar,
    options: PoolOptions,
    watchdog_asleep: AtomicBool,
    watchdog_wake: Condvar,
}

/// Threads that lead reactors.
pub struct Pool<R: Reactor> {
    shared: Arc<Shared<R>>,
    watchdog: Thread,
}

impl<R: Reactor> Pool<R> {
    /// Starts a thread for each reactor, and the watchdog.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn start(reactors: Vec<(R, R::Remote)>, options: PoolOptions) -> io::Result<Pool<R>> {
        let slots: Vec<Slot<R>> = reactors
            .into_iter()
            .map(|(reactor, remote)| Slot {
                reactor: Mutex::new(reactor),
                remote,
                word: AtomicU64::new(0),
                turns: AtomicU64::new(0),
                leader: AtomicU32::new(0),
            })
            .collect();
        let count = slots.len();
        let state =
            State { orphans: (0..count).collect(), standby: 0, threads: 0, running_slots: count };
        let shared = Arc::new(Shared {
            slots,
            state: Mutex::new(state),
            wake: Condvar::new(),
            ended: Condvar::new(),
            options,
            watchdog_asleep: AtomicBool::new(false),
            watchdog_wake: Condvar::new(),
        });
        for _ in 0..count {
            let mut state = shared.lock();
            shared.spawn_worker(&mut state)?;
        }
        let watched = shared.clone();
        let name = format!("{}-watch", shared.options.name);
        let watchdog = spawn(&name, move || watched.watch())?;
        Ok(Pool { shared, watchdog })
    }

    /// Waits until every reactor has ended and every thread has left.
    pub fn join(self) {
        let mut state = self.shared.lock();
        while state.running_slots > 0 || state.threads > 0 {
            self.shared.wake.notify_all();
            self.shared.watchdog_wake.notify_all();
            state = self.shared.ended.wait_for(state, Duration::from_millis(50));
        }
        drop(state);
        self.watchdog.join();
    }

    /// Worker threads now.
    pub fn threads(&self) -> usize {
        self.shared.lock().threads
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    crate::threads::spawn_with_stack(name, WORKER_STACK_BYTES, body)
}

impl<R: Reactor> Shared<R> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn spawn_worker(self: &Arc<Self>, state: &mut State) -> io::Result<()> {
        let shared = self.clone();
        spawn(&self.options.name, move || {
            let mut scratch = R::Scratch::default();
            while let Some(slot) = shared.next_orphan() {
                shared.clone().lead(slot, &mut scratch);
            }
        })?;
        state.threads += 1;
        Ok(())
    }

    /// Waits for a reactor without a leader. `None` ends the thread.
    fn next_orphan(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if let Some(slot) = state.orphans.pop_front() {
                self.vacate(slot);
                return Some(slot);
            }
            if state.running_slots == 0 {
                break;
            }
            state.standby += 1;
            let waited;
            (state, waited) = self.wake.wait_at_most(state, STANDBY_IDLE_MAX);
            state.standby -= 1;
            if waited == Waited::TimedOut
                && state.orphans.is_empty()
                && state.standby >= STANDBY_MIN
            {
                break;
            }
        }
        state.threads -= 1;
        self.ended.notify_all();
        None
    }

    /// Makes `slot`, which has just lost its leader, available to a standby.
    fn orphan(self: &Arc<Self>, slot: usize) {
        let mut state = self.lock();
        state.orphans.push_back(slot);
        if state.standby >= state.orphans.len() {
            self.wake.notify_one();
        } else if state.threads < self.options.threads_max {
            // On failure the slot waits for the next thread that becomes free.
            let _ = self.spawn_worker(&mut state);
        }
    }

    /// Whether another thread can take over a reactor now; starts one if need be.
    fn has_spare(self: &Arc<Self>) -> bool {
        let mut state = self.lock();
        state.standby > state.orphans.len()
            || (state.threads < self.options.threads_max && self.spawn_worker(&mut state).is_ok())
    }

    /// Leads `slot` until it is lost or ends.
    fn lead(self: Arc<Self>, slot: usize, scratch: &mut R::Scratch) {
        let this = &self.slots[slot];
        if let Some(seat) = self.options.seats.get(slot) {
            seat.take();
            this.leader.store(crate::threads::system_number(), Ordering::Relaxed);
        }
        let word = Cell::new(this.word.load(Ordering::Acquire));
        let lead = Rc::new(Lead { pool: self.clone(), slot, word, leads: Cell::new(true) });
        LEAD.with(|current| *current.borrow_mut() = Some(lead.clone()));
        lead.serve(this, scratch);
        LEAD.with(|current| *current.borrow_mut() = None);
    }

    /// Takes reactors away from leaders with a task that has not ended for a step or two.
    fn watch(self: Arc<Self>) {
        let mut seen = vec![(0, 0); self.slots.len()];
        let mut idle_steps = 0;
        loop {
            crate::threads::sleep(WATCHDOG_STEP);
            let mut busy = false;
            for (index, slot) in self.slots.iter().enumerate() {
                let now = (slot.word.load(Ordering::Acquire), slot.turns.load(Ordering::Relaxed));
                let stuck = now.0 & RUNNING != 0 && now == seen[index];
                busy |= now != seen[index] || now.0 & RUNNING != 0;
                seen[index] = now;
                if stuck && self.take_away(index, now.0) {
                    self.orphan(index);
                }
            }
            idle_steps = if busy { 0 } else { idle_steps + 1 };
            if idle_steps >= WATCHDOG_IDLE_STEPS {
                idle_steps = 0;
                self.watchdog_sleep();
            }
            if self.lock().running_slots == 0 {
                return;
            }
        }
    }

    /// Ends the leadership that a slot's word had with value `held`, and makes the leader's thread give up its seat. False when it has ended already.
    fn take_away(&self, slot: usize, held: u64) -> bool {
        let this = &self.slots[slot];
        let Some(seat) = self.options.seats.get(slot) else { return leave(&this.word, held) };
        let _state = self.lock();
        let has_left = leave(&this.word, held);
        if has_left {
            this.move_leader(seat);
        }
        has_left
    }

    /// Frees the seat of a slot for its next leader, while the state is locked: the last one may compute for long before it comes back.
    fn vacate(&self, slot: usize) {
        if let Some(seat) = self.options.seats.get(slot) {
            self.slots[slot].move_leader(seat);
        }
    }

    fn watchdog_sleep(&self) {
        let state = self.lock();
        self.watchdog_asleep.store(true, Ordering::SeqCst);
        if state.running_slots > 0 {
            drop(self.watchdog_wake.wait(state));
        }
        self.watchdog_asleep.store(false, Ordering::Relaxed);
    }

    fn wake_watchdog(&self) {
        // The lock orders this after the watchdog's wait has begun.
        drop(self.lock());
        self.watchdog_wake.notify_one();
    }
}

impl<R: Reactor> Slot<R> {
    /// Makes the thread that sits leave. It does not lead any more, and gets the state's lock before it leads and sits again.
    fn move_leader(&self, seat: &Seat) {
        match self.leader.swap(0, Ordering::Relaxed) {
            0 => {}
            leader => seat.take_from(leader),
        }
    }
}

/// Ends the leadership that `word` had with value `held`. False when it has ended already.
fn leave(word: &AtomicU64, held: u64) -> bool {
    let next = (held & !RUNNING).wrapping_add(EPOCH_STEP);
    // Release: the next leader sees all of this one. Acquire: a failed leader sees the new one.
    word.compare_exchange(held, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// A thread's leadership of a reactor.
struct Lead<R: Reactor> {
    pool: Arc<Shared<R>>,
    slot: usize,
    /// The slot's word while this thread leads and runs no task.
    word: Cell<u64>,
    leads: Cell<bool>,
}

impl<R: Reactor> Lead<R> {
    fn serve(&self, slot: &Slot<R>, scratch: &mut R::Scratch) {
        loop {
            let mut reactor = slot.reactor.lock();
            let mut task = match reactor.next() {
                Turn::Run(task) => task,
                Turn::Detach(task) if self.pool.has_spare() => {
                    drop(reactor);
                    return self.detach(slot, task, scratch);
                }
                Turn::Detach(task) => task,
                Turn::Again => continue,
                Turn::Stop => return self.stop(),
            };
            drop(reactor);
            self.begin_task(slot);
            let run = catch_unwind(AssertUnwindSafe(|| R::run(&mut task, scratch)));
            if run.is_err() {
                R::panicked(&mut task);
            }
            if !self.end_task(slot) {
                R::give_back(&slot.remote, task);
                return;
            }
            let mut reactor = slot.reactor.lock();
            reactor.put_back(task);
        }
    }

    /// Leaves the reactor and serves one task.
    fn detach(&self, slot: &Slot<R>, mut task: R::Task, scratch: &mut R::Scratch) {
        self.leads.set(false);
        if let Some(seat) = self.pool.options.seats.get(self.slot) {
            slot.leader.store(0, Ordering::Relaxed);
            seat.leave();
        }
        // No other thread changes the word while no task runs.
        if leave(&slot.word, self.word.get()) {
            self.pool.orphan(self.slot);
        }
        let run = catch_unwind(AssertUnwindSafe(|| R::run_detached(&mut task, scratch)));
        if run.is_err() {
            R::panicked(&mut task);
        }
        R::give_back(&slot.remote, task);
    }

    fn begin_task(&self, slot: &Slot<R>) {
        slot.turns.store(slot.turns.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        slot.word.store(self.word.get() | RUNNING, Ordering::Release);
        if self.pool.watchdog_asleep.load(Ordering::Relaxed) {
            self.pool.wake_watchdog();
        }
    }

    /// Whether this thread still leads.
    fn end_task(&self, slot: &Slot<R>) -> bool {
        let word = self.word.get();
        let running = word | RUNNING;
        let keep =
            || slot.word.compare_exchange(running, word, Ordering::AcqRel, Ordering::Acquire);
        let leads = self.leads.get() && keep().is_ok();
        if !leads {
            affinity::moved();
        }
        leads
    }

    fn stop(&self) {
        let mut state = self.pool.lock();
        state.running_slots -= 1;
        if state.running_slots == 0 {
            self.pool.wake.notify_all();
            self.pool.watchdog_wake.notify_all();
        }
        self.pool.ended.notify_all();
    }
}

/// The part of [`Lead`] that does not depend on the reactor.
trait HandOff {
    /// Gives the reactor away. False if this thread does not lead (any more), or runs no task.
    fn give_up(&self) -> bool;
    /// Takes the reactor back if no thread has it yet.
    fn reclaim(&self);
}

impl<R: Reactor> HandOff for Lead<R> {
    fn give_up(&self) -> bool {
        if !self.leads.get() {
            return false;
        }
        self.leads.set(false);
        let left = leave(&self.pool.slots[self.slot].word, self.word.get() | RUNNING);
        if left {
            self.pool.orphan(self.slot);
        }
        left
    }

    fn reclaim(&self) {
        let mut state = self.pool.lock();
        let Some(at) = state.orphans.iter().position(|slot| *slot == self.slot) else { return };
        state.orphans.remove(at);
        let slot = &self.pool.slots[self.slot];
        // Only the thread that takes an orphan off the queue changes its word, and this thread just took it.
        let word = slot.word.load(Ordering::Acquire);
        self.word.set(word);
        slot.word.store(word | RUNNING, Ordering::Release);
        self.leads.set(true);
    }
}

thread_local! {
    /// Calls of [`blocking`] so far, to be compared before and after a task.
    static WAITS: Cell<u32> = const { Cell::new(0) };
    /// Of a thread that belongs to another scheduler.
    static HAND_OVER: Cell<Option<HandOver>> = const { Cell::new(None) };
    /// The reactor this thread leads. Not a session: it names a thread's role, nothing of a statement.
    static LEAD: RefCell<Option<Rc<dyn HandOff>>> = const { RefCell::new(None) };
}

/// How often this thread has called [`blocking`]: a task that did may have waited.
pub fn waits() -> u32 {
    WAITS.with(Cell::get)
}

/// Runs `body`, which may block: if this thread leads a reactor, another thread takes it over first.
/// On any other thread, and inside itself, it just runs `body`.
pub fn blocking<T>(body: impl FnOnce() -> T) -> T {
    WAITS.with(|waits| waits.set(waits.get().wrapping_add(1)));
    let lead = LEAD.with(|current| current.borrow().clone());
    match lead {
        Some(lead) if lead.give_up() => {
            let result = body();
            lead.reclaim();
            result
        }
        Some(_) | None => match HAND_OVER.with(Cell::get) {
            None => body(),
            Some(hand_over) => run_handed_over(hand_over, body),
        },
    }
}

/// How a scheduler that is not this module's lets another of its threads take over while one runs a body that may block.
pub type HandOver = fn(&mut dyn FnMut());

/// Runs `body` on a thread of another scheduler: calls of [`blocking`] in it go through `hand_over`.
pub fn released_by<T>(hand_over: HandOver, body: impl FnOnce() -> T) -> T {
    struct Restore(Option<HandOver>);
    impl Drop for Restore {
        fn drop(&mut self) {
            HAND_OVER.with(|current| current.set(self.0));
        }
    }
    let _restore = Restore(HAND_OVER.with(|current| current.replace(Some(hand_over))));
    body()
}

fn run_handed_over<T>(hand_over: HandOver, body: impl FnOnce() -> T) -> T {
    let mut body = Some(body);
    let mut result = None;
    hand_over(&mut || result = body.take().map(|body| body()));
    result.expect("a hand-over runs the body")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::affinity::Affinity;
    use std::sync::mpsc;

    /// Tasks from a channel; a finished one is reported with the thread that ran it.
    struct Queue {
        tasks: mpsc::Receiver<Option<Job>>,
        done: mpsc::Sender<&'static str>,
    }

    struct Job {
        name: &'static str,
        body: Option<Box<dyn FnOnce() + Send>>,
        panicked: bool,
        detach: bool,
    }

    impl Job {
        fn report(&self) -> &'static str {
            if self.panicked { "panicked" } else { self.name }
        }
    }

    impl Reactor for Queue {
        type Task = Job;
        type Scratch = ();
        type Remote = Mutex<mpsc::Sender<&'static str>>;

        fn next(&mut self) -> Turn<Job> {
            match self.tasks.recv_timeout(Duration::from_millis(20)) {
                Ok(Some(job)) if job.detach => Turn::Detach(job),
                Ok(Some(job)) => Turn::Run(job),
                Ok(None) => Turn::Stop,
                Err(mpsc::RecvTimeoutError::Timeout) => Turn::Again,
                Err(mpsc::RecvTimeoutError::Disconnected) => Turn::Stop,
            }
        }

        fn run(task: &mut Job, (): &mut ()) {
            if let Some(body) = task.body.take() {
                body();
            }
        }

        fn run_detached(task: &mut Job, scratch: &mut ()) {
            Self::run(task, scratch);
        }

        fn panicked(task: &mut Job) {
            task.panicked = true;
        }

        fn put_back(&mut self, task: Job) {
            let _ = self.done.send(task.report());
        }

        fn give_back(remote: &Self::Remote, task: Job) {
            let _ = remote.lock().send(task.report());
        }
    }

    type Started = (Pool<Queue>, mpsc::Sender<Option<Job>>, mpsc::Receiver<&'static str>);

    fn start() -> Started {
        start_on(Vec::new())
    }

    fn start_on(seats: Vec<Seat>) -> Started {
        let (task_sender, tasks) = mpsc::channel();
        let (done, done_receiver) = mpsc::channel();
        let remote = Mutex::new(done.clone());
        let options = PoolOptions { name: "test".into(), threads_max: 8, seats };
        let pool = Pool::start(vec![(Queue { tasks, done }, remote)], options).expect("threads");
        (pool, task_sender, done_receiver)
    }

    fn job(name: &'static str, body: impl FnOnce() + Send + 'static) -> Option<Job> {
        Some(Job { name, body: Some(Box::new(body)), panicked: false, detach: false })
    }

    #[test]
    fn a_detached_task_keeps_its_thread_and_comes_back() {
        let (pool, tasks, done) = start();
        let (release, wait) = mpsc::channel::<()>();
        let body = move || blocking(|| wait.recv().unwrap_or(()));
        let detached = job("detached", body).map(|job| Job { detach: true, ..job });
        tasks.send(detached).expect("alive");
        for _ in 0..10 {
            tasks.send(job("other", || ())).expect("alive");
            assert_eq!(done.recv(), Ok("other"));
        }
        release.send(()).expect("alive");
        assert_eq!(done.recv(), Ok("detached"));
        let bad = job("bad", || panic!("on purpose")).map(|job| Job { detach: true, ..job });
        tasks.send(bad).expect("alive");
        assert_eq!(done.recv(), Ok("panicked"));
        tasks.send(None).expect("alive");
        pool.join();
    }

    #[test]
    fn a_blocked_task_does_not_hold_up_the_next() {
        let (pool, tasks, done) = start();
        let (release, wait) = mpsc::channel::<()>();
        tasks.send(job("first", move || blocking(|| wait.recv().unwrap_or(())))).expect("alive");
        tasks.send(job("second", || blocking(|| blocking(|| ())))).expect("alive");
        assert_eq!(done.recv(), Ok("second"));
        release.send(()).expect("alive");
        assert_eq!(done.recv(), Ok("first"));
        tasks.send(job("bad", || panic!("on purpose"))).expect("alive");
        assert_eq!(done.recv(), Ok("panicked"));
        tasks.send(None).expect("alive");
        pool.join();
    }

    #[test]
    fn the_watchdog_relieves_a_long_task() {
        let (pool, tasks, done) = start();
        let (release, wait) = mpsc::channel::<()>();
        tasks.send(job("long", move || wait.recv().unwrap_or(()))).expect("alive");
        tasks.send(job("short", || ())).expect("alive");
        assert_eq!(done.recv(), Ok("short"));
        release.send(()).expect("alive");
        assert_eq!(done.recv(), Ok("long"));
        tasks.send(None).expect("alive");
        pool.join();
    }

    #[test]
    fn many_short_blocks_keep_one_leader() {
        let (pool, tasks, done) = start();
        for _ in 0..2000 {
            tasks.send(job("t", || blocking(std::thread::yield_now))).expect("alive");
        }
        for _ in 0..2000 {
            assert_eq!(done.recv(), Ok("t"));
        }
        assert!(pool.threads() <= 8);
        tasks.send(None).expect("alive");
        pool.join();
    }

    /// The leader is on the reactor's processor; one that lost the reactor, in whichever way, is not, and sits again when it leads again.
    #[test]
    fn leaders_have_the_seat_and_others_leave_it() {
        let topology = crate::topology::Topology::read();
        let seats = Affinity::Auto.seats(&topology, 1);
        let (Some(seat), true) = (seats.first().cloned(), topology.usable().count() > 1) else {
            return;
        };
        let allowed = || affinity::allowed(0).expect("this thread lives").len();
        let near = topology.around(seat.processor()).len();
        let (pool, tasks, done) = start_on(seats);
        let (say, said) = mpsc::channel::<usize>();
        let expect_leader = || {
            let say = say.clone();
            tasks.send(job("leader", move || say.send(allowed()).expect("alive"))).expect("alive");
            assert_eq!((said.recv(), done.recv()), (Ok(1), Ok("leader")));
        };
        for _ in 0..3 {
            expect_leader();
            // It blocks, and the next leader has the reactor when it goes on.
            let (release, wait) = mpsc::channel::<()>();
            let theirs = say.clone();
            let body = move || {
                // What blocks may also compute: scans do.
                blocking(|| {
                    wait.recv().unwrap_or(());
                    theirs.send(allowed()).expect("alive");
                });
            };
            tasks.send(job("blocks", body)).expect("alive");
            expect_leader();
            release.send(()).expect("alive");
            assert_eq!((said.recv(), done.recv()), (Ok(near), Ok("blocks")));
            // Nobody takes the reactor, or somebody does: it leads and sits, or neither.
            let theirs = say.clone();
            let short = move || {
                blocking(|| ());
                theirs.send(allowed()).expect("alive");
            };
            tasks.send(job("short", short)).expect("alive");
            assert!([1, near].map(Ok).contains(&said.recv()) && done.recv() == Ok("short"));
            // The watchdog relieves it.
            let (release, wait) = mpsc::channel::<()>();
            let theirs = say.clone();
            let body = move || {
                wait.recv().unwrap_or(());
                theirs.send(allowed()).expect("alive");
            };
            tasks.send(job("long", body)).expect("alive");
            expect_leader();
            release.send(()).expect("alive");
            assert_eq!((said.recv(), done.recv()), (Ok(near), Ok("long")));
            // It has its own thread.
            let theirs = say.clone();
            let detached = job("detached", move || theirs.send(allowed()).expect("alive"));
            tasks.send(detached.map(|job| Job { detach: true, ..job })).expect("alive");
            assert_eq!((said.recv(), done.recv()), (Ok(near), Ok("detached")));
        }
        expect_leader();
        tasks.send(None).expect("alive");
        pool.join();
    }
}
