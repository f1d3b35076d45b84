//! What threads wait for, and their time on processors.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use sys::sync::Mutex;
use sys::waits::{ThreadWaits, Totals, Wait, threads};

use crate::exposition::{Type, Writer};

/// A thread: its slot, and when it got it.
type Thread = (u32, Duration);

/// The waits of threads that have ended: a counter must not fall when its thread ends. What a thread waited for after the last scrape before
/// its end is lost.
#[derive(Default)]
pub struct Waits(Mutex<Known>);

#[derive(Default)]
struct Known {
    ended: Totals,
    living: HashMap<Thread, Totals>,
}

impl Known {
    /// The waits of all threads so far.
    fn sum(&mut self, now: &[ThreadWaits]) -> Totals {
        let living: HashMap<Thread, Totals> =
            now.iter().map(|thread| ((thread.slot, thread.started), thread.totals)).collect();
        for (thread, totals) in std::mem::take(&mut self.living) {
            if !living.contains_key(&thread) {
                self.ended.add(&totals);
            }
        }
        let mut sum = self.ended;
        living.values().for_each(|totals| sum.add(totals));
        self.living = living;
        sum
    }
}

/// The kind of a thread: its name without its number.
fn kind(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-')
}

impl Waits {
    /// Writes them.
    pub fn write(&self, writer: &mut Writer) {
        let now = threads();
        let sum = self.0.lock().sum(&now);
        let kinds =
            Wait::ALL.into_iter().filter(|wait| !matches!(wait, Wait::Running | Wait::Idle));
        let kinds: Vec<Wait> = kinds.collect();
        writer.family("waits", Type::Counter, "Waits of threads that have ended, by what for.");
        for wait in &kinds {
            writer.sample(&[("wait", wait.name())], sum.of(*wait).count);
        }
        writer.family("wait_seconds", Type::Counter, "Time of these waits.");
        for wait in &kinds {
            writer.sample(&[("wait", wait.name())], sum.of(*wait).nanos as f64 / 1e9);
        }
        writer.family("threads", Type::Gauge, "Threads by what they wait for now.");
        for wait in Wait::ALL {
            let count = now.iter().filter(|thread| thread.wait == wait).count();
            writer.sample(&[("wait", wait.name())], count);
        }
        let mut by_kind: BTreeMap<&str, Duration> = BTreeMap::new();
        for thread in &now {
            *by_kind.entry(kind(&thread.name)).or_default() += thread.cpu.unwrap_or_default();
        }
        let help = "Time on a processor of the threads that live now, by their name.";
        writer.family("threads_cpu_seconds", Type::Gauge, help);
        for (name, cpu) in by_kind {
            writer.sample(&[("name", name)], cpu.as_secs_f64());
        }
    }
}
