//! A server whose log cannot be written any more ends, and leaves a report.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::{Connection, Encryption, Options, Target};

/// Files may not grow beyond this: more than a report, less than the log that the test writes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The server, with the signal of a file that is too large ignored: the write fails instead.
fn start(directory: &Path) -> Child {
    let command = format!(
        "trap '' XFSZ; exec {} --datadir={} --port=0 --plugin-remove=json_server",
        env!("CARGO_BIN_EXE_squalld"),
        directory.display()
    );
    let error = std::fs::File::create(directory.with_extension("log")).expect("a file");
    let mut shell = Command::new("sh");
    shell.args(["-c", &command]).stdout(Stdio::null()).stderr(error);
    shell.spawn().expect("a server")
}

fn connect(socket: &Path) -> Option<Connection> {
    Connection::open(&Options {
        target: Target::Socket(socket.to_owned()),
        user: "root".into(),
        password: String::new(),
        database: None,
        tls: Encryption::Off,
        framings: Vec::new(),
        expired_passwords: false,
    })
    .ok()
}

#[test]
fn a_log_that_cannot_be_written_leaves_a_report_without_data() {
    let directory = std::env::temp_dir().join(format!("crash-{}", std::process::id()));
    let mut server = start(&directory);
    let begun = Instant::now();
    let mut connection = loop {
        if let Some(connection) = connect(&directory.join("squall.sock")) {
            break connection;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the server does not answer");
        std::thread::sleep(Duration::from_millis(100));
    };
    let mut run = |sql: &str| connection.query(sql.as_bytes(), &mut ()).is_ok();
    assert!(run("CREATE SCHEMA s") && run("CREATE TABLE s.t (a LONGTEXT)"));
    let limited = Command::new("prlimit")
        .args(["--pid", &server.id().to_string(), &format!("--fsize={FILE_BYTES_MAX}")])
        .status();
    assert!(limited.expect("prlimit (util-linux) runs").success());
    let mut rows = 0;
    while rows < 2000
        && run("INSERT INTO s.t VALUES (CONCAT('marker-of-data', REPEAT('x', 60000)))")
    {
        rows += 1;
    }
    let begun = Instant::now();
    while server.try_wait().expect("a status").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the server goes on after {rows} rows");
        std::thread::sleep(Duration::from_millis(50));
    }
    let report = std::fs::read_to_string(directory.join("squall-crash-1.txt")).expect("a report");
    let first = report.lines().next().unwrap_or_default();
    assert!(first.contains("ended by itself") && first.contains("cannot be written"), "{first}");
    for part in ["[error log]", "ready for connections", "[options]", "[status]\n", "[stacks]"] {
        assert!(report.contains(part), "{part} in {report}");
    }
    assert!(!report.contains("marker-of-data"));
    std::fs::remove_dir_all(&directory).expect("a directory");
    std::fs::remove_file(directory.with_extension("log")).expect("a file");
}
