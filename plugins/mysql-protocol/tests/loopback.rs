//! The listener over loopback and UNIX sockets, with canned sessions and a client on `wire`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod canned;
mod client;
mod running;

use std::time::{Duration, Instant};

use client::{BASE, Client, Options};
use running::{start, start_with};
use types::{Date, DateTime, Time, Value};
use wire::{Capabilities, CommandCode, CursorFlags, Parameter, StatusFlags};

fn cell(set: &client::ResultSet) -> Option<&str> {
    set.rows.first()?.first()?.as_deref()
}

#[test]
fn log_in_with_every_method() {
    let server = start();
    let log_in = |options: &Options<'_>| Client::connect(server.address, options);
    let tls = Options { user: "sha2", password: "secret", tls: true, ..Options::default() };
    let mut first = log_in(&tls).expect("logged in");
    assert!(first.full_auth);
    assert_eq!(cell(&first.query("user").expect("a result")), Some("sha2"));
    // Cached now: works in the clear, too.
    let plain = Options { user: "sha2", password: "secret", ..Options::default() };
    assert!(!log_in(&plain).expect("logged in").full_auth);
    let native = Options { user: "native", password: "secret", ..Options::default() };
    log_in(&native).expect("switched to native");
    let wrong = Options { user: "native", password: "Secret", ..Options::default() };
    let refused = log_in(&wrong).err().expect("refused");
    assert_eq!((refused.code, refused.sqlstate.as_str()), (1045, "28000"));
    let expected = "Access denied for user 'native'@'localhost' (using password: YES)";
    assert_eq!(refused.message, expected);
    let missing = Options { database: Some("missing"), ..Options::default() };
    assert_eq!(log_in(&missing).err().expect("refused").code, 1049);
    let mut with_database =
        log_in(&Options { database: Some("d1"), ..Options::default() }).expect("logged in");
    assert_eq!(cell(&with_database.query("db").expect("a result")), Some("d1"));
    let attributes = server.canned.attributes.lock().expect("no panic inside").clone();
    assert_eq!(attributes, [("program_name".to_owned(), "test".to_owned())]);
}

#[test]
fn unix_socket_and_peer_credentials() {
    let server = start();
    let local = Options { user: "sha2", password: "secret", ..Options::default() };
    let mut client = Client::connect_unix(&server.socket(), &local).expect("logged in");
    assert!(client.full_auth, "the password may travel over a UNIX socket");
    assert_eq!(cell(&client.query("user").expect("a result")), Some("sha2"));
    // The account names the OS user; this passes only where tests run as that user.
    let socket = Options { user: "socket", ..Options::default() };
    let allowed = Client::connect_unix(&server.socket(), &socket).is_ok();
    let home = std::env::var("HOME").unwrap_or_default();
    assert!(allowed || home != "/root");
    assert!(Client::connect(server.address, &socket).is_err());
}

