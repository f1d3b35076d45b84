//! Start, run, stop.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use plugin_api::{Listener, ListenerContext, Registry, RunningListener};
use session::{RootAccount, Server, ServerConfig};
use sys::clock::RealClock;
use tracing::{error, info, warn};

use crate::data_directory::DataDirectory;
use crate::engines::Engines;
use crate::options::{HELP, Options, Request};
use crate::stop::Stop;
use crate::{VERSION, log, options, plugins};

/// How long running statements may take to finish at shutdown.
const STOP_GRACE: Duration = Duration::from_secs(10);

type BootResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Runs the server program; returns when it was told to stop.
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
        Ok(Request::Run(options)) => run_server(&options),
        Err(message) => {
            eprintln!("squalld: {message}");
            ExitCode::from(2)
        }
    }
}

fn run_server(options: &Options) -> ExitCode {
    let directory = match DataDirectory::open(&options.datadir) {
        Ok(directory) => directory,
        Err(error) => {
            eprintln!("squalld: data directory {}: {error}", options.datadir.display());
            return ExitCode::FAILURE;
        }
    };
    if let Err(error) = log::start(options.log_error.as_deref(), options.verbosity) {
        eprintln!("squalld: log: {error}");
        return ExitCode::FAILURE;
    }
    match serve(options, &directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!("aborting: {error}");
            ExitCode::FAILURE
        }
    }
}

/// From an open data directory to a clean stop.
fn serve(options: &Options, directory: &DataDirectory) -> BootResult<()> {
    info!(version = VERSION, datadir = %directory.path.display(), "starting");
    let stop = Stop::default();
    stop.on_signals()?;
    let engines = if options.in_memory {
        Engines::in_memory()
    } else {
        Engines::open(&directory.path.join("storage"), options.pool_bytes)?
    };
    if !engines.default.is_durable() {
        warn!("all data is kept in memory and is lost at shutdown");
    }
    let registry = Arc::new(plugins::registry(&engines));
    let server = open_server(options, directory, &engines, registry.clone(), &stop)?;
    let listeners = listen(options, directory, &server, &registry)?;
    std::fs::write(&options.pid_file, format!("{}\n", sys::process::id()))?;
    let reason = stop.wait();
    info!(reason, "stopping");
    for listener in listeners {
        listener.stop(STOP_GRACE);
    }
    server.close();
    for engine in engines.all() {
        engine.shutdown().map_err(|error| format!("engine {}: {error:?}", engine.name()))?;
    }
    // Somebody else may have removed it.
    let _ = std::fs::remove_file(&options.pid_file);
    info!("stopped");
    Ok(())
}

fn open_server(
    options: &Options,
    directory: &DataDirectory,
    engines: &Engines,
    registry: Arc<Registry>,
    stop: &Stop,
) -> BootResult<Arc<Server>> {
    let root = root_account(options, directory, engines)?;
    let zone_name = system_zone_name();
    let utc: Arc<dyn types::ZoneRules> = Arc::new(types::FixedOffset::utc());
    let shutdown = stop.clone();
    let server = Server::open(ServerConfig {
        version: VERSION.into(),
        registry,
        default_engine: engines.default.clone(),
        temporary_engine: engines.temporary.clone(),
        clock: Arc::new(RealClock::new()),
        zones: Arc::new(functions_temporal::named_zone),
        system_zone: functions_temporal::named_zone(&zone_name).unwrap_or(utc),
        shutdown: Box::new(move || shutdown.ask("SHUTDOWN")),
        options: options.variables.clone(),
        root,
        insecure_root: options.insecure_root,
    })?;
    let facts = [
        ("datadir", format!("{}/", directory.path.display())),
        ("socket", options.socket.display().to_string()),
        ("pid_file", options.pid_file.display().to_string()),
        ("hostname", sys::process::host_name()),
        ("server_uuid", directory.server_uuid()?),
        ("system_time_zone", zone_name),
    ];
    for (name, value) in facts {
        server.set_fact(name, &value)?;
    }
    Ok(server)
}

/// Who administers a data directory that is new.
fn root_account(
    options: &Options,
    directory: &DataDirectory,
    engines: &Engines,
) -> BootResult<RootAccount> {
    let os_user = directory.owner();
    if options.insecure_root {
        warn!("root needs no password over loopback (--insecure-root)");
        return Ok(RootAccount { os_user, password: None });
    }
    if !Server::is_first_start(engines.default.as_ref()) {
        return Ok(RootAccount { os_user, password: None });
    }
    let (password, path) = directory.make_root_password()?;
    info!(file = %path.display(), "made a password for root@localhost");
    Ok(RootAccount { os_user, password: Some(password) })
}

fn listen(
    options: &Options,
    directory: &DataDirectory,
    server: &Arc<Server>,
    registry: &Registry,
) -> BootResult<Vec<Box<dyn RunningListener>>> {
    let context = ListenerContext {
        sessions: server.clone(),
        bind_addresses: options.bind_addresses.clone(),
        port: options.port,
        socket: Some(options.socket.clone()),
        data_directory: directory.path.clone(),
        reactors: 0,
        tls_files: options.tls_files.clone(),
        tls_disabled: options.tls_disabled,
    };
    let start = |listener: &Arc<dyn Listener>| listener.start(context.clone());
    let running: Vec<_> = registry.listeners().iter().map(start).collect::<Result<_, _>>()?;
    let port = running.iter().find_map(|listener| listener.port()).unwrap_or(0);
    server.set_fact("port", &port.to_string())?;
    info!(port, socket = %options.socket.display(), version = VERSION, "ready for connections");
    Ok(running)
}

/// Name of the machine's time zone in the tz database.
fn system_zone_name() -> String {
    if let Ok(name) = std::env::var("TZ")
        && !name.is_empty()
    {
        return name.trim_start_matches(':').to_owned();
    }
    let link: PathBuf = std::fs::read_link("/etc/localtime").unwrap_or_default();
    let link = link.to_string_lossy();
    match link.split_once("zoneinfo/") {
        Some((_, name)) => name.trim_start_matches("Etc/").to_owned(),
        None => "UTC".into(),
    }
}
