//! The only door to the operating system: disk, clock, entropy, memory, threads, locks. Real, or simulated for tests.
//!
//! `simulation` is the other side of the door: a machine that lives in memory and repeats itself under a seed.
//!
//! Independent of pages, rows and protocols. Everything nondeterministic in the project comes through here.
#![allow(unsafe_code)]

pub mod affinity;
pub mod blocking;
pub mod clock;
#[cfg(feature = "count")]
pub mod counted;
pub mod datagram;
pub mod disk;
pub mod encryption;
pub mod entropy;
pub mod fault;
mod file_kinds;
pub mod files;
pub mod histogram;
pub mod interrupt;
pub mod io_times;
pub mod lend;
pub mod library;
pub mod lock_stats;
pub mod log_file;
pub mod machine;
pub mod mem;
pub mod model;
pub mod net;
pub mod notify;
pub mod overlay;
pub mod pam;
mod planted;
pub mod private_file;
pub mod probes;
pub mod process;
mod random;
mod readiness;
mod ring;
pub mod seccomp;
pub mod share;
pub mod signals;
pub mod sim;
pub mod simulation;
mod spin;
pub mod stacks;
pub mod storage;
pub mod sync;
pub mod temporary;
pub mod threads;
pub mod topology;
pub mod turns;
pub mod usage;
pub mod waits;
