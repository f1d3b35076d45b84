//! The command line and option files: `--name=value`, where `-` and `_` are the same in names.
//!
//! Every system variable that can be set at start is an option; an option not recognised here is passed on as one. Knows no
//! variable's type: the session layer converts and refuses.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::RestoreUntil;
use plugin_api::{Keyring, parse_bind_addresses};
use session::{PluginChoice, Wanted};
use sys::affinity::Affinity;
use types::temporal::parse_datetime;
use types::{DateTime, TemporalMode};

use crate::data_directory::DataDirectory;
use crate::encryption::Keys;
use crate::keyrings::KeyringChoice;
use crate::storage_profile;

/// The sections of an option file that the server reads.
const SECTIONS: [&str; 3] = ["mysqld", "server", "squalld"];

/// The default of `log_error_verbosity`: notes, so that the log shows the steps of a start.
const VERBOSITY_DEFAULT: u8 = VERBOSITY_NOTES;
const VERBOSITY_NOTES: u8 = 3;

/// The text that `--help` prints.
pub(crate) const HELP: &str = "\
Usage: squalld [--NAME=VALUE]...

  --datadir=DIR            data directory, created if missing (./squall-data)
  --port=N, -P N           TCP port, 0 picks a free one (3306)
  --bind-address=ADDR,...  addresses of the TCP listener (127.0.0.1)
  --admin-address=ADDR     address where administrators find a place whatever max-connections is (none)
  --admin-port=N           its port (33062)
  --skip-networking        no TCP listener
  --socket=PATH            UNIX socket (DATADIR/squall.sock)
  --pid-file=PATH          file with the process id (DATADIR/squalld.pid)
  --log-error=PATH         log file instead of standard error
  --log-error-verbosity=N  1 errors, 2 warnings, 3 notes, 4 everything (3)
  --max-connections=N      connections at a time (10000)
  --insecure-root          root without a password over loopback; refused on other addresses
  --defaults-file=PATH     option file with a section [squalld], [mysqld] or [server]
  --in-memory              keep nothing on disk: data is lost at shutdown
  --innodb-buffer-pool-size=N[K|M|G]  memory for pages (a quarter of the available memory)
  --cpu-affinity=OFF|AUTO|LIST  bind the threads of connections to processors, or the server to those like 0-3,8 (OFF)
  --plugin-add=NAME        load a plugin that is off unless asked for; may be given several times
  --plugin-remove=NAME     do not load a plugin
  --skip-ssl               no TLS
  --log-bin                write the binary log, for replicas (off)
  --keyring-file-data=PATH  keys of encryption at rest; a new data directory is encrypted
  --keyring-hashicorp-server-url=URL  the same with the keys in HashiCorp Vault; wants ..-store-path and ..-token-file
  --log-archive-directory=DIR  gets a copy of the log, to roll backups forward
  --seccomp                refuse calls to the kernel that a server does not need
  --check                  say what would keep the server from starting, change nothing, and exit
  --restore-from=DIR       create the data directory from a backup, then exit
  --restore-archive=DIR    with the log that --log-archive-directory collected
  --restore-until=WHEN     up to 'YYYY-MM-DD hh:mm:ss[.ffffff]' (UTC) or a position
  --unsafe-no-sync         never wait for the disk: a crash of the machine destroys the data; for tests
  --open-up-to-log-damage  open storage whose log is damaged up to the damage; commits after it are lost
  --i-know                 allows --unsafe-no-sync in a release build
  --version, --help

Every system variable that can be set at start is also an option: --NAME=VALUE.
";

/// The request of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Print help.
    Help,
    /// Print the version.
    Version,
    /// Say what would keep a server with these options from starting.
    Check(Box<Options>),
    /// Run a server.
    Run(Box<Options>),
}

