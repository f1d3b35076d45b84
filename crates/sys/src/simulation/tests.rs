//! A simulated machine by itself: turns, time, ends of lives, disks, connections.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{
    Failure, Record, Simulation, change_faults, cut_a_connection, fill_disks, note,
    stall_a_connection,
};
use crate::files::{self, Existing};
use crate::net::{Listener, Poller, Stream};
use crate::sync::{Condvar, Mutex};
use crate::threads;

/// Four threads that sleep and take turns at a mutex.
fn take_turns(seed: u64) -> Vec<Record> {
    let machine = Simulation::new(seed);
    let outcome = machine.run(|| {
        let shared = Arc::new(Mutex::new(0));
        let body = |name: &'static str, shared: Arc<Mutex<u32>>| {
            move || {
                for _ in 0..5 {
                    let mut count = shared.lock();
                    // A lock is held over a wait, so that others find it taken.
                    threads::sleep(Duration::from_micros(50));
                    *count += 1;
                    note(&format!("{name} {}", *count));
                    drop(count);
                    threads::yield_now();
                }
            }
        };
        let start = |name| threads::spawn(name, body(name, shared.clone())).expect("a thread");
        ["a", "b", "c", "d"].map(start).into_iter().for_each(threads::Thread::join);
        *shared.lock()
    });
    assert_eq!(outcome, Ok(20));
    machine.trace()
}

#[test]
fn a_seed_decides_who_gets_the_lock() {
    assert_eq!(take_turns(1), take_turns(1));
    assert_ne!(take_turns(1), take_turns(2));
}

#[test]
fn time_passes_when_all_wait_and_in_no_real_time() {
    let real = std::time::Instant::now();
    let up = Simulation::new(1).run(|| {
        threads::sleep(Duration::from_secs(24 * 3600));
        crate::clock::monotonic()
    });
    assert_eq!(up, Ok(Duration::from_secs(24 * 3600)));
    assert!(real.elapsed() < Duration::from_secs(60));
}

#[test]
fn threads_that_wait_for_each_other_are_found() {
    let failure = Simulation::new(1).run(|| {
        let pair = Arc::new((Mutex::new(()), Condvar::new()));
        let (theirs, name) = (pair.clone(), "sleeper");
        let body = move || drop(theirs.1.wait(theirs.0.lock()));
        threads::spawn(name, body).expect("a thread").join();
    });
    let Err(Failure::Stuck(threads)) = failure else { panic!("{failure:?}") };
    assert!(threads.contains("sleeper: Waiting { key: Condition("), "{threads}");
    assert!(threads.contains("main: Waiting { key: End("), "{threads}");
}

#[test]
fn an_abort_ends_the_life_and_its_reason_is_told() {
    let machine = Simulation::new(1);
    let failure = machine.run(|| -> () { crate::process::abort("no disk") });
    assert_eq!(failure, Err(Failure::Aborted("no disk".into())));
    assert_eq!(machine.console(), "squall: no disk; aborting\n");
    assert_eq!(machine.run(|| 1), Ok(1), "it can be started again");
}

#[test]
fn files_stay_for_the_next_life_and_unsynced_bytes_may_go_with_the_power() {
    let mut kept = Vec::new();
    for seed in 0..16 {
        let machine = Simulation::new(seed);
        let outcome = machine.run(|| {
            files::create_directories(Path::new("/d"), 0o700).expect("room");
            let path = Path::new("/d/f");
            let mut file = files::File::create(path, 0o600, Existing::Refuse).expect("new");
            file.write_all(b"safe").expect("room");
            file.sync(&crate::io_times::IoTimes::default()).expect("a device");
            files::sync_directory(Path::new("/d"), &crate::io_times::IoTimes::default())
                .expect("a device");
            file.write_all(b" or not").expect("room");
        });
        assert_eq!(outcome, Ok(()));
        let read = || {
            let mut text = String::new();
            let mut file = files::File::open(Path::new("/d/f")).expect("it is there");
            file.read_to_string(&mut text).expect("text");
            text
        };
        assert_eq!(machine.run(read), Ok("safe or not".to_owned()));
        machine.lose_power();
        let text = machine.run(read).expect("a life");
        assert!(text.starts_with("safe"), "{text}");
        kept.push(text == "safe or not");
    }
    assert!(kept.contains(&true) && kept.contains(&false), "{kept:?}");
}

