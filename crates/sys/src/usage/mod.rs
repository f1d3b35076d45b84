//! What the calling thread has used so far: processor time, events that the kernel or the processor counts, pages, log bytes, files.
//! Who wants the cost of a piece of work reads it twice and takes the difference.
//!
//! Counts are plain words of the thread, so that a place that counts costs one instruction and no other thread's cache line. Helper
//! threads of `threads::together` and `threads::alongside` add what they used to the thread that they helped.

mod events;

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::simulation;

use events::Events;

macro_rules! amounts {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl $name {
            /// What came since `earlier`.
            pub fn since(&self, earlier: &$name) -> $name {
                $name { $($field: self.$field.wrapping_sub(earlier.$field),)* }
            }

            /// Adds other amounts.
            pub fn add(&mut self, other: &$name) {
                $(self.$field = self.$field.wrapping_add(other.$field);)*
            }
        }
    };
}

amounts! {
    /// What code of this process counts for the thread that it runs on.
    Counts {
        /// Pages that were asked for.
        pages,
        /// Pages of these that had to be read.
        pages_missed,
        /// Bytes of log records.
        log_bytes,
        /// Calls that read from files.
        reads,
        /// Bytes that they read.
        read_bytes,
        /// Nanoseconds that they took.
        read_nanos,
        /// Calls that wrote to files or made them durable.
        writes,
        /// Bytes that they wrote.
        written_bytes,
        /// Nanoseconds that they took.
        write_nanos,
        /// Temporary files that were made.
        temporary_files,
        /// Bytes written to temporary files.
        temporary_bytes,
    }
}

amounts! {
    /// What the kernel counts for a thread.
    Times {
        /// Nanoseconds on a processor.
        cpu_nanos,
        /// Microseconds of these in the program.
        user_micros,
        /// Microseconds of these in the kernel.
        system_micros,
        /// Page faults that needed no I/O.
        minor_faults,
        /// Page faults that did.
        major_faults,
        /// Times that the thread waited.
        voluntary_switches,
        /// Times that another thread took its processor.
        involuntary_switches,
        /// Blocks read by the file system.
        block_reads,
        /// Blocks written by it.
        block_writes,
    }
}

/// Everything that is known of a thread's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// See the type.
    pub times: Times,
    /// See the type.
    pub counts: Counts,
    /// Moves to another processor; `None` where the kernel does not say.
    pub migrations: Option<u64>,
    /// Cycles; `None` where the processor's counters cannot be used, as in most virtual machines.
    pub cycles: Option<u64>,
    /// Instructions, likewise.
    pub instructions: Option<u64>,
    /// Misses of the last cache, likewise.
    pub cache_misses: Option<u64>,
}

impl Usage {
    /// What came since `earlier`.
    pub fn since(&self, earlier: &Usage) -> Usage {
        self.with(earlier, u64::wrapping_sub, self.times.since(&earlier.times), {
            self.counts.since(&earlier.counts)
        })
    }

    /// Both together. An event is known when both know it.
    pub fn plus(&self, other: &Usage) -> Usage {
        let (mut times, mut counts) = (self.times, self.counts);
        times.add(&other.times);
        counts.add(&other.counts);
        self.with(other, u64::wrapping_add, times, counts)
    }

    fn with(&self, other: &Usage, f: fn(u64, u64) -> u64, times: Times, counts: Counts) -> Usage {
        let both = |one: Option<u64>, two: Option<u64>| one.zip(two).map(|(one, two)| f(one, two));
        Usage {
            times,
            counts,
            migrations: both(self.migrations, other.migrations),
            cycles: both(self.cycles, other.cycles),
            instructions: both(self.instructions, other.instructions),
            cache_misses: both(self.cache_misses, other.cache_misses),
        }
    }
}

struct Counting {
    pages: Cell<u64>,
    pages_missed: Cell<u64>,
    log_bytes: Cell<u64>,
    reads: Cell<u64>,
    read_bytes: Cell<u64>,
    read_nanos: Cell<u64>,
    writes: Cell<u64>,
    written_bytes: Cell<u64>,
    write_nanos: Cell<u64>,
    temporary_files: Cell<u64>,
    temporary_bytes: Cell<u64>,
}