/// Settings of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) datadir: PathBuf,
    pub(crate) port: u16,
    pub(crate) bind_addresses: Vec<IpAddr>,
    /// Where administrators find a place whatever `max_connections` is.
    pub(crate) admin_address: Option<SocketAddr>,
    pub(crate) socket: PathBuf,
    pub(crate) pid_file: PathBuf,
    pub(crate) log_error: Option<PathBuf>,
    pub(crate) verbosity: u8,
    pub(crate) insecure_root: bool,
    /// The process may make only the calls to the kernel that it needs.
    pub(crate) seccomp: bool,
    /// No files: data is lost at shutdown.
    pub(crate) in_memory: bool,
    /// Syncs do nothing.
    pub(crate) unsafe_no_sync: bool,
    /// A damaged log is discarded from the damage on.
    pub(crate) open_up_to_log_damage: bool,
    /// Pages are written twice, so that torn ones can be restored.
    pub(crate) doublewrite: bool,
    /// Memory for pages.
    pub(crate) pool_bytes: u64,
    /// Writes many pages in one call.
    pub(crate) io_uring: bool,
    /// Which processors threads run on.
    pub(crate) affinity: Affinity,
    pub(crate) tls_disabled: bool,
    /// Changes go to the binary log.
    pub(crate) log_bin: bool,
    /// Where the log is archived.
    pub(crate) log_archive: Option<PathBuf>,
    /// Where the keys are that open an encrypted data directory.
    pub(crate) keyring: Option<KeyringChoice>,
    /// Creates the data directory from a backup.
    pub(crate) restore: Option<RestoreOptions>,
    /// Certificate, key and authority, when configured.
    pub(crate) tls_files: Option<(PathBuf, PathBuf, Option<PathBuf>)>,
    /// Which plugins are to be loaded, in the order given.
    pub(crate) plugins: Vec<PluginChoice>,
    /// Everything that is a system variable: name with `_`, value.
    pub(crate) variables: Vec<(String, String)>,
}

/// The source of a restored data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RestoreOptions {
    pub(crate) backup: PathBuf,
    pub(crate) archive: Option<PathBuf>,
    pub(crate) until: RestoreUntil,
}

impl RestoreOptions {
    fn collect<'a>(last: impl Fn(&str) -> Option<&'a str>) -> Result<Option<Self>, String> {
        let (archive, until) = (last("restore_archive"), last("restore_until"));
        let Some(backup) = last("restore_from") else {
            return match archive.or(until) {
                Some(_) => Err("--restore-archive and --restore-until want --restore-from".into()),
                None => Ok(None),
            };
        };
        Ok(Some(RestoreOptions {
            backup: PathBuf::from(backup),
            archive: archive.map(PathBuf::from),
            until: until.map_or(Ok(RestoreUntil::End), restore_until)?,
        }))
    }
}

/// A position, or a time in UTC.
fn restore_until(text: &str) -> Result<RestoreUntil, String> {
    if let Ok(position) = text.parse() {
        return Ok(RestoreUntil::Position(position));
    }
    let mode =
        TemporalMode { no_zero_date: true, no_zero_in_date: true, ..TemporalMode::default() };
    let parsed = parse_datetime(text.as_bytes(), 6, mode);
    let whole = parsed.value.filter(|_| !parsed.truncated && !parsed.out_of_range);
    let micros = whole.and_then(DateTime::to_unix_micros);
    match micros.and_then(|micros| u64::try_from(micros).ok()) {
        Some(micros) => Ok(RestoreUntil::Micros(micros)),
        None => Err(format!(
            "--restore-until: '{text}' is neither a position nor a time like '2026-11-22 03:15:00'"
        )),
    }
}

