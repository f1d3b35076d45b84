//! `squalld --check`: what would keep a server with these options from starting, or make it run badly. Nothing is changed.
//!
//! One line for each finding: how bad it is, what it is about with path or address, the system's reason, and the command that repairs it.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use sys::files::{self, Existing};

use crate::encryption::Keys;
use crate::options::Options;

/// How a finding ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    Good,
    /// The server starts, and something should be mended.
    Poor,
    /// The server would not start.
    Stops,
}

/// What was found about one subject.
struct Finding {
    grade: Grade,
    subject: &'static str,
    text: String,
    /// A command that repairs it.
    repair: Option<String>,
}

/// All findings, in the order in which a start would meet them.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn good(&mut self, subject: &'static str, text: String) {
        self.0.push(Finding { grade: Grade::Good, subject, text, repair: None });
    }

    fn poor(&mut self, subject: &'static str, text: String, repair: String) {
        self.0.push(Finding { grade: Grade::Poor, subject, text, repair: Some(repair) });
    }

    fn stops(&mut self, subject: &'static str, text: String, repair: String) {
        self.0.push(Finding { grade: Grade::Stops, subject, text, repair: Some(repair) });
    }

    fn would_start(&self) -> bool {
        self.0.iter().all(|finding| finding.grade != Grade::Stops)
    }

    fn print(&self) -> String {
        let mut out = String::new();
        for finding in &self.0 {
            let grade = match finding.grade {
                Grade::Good => "ok",
                Grade::Poor => "warning",
                Grade::Stops => "ERROR",
            };
            let _ = writeln!(out, "{grade:<8} {:<16} {}", finding.subject, finding.text);
            if let Some(repair) = &finding.repair {
                let _ = writeln!(out, "{:<8} {:<16} mend it: {repair}", "", "");
            }
        }
        out
    }
}