thread_local! {
    static COUNTING: Counting = const {
        Counting {
            pages: Cell::new(0),
            pages_missed: Cell::new(0),
            log_bytes: Cell::new(0),
            reads: Cell::new(0),
            read_bytes: Cell::new(0),
            read_nanos: Cell::new(0),
            writes: Cell::new(0),
            written_bytes: Cell::new(0),
            write_nanos: Cell::new(0),
            temporary_files: Cell::new(0),
            temporary_bytes: Cell::new(0),
        }
    };
    /// What helpers used for this thread.
    static HELPED: Cell<Usage> = const { Cell::new(Usage {
        times: Times {
            cpu_nanos: 0,
            user_micros: 0,
            system_micros: 0,
            minor_faults: 0,
            major_faults: 0,
            voluntary_switches: 0,
            involuntary_switches: 0,
            block_reads: 0,
            block_writes: 0,
        },
        counts: Counts {
            pages: 0,
            pages_missed: 0,
            log_bytes: 0,
            reads: 0,
            read_bytes: 0,
            read_nanos: 0,
            writes: 0,
            written_bytes: 0,
            write_nanos: 0,
            temporary_files: 0,
            temporary_bytes: 0,
        },
        migrations: Some(0),
        cycles: Some(0),
        instructions: Some(0),
        cache_misses: Some(0),
    }) };
    /// The thread's event counters, once somebody has asked for them.
    static EVENTS: RefCell<Option<Events>> = const { RefCell::new(None) };
}

#[inline]
fn add(cell: &Cell<u64>, amount: u64) {
    cell.set(cell.get().wrapping_add(amount));
}

/// After so many, other threads see them (`waits::pages`).
const PAGES_SHOWN: u64 = 64;

/// A page is asked for.
#[inline]
pub fn count_page() {
    COUNTING.with(|counting| {
        add(&counting.pages, 1);
        if counting.pages.get().is_multiple_of(PAGES_SHOWN) {
            crate::waits::show_pages(PAGES_SHOWN);
        }
    });
}

/// A page is read.
pub fn count_missed_page() {
    COUNTING.with(|counting| add(&counting.pages_missed, 1));
}

/// A log record is written.
#[inline]
pub fn count_log_bytes(bytes: usize) {
    COUNTING.with(|counting| add(&counting.log_bytes, bytes as u64));
}

/// A call read from a file.
pub(crate) fn count_read(nanos: u64) {
    COUNTING.with(|counting| {
        add(&counting.reads, 1);
        add(&counting.read_nanos, nanos);
    });
}

/// Bytes came from a file.
pub(crate) fn count_read_bytes(bytes: usize) {
    COUNTING.with(|counting| add(&counting.read_bytes, bytes as u64));
}

/// A call wrote to a file or made it durable.
pub(crate) fn count_write(nanos: u64) {
    COUNTING.with(|counting| {
        add(&counting.writes, 1);
        add(&counting.write_nanos, nanos);
    });
}

/// Bytes went to a file.
pub(crate) fn count_written_bytes(bytes: usize) {
    COUNTING.with(|counting| add(&counting.written_bytes, bytes as u64));
}

static TEMPORARY_FILES: AtomicU64 = AtomicU64::new(0);

/// Temporary files that all threads have made.
pub fn temporary_files() -> u64 {
    TEMPORARY_FILES.load(Ordering::Relaxed)
}

/// A temporary file was made.
pub(crate) fn count_temporary_file() {
    TEMPORARY_FILES.fetch_add(1, Ordering::Relaxed);
    COUNTING.with(|counting| add(&counting.temporary_files, 1));
}

/// Bytes go to a temporary file.
pub(crate) fn count_temporary_bytes(bytes: usize) {
    COUNTING.with(|counting| add(&counting.temporary_bytes, bytes as u64));
}

fn own_counts() -> Counts {
    COUNTING.with(|counting| Counts {
        pages: counting.pages.get(),
        pages_missed: counting.pages_missed.get(),
        log_bytes: counting.log_bytes.get(),
        reads: counting.reads.get(),
        read_bytes: counting.read_bytes.get(),
        read_nanos: counting.read_nanos.get(),
        writes: counting.writes.get(),
        written_bytes: counting.written_bytes.get(),
        write_nanos: counting.write_nanos.get(),
        temporary_files: counting.temporary_files.get(),
        temporary_bytes: counting.temporary_bytes.get(),
    })
}

/// Nanoseconds that the thread has had a processor, helpers included. 0 on a simulated machine.
pub fn cpu_nanos() -> u64 {
    own_cpu_nanos().wrapping_add(HELPED.get().times.cpu_nanos)
}