/// Parses the command line; the error message says what is wrong with it.
pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Request, String> {
    let mut given: Vec<(String, String)> = Vec::new();
    let mut arguments = arguments.peekable();
    while let Some(argument) = arguments.next() {
        let (name, value) = match argument.as_str() {
            "--help" | "-?" => return Ok(Request::Help),
            "--version" | "-V" => return Ok(Request::Version),
            "-P" => ("port".to_owned(), None),
            "-h" => ("datadir".to_owned(), None),
            long => {
                let text = long
                    .strip_prefix("--")
                    .ok_or_else(|| format!("'{long}' is not an option; options begin with --"))?;
                split(text)
            }
        };
        let value = match value {
            Some(value) => value,
            // `--name value`; a name followed by another option is a switch.
            None => arguments.next_if(|next| !next.starts_with('-')).unwrap_or_default(),
        };
        if name == "defaults_file" || name == "defaults_extra_file" {
            given.extend(read_file(Path::new(&value))?);
        } else if name != "no_defaults" {
            given.push((name, value));
        }
    }
    let options = Options::collect(&given).map(Box::new)?;
    let is_check = given.iter().any(|(name, _)| name == CHECK);
    Ok(if is_check { Request::Check(options) } else { Request::Run(options) })
}

/// `name=value`, the name with `_`, prefixes resolved.
fn split(text: &str) -> (String, Option<String>) {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let name = name.trim().replace('-', "_").to_ascii_lowercase();
    let name = name.strip_prefix("loose_").unwrap_or(&name);
    const SWITCHES: [&str; 5] = [
        "skip_networking",
        "skip_name_resolve",
        "skip_external_locking",
        "skip_show_database",
        "skip_replica_start",
    ];
    if let Some(switched) = name.strip_prefix("skip_").or(name.strip_prefix("disable_"))
        && !SWITCHES.contains(&name)
    {
        return (switched.to_owned(), Some("OFF".into()));
    }
    if let Some(switched) = name.strip_prefix("enable_") {
        return (switched.to_owned(), Some("ON".into()));
    }
    (name.to_owned(), value)
}

fn read_file(path: &Path) -> Result<Vec<(String, String)>, String> {
    let text = sys::files::read_text(path)
        .map_err(|error| format!("option file {}: {error}", path.display()))?;
    Ok(read_section_lines(&text))
}

/// Options of our sections.
pub(crate) fn read_section_lines(text: &str) -> Vec<(String, String)> {
    let mut options = Vec::new();
    let mut wanted = false;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';', '!']) {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            wanted = SECTIONS.contains(&section.trim_end_matches(']').trim());
            continue;
        }
        if wanted {
            let (name, value) = split(line);
            let value = value.unwrap_or_default();
            let value = value.trim().trim_matches(['"', '\'']).to_owned();
            options.push((name, value));
        }
    }
    options
}

