//! Start, run, stop.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use error_log::ErrorLog;
use plugin_api::{ListenerContext, Loading, Module, Registry, SessionFactory};
use session::{PluginChoice, PluginHost, RootAccount, Server, ServerConfig, Wanted};
use sys::clock::RealClock;
use sys::disk::SyncPolicy;
use sys::files::{self, Existing};
use sys::process::Gravity;
use sys::sync::{Condvar, Mutex};
use tracing::{error, info, warn};
use types::Value;

use crate::check::FILES_BESIDE_CONNECTIONS;
use crate::crash_report::CrashReport;
use crate::data_directory::DataDirectory;
use crate::engines::{Engines, StorageOptions};
use crate::gate::{Entrance, RecoveryGate};
use crate::options::{HELP, Options, Request};
use crate::recovery::RecoveryState;
use crate::running::Running;
use crate::stop::{Stop, obey_signals};
use crate::{VERSION, init_file, options, plugins};

pub(crate) type BootResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Runs the server program; returns when it has stopped.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    match options::parse(arguments) {
        Ok(Request::Help) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Ok(Request::Version) => {
            println!("squalld {VERSION}");
            ExitCode::SUCCESS
        }
        Ok(Request::Check(options)) => match check_options(&options) {
            Ok(()) => crate::check::run(&options),
            Err(message) => refuse(&message),
        },
        Ok(Request::Run(options)) => run_server(&options),
        Err(message) => refuse(&message),
    }
}

/// The end of a program whose options are wrong.
fn refuse(message: &str) -> ExitCode {
    sys::process::print_error(&format!("squalld: {message}\n"));
    ExitCode::from(2)
}

/// Whether the options can be used: before anything is made that a start with other options would find. Narrows the process to its processors, by which
/// everything after this is sized.
fn check_options(options: &Options) -> Result<(), String> {
    let narrowed = options.affinity.check().and_then(|()| {
        options.affinity.narrow_process().map_err(|error| format!("the system refuses: {error}"))
    });
    narrowed.map_err(|why| format!("--cpu-affinity={}: {why}", options.affinity))?;
    let keyring = options.keyring.as_ref();
    let known =
        plugins::known(&Engines::in_memory(), &Arc::default(), &ErrorLog::unstarted(), keyring);
    Server::check_options(&Registry::knowing(&known), &options.variables)
}

/// The reason of a stop after which the server is to be started again.
const RESTART: &str = "RESTART";
/// What the program then returns, as MySQL does: a service manager takes anything but 0 for a reason to start it again.
const RESTART_CODE: u8 = 16;

fn run_server(options: &Options) -> ExitCode {
    if let Err(message) = check_options(options) {
        return refuse(&message);
    }
    // Before there are threads, and before anything of a client is read.
    if options.seccomp
        && let Err(error) = sys::seccomp::confine()
    {
        return refuse(&format!("--seccomp: {error}"));
    }
    // A service manager and a shell give few at first, and allow many.
    let open_files = sys::process::allow_open_files(
        options.number("open_files_limit").filter(|files| *files > 0),
    );
    let directory = match DataDirectory::open(&options.datadir) {
        Ok(directory) => directory,
        Err(error) => {
            let path = options.datadir.display();
            sys::process::print_error(&format!("squalld: data directory {path}: {error}\n"));
            return ExitCode::FAILURE;
        }
    };
    let log = match ErrorLog::start(options.log_error.as_deref(), options.verbosity) {
        Ok(log) => log,
        Err(error) => {
            sys::process::print_error(&format!("squalld: log: {error}\n"));
            return ExitCode::FAILURE;
        }
    };
    // Parts of the server that know no log say through this what an administrator has to know.
    sys::process::tell_to(Box::new(|gravity, text| match gravity {
        Gravity::Note => info!("{text}"),
        Gravity::Warning => warn!("{text}"),
        Gravity::Error => error!("{text}"),
    }));
    let stop = Stop::new(log);
    let outcome = match &options.restore {
        Some(restore) => crate::restore::run(options, restore, &directory),
        None => serve(options, &directory, open_files, &stop),
    };
    match outcome {
        Ok(()) if stop.reason() == Some(RESTART) => ExitCode::from(RESTART_CODE),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!("aborting: {error}");
            ExitCode::FAILURE
        }
    }
}