#[test]
fn every_form_of_the_command_phase() {
    let server = start();
    for more in [
        Capabilities::default(),
        Capabilities::DEPRECATE_EOF,
        Capabilities::DEPRECATE_EOF | Capabilities::SESSION_TRACK,
        Capabilities::QUERY_ATTRIBUTES | Capabilities::DEPRECATE_EOF,
        Capabilities::COMPRESS,
        Capabilities::ZSTD_COMPRESSION | Capabilities::DEPRECATE_EOF,
    ] {
        let mut client = server.connect_with(more);
        assert_eq!(cell(&client.query("echo hello").expect("a result")), Some("hello"));
        let set = client.query("numbers 2000").expect("a result");
        assert_eq!(set.rows.len(), 2000);
        assert_eq!(set.rows[3], [Some("3".to_owned()), None]);
        assert!(set.status.contains(StatusFlags::AUTOCOMMIT));
        // The second time the columns are known.
        for _ in 0..2 {
            let set = client.query("SELECT c").expect("a result");
            assert_eq!(cell(&set).map(str::len), Some(47));
            let head = client.prepare("SELECT c WHERE id = ?").expect("prepared");
            assert_eq!((head.parameters, head.columns), (1, 1));
            let id = head.statement_id;
            let set = client.execute(id, CursorFlags::default(), &[Value::Int(1)]);
            assert_eq!(set.expect("a result").values.len(), 1);
        }
        let error = client.query("fail x").expect_err("an error");
        assert_eq!((error.code, error.sqlstate.as_str()), (1062, "23000"));
        assert_eq!(client.query("half x").expect_err("an error").code, 1317);
        let ok = client.query("update").expect("OK");
        assert_eq!((ok.affected_rows, ok.info.as_str()), (1, "Rows matched: 1"));
        let first = client.query("multi x").expect("OK");
        assert!(first.status.contains(StatusFlags::MORE_RESULTS_EXIST));
        let second = client.read_answer(b"").expect("a result");
        assert_eq!(cell(&second), Some("2"));
        assert!(second.status.contains(StatusFlags::MORE_RESULTS_EXIST));
        assert_eq!(cell(&client.read_answer(b"").expect("a result")), Some("3"));
        let loaded = client.query("load x").expect("OK");
        assert_eq!(loaded.affected_rows, 8);
        let tracked = client.query("use d2").expect("OK").schema_change;
        let expected = more.contains(Capabilities::SESSION_TRACK).then(|| "d2".to_owned());
        assert_eq!(tracked, expected);
        short_commands(&mut client);
        prepared_statements(&mut client);
    }
}

fn short_commands(client: &mut Client) {
    assert!(client.simple(CommandCode::Ping, b"").is_ok());
    assert!(client.simple(CommandCode::InitDb, b"d3").is_ok());
    assert_eq!(cell(&client.query("db").expect("a result")), Some("d3"));
    assert_eq!(client.simple(CommandCode::InitDb, b"missing").expect_err("no").code, 1049);
    assert!(client.simple(CommandCode::ProcessKill, &77u32.to_le_bytes()).is_ok());
    assert_eq!(
        client.simple(CommandCode::ProcessKill, &999_999u32.to_le_bytes()).expect_err("no").code,
        1094
    );
    assert!(client.simple(CommandCode::ResetConnection, b"").is_ok());
    for removed in [CommandCode::Shutdown, CommandCode::Refresh, CommandCode::TableDump] {
        let error = client.simple(removed, b"\0").expect_err("no such command");
        assert_eq!((error.code, error.sqlstate.as_str()), (1047, "08S01"));
    }
    client.send_command(&[CommandCode::Statistics as u8]);
    assert_eq!(client.read_packet().expect("a line"), b"Uptime: 1  Threads: 1");
    for (code, body) in [(CommandCode::Debug, &b""[..]), (CommandCode::SetOption, &[0, 0])] {
        client.send_command(&[&[code as u8], body].concat());
        assert_eq!(client.read_packet().expect("EOF")[0], 0xfe);
    }
    assert_eq!(client.simple(CommandCode::SetOption, &[9, 0]).expect_err("no").code, 1047);
    client.send_command(&[&[CommandCode::FieldList as u8], &b"t1\0a"[..]].concat());
    let column = client.read_packet().expect("a column");
    assert!(wire::ColumnDefinition::decode(&column).is_ok());
    assert_eq!(client.read_packet().expect("EOF")[0], 0xfe);
}

