//! Stacks of the threads of this process: what each of them is doing, without a debugger.
//!
//! A thread is asked by a signal to copy its registers and the upper part of its stack into a buffer that is always there (`capture`); the copy is walked by the caller with the
//! program's unwind tables (`unwind`), and addresses get names from its symbols (`symbols`). The signal's handler takes no lock and allocates nothing. On a simulated machine there
//! are no stacks.

#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, unused_imports, reason = "nothing unwinds there")
)]
mod capture;
mod symbols;
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, unused_imports, reason = "nothing unwinds there")
)]
mod unwind;

use std::collections::HashMap;
use std::fmt::Write as _;

pub use symbols::symbolise;

use crate::{simulation, waits};

/// A thread's stack at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadStack {
    /// The operating system's number of the thread.
    pub thread_id: u32,
    /// The thread's name.
    pub name: String,
    /// Addresses of instructions, the innermost first; `symbolise` gives them names.
    pub frames: Vec<u64>,
}

/// Frames of a stack at most.
const FRAMES_MAX: usize = 256;

/// The stack of a thread of this process, by the operating system's number, innermost frame first. `None` when it has ended or did not answer in time; empty where this architecture
/// is not known.
pub fn capture_thread(thread_id: u32) -> Option<Vec<u64>> {
    if simulation::current().is_some() {
        return None;
    }
    let mut frames = Vec::with_capacity(64);
    capture::with_copy(thread_id, |copy| unwind::walk(copy, FRAMES_MAX, &mut frames))?;
    Some(frames)
}

/// The stacks of all threads but the caller's, by thread id. Threads that do not answer in time are left out.
pub fn capture_all() -> Vec<ThreadStack> {
    if simulation::current().is_some() {
        return Vec::new();
    }
    let known: HashMap<u32, String> =
        waits::threads().into_iter().map(|thread| (thread.thread_id, thread.name)).collect();
    let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let mut stacks = Vec::new();
    for thread_id in thread_ids().into_iter().filter(|thread_id| *thread_id != own) {
        let Some(frames) = capture_thread(thread_id) else { continue };
        let name = known.get(&thread_id).cloned().unwrap_or_else(|| kernel_name(thread_id));
        stacks.push(ThreadStack { thread_id, name, frames });
    }
    stacks
}

fn thread_ids() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let number = |name: std::ffi::OsString| name.to_str()?.parse().ok();
    let mut found: Vec<u32> = entries.flatten().filter_map(|one| number(one.file_name())).collect();
    found.sort_unstable();
    found
}

fn kernel_name(thread_id: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/self/task/{thread_id}/comm"));
    name.map_or_else(|_| "unnamed".to_owned(), |name| name.trim_end().to_owned())
}

/// Stacks as lines `thread;outermost;..;innermost count`, equal ones together: the input of flame graph tools.
pub fn folded(stacks: &[ThreadStack]) -> String {
    let mut lines: Vec<(String, usize)> = Vec::new();
    for stack in stacks {
        let mut line = stack.name.replace([';', ' '], "_");
        for name in symbolise(&stack.frames).iter().rev() {
            line.push(';');
            line.push_str(name);
        }
        match lines.iter_mut().find(|(known, _)| *known == line) {
            Some((_, count)) => *count += 1,
            None => lines.push((line, 1)),
        }
    }
    lines.sort_unstable();
    lines.iter().fold(String::new(), |mut text, (line, count)| {
        let _always = writeln!(text, "{line} {count}");
        text
    })
}

#[cfg(all(test, target_arch = "x86_64", not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[inline(never)]
    fn spins_for_the_test(stop: &mpsc::Receiver<()>) -> u64 {
        let mut rounds = 0_u64;
        while stop.try_recv() == Err(mpsc::TryRecvError::Empty) {
            rounds = std::hint::black_box(rounds + 1);
        }
        rounds
    }

    #[inline(never)]
    fn sleeps_for_the_test(stop: &mpsc::Receiver<()>) -> u64 {
        std::hint::black_box(u64::from(stop.recv().is_err()))
    }

    #[test]
    fn the_stacks_of_running_and_of_sleeping_threads_name_their_functions() {
        let (stop_spinning, spins) = mpsc::channel();
        let (stop_sleeping, sleeps) = mpsc::channel();
        let named = |name: &str| std::thread::Builder::new().name(name.into());
        let one = named("stack-spins").spawn(move || spins_for_the_test(&spins)).unwrap();
        let other = named("stack-sleeps").spawn(move || sleeps_for_the_test(&sleeps)).unwrap();
        let has = |text: &str, thread: &str, function: &str| {
            text.lines().any(|line| line.starts_with(thread) && line.contains(function))
        };
        let text = loop {
            let text = folded(&capture_all());
            let both = has(&text, "stack-spins", "spins_for_the_test")
                && has(&text, "stack-sleeps", "sleeps_for_the_test");
            if both {
                break text;
            }
        };
        let sleeping = text.lines().find(|line| line.starts_with("stack-sleeps")).unwrap();
        assert!(sleeping.ends_with(" 1"), "{sleeping}");
        let outer = sleeping.find("std::sys::thread").or(sleeping.find("std::thread"));
        assert!(outer < sleeping.find("sleeps_for_the_test"), "the outermost first: {sleeping}");
        stop_spinning.send(()).unwrap();
        stop_sleeping.send(()).unwrap();
        one.join().unwrap();
        assert_eq!(other.join().unwrap(), 0);
    }

    #[test]
    fn a_thread_that_does_not_exist_has_no_stack() {
        let gone = std::thread::spawn(rustix::thread::gettid).join().unwrap();
        assert_eq!(capture_thread(gone.as_raw_nonzero().get().cast_unsigned()), None);
    }
}