/// From an open data directory to a clean stop.
fn serve(
    options: &Options,
    directory: &DataDirectory,
    open_files: u64,
    stop: &Stop,
) -> BootResult<()> {
    info!(version = VERSION, datadir = %directory.path.display(), "starting");
    obey_signals(stop)?;
    adopt_clone(options, directory)?;
    if let Err(error) = session::remove_exports(&directory.path) {
        warn!("exported tables that an earlier run of the server left are still there: {error}");
    }
    let report = CrashReport::prepare(&directory.path, &options.variables, stop.error_log());
    let state = Arc::new(RecoveryState::new());
    if options.unsafe_no_sync {
        warn!("################################################################");
        warn!("# --unsafe-no-sync: nothing waits for the disk. A crash of the  #");
        warn!("# machine will lose commits and may destroy the data directory. #");
        warn!("################################################################");
    }
    let Some((engines, early)) = open_engines(options, directory, &state, stop)? else {
        info!("stopped while recovering; recovery restarts at the next start");
        return Ok(());
    };
    if !engines.default.is_durable() {
        warn!("all data is kept in memory and is lost at shutdown");
    }
    let keyring = options.keyring.as_ref();
    let registry = Registry::knowing(&plugins::known(
        &engines,
        &directory.io_times,
        stop.error_log(),
        keyring,
    ));
    let server = open_server(options, directory, &engines, registry, stop)?;
    report.follow(&server);
    server.set_fact("open_files_limit", &open_files.min(u32::MAX.into()).to_string())?;
    fit_connections(&server, open_files)?;
    server.set_fact("storage_sync_us", &engines.sync_micros.to_string())?;
    if engines.default.is_durable() {
        set_storage_facts(&server, &directory.path)?;
        let is_encrypted = engines.default.directory_key().is_some();
        server.set_fact("storage_encryption", if is_encrypted { "ON" } else { "OFF" })?;
    }
    server.follow_definitions()?;
    init_file::run(&server, &directory.path)?;
    let kept = kept_addresses(options, &server);
    let running = match early {
        Some((gate, running)) => {
            // Its listeners had to start before the dictionary could be read.
            if !kept.is_empty() {
                running.rebind(&kept)?.adopt();
            }
            set_address_facts(&running, &server)?;
            gate.open_to(server.clone());
            running.start_loaded(&server.registry())?;
            running
        }
        None => {
            let context = listener_context(options, directory, server.clone());
            let context = context.with(&kept)?.unwrap_or(context);
            let running = Running::new(context, options.insecure_root)?;
            running.start_loaded(&server.registry())?;
            set_address_facts(&running, &server)?;
            running
        }
    };
    let running = Arc::new(running);
    let host: Arc<dyn PluginHost> = running.clone();
    server.run_plugins_by(&host);
    send_logs_to(&server, stop);
    let (port, socket) = (server.global_text("port"), server.global_text("socket"));
    // Recovery and reading the dictionary needed more memory than normal operation.
    sys::mem::give_back_freed();
    server.start_events()?;
    info!(port, socket, version = VERSION, "ready for connections");
    state.tell_manager("READY=1\nSTATUS=Ready for connections");
    write_pid(&options.pid_file)?;
    if let Err(error) = replica::forget_old(&directory.path) {
        warn!("the data that a clone has replaced cannot be removed: {error}");
    }
    let reason = stop.wait();
    info!(reason, "stopping");
    state.tell_manager("STOPPING=1");
    running.stop_all();
    server.close();
    for engine in engines.all() {
        engine.shutdown().map_err(|error| format!("engine {}: {error:?}", engine.name()))?;
    }
    // Another process may have removed it.
    let _ = files::remove(&options.pid_file);
    info!("stopped");
    Ok(())
}