#[test]
fn connections_tell_pollers_by_edges_and_end_for_both_sides() {
    let outcome = Simulation::new(1).run(|| {
        let address = "127.0.0.1:0".parse().expect("an address");
        let listener = Listener::tcp(address).expect("a free port");
        let mut poller = Poller::new().expect("a poller");
        poller.add_listener(&listener, 1).expect("registered");
        let bound = listener.local_address().expect("bound");
        let limit = Duration::from_secs(1);
        let mut client = Stream::connect_tcp(bound, limit).expect("somebody listens");
        let tokens = |poller: &mut Poller| {
            poller.wait(Some(limit)).expect("a poller");
            poller.ready().map(|event| (event.token, event.closed)).collect::<Vec<_>>()
        };
        assert_eq!(tokens(&mut poller), [(1, false)]);
        let mut server = listener.accept().expect("no error").expect("a connection");
        poller.add_stream(&server, 2).expect("registered");
        assert_eq!(client.write(b"abc").expect("room"), 3);
        assert_eq!(tokens(&mut poller), [(2, false)]);
        assert_eq!(tokens(&mut poller), [], "edges are told once");
        let mut buf = [0; 8];
        assert_eq!(server.read(&mut buf).expect("bytes"), 3);
        assert_eq!(
            server.read(&mut buf).expect_err("no more").kind(),
            std::io::ErrorKind::WouldBlock
        );
        drop(client);
        assert_eq!(tokens(&mut poller), [(2, true)]);
        assert_eq!(server.read(&mut buf).expect("the end"), 0);
        assert!(server.write(b"x").is_err(), "nobody reads any more");
    });
    assert_eq!(outcome, Ok(()));
}

#[test]
fn a_full_connection_takes_bytes_again_when_its_reader_reads() {
    let outcome = Simulation::new(1).run(|| {
        let (mut writer, mut reader) = Stream::pair().expect("a pair");
        let mut sent = 0;
        while let Ok(count) = writer.write(&[1; 4096]) {
            sent += count;
        }
        assert!(sent > 0 && !writer.wait_writable(Duration::from_secs(1)).expect("open"));
        let thread = threads::spawn("reader", move || {
            threads::sleep(Duration::from_secs(1));
            assert_eq!(reader.read(&mut [0; 4096]).expect("bytes"), 4096);
            threads::sleep(Duration::from_secs(9));
        });
        assert!(writer.wait_writable(Duration::from_secs(2)).expect("open"));
        thread.expect("a thread").join();
        sent
    });
    assert_eq!(outcome, Ok(256 * 1024));
}

#[test]
fn faults_come_and_go_as_they_are_told() {
    let machine = Simulation::new(1);
    let outcome = machine.run(|| {
        let path = Path::new("/f");
        let mut file = files::File::create(path, 0o600, Existing::Refuse).expect("new");
        file.write_all(b"bytes").expect("room");
        change_faults(|faults| faults.failing_writes = 1);
        assert_eq!(file.write(b"x").expect_err("all fail").raw_os_error(), Some(5));
        change_faults(|faults| (faults.failing_writes, faults.failing_reads) = (0, 1));
        assert!(files::File::open(path).is_err());
        change_faults(|faults| faults.failing_reads = 0);
        fill_disks(Some(1));
        let full = (0..3).find_map(|_| file.write_all(&[1; 4096]).err()).expect("no room");
        assert!(crate::disk::is_full(&full), "{full}");
        fill_disks(None);
        file.write_all(&[1; 8192]).expect("room again");
        change_faults(|faults| faults.wall_offset_secs = -3600);
        crate::clock::wall()
    });
    let start = super::START_OF_TIME - Duration::from_secs(3600);
    assert!(outcome.is_ok_and(|wall| wall >= start && wall < start + Duration::from_secs(1)));
    // The next life has none of them, but for the clock.
    let wall = machine.run(|| {
        files::File::open(Path::new("/f")).expect("readable");
        crate::clock::wall()
    });
    assert!(wall.is_ok_and(|wall| wall < super::START_OF_TIME));
}

#[test]
fn a_connection_that_is_cut_ends_for_both_sides_and_a_stalled_one_goes_on() {
    let outcome = Simulation::new(1).run(|| {
        let address = "127.0.0.1:0".parse().expect("an address");
        let listener = Listener::tcp(address).expect("a free port");
        let bound = listener.local_address().expect("bound");
        let limit = Duration::from_secs(60);
        assert!(!cut_a_connection(), "there is none");
        let mut client = Stream::connect_tcp(bound, limit).expect("somebody listens");
        let mut server = listener.accept().expect("no error").expect("a connection");
        assert!(stall_a_connection(Duration::from_secs(5)));
        assert_eq!(client.write(b"late").expect("room"), 4);
        let began = crate::clock::monotonic();
        assert!(server.wait_readable(limit).expect("open"));
        assert!(crate::clock::monotonic() - began >= Duration::from_secs(5));
        let mut buf = [0; 8];
        assert_eq!(server.read(&mut buf).expect("bytes"), 4);
        assert!(cut_a_connection());
        assert!(client.write(b"x").is_err() && server.write(b"x").is_err());
        for end in [&mut client, &mut server] {
            assert!(end.wait_readable(limit).expect("open"));
            assert_eq!(end.read(&mut buf).expect("the end"), 0);
        }
        assert!(!cut_a_connection(), "it is cut already");
    });
    assert_eq!(outcome, Ok(()));
}
