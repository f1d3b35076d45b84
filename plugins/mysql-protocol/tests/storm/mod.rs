//! Load by connections: many log-ins a second, and attackers that begin log-ins and never finish them.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]
#![allow(dead_code)]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wire::CommandCode;

use crate::client::{Client, Options};

/// Log-ins at a steady rate, each followed by a ping and a goodbye.
pub struct Load<'a> {
    pub address: SocketAddr,
    pub options: Options<'a>,
    /// Connections a second.
    pub rate: u32,
    pub time: Duration,
    pub workers: u32,
}

/// The outcome of a load.
#[derive(Debug, Default)]
pub struct Figures {
    pub served: u64,
    pub failed: u64,
    /// Time from connecting to the answer of the ping: median, 99 of 100, worst.
    pub median: Duration,
    pub p99: Duration,
    pub worst: Duration,
    pub elapsed: Duration,
}

fn visit(address: SocketAddr, options: &Options<'_>) -> bool {
    // The client panics when the server does not play along.
    let visited = catch_unwind(AssertUnwindSafe(|| {
        let mut client = Client::connect(address, options).ok()?;
        client.simple(CommandCode::Ping, b"").ok()?;
        client.send_command(&[CommandCode::Quit as u8]);
        Some(())
    }));
    matches!(visited, Ok(Some(())))
}

/// Runs a load. Late visits are made up for, so that a slow server does not lower the rate.
pub fn run(load: &Load<'_>) -> Figures {
    let count = (f64::from(load.rate) * load.time.as_secs_f64()) as u64;
    let next = AtomicU64::new(0);
    let begin = Instant::now();
    let mut times: Vec<Option<Duration>> = std::thread::scope(|scope| {
        let worker = || {
            let mut times = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return times;
                }
                let due = begin + Duration::from_secs_f64(number as f64 / f64::from(load.rate));
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                let started = Instant::now();
                let served = visit(load.address, &load.options);
                times.push(served.then(|| started.elapsed()));
            }
        };
        let workers: Vec<_> = (0..load.workers).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    let elapsed = begin.elapsed();
    times.sort_unstable();
    let failed = times.iter().take_while(|time| time.is_none()).count();
    let served: Vec<Duration> = times.into_iter().flatten().collect();
    let at = |part: usize| served.get(served.len() * part / 100).copied().unwrap_or_default();
    Figures {
        served: served.len() as u64,
        failed: failed as u64,
        median: at(50),
        p99: at(99),
        worst: served.last().copied().unwrap_or_default(),
        elapsed,
    }
}

/// The results that attackers got.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cuts {
    pub opened: u64,
    pub cut: u64,
    /// How long the oldest connection lived.
    pub oldest: Duration,
}

/// How often an attacker moves.
const ROUND: Duration = Duration::from_secs(1);

/// Attackers: connections that send nothing, or a byte a second, and reconnect when they are cut.
pub struct HalfOpen {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Cuts>,
}

struct Attacker {
    socket: TcpStream,
    since: Instant,
    trickles: bool,
}

impl Attacker {
    fn new(address: SocketAddr, trickles: bool) -> Option<Attacker> {
        let socket = TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()?;
        socket.set_nonblocking(true).ok()?;
        Some(Attacker { socket, since: Instant::now(), trickles })
    }

    /// False when the server has cut the connection.
    fn go_on(&mut self) -> bool {
        if self.trickles {
            // Part of a packet that announces 64 bytes. A closed socket shows in the read.
            let _ = self.socket.write(&[0x40]);
        }
        loop {
            match self.socket.read(&mut [0; 256]) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }
}

impl HalfOpen {
    pub fn start(address: SocketAddr, count: usize) -> HalfOpen {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || attack(address, count, &stopped));
        HalfOpen { stop, thread }
    }

    pub fn stop(self) -> Cuts {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic")
    }
}

fn attack(address: SocketAddr, count: usize, stop: &AtomicBool) -> Cuts {
    let mut cuts = Cuts::default();
    let mut attackers: Vec<Option<Attacker>> = (0..count).map(|_| None).collect();
    while !stop.load(Ordering::Relaxed) {
        let round = Instant::now();
        for (number, place) in attackers.iter_mut().enumerate() {
            // Spread over the round: more at once than may be half open would evict clients that log in at the same time.
            let due = round + ROUND.mul_f64(number as f64 / count as f64);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if let Some(attacker) = place {
                cuts.oldest = cuts.oldest.max(attacker.since.elapsed());
                if attacker.go_on() {
                    continue;
                }
                cuts.cut += 1;
            }
            *place = Attacker::new(address, number % 2 == 0);
            cuts.opened += u64::from(place.is_some());
        }
    }
    cuts
}

/// Threads and resident KiB of a process.
pub fn usage(process: &str) -> (usize, usize) {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
    };
    (field("Threads:"), field("VmRSS:"))
}