fn own_cpu_nanos() -> u64 {
    if simulation::current().is_some() {
        return 0;
    }
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Cycles of the thread so far; `None` where the processor does not count them.
pub fn cycles() -> Option<u64> {
    with_events(|events| events.cycles())
        .zip(HELPED.get().cycles)
        .map(|(own, helped)| own.wrapping_add(helped))
}

/// Whether the processor's own counters can be used.
pub fn counts_cycles() -> bool {
    with_events(|events| events.cycles()).is_some()
}

/// Whether the kernel's event counters can be used.
pub fn counts_migrations() -> bool {
    with_events(|events| events.migrations()).is_some()
}

fn with_events(read: impl FnOnce(&Events) -> Option<u64>) -> Option<u64> {
    if simulation::current().is_some() {
        return None;
    }
    EVENTS.with_borrow_mut(|events| read(events.get_or_insert_with(Events::open)))
}

/// What the thread has used so far, helpers included.
pub fn now() -> Usage {
    own().plus(&HELPED.get())
}

/// What the kernel counts for the thread so far, helpers included: cheaper than [`now`]. Zeroes on a simulated machine.
pub fn times() -> Times {
    let mut times = match simulation::current() {
        Some(_) => Times::default(),
        None => own_times(),
    };
    times.add(&HELPED.get().times);
    times
}

fn own() -> Usage {
    let counts = own_counts();
    if simulation::current().is_some() {
        return Usage { counts, ..Usage::default() };
    }
    let mut usage = Usage { times: own_times(), counts, ..Usage::default() };
    EVENTS.with_borrow_mut(|events| {
        let events = events.get_or_insert_with(Events::open);
        usage.migrations = events.migrations();
        if let Some([cycles, instructions, cache_misses]) = events.hardware() {
            usage.cycles = Some(cycles);
            usage.instructions = Some(instructions);
            usage.cache_misses = cache_misses.into();
        }
    });
    usage
}

fn own_times() -> Times {
    let mut filled = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills a structure that belongs to this function; all zeros are a value of it, should the call fail.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, filled.as_mut_ptr());
        filled.assume_init()
    };
    let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    Times {
        cpu_nanos: own_cpu_nanos(),
        user_micros: micros(usage.ru_utime),
        system_micros: micros(usage.ru_stime),
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        block_reads: usage.ru_inblock as u64,
        block_writes: usage.ru_oublock as u64,
    }
}

/// How the helpers of a thread report to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reporting {
    /// The thread's work is measured: helpers measure too.
    measures: bool,
}

impl Reporting {
    /// For helpers of the calling thread.
    pub(crate) fn here() -> Reporting {
        Reporting { measures: EVENTS.with_borrow(Option::is_some) }
    }

    /// Runs `work` on a new helper thread; returns also what it used.
    pub(crate) fn helped<T>(self, work: impl FnOnce() -> T) -> (T, Usage) {
        let before = self.read();
        let result = work();
        (result, self.read().since(&before))
    }

    fn read(self) -> Usage {
        match self.measures {
            true => now(),
            // Nothing is asked of the kernel.
            false => Usage { counts: own_counts(), ..Usage::default() },
        }
    }

    /// Adds what a helper used to the thread that it helped.
    pub(crate) fn add(self, used: &Usage) {
        let mut helped = HELPED.get();
        match self.measures {
            true => helped = helped.plus(used),
            false => helped.counts.add(&used.counts),
        }
        HELPED.set(helped);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn work() -> u64 {
        (0..3_000_000_u64).fold(0, |sum, number| std::hint::black_box(sum ^ number))
    }

    #[test]
    fn a_thread_counts_only_its_own_work() {
        let before = now();
        let other = std::thread::spawn(|| {
            count_page();
            count_log_bytes(500);
            work()
        });
        count_page();
        count_log_bytes(7);
        other.join().expect("no panic");
        let used = now().since(&before);
        assert_eq!((used.counts.pages, used.counts.log_bytes), (1, 7));
    }

    #[test]
    fn helpers_add_to_the_thread_that_they_help() {
        let before = now();
        let results = crate::threads::together("helper", 3, |number| {
            count_page();
            work();
            number
        });
        let used = now().since(&before);
        assert_eq!(results.len() as u64, used.counts.pages);
        let alone = now();
        work();
        let alone = now().since(&alone);
        // Three times the work, on threads that the machine may have slowed down or sped up.
        assert!(used.times.cpu_nanos > alone.times.cpu_nanos * 3 / 2, "{used:?} {alone:?}");
    }

    #[test]
    fn processor_time_grows_with_work_and_not_with_sleep() {
        let before = cpu_nanos();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let slept = cpu_nanos() - before;
        assert!(slept < 10_000_000, "{slept}");
        let before = cpu_nanos();
        work();
        assert!(cpu_nanos() > before);
    }

    #[test]
    fn an_unknown_event_stays_unknown() {
        let known = Usage { cycles: Some(5), ..Usage::default() };
        assert_eq!(known.plus(&Usage::default()).cycles, None);
        assert_eq!(known.plus(&known).cycles, Some(10));
        assert_eq!(known.since(&known).cycles, Some(0));
    }
}
