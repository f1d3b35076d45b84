//! Facts of this process and its machine: lock files, names of users, the host's name.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use rustix::fs::FlockOperation;

use crate::simulation::{self, VirtualLock};

/// The processor as `uname -m` names it, which it is built for; Rust has one name for both byte orders of POWER.
pub const MACHINE: &str = match std::env::consts::ARCH.as_bytes() {
    b"powerpc64" if cfg!(target_endian = "little") => "ppc64le",
    b"powerpc64" => "ppc64",
    _ => std::env::consts::ARCH,
};

/// Name of a simulated machine, and of its user.
pub(crate) const SIMULATED: &str = "simulation";
/// Number of the user that runs a simulated process.
pub(crate) const SIMULATED_UID: u32 = 0;

/// A file that one process at a time has locked. The lock ends with the value, and with the process.
pub struct LockFile(#[allow(dead_code, reason = "holds the lock")] Held);

#[allow(dead_code, reason = "holds the lock")]
enum Held {
    Real(File),
    Virtual(VirtualLock),
}

impl LockFile {
    /// Locks `path`, making the file when it is missing; `None` when another process has it.
    ///
    /// # Errors
    /// The file cannot be made or locked.
    pub fn acquire(path: &Path) -> io::Result<Option<LockFile>> {
        if let Some(here) = simulation::current() {
            let lock = VirtualLock::acquire(&here, path);
            return Ok(lock.map(|lock| LockFile(Held::Virtual(lock))));
        }
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(LockFile(Held::Real(file)))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Number of the operating system's user that owns `path`. Not the name: users of containers often have none.
///
/// # Errors
/// The file does not exist.
pub fn owner(path: &Path) -> io::Result<u32> {
    if simulation::current().is_some() {
        return Ok(SIMULATED_UID);
    }
    Ok(std::fs::metadata(path)?.uid())
}

/// Name of the operating system's user that runs this process, or its number.
pub fn user_name() -> String {
    let uid = rustix::process::geteuid().as_raw();
    crate::net::user_name(uid).unwrap_or_else(|| uid.to_string())
}

/// Whether SELinux may refuse what permissions allow.
pub fn has_selinux() -> bool {
    Path::new("/sys/fs/selinux/enforce").exists()
}

/// How many files this process may have open: now, and after it has asked for more.
pub fn open_files_limit() -> (u64, u64) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
}

/// Asks for `wanted` open files, or for as many as this process may have; how many that is.
pub fn allow_open_files(wanted: Option<u64>) -> u64 {
    if simulation::current().is_some() {
        return wanted.unwrap_or(u64::MAX);
    }
    let (current, most) = open_files_limit();
    let asked = wanted.map_or(most, |wanted| wanted.min(most));
    let limit = rustix::process::Rlimit { current: Some(asked), maximum: Some(most) };
    match rustix::process::setrlimit(rustix::process::Resource::Nofile, limit) {
        Ok(()) => asked,
        Err(_) => current,
    }
}

/// The machine's name.
pub fn host_name() -> String {
    if simulation::current().is_some() {
        return SIMULATED.to_owned();
    }
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Name of the machine's time zone in the tz database, from `TZ` or the machine's setting; `UTC` when neither names one.
pub fn time_zone_name() -> String {
    if simulation::current().is_some() {
        return "UTC".to_owned();
    }
    if let Ok(name) = std::env::var("TZ")
        && !name.is_empty()
    {
        return name.trim_start_matches(':').to_owned();
    }
    let link = std::fs::read_link("/etc/localtime").unwrap_or_default();
    match link.to_string_lossy().split_once("zoneinfo/") {
        Some((_, name)) => name.trim_start_matches("Etc/").to_owned(),
        None => "UTC".into(),
    }
}

/// Writes to the process's standard error. There is nowhere to report that this fails.
pub fn print_error(text: &str) {
    if let Some(here) = simulation::current() {
        return here.with(|state| {
            state.console.push_str(text);
            state.record(simulation::Event::Console(text.to_owned()));
        });
    }
    let _written = io::stderr().write_all(text.as_bytes());
}

/// How bad it is what a part of the server says that has no log of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gravity {
    /// For the administrator to know.
    Note,
    /// Something needs attention.
    Warning,
    /// Something failed.
    Error,
}

type Teller = Box<dyn Fn(Gravity, &str) + Send + Sync>;

static TELLER: OnceLock<Teller> = OnceLock::new();

/// From now on `teller` gets what [`tell`] and [`abort`] have to say. The first call of the process counts.
pub fn tell_to(teller: Teller) {
    let _ = TELLER.set(teller);
}

/// Says something in the server's error log; to the standard error while there is none.
pub fn tell(gravity: Gravity, text: &str) {
    match TELLER.get() {
        Some(teller) if simulation::current().is_none() => teller(gravity, text),
        _ => print_error(&format!("squall: {text}\n")),
    }
}

/// A warning in the error log.
pub fn warn(text: &str) {
    tell(Gravity::Warning, text);
}

/// Writes down why and in which state the process ends.
type Report = Box<dyn Fn(&str) + Send + Sync>;

static REPORT: OnceLock<Report> = OnceLock::new();
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// A report that takes longer is given up: its thread may wait for a lock of the one that ends the process.
const REPORT_TIME: Duration = Duration::from_secs(5);

/// From now on `report` runs, on a thread of its own, before [`abort`] ends the process. The first call of the process counts.
pub fn before_abort(report: Report) {
    let _ = REPORT.set(report);
}

/// Ends the process at once, without undoing or finishing anything: for a state that only a restart can repair.
pub fn abort(reason: &str) -> ! {
    let text = format!("{reason}; aborting");
    tell(Gravity::Error, &text);
    if TELLER.get().is_some() {
        print_error(&format!("squall: {text}\n"));
    }
    if let Some(here) = simulation::current() {
        here.abort(reason);
    }
    write_report(reason);
    std::process::abort()
}

fn write_report(reason: &str) {
    let Some(report) = REPORT.get() else { return };
    if IS_ENDING.swap(true, Ordering::Relaxed) {
        // Another thread writes it, or the report itself failed: the first one ends the process.
        std::thread::sleep(REPORT_TIME);
        return;
    }
    let (done, ended) = mpsc::channel();
    let reason = reason.to_owned();
    let writing = std::thread::Builder::new().name("crash report".into()).spawn(move || {
        report(&reason);
        let _ = done.send(());
    });
    if writing.is_ok() {
        // Written, failed or too slow: nothing else can be done.
        let _ = ended.recv_timeout(REPORT_TIME);
    }
}

/// The variable with the process id of what starts this server again when it ends: the name is MySQL's, so that its scripts work.
const SUPERVISOR: &str = "MYSQLD_PARENT_PID";

/// Whether the process that started this one says that it starts it again.
pub fn is_supervised() -> bool {
    if simulation::current().is_some() {
        return false;
    }
    let parent = std::os::unix::process::parent_id();
    std::env::var(SUPERVISOR).is_ok_and(|id| id.trim().parse() == Ok(parent))
}

/// The process id.
pub fn id() -> u32 {
    if simulation::current().is_some() {
        return 1;
    }
    std::process::id()
}

/// Memory of the process that is in use now, in bytes; 0 when the system does not say.
pub fn resident_bytes() -> u64 {
    if simulation::current().is_some() {
        return 0;
    }
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Processor time that all threads of the process have used, in microseconds.
pub fn cpu_micros() -> u64 {
    if simulation::current().is_some() {
        return 0;
    }
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1000
}

/// Memory that this process may use: the smaller of its control group's limit and the machine's memory. `None` when the system does not
/// say.
pub fn memory_limit_bytes() -> Option<u64> {
    if simulation::current().is_some() {
        return None;
    }
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut limits: Vec<u64> = Vec::new();
    for group in groups.lines() {
        let mut parts = group.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        // A group's limit holds for all below it; inside a container the path may begin above what is mounted.
        let above = |path: &str| path.rfind('/').map(|at| path[..at].to_owned());
        let mut path = Some(path.trim_end_matches('/').to_owned());
        while let Some(here) = path {
            limits.extend(match controllers {
                "" => number(&format!("/sys/fs/cgroup{here}/memory.max")),
                "memory" => number(&format!("/sys/fs/cgroup/memory{here}/memory.limit_in_bytes")),
                _ => None,
            });
            path = above(&here);
        }
    }
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let kilobytes = text.strip_prefix("MemTotal:")?.split_ascii_whitespace().next()?;
        kilobytes.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
    });
    limits.extend(machine);
    limits.into_iter().min()
}