fn prepared_statements(client: &mut Client) {
    assert_eq!(client.prepare("bad").expect_err("no").code, 1064);
    let head = client.prepare("a ? b ? c ? d ? e ? f ?").expect("prepared");
    assert_eq!((head.statement_id, head.parameters, head.columns), (7, 6, 1));
    let date = Date::new(2024, 2, 29).expect("a date");
    let parameters = vec![
        Value::Int(-7),
        Value::UInt(u64::MAX),
        Value::text("text"),
        Value::Null,
        Value::DateTime(DateTime::new(date, 10, 11, 12, 130_000).expect("a time")),
        Value::Time(Time::new(true, 100, 1, 2, 3).expect("a time")),
    ];
    let set = client.execute(7, CursorFlags::default(), &parameters).expect("a result");
    assert_eq!(set.values, std::slice::from_ref(&parameters));
    // Long data replaces one parameter.
    let pieces = [&b"lo"[..], b"ng"];
    for piece in pieces {
        let head = [&[CommandCode::StmtSendLongData as u8, 7, 0, 0, 0, 2, 0], piece].concat();
        client.send_command(&head);
    }
    // The client still writes a value: leave it out by binding NULL.
    let mut with_long = parameters.clone();
    with_long[2] = Value::Null;
    let set = client.execute(7, CursorFlags::default(), &with_long).expect("a result");
    assert_eq!(set.values[0][2], Value::text("long"));
    assert!(client.simple(CommandCode::StmtReset, &7u32.to_le_bytes()).is_ok());
    assert_eq!(client.execute(4000, CursorFlags::default(), &[]).expect_err("no").code, 1243);
    let opened = client.execute(1, CursorFlags::READ_ONLY, &[]).expect("a cursor");
    assert!(opened.status.contains(StatusFlags::CURSOR_EXISTS));
    assert!(opened.values.is_empty());
    let rows = client.fetch(1, 7, &opened.types).expect("rows");
    assert_eq!(rows.values.len(), 7);
    let rows = client.fetch(1, 7, &opened.types).expect("rows");
    assert_eq!((rows.values.len(), &rows.values[2]), (3, &vec![Value::Int(9)]));
    assert!(rows.status.contains(StatusFlags::LAST_ROW_SENT));
    client.send_command(&[CommandCode::StmtClose as u8, 7, 0, 0, 0]);
    assert!(client.simple(CommandCode::Ping, b"").is_ok());
}

#[test]
fn query_attributes_reach_the_session() {
    let server = start();
    let mut client = server.connect_with(Capabilities::QUERY_ATTRIBUTES);
    let attribute = Parameter { name: b"traceparent"[..].into(), value: Value::text("00") };
    let set = client.query_with("attributes", &[attribute]).expect("a result");
    assert_eq!(cell(&set), Some("traceparent"));
}

#[test]
fn tls_in_small_and_large_pieces() {
    let server = start();
    let options = Options { tls: true, caps: BASE | Capabilities::COMPRESS, ..Options::default() };
    for options in [options, Options { tls: true, ..Options::default() }] {
        let mut client = Client::connect(server.address, &options).expect("logged in");
        assert_eq!(client.query("numbers 20000").expect("a result").rows.len(), 20_000);
        let long = "x".repeat(3 << 20);
        let set = client.query(&format!("length {long}")).expect("a result");
        assert_eq!(cell(&set), Some((long.len() + 7).to_string().as_str()));
    }
    for file in ["ca.pem", "ca-key.pem", "server-cert.pem", "server-key.pem"] {
        assert!(server.directory.join(file).exists(), "{file}");
    }
}

#[test]
fn packets_of_sixteen_megabytes_and_beyond_the_limit() {
    let server = start();
    let mut client = server.connect();
    for len in [(1 << 24) - 2, 1 << 24, 40 << 20] {
        let text = format!("length {}", "x".repeat(len - 7));
        let set = client.query(&text).expect("a result");
        assert_eq!(cell(&set), Some(len.to_string().as_str()));
    }
    let small = start_with(
        |canned| {
            canned.session_variables.insert("max_allowed_packet", 4096);
        },
        1,
    );
    let mut client = small.connect();
    // The announcement is enough; the bytes need not arrive.
    client.send_raw(&[0, 0x20, 0, 0, 3]);
    let packet = client.read_any().expect("an error");
    assert_eq!(client::refused(&packet).code, 1153);
    assert!(client.read_packet().is_none(), "then the connection is closed");
    // A client that sends all of it before it reads gets to know why, in the clear and encrypted.
    for tls in [false, true] {
        let options = Options { tls, ..Options::default() };
        let mut client = Client::connect(small.address, &options).expect("logged in");
        let mut bytes = Vec::new();
        wire::put_packet(&mut bytes, &vec![b'x'; 20 << 20], &mut 0);
        client.send_raw(&bytes);
        let packet = client.read_any().expect("an error");
        assert_eq!(client::refused(&packet).code, 1153);
        assert!(client.read_packet().is_none(), "then the connection is closed");
    }
}