/// Before anything is opened: a whole clone takes the place of the data.
fn adopt_clone(options: &Options, directory: &DataDirectory) -> BootResult<()> {
    if replica::adopt(&directory.path, &directory.io_times)? {
        info!(
            "the data was replaced by a clone; the data before is kept in `clone-old` until the server is ready"
        );
    }
    if let Some(archive) = &options.log_archive {
        let ended = replica::end_archive(&directory.path, archive, &directory.io_times)?;
        if let Some(ended) = ended {
            info!("the archive of the log before the clone is in {}", ended.display());
        }
    }
    if !options.log_bin {
        // Commits come that it does not know.
        binary_log::forget_clone(&directory.path)?;
    }
    Ok(())
}

/// Log sinks of plugins get the lines of the error log, and are told to open their files again.
fn send_logs_to(server: &Arc<Server>, stop: &Stop) {
    let sinks = Arc::downgrade(server);
    stop.error_log().copy_to(move |severity, line| {
        if let Some(server) = sinks.upgrade() {
            server.log_line(severity, line);
        }
    });
    let files = Arc::downgrade(server);
    stop.on_flush(Box::new(move || files.upgrade().map_or(Ok(()), |server| server.reopen_logs())));
}

fn write_pid(path: &Path) -> std::io::Result<()> {
    const MODE: u32 = 0o644;
    let mut file = files::File::create(path, MODE, Existing::Replace)?;
    file.write_all(format!("{}\n", sys::process::id()).as_bytes())
}

/// The engines, and if opening them took long, the gate and its listeners.
type Opened = (Engines, Option<(Arc<RecoveryGate>, Running)>);

/// Opens storage. When that takes longer than clients like to retry, connections are accepted and may ask how far recovery is. `None`:
/// shutdown was requested.
fn open_engines(
    options: &Options,
    directory: &DataDirectory,
    state: &Arc<RecoveryState>,
    stop: &Stop,
) -> BootResult<Option<Opened>> {
    /// A start without much to recover has finished by then. Until then connections are refused, which every client understands as a server
    /// that is not up yet; a session that is accepted earlier has to connect again.
    const SHORT_START: Duration = Duration::from_secs(2);
    const POLL_INTERVAL: Duration = Duration::from_millis(100);
    if options.in_memory {
        return Ok(Some((Engines::in_memory(), None)));
    }
    let storage = StorageOptions {
        directory: directory.path.join("storage"),
        pool_bytes: options.pool_bytes,
        sync: match options.unsafe_no_sync {
            true => SyncPolicy::Never,
            false => SyncPolicy::Device,
        },
        open_up_to_log_damage: options.open_up_to_log_damage,
        doublewrite: options.doublewrite,
        log_bin: options.log_bin,
        io_uring: options.io_uring,
        keys: options.keys(directory)?,
        io_times: directory.io_times.clone(),
    };
    // A new directory has nothing to recover: a client that can connect can work.
    let is_new = !files::exists(&storage.directory);
    let opening = Arc::new(Opening::default());
    let (result, progress) = (opening.clone(), state.clone());
    let archive = options.log_archive.clone();
    sys::threads::spawn("open", move || {
        result.finish(Engines::open(&storage, archive.as_deref(), &progress));
    })?;
    loop {
        if let Some(engines) = opening.wait_for(SHORT_START) {
            return Ok(Some((engines?, None)));
        }
        if !is_new {
            break;
        }
        if stop.is_asked() {
            return Ok(None);
        }
    }
    let waiting = Engines::recovering(state);
    let server = waiting_server(options, directory, &waiting, stop)?;
    let gate = RecoveryGate::new(server.clone(), state.clone());
    let entrance = Arc::new(Entrance(gate.clone()));
    let context = listener_context(options, directory, entrance);
    let running = Running::new(context, options.insecure_root)?;
    let early = match running.start_loaded(&server.registry()) {
        Ok(()) => {
            info!("accepting connections; storage is being recovered");
            Some((gate, running))
        }
        // The dictionary may have another address.
        Err(error) => {
            warn!("no connections while storage is being recovered: {error}");
            running.stop_all();
            None
        }
    };
    loop {
        if stop.is_asked() {
            return Ok(None);
        }
        if let Some(engines) = opening.wait_for(POLL_INTERVAL) {
            return Ok(Some((engines?, early)));
        }
    }
}

