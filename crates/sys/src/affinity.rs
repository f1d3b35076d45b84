//! Which processors threads run on: the setting, and the seats of threads that are bound to one each.
//!
//! The kernel hands a thread's processors down to the threads that it starts. So a list narrows the whole process before it has a second thread, and
//! threads that a seated one starts give up what they inherited.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::share::{self, Share};
use crate::topology::{PROCESSORS_MAX, Sizes, Topology, list_text};

/// The setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// The kernel decides.
    #[default]
    Off,
    /// Threads that serve connections have seats on the processors that the process may use.
    Auto,
    /// The process uses these processors only, and threads that serve connections have seats on them.
    List(BTreeSet<u32>),
}

impl fmt::Display for Affinity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Affinity::Off => out.write_str("OFF"),
            Affinity::Auto => out.write_str("AUTO"),
            Affinity::List(numbers) => out.write_str(&list_text(numbers)),
        }
    }
}

impl Affinity {
    /// `OFF`, `AUTO`, or processors by the kernel's numbers: `0-3,8`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Affinity, String> {
        match text.trim() {
            off if off.eq_ignore_ascii_case("OFF") => return Ok(Affinity::Off),
            auto if auto.eq_ignore_ascii_case("AUTO") => return Ok(Affinity::Auto),
            _ => {}
        }
        let wrong = |why: &str| format!("{why}; it is OFF, AUTO, or processors like 0-3,8");
        let mut numbers = BTreeSet::new();
        for part in text.split(',').map(str::trim) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u32>().ok();
            let (Some(first), Some(last)) = (number(first), number(last)) else {
                return Err(wrong(&format!("'{part}' is no processor and no range of them")));
            };
            if first > last {
                return Err(wrong(&format!("'{part}' ends before it begins")));
            }
            if last >= PROCESSORS_MAX {
                return Err(wrong(&format!("no machine has processor {last}")));
            }
            numbers.extend(first..=last);
        }
        Ok(Affinity::List(numbers))
    }

    /// Whether this process may use the processors of the list.
    ///
    /// # Errors
    /// It may not use some of them.
    pub fn check(&self) -> Result<(), String> {
        match allowed(rustix::process::getpid().as_raw_nonzero().get()) {
            Ok(usable) => self.check_among(&usable),
            Err(error) => match self {
                Affinity::Off => Ok(()),
                Affinity::Auto | Affinity::List(_) => {
                    Err(format!("the system does not tell which processors there are: {error}"))
                }
            },
        }
    }

    fn check_among(&self, usable: &BTreeSet<u32>) -> Result<(), String> {
        let Affinity::List(wanted) = self else { return Ok(()) };
        let others: BTreeSet<u32> = wanted.difference(usable).copied().collect();
        if others.is_empty() {
            return Ok(());
        }
        let (others, usable) = (list_text(&others), list_text(usable));
        Err(format!("this process may not run on processor {others}; it may on {usable}"))
    }

    /// Narrows the process to the list, if it is one. For the first thread, before it has started another or asked for `Sizes`.
    ///
    /// # Errors
    /// The system refuses.
    pub fn narrow_process(&self) -> io::Result<()> {
        let Affinity::List(numbers) = self else { return Ok(()) };
        assert!(!Sizes::are_decided(), "the process is narrowed before anything is sized");
        Mask::of(numbers).allow(THIS_THREAD)
    }

    /// Seats for `count` threads; none where the kernel decides, or does not show the processors.
    pub fn seats(&self, topology: &Topology, count: usize) -> Vec<Seat> {
        match self {
            Affinity::Off => Vec::new(),
            Affinity::Auto => Seat::on(topology, count),
            Affinity::List(numbers) => {
                let mut narrowed = topology.clone();
                for processor in &mut narrowed.processors {
                    processor.is_usable &= numbers.contains(&processor.number);
                }
                Seat::on(&narrowed, count)
            }
        }
    }
}

/// In place of a thread's number.
pub(crate) const THIS_THREAD: i32 = 0;
const WORD_BITS: u32 = u64::BITS;

/// Processors as the kernel's calls have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mask(Box<[u64]>);

impl Mask {
    pub(crate) fn of(numbers: &BTreeSet<u32>) -> Mask {
        let words = numbers.last().map_or(1, |last| last / WORD_BITS + 1);
        let word = |at: u32| {
            let own = numbers.range(at * WORD_BITS..(at + 1) * WORD_BITS);
            own.fold(0, |word, number| word | 1 << (number % WORD_BITS))
        };
        Mask((0..words).map(word).collect())
    }