#[test]
fn pipelined_commands_are_answered_in_order() {
    let server = start();
    let mut client = server.connect();
    let mut bytes = Vec::new();
    for number in 0..200 {
        let payload = [&[CommandCode::Query as u8], format!("echo {number}").as_bytes()].concat();
        wire::put_packet(&mut bytes, &payload, &mut 0);
    }
    client.send_raw(&bytes);
    for number in 0..200 {
        client.sequence = 1;
        let set = client.read_answer(b"").expect("a result");
        assert_eq!(cell(&set), Some(number.to_string().as_str()));
    }
    // One byte at a time.
    let mut slow = Vec::new();
    wire::put_packet(&mut slow, b"\x03echo slow", &mut 0);
    for byte in slow {
        client.send_raw(&[byte]);
    }
    client.sequence = 1;
    assert_eq!(cell(&client.read_answer(b"").expect("a result")), Some("slow"));
}

#[test]
fn waiting_and_spinning_statements_leave_the_reactor_free() {
    let server = start();
    let mut others: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    let mut waiting = server.connect();
    waiting.send_command(b"\x03wait x");
    let mut spinning = server.connect();
    spinning.send_command(b"\x03spin x");
    for client in &mut others {
        assert_eq!(cell(&client.query("echo here").expect("a result")), Some("here"));
    }
    assert!(spinning.read_answer(b"").is_ok());
    // A client that goes away cancels its statement; the drop of the server checks that the session ended.
    drop(waiting);
}

#[test]
fn a_reply_waits_for_its_commit_and_others_do_not() {
    let server = start();
    let mut parked: Vec<Client> = (0..10).map(|_| server.connect()).collect();
    for client in &mut parked {
        client.send_command(b"\x03commit x");
    }
    let mut other = server.connect();
    assert!(other.query("echo x").is_ok());
    server.canned.commits.make_durable();
    for client in &mut parked {
        assert!(client.read_answer(b"").is_ok());
        assert!(client.query("echo x").is_ok());
    }
}

#[test]
fn a_slow_reader_does_not_stop_the_others() {
    let server = start();
    let mut slow = server.connect();
    slow.send_command(b"\x03numbers 200000");
    let mut other = server.connect();
    for _ in 0..20 {
        assert!(other.query("echo x").is_ok());
    }
    assert_eq!(slow.read_answer(b"").expect("a result").rows.len(), 200_000);
}

#[test]
fn change_user_and_quit() {
    let server = start();
    let mut client = server.connect();
    let nonce = client.greeting.as_ref().expect("a greeting").nonce;
    let change = |client: &mut Client, password: &str| {
        let scramble = authentication::native_scramble(password.as_bytes(), &nonce);
        let mut payload = Vec::new();
        wire::ChangeUser {
            user: b"native",
            auth_response: &scramble,
            database: Some(b"d9"),
            collation: Some(45),
            auth_plugin: Some(b"mysql_native_password"),
            attributes: Vec::new(),
        }
        .encode(&mut payload, client.caps);
        client.send_command(&payload);
        client.finish_log_in(password, &nonce)
    };
    change(&mut client, "secret").expect("changed");
    assert_eq!(cell(&client.query("user").expect("a result")), Some("native"));
    assert_eq!(cell(&client.query("db").expect("a result")), Some("d9"));
    assert_eq!(change(&mut client, "wrong").expect_err("refused").code, 1045);
    assert!(client.read_packet().is_none(), "a failed change ends the connection");
    let mut client = server.connect();
    assert!(client.query("quit x").is_ok());
    assert!(client.read_packet().is_none());
    let mut client = server.connect();
    client.send_command(&[CommandCode::Quit as u8]);
    assert!(client.read_packet().is_none());
}