/// The small server that answers while storage is closed. Which other plugins are to be loaded is not known yet: it has those that are
/// always there.
fn waiting_server(
    options: &Options,
    directory: &DataDirectory,
    waiting: &Engines,
    stop: &Stop,
) -> BootResult<Arc<Server>> {
    let keyring = options.keyring.as_ref();
    let known = plugins::known(waiting, &directory.io_times, stop.error_log(), keyring);
    let known = Registry::knowing(&known);
    let others = known.modules().iter().filter(|module| module.info.loading != Loading::Always);
    let without = |module: &Module| PluginChoice {
        name: module.info.name.to_string(),
        wanted: Wanted::NotLoaded,
    };
    let plugins = others.map(without).collect();
    let root = RootAccount { os_uid: directory.owner(), password: Some(unusable_password()?) };
    let options = &Options { plugins, ..options.clone() };
    make_server(options, directory, waiting, known, stop, root)
}

/// A random unusable password: it is not shown to anyone.
fn unusable_password() -> BootResult<String> {
    let mut noise = [0; 16];
    sys::entropy::fill(&mut noise)?;
    Ok(noise.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The result of opening storage, from the thread that does it.
#[derive(Default)]
struct Opening {
    result: Mutex<Option<errors::Result<Engines>>>,
    done: Condvar,
}

impl Opening {
    fn finish(&self, result: errors::Result<Engines>) {
        *self.result.lock() = Some(result);
        self.done.notify_all();
    }

    fn wait_for(&self, limit: Duration) -> Option<errors::Result<Engines>> {
        let mut result = self.result.lock();
        if result.is_none() {
            result = self.done.wait_for(result, limit);
        }
        result.take()
    }
}

fn open_server(
    options: &Options,
    directory: &DataDirectory,
    engines: &Engines,
    registry: Registry,
    stop: &Stop,
) -> BootResult<Arc<Server>> {
    let root = root_account(options, directory, engines)?;
    let server = make_server(options, directory, engines, registry, stop, root)?;
    let facts = [
        ("datadir", format!("{}/", directory.path.display())),
        ("pid_file", options.pid_file.display().to_string()),
        ("hostname", sys::process::host_name()),
        ("server_uuid", directory.server_uuid()?),
        ("system_time_zone", sys::process::time_zone_name()),
    ];
    for (name, value) in facts {
        server.set_fact(name, &value)?;
    }
    if engines.default.keeps_attachments() {
        let base = directory.path.join(binary_log::DIRECTORY).join(binary_log::BASE);
        let base = base.display().to_string();
        server.set_fact("log_bin_basename", &base)?;
        server.set_fact("log_bin_index", &format!("{base}.index"))?;
        server.set_fact("gtid_mode", "ON")?;
        server.set_fact("enforce_gtid_consistency", "ON")?;
    }
    Ok(server)
}

fn make_server(
    options: &Options,
    directory: &DataDirectory,
    engines: &Engines,
    registry: Registry,
    stop: &Stop,
    root: RootAccount,
) -> BootResult<Arc<Server>> {
    let system_zone = registry.time_zone(&sys::process::time_zone_name());
    let system_zone = system_zone.unwrap_or_else(|| Arc::new(types::FixedOffset::utc()));
    let (shutdown, restart) = (stop.clone(), stop.clone());
    let server = Server::open(ServerConfig {
        version: VERSION.into(),
        registry,
        plugins: options.plugins.clone(),
        plugin_directory: format!("{}/plugins/", directory.path.display()),
        default_engine: engines.default.clone(),
        temporary_engine: engines.temporary.clone(),
        clock: Arc::new(RealClock::new()),
        system_zone,
        shutdown: Box::new(move || shutdown.ask("SHUTDOWN")),
        restart: sys::process::is_supervised()
            .then(|| -> Box<dyn Fn() + Send + Sync> { Box::new(move || restart.ask(RESTART)) }),
        defaults: vec![("innodb_buffer_pool_size".to_owned(), options.pool_bytes.to_string())],
        options: options.variables.clone(),
        root,
        insecure_root: options.insecure_root,
        io_times: directory.io_times.clone(),
    })?;
    Ok(server)
}

/// The administrator account of a new data directory.
fn root_account(
    options: &Options,
    directory: &DataDirectory,
    engines: &Engines,
) -> BootResult<RootAccount> {
    let os_uid = directory.owner();
    if options.insecure_root {
        warn!("root needs no password over loopback (--insecure-root)");
        return Ok(RootAccount { os_uid, password: None });
    }
    if !Server::is_first_start(engines.default.as_ref()) {
        return Ok(RootAccount { os_uid, password: None });
    }
    let (password, path) = directory.make_root_password()?;
    info!(file = %path.display(), "generated a password for root@localhost");
    Ok(RootAccount { os_uid, password: Some(password) })
}

/// Lowers `max_connections` to what the limit of open files has room for: a client that finds no descriptor learns nothing of the reason.
fn fit_connections(server: &Server, open_files: u64) -> BootResult<()> {
    let (wanted, room) = (
        server.global_integer("max_connections"),
        open_files.saturating_sub(FILES_BESIDE_CONNECTIONS).max(1),
    );
    if wanted > room {
        warn!(
            "max_connections is {room} instead of {wanted}: the process may have {open_files} files open (ulimit -n, LimitNOFILE)"
        );
        server.set_fact("max_connections", &room.to_string())?;
    }
    Ok(())
}

fn listener_context(
    options: &Options,
    directory: &DataDirectory,
    sessions: Arc<dyn SessionFactory>,
) -> ListenerContext {
    ListenerContext {
        sessions,
        bind_addresses: options.bind_addresses.clone(),
        port: options.port,
        socket: Some(options.socket.clone()),
        admin_address: options.admin_address,
        data_directory: directory.path.clone(),
        reactors: 0,
        tls_files: options.tls_files.clone(),
        tls_disabled: options.tls_disabled,
    }
}

/// What ALTER SYSTEM kept of addresses that no option gives.
fn kept_addresses(options: &Options, server: &Server) -> Vec<(&'static str, Value)> {
    let names: &[&str] = match options.bind_addresses.is_empty() {
        true => &["socket"],
        false => &["port", "bind_address", "socket"],
    };
    let kept = |name: &&'static str| Some((*name, server.kept_value(name)?));
    names.iter().filter_map(kept).collect()
}

/// What the data directory is stored on, with a warning when a sync need not reach the device.
fn set_storage_facts(server: &Server, directory: &Path) -> BootResult<()> {
    let storage = sys::storage::of(directory);
    if storage.lacks_barriers {
        warn!(
            file_system = storage.file_system,
            "the file system of the data directory is mounted without barriers: a power failure may lose commits and destroy pages"
        );
    }
    server.set_fact("storage_file_system", &storage.file_system)?;
    server.set_fact("storage_sector_bytes", &storage.sector_bytes.to_string())?;
    let barriers = if storage.lacks_barriers { "OFF" } else { "ON" };
    Ok(server.set_fact("storage_barriers", barriers)?)
}

fn set_address_facts(running: &Running, server: &Server) -> BootResult<()> {
    let port = running.port().unwrap_or(0).to_string();
    server.set_fact("port", &port)?;
    // A replica that was told no other port tells its source this one.
    if server.global_text("report_port") == "0" {
        server.set_fact("report_port", &port)?;
    }
    let socket = running.socket().unwrap_or_default();
    Ok(server.set_fact("socket", &socket.display().to_string())?)
}
