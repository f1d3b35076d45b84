//! Calls to the operating system outside `sys`: clippy finds most of them by type, this finds all by name.

/// Names that only `sys` may use, and their replacements elsewhere. Compared with whole words of code.
const BANNED: &[(&str, &str)] = &[
    ("std::fs", "sys::files or sys::disk"),
    ("std::os", "sys"),
    ("std::thread", "sys::threads"),
    ("std::env", "sys::process"),
    ("std::process", "sys::process"),
    ("std::net::TcpStream", "sys::net"),
    ("std::net::TcpListener", "sys::net"),
    ("std::net::UdpSocket", "sys::net"),
    ("std::sync::mpsc", "sys::sync"),
    ("std::io::stderr", "sys::process::print_error"),
    ("std::time::Instant", "sys::clock::monotonic"),
    ("Instant::now", "sys::clock::monotonic"),
    ("SystemTime::now", "sys::clock::wall"),
    ("eprintln!", "sys::process::print_error"),
    ("libc", "sys"),
    ("rustix", "sys"),
    ("mio", "sys::net"),
    ("signal_hook", "sys::signals"),
    ("io_uring::IoUring", "sys::disk"),
    ("to_ne_bytes", "to_le_bytes"),
    ("from_ne_bytes", "from_le_bytes"),
];

/// Names that are banned also where an import has several: `use std::{fs, io}`.
const IN_LISTS: &[(&str, &[&str])] = &[
    ("std", &["fs", "os", "thread", "env", "process"]),
    ("std::time", &["Instant", "SystemTime"]),
    ("std::net", &["TcpStream", "TcpListener", "UdpSocket"]),
];

/// The exit status of a program; making one makes no system call.
const HARMLESS: &[&str] = &["std::process::ExitCode"];

/// Where `main` may read its arguments.
const PROGRAMS: &str = "crates/server/src/bin/";

/// Findings in the file `name` of the workspace with the content `text`.
pub fn findings(name: &str, text: &str) -> Vec<String> {
    let is_checked = (name.starts_with("crates/") || name.starts_with("plugins/"))
        && !name.starts_with("crates/sys/")
        && !name.starts_with(PROGRAMS)
        && !name.ends_with("tests.rs")
        // A program of the build, not of the server.
        && !name.ends_with("/build.rs")
        && !name.split('/').any(|part| ["tests", "examples", "benches"].contains(&part));
    if !is_checked {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (number, line) in code_lines(text) {
        for (banned, instead) in BANNED.iter().copied().filter(|(banned, _)| names(&line, banned)) {
            found.push(format!("{name}:{number}: {banned}: goes around `sys`, use {instead}"));
        }
        for (module, members) in IN_LISTS {
            let Some((_, list)) = line.split_once(&format!("{module}::{{")) else { continue };
            for member in members.iter().filter(|member| names(list, member)) {
                found.push(format!("{name}:{number}: {module}::{member}: goes around `sys`"));
            }
        }
    }
    found
}

/// Lines of code with their numbers, without comments, texts of literals, and the module of tests at the file's end.
fn code_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut is_test_next = false;
    for (number, line) in text.lines().enumerate() {
        if is_test_next && line.starts_with("mod ") && line.ends_with('{') {
            break;
        }
        is_test_next = line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test");
        let mut code = without_literals(line);
        for harmless in HARMLESS {
            code = code.replace(harmless, "");
        }
        lines.push((number + 1, code));
    }
    lines
}

/// A line without its comment and the content of its literals.
fn without_literals(line: &str) -> String {
    let (mut code, mut is_inside, mut before) = (String::new(), false, ' ');
    for c in line.chars() {
        match c {
            '"' if before != '\\' && before != '\'' => is_inside = !is_inside,
            '/' if before == '/' && !is_inside => break,
            _ if !is_inside => code.push(c),
            _ => {}
        }
        before = if before == '\\' && c == '\\' { ' ' } else { c };
    }
    code
}

/// Whether `code` has `path` not as a part of a longer name.
fn names(code: &str, path: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(path).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + path.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::findings;

    const FILE: &str = "crates/exec/src/a.rs";

    #[test]
    fn each_way_around_the_door_is_found() {
        let breaches = [
            "use std::fs::File;",
            "    let text = std::fs::read(path)?;",
            "use std::os::unix::net::UnixStream;",
            "    std::thread::sleep(time);",
            "use std::time::{Duration, Instant};",
            "    let now = SystemTime::now();",
            "    let home = std::env::var(\"HOME\");",
            "    std::process::abort();",
            "use std::net::{IpAddr}; use std::net::TcpStream;",
            "    let id = libc::getpid();",
            "    rustix::process::getpid();",
            "use signal_hook::consts::SIGTERM;",
            "use std::{fs, io};",
            "    let word = u64::from_ne_bytes(bytes);",
            "    eprintln!(\"lost\");",
        ];
        for breach in breaches {
            let text = format!("//! A.\n{breach}\n");
            assert!(findings(FILE, &text)[0].contains(":2: "), "{breach}");
            assert!(findings("crates/sys/src/a.rs", &text).is_empty(), "{breach}");
        }
    }

    #[test]
    fn tests_comments_texts_and_values_are_no_calls() {
        let text = "//! Not std::fs.\nuse std::net::IpAddr; // not std::fs\nlet a = \"std::env\";\n\
                    SystemTime::AsOf(point); env::Env; -> std::process::ExitCode; use super::process::X;\n\
                    #[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        assert_eq!(findings(FILE, text), Vec::<String>::new());
        for tests in ["crates/exec/tests/a.rs", "crates/exec/src/tests.rs", "tools/client/src/a.rs"]
        {
            assert!(findings(tests, "//! A.\nuse std::fs;\n").is_empty());
        }
    }
}