#[test]
fn limits_on_connections_and_time() {
    let server = start_with(
        |canned| {
            // One more place is for an administrator.
            canned.globals.insert("max_connections", 2);
            canned.globals.insert("connect_timeout", 2);
            canned.session_variables.insert("wait_timeout", 6);
        },
        2,
    );
    let mut silent = Client::raw(server.address);
    let mut idle = server.connect();
    let mut third = server.connect();
    // One that has not logged in makes room for the next.
    let fourth = server.connect();
    assert!(silent.read_packet().is_some(), "the greeting");
    assert!(silent.read_packet().is_none());
    // The acceptor counts; a connection beyond the limit hears 1040 without an SQLSTATE.
    let refused = Client::connect(server.address, &Options::default()).err().expect("refused");
    assert_eq!((refused.code, refused.sqlstate.as_str()), (1040, "HY000"));
    // A panic inside a session ends its connection, and only that.
    third.send_command(b"\x03panic x");
    assert!(third.read_packet().is_none());
    let packet = idle.read_any().expect("an error");
    assert_eq!(client::refused(&packet).code, 4031);
    assert!(idle.read_packet().is_none());
    drop(fourth);
    // A silent one is cut at connect_timeout although no other client needs its place.
    let begin = Instant::now();
    let mut silent = Client::raw(server.address);
    assert!(silent.read_packet().is_some(), "the greeting");
    assert!(silent.read_packet().is_none());
    let waited = begin.elapsed();
    assert!(waited > Duration::from_secs(1), "cut after {waited:?}");
    assert!(waited < Duration::from_secs(10), "cut after {waited:?}");
}

/// First byte of an error, where a greeting has its version.
const ERR_PACKET: u8 = 0xff;

#[test]
fn the_place_of_one_that_was_pushed_out_is_given_once() {
    let server = start_with(
        |canned| {
            canned.globals.insert("max_connections", 1);
        },
        2,
    );
    for round in 0..100 {
        // Those of the round before may still be on their way out.
        let mut silent = loop {
            let mut client = Client::raw(server.address);
            if client.read_packet().is_some_and(|packet| packet[0] != ERR_PACKET) {
                break client;
            }
        };
        let inside = [server.connect(), server.connect()];
        assert!(silent.read_packet().is_none());
        let next = Client::connect(server.address, &Options::default());
        assert_eq!(next.err().map(|error| error.code), Some(1040), "round {round}");
        for mut client in inside {
            assert!(client.query("quit x").is_ok());
            assert!(client.read_packet().is_none());
        }
    }
}

#[test]
fn what_failed_for_one_client_is_not_told_to_the_next() {
    let server = start();
    for _ in 0..4 {
        let (mut good, mut bad) = (Client::raw(server.address), Client::raw(server.address));
        let greeting = good.read_packet().expect("the greeting");
        let nonce = wire::Greeting::decode(&greeting).expect("a greeting").nonce;
        assert!(bad.read_packet().is_some(), "the greeting");
        bad.send_raw(&[1, 0, 0, 9, 0]);
        assert_eq!(client::refused(&bad.read_any().expect("an error")).code, 1156);
        let mut payload = Vec::new();
        wire::HandshakeResponse {
            capabilities: BASE,
            user: b"root",
            auth_plugin: Some(b"caching_sha2_password"),
            ..wire::HandshakeResponse::default()
        }
        .encode(&mut payload);
        good.send_packet(&payload);
        good.finish_log_in("", &nonce).expect("logged in");
        assert_eq!(cell(&good.query("echo mine").expect("a result")), Some("mine"));
    }
}

#[test]
fn wrong_sequence_numbers_end_the_connection() {
    let server = start();
    let mut client = server.connect();
    client.send_raw(&[1, 0, 0, 5, CommandCode::Ping as u8]);
    let first = client.read_any().expect("an error before the end");
    assert_eq!(client::refused(&first).code, 1156);
}
