//! Mutated packets against a connection in this process: no panic, and no growth of memory. `SQUALL_FUZZ_PACKETS` raises the
//! number, `SQUALL_FUZZ_SEED` (decimal) repeats another run; a failure names its seed and packet.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::collections::HashMap;
use std::sync::Arc;

use sys::entropy::SplitMix;
use sys::net::Stream;
use types::Value;
use wire::{
    Capabilities, CommandCode, CursorFlags, HandshakeResponse, Parameter, put_execute, put_packet,
    put_query_with_attributes,
};

use crate::canned::{Canned, Factory};
use crate::connection::{Connection, Phase, Scratch, Server};

const PACKETS_DEFAULT: u64 = 20_000;
const SEED: u64 = 0x5eed_0001;
/// Resident memory may grow by this after the first tenth of the packets: the needs of other tests in the process, and fragments.
const GROWTH_MAX_KIB: usize = 32 * 1024;

const CAPS: Capabilities = Capabilities(
    Capabilities::PROTOCOL_41.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::PLUGIN_AUTH.0
        | Capabilities::PLUGIN_AUTH_LENENC.0
        | Capabilities::CONNECT_ATTRS.0
        | Capabilities::LOCAL_FILES.0
        | Capabilities::DEPRECATE_EOF.0
        | Capabilities::QUERY_ATTRIBUTES.0
        | Capabilities::SESSION_TRACK.0,
);

struct Peer {
    connection: Connection,
    socket: Stream,
    scratch: Scratch,
}

impl Peer {
    fn new(server: &Arc<Server>) -> Peer {
        let (ours, socket) = Stream::pair().expect("a pair");
        let connection = Connection::new(server.clone(), ours, false);
        let mut peer = Peer { connection, socket, scratch: Scratch::default() };
        peer.turn();
        peer
    }

    /// Drives the connection until it has nothing more to do, and throws its output away.
    fn turn(&mut self) {
        loop {
            self.connection.transport.drained = false;
            self.connection.run(&mut self.scratch);
            self.discard_output();
            if !self.connection.wants_turn {
                return;
            }
        }
    }

    fn discard_output(&mut self) -> usize {
        let mut buf = [0; 65_536];
        let mut total = 0;
        while let Ok(len) = self.socket.read(&mut buf) {
            if len == 0 {
                break;
            }
            total += len;
        }
        total
    }

    fn send(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Ok(len) = self.socket.write(rest) {
            rest = &rest[len..];
            if rest.is_empty() {
                break;
            }
            self.turn();
        }
        self.turn();
    }
}

fn login_packet() -> Vec<u8> {
    let mut payload = Vec::new();
    HandshakeResponse {
        capabilities: CAPS,
        packet_bytes_max: 1 << 24,
        collation: 255,
        user: b"root",
        auth_plugin: Some(b"mysql_native_password"),
        attributes: vec![(b"_os", b"Linux")],
        ..HandshakeResponse::default()
    }
    .encode(&mut payload);
    let mut packet = Vec::new();
    put_packet(&mut packet, &payload, &mut 1);
    packet
}

/// Valid packets to start from.
fn seeds() -> Vec<Vec<u8>> {
    let mut payloads: Vec<Vec<u8>> = Vec::new();
    let query = |sql: &[u8]| {
        let mut payload = Vec::new();
        let attribute = Parameter { name: b"a"[..].into(), value: Value::Int(1) };
        put_query_with_attributes(&mut payload, sql, &[attribute], CAPS);
        payload
    };
    for sql in ["SELECT 1", "numbers 50", "fail x", "load x", "multi x", "echo abc", "use d"] {
        payloads.push(query(sql.as_bytes()));
    }
    let mut execute = Vec::new();
    let parameters = [Value::Int(1), Value::text("abc"), Value::Double(0.5), Value::Null];
    put_execute(&mut execute, 5, CursorFlags::default(), &parameters, CAPS);
    payloads.push(execute);
    payloads.push(vec![CommandCode::StmtSendLongData as u8, 5, 0, 0, 0, 1, 0, b'x', b'y']);
    payloads.push(vec![CommandCode::StmtFetch as u8, 5, 0, 0, 0, 3, 0, 0, 0]);
    payloads.push([&[CommandCode::ChangeUser as u8][..], b"root\0\0db\0\xff\0native\0"].concat());
    for number in 0..=40 {
        payloads.push([&[number][..], b"t1\0a\0\0\0"].concat());
    }
    payloads
        .iter()
        .map(|payload| {
            let mut packet = Vec::new();
            put_packet(&mut packet, payload, &mut 0);
            packet
        })
        .collect()
}