    /// Lets a thread run on these processors only.
    pub(crate) fn allow(&self, thread: i32) -> io::Result<()> {
        // SAFETY: the kernel reads so many bytes of the words, and writes nothing.
        let result = unsafe {
            libc::sched_setaffinity(thread, size_of_val(&*self.0), self.0.as_ptr().cast())
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// The processors on which a thread may run.
///
/// # Errors
/// It has ended.
pub fn allowed(thread: i32) -> io::Result<BTreeSet<u32>> {
    // The kernel refuses a mask that is smaller than its own.
    let mut words = vec![0_u64; (PROCESSORS_MAX / WORD_BITS) as usize];
    // SAFETY: the kernel writes at most so many bytes to the words, any values of which are valid.
    let result =
        unsafe { libc::sched_getaffinity(thread, size_of_val(&*words), words.as_mut_ptr().cast()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let bits = |at: u32, word: u64| {
        let is_set = move |bit: &u32| word >> bit & 1 == 1;
        (0..WORD_BITS).filter(is_set).map(move |bit| at * WORD_BITS + bit)
    };
    Ok((0_u32..).zip(words).flat_map(|(at, word)| bits(at, word)).collect())
}

/// The processors on which this process may run; none where the system does not tell.
pub fn of_process() -> BTreeSet<u32> {
    // The first thread is never bound to a seat, and has no share.
    allowed(rustix::process::getpid().as_raw_nonzero().get()).unwrap_or_default()
}

/// Where this module has put a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere: it runs where the process may.
    Anywhere,
    /// On the processors of the seat's node.
    Around(u32),
    /// On the seat's processor.
    On(u32),
    /// Another thread has moved it.
    Moved,
}

thread_local! {
    static PLACE: Cell<Place> = const { Cell::new(Place::Anywhere) };
    /// The node near whose memory it runs, counted from 0.
    static NODE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The node near whose memory the calling thread is bound to run, counted among those of the process from 0.
pub fn node() -> Option<usize> {
    NODE.get()
}

/// A processor for one thread at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    processor: u32,
    /// The place of its node among those that the process may use.
    node: usize,
    own: Mask,
    /// The processors of its node.
    around: Mask,
}

impl Seat {
    fn on(topology: &Topology, count: usize) -> Vec<Seat> {
        let nodes = topology.usable_nodes();
        let seat = |number| {
            let processor = topology.processors.iter().find(|one| one.number == number);
            let node = processor.and_then(|one| one.memory_node);
            Seat {
                processor: number,
                node: nodes.iter().position(|known| Some(*known) == node).unwrap_or(0),
                own: Mask::of(&BTreeSet::from([number])),
                around: Mask::of(&topology.around(number)),
            }
        };
        topology.seats(count).into_iter().map(seat).collect()
    }

    /// The processor's number.
    pub fn processor(&self) -> u32 {
        self.processor
    }

    /// Binds the calling thread to the processor.
    pub fn take(&self) {
        self.go(Place::On(self.processor), &self.own);
    }

    /// Lets the calling thread run on all processors of the seat's node: another one takes the seat.
    pub fn leave(&self) {
        self.go(Place::Around(self.processor), &self.around);
    }

    fn go(&self, place: Place, mask: &Mask) {
        if PLACE.replace(place) != place {
            NODE.set(Some(self.node));
            // The system refuses when the process may no longer run there, and then has moved the thread itself.
            let _refused = mask.allow(THIS_THREAD);
        }
    }

    /// Makes another thread leave the seat. It has to call `moved` before it takes one again.
    pub fn take_from(&self, thread: u32) {
        // It may have just ended.
        let _gone = self.around.allow(thread.cast_signed());
    }
}

/// Another thread may have made the calling one leave its seat.
pub fn moved() {
    if PLACE.get() != Place::Anywhere {
        PLACE.set(Place::Moved);
    }
}

/// What a thread inherits from the one that starts it.
#[derive(Clone, Debug)]
pub struct Inheritance {
    is_bound: bool,
    share: Option<Arc<Share>>,
    keeps_share: bool,
}

impl Inheritance {
    /// Of threads that the calling thread starts.
    pub fn here() -> Inheritance {
        let is_bound = PLACE.get() != Place::Anywhere;
        Inheritance { is_bound, share: share::here(), keeps_share: false }
    }

    /// Of threads that help the calling thread: they have its share of the processors.
    pub fn of_helpers() -> Inheritance {
        Inheritance { keeps_share: true, ..Inheritance::here() }
    }

    /// Called by the new thread: it may run wherever the process may, or wherever the thread may that it helps.
    pub fn give_up(&self) {
        if !self.is_bound && self.share.is_none() {
            return;
        }
        // The first thread is never bound to a seat.
        let first = rustix::process::getpid().as_raw_nonzero().get();
        let _kept = allowed(first).and_then(|all| Mask::of(&all).allow(THIS_THREAD));
        match &self.share {
            Some(share) if self.keeps_share => share.apply(),
            Some(_) => share::give_up(),
            None => {}
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::topology::Processor;

    fn set(numbers: &[u32]) -> BTreeSet<u32> {
        numbers.iter().copied().collect()
    }

    #[test]
    fn settings_are_words_or_lists() {
        assert_eq!(Affinity::parse("off"), Ok(Affinity::Off));
        assert_eq!(Affinity::parse(" Auto "), Ok(Affinity::Auto));
        let list = Affinity::parse("8, 0-3,2").unwrap();
        assert_eq!(list, Affinity::List(set(&[0, 1, 2, 3, 8])));
        assert_eq!(list.to_string(), "0-3,8");
        for (text, why) in [
            ("", "'' is no processor"),
            ("ON", "'ON' is no processor"),
            ("0-", "'0-' is no processor"),
            ("1,,2", "'' is no processor"),
            ("-1", "'-1' is no processor"),
            ("3-1", "'3-1' ends before it begins"),
            ("0-4000000000", "no machine has processor 4000000000"),
            ("99999999999", "'99999999999' is no processor"),
        ] {
            let error = Affinity::parse(text).unwrap_err();
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_list_names_processors_that_the_process_may_use() {
        let usable = set(&[0, 1, 2, 3]);
        assert_eq!(Affinity::parse("1-2").unwrap().check_among(&usable), Ok(()));
        let error = Affinity::parse("2-5").unwrap().check_among(&usable).unwrap_err();
        assert_eq!(error, "this process may not run on processor 4-5; it may on 0-3");
        assert_eq!(Affinity::Auto.check(), Ok(()));
        assert!(Affinity::parse("65535").unwrap().check().is_err());
    }

    #[test]
    fn masks_have_a_bit_for_each_processor() {
        assert_eq!(*Mask::of(&set(&[0, 63, 64, 130])).0, [1 | 1 << 63, 1, 4]);
        assert_eq!(*Mask::of(&set(&[])).0, [0]);
    }

    #[test]
    fn seats_know_their_nodes_and_a_list_has_seats_on_its_processors_only() {
        let processor = |number: u32, node: u32| Processor {
            number,
            is_online: true,
            is_usable: true,
            node: Some(node),
            memory_node: Some(node),
            package: None,
            siblings: set(&[number]),
            caches: Vec::new(),
        };
        let processors = (0..4).map(|number| processor(number, number / 2 * 8)).collect();
        let topology = Topology { processors, quota: None };
        let seats = |text: &str| {
            let seats = Affinity::parse(text).unwrap().seats(&topology, 4);
            let place = |seat: &Seat| (seat.processor, seat.node, seat.around.0[0]);
            seats.iter().map(place).collect::<Vec<_>>()
        };
        assert_eq!(seats("OFF"), []);
        assert_eq!(seats("AUTO"), [(0, 0, 0b11), (1, 0, 0b11), (2, 1, 0b1100), (3, 1, 0b1100)]);
        assert_eq!(seats("1,2"), [(1, 0, 0b10), (1, 0, 0b10), (2, 1, 0b100), (2, 1, 0b100)]);
        // Where the system shows none, nobody has a seat.
        assert_eq!(Affinity::Auto.seats(&Topology::default(), 4), []);
    }

    /// On the real machine: the thread runs where its seat is, others that it starts do not inherit that.
    #[test]
    fn a_seated_thread_is_where_its_seat_is_and_its_children_are_anywhere() {
        let all = allowed(THIS_THREAD).unwrap();
        let seats = Affinity::Auto.seats(&Topology::read(), all.len());
        let Some(seat) = seats.last().cloned() else { return };
        let last = seat.processor();
        let body = move || {
            seat.take();
            assert_eq!(allowed(THIS_THREAD).unwrap(), BTreeSet::from([last]));
            assert!(node().is_some());
            let (child, seen) = std::sync::mpsc::channel();
            let spawned = crate::threads::spawn("child", move || {
                child.send((allowed(THIS_THREAD).unwrap(), node())).unwrap();
            });
            spawned.unwrap().join();
            assert_eq!(seen.recv().unwrap(), (all.clone(), None));
            let helpers = crate::threads::together("helper", 3, |at| (at, allowed(THIS_THREAD)));
            for (at, allowed) in helpers.into_iter().skip(1) {
                assert_eq!(allowed.unwrap(), all, "helper {at}");
            }
            seat.leave();
            assert!(allowed(THIS_THREAD).unwrap().contains(&last));
            seat.take();
            // As a watchdog does, from another thread.
            let (theirs, here) = (seat.clone(), rustix::thread::gettid().as_raw_nonzero().get());
            let watchdog = move || theirs.take_from(here.cast_unsigned());
            crate::threads::spawn("watchdog", watchdog).unwrap().join();
            moved();
            seat.take();
            assert_eq!(allowed(THIS_THREAD).unwrap(), BTreeSet::from([last]));
        };
        std::thread::spawn(body).join().unwrap();
    }
}