impl Options {
    fn collect(given: &[(String, String)]) -> Result<Options, String> {
        let last = |name: &str| {
            given.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
        };
        let datadir = PathBuf::from(last("datadir").unwrap_or("./squall-data"));
        let inside = |name: &str, default: &str| {
            let path = PathBuf::from(last(name).unwrap_or(default));
            if path.is_absolute() || last(name).is_some_and(|path| path.starts_with("./")) {
                path
            } else {
                datadir.join(path)
            }
        };
        let port = last("port").unwrap_or("3306");
        let port = port.parse().map_err(|_| format!("'{port}' is not a valid port"))?;
        let networking = !is_on(last("skip_networking"));
        let bind_addresses = if networking {
            let text = last("bind_address").unwrap_or("127.0.0.1");
            parse_bind_addresses(text).map_err(|part| format!("'{part}' is not an IP address"))?
        } else {
            Vec::new()
        };
        let tls_files = match (last("ssl_cert"), last("ssl_key")) {
            (Some(_), Some(_)) => {
                let authority = last("ssl_ca").map(|_| inside("ssl_ca", ""));
                Some((inside("ssl_cert", ""), inside("ssl_key", ""), authority))
            }
            _ => None,
        };
        let doublewrite = storage_profile::doublewrite(
            last("storage_profile"),
            last("innodb_doublewrite"),
            &datadir,
        )?;
        let given_pool = last("innodb_buffer_pool_size").and_then(size_bytes);
        let pool_bytes = given_pool.unwrap_or_else(crate::engines::default_pool_bytes);
        let mut variables = variables_of(given);
        // Shown as it is, however it was given.
        if !doublewrite || last("innodb_doublewrite").is_some() {
            let shown = if doublewrite { "ON" } else { "OFF" };
            variables.push(("innodb_doublewrite".to_owned(), shown.to_owned()));
        }
        let affinity = affinity_of(last("cpu_affinity"), &mut variables)?;
        let log_bin = logs_changes(last)?;
        if log_bin {
            variables.push(("log_bin".to_owned(), "ON".to_owned()));
        }
        let verbosity = last("log_error_verbosity")
            .and_then(|text| text.parse().ok())
            .unwrap_or(VERBOSITY_DEFAULT);
        // The variable has no level above notes.
        let level = verbosity.clamp(1, VERBOSITY_NOTES);
        variables.push(("log_error_verbosity".to_owned(), level.to_string()));
        let options = Options {
            port,
            socket: inside("socket", "squall.sock"),
            pid_file: inside("pid_file", "squalld.pid"),
            log_error: last("log_error")
                .filter(|path| !matches!(*path, "" | "stderr") && !is_on(last("console")))
                .map(|_| inside("log_error", "")),
            verbosity,
            insecure_root: is_on(last("insecure_root")),
            seccomp: is_on(last("seccomp")),
            in_memory: is_on(last("in_memory")),
            unsafe_no_sync: is_on(last("unsafe_no_sync")),
            open_up_to_log_damage: is_on(last("open_up_to_log_damage")),
            doublewrite,
            io_uring: last("innodb_use_native_aio").is_none_or(|value| is_on(Some(value))),
            affinity,
            pool_bytes,
            tls_disabled: last("ssl").is_some_and(|value| !is_on(Some(value))),
            tls_files,
            log_bin,
            log_archive: last("log_archive_directory")
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
            keyring: KeyringChoice::collect(last)?,
            restore: RestoreOptions::collect(last)?,
            plugins: plugin_choices(given),
            variables,
            bind_addresses,
            admin_address: admin_address(last)?,
            datadir,
        };
        check_process(last)?;
        let is_release = !cfg!(debug_assertions);
        if options.unsafe_no_sync && is_release && !is_on(last("i_know")) {
            return Err("--unsafe-no-sync destroys data when the machine stops; \
                a release build wants --i-know with it"
                .into());
        }
        match options.exposed_address().filter(|_| options.insecure_root) {
            Some(address) => Err(format!(
                "--insecure-root is for loopback addresses only, and {address} is not one"
            )),
            None => Ok(options),
        }
    }

    /// An address where other machines reach the server.
    fn exposed_address(&self) -> Option<IpAddr> {
        let admin = self.admin_address.map(|address| address.ip());
        let mut addresses = self.bind_addresses.iter().copied().chain(admin);
        addresses.find(|address| !address.is_loopback())
    }

    /// What opens an encrypted data directory.
    ///
    /// # Errors
    /// I/O of the file with the server's identity.
    pub(crate) fn keys(&self, directory: &DataDirectory) -> std::io::Result<Keys> {
        Ok(Keys { keyring: self.keyring(), server_uuid: directory.server_uuid()? })
    }

    /// Where the keys are.
    pub(crate) fn keyring(&self) -> Option<Arc<dyn Keyring>> {
        self.keyring.as_ref().map(KeyringChoice::open)
    }

    /// The value of a variable that is a number, if it was given and is one.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let given = self.variables.iter().rev().find(|(known, _)| known == name);
        given.and_then(|(_, value)| value.parse().ok())
    }
}

/// `--admin-address` and `--admin-port`; there is no such listener without the first.
fn admin_address<'a>(last: impl Fn(&str) -> Option<&'a str>) -> Result<Option<SocketAddr>, String> {
    /// The default of `admin_port`.
    const PORT: &str = "33062";
    let Some(text) = last("admin_address").filter(|text| !text.is_empty()) else { return Ok(None) };
    let addresses = parse_bind_addresses(text);
    let addresses = addresses.map_err(|part| format!("'{part}' is not an IP address"))?;
    let [address] = addresses[..] else {
        return Err(format!("--admin-address wants one address, not '{text}'"));
    };
    let port = last("admin_port").unwrap_or(PORT);
    let port = port.parse().map_err(|_| format!("'{port}' is not a valid port"))?;
    Ok(Some(SocketAddr::new(address, port)))
}