fn mutate(packet: &mut Vec<u8>, random: &mut SplitMix) {
    for _ in 0..random.below(4) {
        let at = random.below(packet.len() as u64 + 1) as usize;
        match random.below(5) {
            0 => packet.truncate(at),
            1 => packet.insert(at, random.next_u64() as u8),
            2 if at < packet.len() => packet[at] ^= 1 << random.below(8),
            3 if at < packet.len() => {
                packet[at] = [0, 0xff, 0xfb, 0xfc, 0x7f][random.below(5) as usize]
            }
            _ => packet.extend_from_slice(&random.next_u64().to_le_bytes()),
        }
    }
    // Mostly keep the frame whole, so that the payload is reached.
    if random.below(8) != 0 && packet.len() >= 4 {
        let len = (packet.len() - 4) as u32;
        packet[..3].copy_from_slice(&len.to_le_bytes()[..3]);
        packet[3] = 0;
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// Says where a run failed.
struct Progress {
    seed: u64,
    packet: u64,
}

impl Drop for Progress {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("failed with SQUALL_FUZZ_SEED={} at packet {}", self.seed, self.packet);
        }
    }
}

#[test]
fn mutated_packets_never_panic_and_keep_no_memory() {
    let packets = setting("SQUALL_FUZZ_PACKETS", PACKETS_DEFAULT);
    let seed = setting("SQUALL_FUZZ_SEED", SEED);
    println!("seed {seed}, {packets} packets");
    let mut progress = Progress { seed, packet: 0 };
    let mut warm_kib = 0;
    let mut random = SplitMix::new(seed);
    let method: Arc<dyn plugin_api::Authenticator> = Arc::new(authentication::NativePassword);
    let mut canned = Canned::new(HashMap::from([("root".to_owned(), (method, Vec::new()))]));
    // Reads inside LOAD DATA LOCAL end at once: no other thread sends.
    canned.session_variables.insert("net_read_timeout", 0);
    canned.session_variables.insert("max_allowed_packet", 1 << 16);
    let factory: Arc<dyn plugin_api::SessionFactory> = Arc::new(Factory(Arc::new(canned)));
    let server = Arc::new(Server::new(factory, None, Arc::default()));
    let seeds = seeds();
    let login = login_packet();
    let mut peer = Peer::new(&server);
    let (mut logins, mut commands) = (0u64, 0u64);
    for packet in 0..packets {
        progress.packet = packet;
        if packet == packets / 10 {
            warm_kib = resident_kib();
        }
        if matches!(peer.connection.phase, Phase::Closed | Phase::Lingering) {
            peer = Peer::new(&server);
        }
        if peer.connection.phase == Phase::Login {
            let mut packet = login.clone();
            if random.below(4) == 0 {
                mutate(&mut packet, &mut random);
                if packet.len() > 3 {
                    packet[3] = 1;
                }
            }
            peer.send(&packet);
            logins += u64::from(peer.connection.phase == Phase::Ready);
            peer.connection.timeouts.read = std::time::Duration::ZERO;
            continue;
        }
        let mut packet = seeds[random.below(seeds.len() as u64) as usize].clone();
        mutate(&mut packet, &mut random);
        peer.send(&packet);
        peer.connection.timeouts.read = std::time::Duration::ZERO;
        commands += 1;
        // A half packet would make the next one part of it for ever.
        if !peer.connection.input.is_empty() && random.below(4) == 0 {
            peer.connection.phase = Phase::Closed;
        }
    }
    assert!(logins > 10, "the fuzzer hardly ever logged in: {logins}");
    assert!(commands > packets / 4, "few commands were tried: {commands}");
    drop(peer);
    let end_kib = resident_kib();
    println!("{logins} log-ins, {commands} commands, {warm_kib} KiB -> {end_kib} KiB");
    assert!(end_kib < warm_kib + GROWTH_MAX_KIB, "{warm_kib} KiB -> {end_kib} KiB");
    let open = server.connections.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(open, 0, "connections are counted");
}