/// Checks and prints; the code is 0 when a server would start.
pub(crate) fn run(options: &Options) -> ExitCode {
    let mut findings = Findings::default();
    directory(options, &mut findings);
    addresses(options, &mut findings);
    encryption(options, &mut findings);
    secrets(options, &mut findings);
    machine(options, &mut findings);
    print!("{}", findings.print());
    match findings.would_start() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Whether the keyring opens an encrypted data directory.
fn encryption(options: &Options, findings: &mut Findings) {
    const SUBJECT: &str = "encryption";
    let Ok(disk) = sys::disk::open_read_only(&options.datadir.join("storage")) else {
        // A new directory gets its key from there.
        if let Some(Err(error)) = options.keyring().map(|keyring| keyring.reload()) {
            findings.stops(SUBJECT, error.message().to_owned(), "mend the keyring".to_owned());
        }
        return;
    };
    let keys = Keys { keyring: options.keyring(), ..Keys::default() };
    match keys.open(&disk) {
        Ok(None) => {}
        Ok(Some(_)) => findings.good(SUBJECT, "the keyring opens the data directory".to_owned()),
        Err(error) => {
            let repair = "squalld --keyring-file-data=FILE".to_owned();
            findings.stops(SUBJECT, error.message().to_owned(), repair);
        }
    }
}

/// The nearest ancestor that exists: where a missing directory would be made.
fn nearest(path: &Path) -> &Path {
    let there = |place: &&Path| !place.as_os_str().is_empty() && files::exists(place);
    path.ancestors().find(there).unwrap_or(Path::new("."))
}

/// Makes a file in a directory and removes it again.
fn write_in(directory: &Path) -> io::Result<()> {
    const MODE: u32 = 0o600;
    let probe = directory.join(format!(".squalld-check-{}", sys::process::id()));
    drop(files::File::create(&probe, MODE, Existing::Refuse)?);
    files::remove(&probe)
}

/// The command that lets this user write to `path`.
fn repair(path: &Path, error: &io::Error) -> String {
    let (user, path) = (sys::process::user_name(), path.display());
    match error.kind() {
        io::ErrorKind::PermissionDenied if sys::process::has_selinux() => format!(
            "chown {user} {path}; if the owner is right, SELinux refuses: restorecon -Rv {path}"
        ),
        io::ErrorKind::PermissionDenied => format!("chown {user} {path}"),
        io::ErrorKind::ReadOnlyFilesystem => {
            format!("mount -o remount,rw $(findmnt -no TARGET --target {path})")
        }
        io::ErrorKind::NotFound => format!("install -d -o {user} {path}"),
        io::ErrorKind::StorageFull => format!("free space: df -h {path}"),
        _ => format!("ls -ld {path}"),
    }
}

/// The data directory, the file system below it, and the directory of the log.
fn directory(options: &Options, findings: &mut Findings) {
    const SUBJECT: &str = "data directory";
    if options.in_memory {
        return findings.good(SUBJECT, "none: --in-memory".into());
    }
    let path = &options.datadir;
    let place = nearest(path);
    let shown = path.display();
    let is_there = place == path;
    match files::about(path) {
        Some(about) if !about.is_directory => {
            return findings.stops(
                SUBJECT,
                format!("{shown} is a file"),
                format!("mv {shown} {shown}.old"),
            );
        }
        Some(_) | None => {}
    }
    match write_in(place) {
        Ok(()) if is_there => findings.good(SUBJECT, format!("{shown} can be written")),
        Ok(()) => findings.good(SUBJECT, format!("{shown} will be made")),
        Err(error) => {
            findings.stops(SUBJECT, format!("{}: {error}", place.display()), repair(place, &error))
        }
    }
    if is_there && is_in_use(path) {
        let stop = format!("kill $(cat {})", options.pid_file.display());
        findings.stops(SUBJECT, format!("another server uses {shown}"), stop);
    }
    file_system(place, findings);
    let log = options.log_error.as_deref().and_then(Path::parent);
    for (subject, place) in [("error log", log), ("process id", options.pid_file.parent())] {
        let Some(place) = place.filter(|place| !place.starts_with(path)) else { continue };
        match write_in(place) {
            Ok(()) => findings.good(subject, format!("{} can be written", place.display())),
            Err(error) => {
                findings.stops(
                    subject,
                    format!("{}: {error}", place.display()),
                    repair(place, &error),
                );
            }
        }
    }
}

/// Whether a running server holds the directory's lock. A directory that never had a server gets no lock file.
fn is_in_use(directory: &Path) -> bool {
    let lock = directory.join("squall.lock");
    files::exists(&lock) && matches!(sys::process::LockFile::acquire(&lock), Ok(None))
}

/// Space, and file systems that lose data or are slow.
fn file_system(place: &Path, findings: &mut Findings) {
    const SUBJECT: &str = "file system";
    const LITTLE: u64 = 1 << 30;
    const OVER_THE_NETWORK: [&str; 7] = ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs"];
    let storage = sys::storage::of(place);
    let (name, shown) = (storage.file_system.as_str(), place.display());
    if storage.lacks_barriers {
        findings.poor(
            SUBJECT,
            format!("{shown} is on {name} without barriers: a power failure loses what was synced"),
            "mount without nobarrier".into(),
        );
    }
    if OVER_THE_NETWORK.contains(&name) {
        findings.poor(
            SUBJECT,
            format!("{shown} is on {name}: syncs go over the network"),
            "use a local disk".into(),
        );
    }
    if name == "tmpfs" {
        findings.poor(
            SUBJECT,
            format!("{shown} is on tmpfs: data are lost when the machine stops"),
            "use a disk".into(),
        );
    }
    match files::space(place) {
        Some((free, _)) if free < LITTLE => {
            let text = format!("{shown} has {} MiB free", free >> 20);
            findings.poor(SUBJECT, text, format!("free space: df -h {shown}"));
        }
        Some((free, _)) => {
            findings.good(SUBJECT, format!("{shown} is on {name}, {} GiB free", free >> 30));
        }
        None => {}
    }
}

/// The TCP addresses and the UNIX socket.
fn addresses(options: &Options, findings: &mut Findings) {
    const LONGEST_SOCKET: usize = 107;
    for address in &options.bind_addresses {
        let address = SocketAddr::new(*address, options.port);
        match sys::net::Listener::tcp(address) {
            Ok(_) => findings.good("TCP", format!("{address} is free")),
            Err(error) => {
                let repair = match error.kind() {
                    io::ErrorKind::AddrInUse => format!(
                        "see who has it: ss -ltnp 'sport = :{}'; or give another --port",
                        options.port
                    ),
                    io::ErrorKind::PermissionDenied => "take a port above 1023".into(),
                    _ => "see the machine's addresses: ip address".into(),
                };
                findings.stops("TCP", format!("{address}: {error}"), repair);
            }
        }
    }
    let socket = &options.socket;
    let shown = socket.display();
    let length = socket.as_os_str().len();
    if length > LONGEST_SOCKET {
        let text =
            format!("{shown} has {length} bytes, and a socket's path at most {LONGEST_SOCKET}");
        return findings.stops("socket", text, "give a shorter --socket".into());
    }
    if sys::net::Stream::connect_unix(socket).is_ok() {
        return findings.stops(
            "socket",
            format!("a server answers at {shown}"),
            "give another --socket".into(),
        );
    }
    let place = socket.parent().unwrap_or(Path::new("."));
    // The data directory is made at the first start, and the socket in it.
    if place.starts_with(&options.datadir) {
        return findings.good("socket", format!("{shown} can be made"));
    }
    match write_in(place) {
        Ok(()) => findings.good("socket", format!("{shown} can be made")),
        Err(error) => {
            findings.stops("socket", format!("{}: {error}", place.display()), repair(place, &error))
        }
    }
}

/// Files with keys.
fn secrets(options: &Options, findings: &mut Findings) {
    let Some((certificate, key, authority)) = &options.tls_files else { return };
    for file in [Some(certificate), Some(key), authority.as_ref()].into_iter().flatten() {
        match files::read(file) {
            Ok(_) => findings.good("TLS", format!("{} can be read", file.display())),
            Err(error) => {
                findings.stops("TLS", format!("{}: {error}", file.display()), repair(file, &error));
            }
        }
    }
}

/// Files of a server beside its connections.
pub(crate) const FILES_BESIDE_CONNECTIONS: u64 = 256;

/// Memory, open files, huge pages and the clock.
fn machine(options: &Options, findings: &mut Findings) {
    /// The default of `max_connections`.
    const CONNECTIONS: u64 = 10_000;
    if let Some(limit) = sys::process::memory_limit_bytes() {
        memory(options.pool_bytes, limit, findings);
    }
    let wanted =
        options.number("max_connections").unwrap_or(CONNECTIONS) + FILES_BESIDE_CONNECTIONS;
    let (_, hard) = sys::process::open_files_limit();
    open_files(wanted, hard, findings);
    let huge = files::read_text(Path::new("/sys/kernel/mm/transparent_hugepage/enabled"));
    // A kernel without them has no such file.
    huge_pages(&huge.unwrap_or_default(), findings);
    clock(sys::clock::wall(), findings);
}

/// Whether the pool fits into what this process may take.
fn memory(pool: u64, limit: u64, findings: &mut Findings) {
    if pool > limit / 10 * 9 {
        let text = format!("the pool takes {} MiB of {} MiB", pool >> 20, limit >> 20);
        let less = format!("--innodb-buffer-pool-size={}M", (limit >> 20) / 4);
        findings.poor("memory", text, less);
    } else {
        findings.good("memory", format!("pool {} MiB of {} MiB", pool >> 20, limit >> 20));
    }
}

/// Whether each connection can have its file.
fn open_files(wanted: u64, hard: u64, findings: &mut Findings) {
    if hard < wanted {
        findings.poor(
            "open files",
            format!("at most {hard}, and max_connections wants {wanted}"),
            format!("LimitNOFILE={wanted} in the unit, or ulimit -Hn {wanted}"),
        );
    } else {
        findings.good("open files", format!("at most {hard}"));
    }
}

/// What the kernel's setting of transparent huge pages does to idle connections.
fn huge_pages(setting: &str, findings: &mut Findings) {
    if setting.contains("[always]") {
        findings.poor(
            "huge pages",
            "transparent huge pages are always on: idle connections may take more memory".into(),
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".into(),
        );
    }
}

/// Whether the clock was ever set.
fn clock(now: Duration, findings: &mut Findings) {
    /// Nothing of this server is older: 2026-01-01.
    const OLDEST: Duration = Duration::from_secs(1_767_225_600);
    if now < OLDEST {
        let text = "the clock is before 2026: certificates and events go by it".into();
        findings.poor("clock", text, "timedatectl set-ntp true".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(datadir: &Path, more: &[&str]) -> Options {
        let own = [format!("--datadir={}", datadir.display()), "--port=0".to_owned()];
        let more = more.iter().map(|text| (*text).to_owned());
        match crate::options::parse(own.into_iter().chain(more)) {
            Ok(crate::options::Request::Run(options)) => *options,
            other => panic!("{other:?}"),
        }
    }

    fn stops(options: &Options) -> Vec<String> {
        let mut findings = Findings::default();
        directory(options, &mut findings);
        addresses(options, &mut findings);
        secrets(options, &mut findings);
        machine(options, &mut findings);
        let found = findings.0.into_iter().filter(|finding| finding.grade == Grade::Stops);
        found.map(|finding| format!("{}: {}", finding.subject, finding.text)).collect()
    }

    #[test]
    fn each_obstacle_is_named_and_a_good_place_has_none() {
        let here = Path::new("/tmp").join(format!("squalld-check-{}", sys::process::id()));
        files::create_directories(&here, 0o700).unwrap();
        assert!(stops(&options(&here.join("new/data"), &[])).is_empty());
        assert!(!files::exists(&here.join("new")), "nothing is made");
        // A file in the way of the directory.
        let file = here.join("file");
        drop(files::File::create(&file, 0o600, Existing::Refuse).unwrap());
        assert!(stops(&options(&file, &[]))[0].contains("is a file"));
        // A busy address.
        let busy = sys::net::Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        let port = format!("--port={}", busy.local_address().unwrap().port());
        let found = stops(&options(&here, &[&port]));
        assert!(found.len() == 1 && found[0].starts_with("TCP: 127.0.0.1:"), "{found:?}");
        // A long socket, a missing key.
        let long = format!("--socket={}/{}", here.display(), "s".repeat(120));
        assert!(stops(&options(&here, &[&long]))[0].contains("at most 107"));
        let keys = ["--ssl-cert=/nonexistent/c.pem", "--ssl-key=/nonexistent/k.pem"];
        assert_eq!(stops(&options(&here, &keys)).len(), 2);
        // A server that runs.
        let lock = sys::process::LockFile::acquire(&here.join("squall.lock")).unwrap();
        assert!(stops(&options(&here, &[]))[0].contains("another server uses"));
        drop(lock);
        files::remove(&file).unwrap();
        files::remove(&here.join("squall.lock")).unwrap();
        files::remove_directory(&here).unwrap();
    }

    #[test]
    fn what_makes_a_server_run_badly_has_a_command_that_repairs_it() {
        let mut findings = Findings::default();
        memory(950 << 20, 1000 << 20, &mut findings);
        open_files(407, 256, &mut findings);
        huge_pages("[always] madvise never\n", &mut findings);
        clock(Duration::from_secs(86_400), &mut findings);
        assert!(findings.would_start(), "none of them keeps a server from starting");
        let told = findings.print();
        for (subject, repair) in [
            ("memory", "--innodb-buffer-pool-size=250M"),
            ("open files", "LimitNOFILE=407"),
            ("huge pages", "echo madvise >"),
            ("clock", "timedatectl"),
        ] {
            let mut lines = told.lines().skip_while(|line| !line.contains(subject));
            assert!(lines.next().is_some_and(|line| line.starts_with("warning")), "{told}");
            assert!(lines.next().is_some_and(|line| line.contains(repair)), "{told}");
        }
        // A machine as it should be.
        let mut findings = Findings::default();
        memory(250 << 20, 1000 << 20, &mut findings);
        open_files(407, 1 << 20, &mut findings);
        huge_pages("always [madvise] never\n", &mut findings);
        clock(Duration::from_secs(1_800_000_000), &mut findings);
        assert!(findings.0.iter().all(|finding| finding.grade == Grade::Good));
    }

    #[test]
    fn the_systems_reason_has_its_number_and_the_command_its_path() {
        let mut findings = Findings::default();
        let refused = io::Error::from_raw_os_error(13);
        let place = Path::new("/srv/data");
        findings.stops("data directory", format!("/srv/data: {refused}"), repair(place, &refused));
        let told = findings.print();
        assert!(!findings.would_start());
        assert!(told.contains("/srv/data: Permission denied (os error 13)"), "{told}");
        assert!(told.contains("chown ") && told.contains(" /srv/data"), "{told}");
    }
}