/// `--cpu-affinity`, shown in one way however it was given; whether this machine has the processors is looked at when the server starts.
fn affinity_of(
    given: Option<&str>,
    variables: &mut Vec<(String, String)>,
) -> Result<Affinity, String> {
    let Some(given) = given else { return Ok(Affinity::Off) };
    let affinity = Affinity::parse(given).map_err(|why| format!("--cpu-affinity: {why}"))?;
    variables.push(("cpu_affinity".to_owned(), affinity.to_string()));
    Ok(affinity)
}

/// What the process would have to do to itself before it serves.
fn check_process<'g>(last: impl Fn(&str) -> Option<&'g str>) -> Result<(), String> {
    if is_on(last("daemonize")) {
        let instead = "let a service manager or setsid start the server in the background";
        return Err(format!("--daemonize is not built: {instead}"));
    }
    check_user(last("user"), &sys::process::user_name())
}

/// The server does not change its user: one who can start it as another user is told to do so. For others the option has no meaning, as in the reference.
pub(crate) fn check_user(wanted: Option<&str>, own: &str) -> Result<(), String> {
    match wanted {
        Some(wanted) if own == "root" && !matches!(wanted, "root" | "0") => Err(format!(
            "--user={wanted}: the server does not change its user; start it as '{wanted}', \
            with setpriv, su or the User of a service"
        )),
        Some(_) | None => Ok(()),
    }
}

/// Whether there is a binary log. A base name turns it on too; the name is always the same.
fn logs_changes<'g>(last: impl Fn(&str) -> Option<&'g str>) -> Result<bool, String> {
    let is_off = |value: &str| matches!(value.to_ascii_lowercase().as_str(), "0" | "off" | "false");
    let wanted = last("log_bin").is_some_and(|value| !is_off(value));
    if !wanted || is_on(last("skip_log_bin")) || is_on(last("disable_log_bin")) {
        return Ok(false);
    }
    match is_on(last("in_memory")) {
        true => Err("--log-bin wants a data directory: --in-memory keeps none".into()),
        false => Ok(true),
    }
}

const CHECK: &str = "check";
const PLUGIN_ADD: &str = "plugin_add";
const PLUGIN_REMOVE: &str = "plugin_remove";

/// `--plugin-add` and `--plugin-remove`, each with one name or several separated by commas. The last one about a plugin counts.
fn plugin_choices(given: &[(String, String)]) -> Vec<PluginChoice> {
    let mut choices = Vec::new();
    for (option, names) in given {
        let wanted = match option.as_str() {
            PLUGIN_ADD => Wanted::Loaded,
            PLUGIN_REMOVE => Wanted::NotLoaded,
            _ => continue,
        };
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        choices.extend(names.map(|name| PluginChoice { name: name.to_owned(), wanted }));
    }
    choices
}

/// Options that are not system variables.
const OWN: [&str; 21] = [
    "seccomp",
    CHECK,
    "log_bin",
    "skip_log_bin",
    "disable_log_bin",
    PLUGIN_ADD,
    PLUGIN_REMOVE,
    "restore_from",
    "restore_archive",
    "restore_until",
    "insecure_root",
    "in_memory",
    "unsafe_no_sync",
    "open_up_to_log_damage",
    "i_know",
    "ssl",
    "user",
    "console",
    "daemonize",
    "datadir",
    "pid_file",
];

/// The options left for the session layer. It gets paths once they are known.
fn variables_of(given: &[(String, String)]) -> Vec<(String, String)> {
    let is_variable = |(name, _): &&(String, String)| {
        !OWN.contains(&name.as_str()) && name != "log_error_verbosity"
    };
    given.iter().filter(is_variable).cloned().collect()
}

/// A number with an optional K, M, G or T.
fn size_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn is_on(value: Option<&str>) -> bool {
    value.is_some_and(|value| {
        !["0", "off", "false", "no"].contains(&value.to_ascii_lowercase().as_str())
    })
}
