//! CLONE INSTANCE: this server, or a new data directory, becomes a copy of another server that is in use.
//!
//! The donor sends a backup as rows (`BACKUP DATABASE TO STREAM`), over the connection of an ordinary account there with BACKUP_ADMIN.

mod receive;
mod staging;
mod status;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use client::Failure;
use engine_api::CancelToken;
use errors::{Error, Result, bail, err};
use plugin_api::variable::{Definition, Kind, as_text};
use plugin_api::{
    GlobalValue, InfoColumn, InfoFilter, InformationContext, InformationTable, Registrar,
    ReplicationSession, SessionFactory, TableDefinition, table_definitions,
};
use syntax::ast::CloneStatement;
use sys::disk::DiskKey;
use sys::io_times::IoTimes;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicBool, Ordering};
use types::Value;

use crate::local::Local;
use crate::remote::{Address, Halt, Remote};
use receive::Receiver;
use staging::Staging;
use status::CloneStatus;

pub use staging::{adopt, end_archive, forget_old};

/// What the statement needs here; the donor wants BACKUP_ADMIN.
const PRIVILEGE: &str = "CLONE_ADMIN";
/// A donor that says nothing for so long is gone. Before the first page it makes a checkpoint.
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// Destination in the table when the data of this server is replaced.
const HERE: &str = "LOCAL INSTANCE";

static VALID_DONORS: Definition = Definition::global(
    "clone_valid_donor_list",
    Kind::Text,
    "",
    "Servers that CLONE INSTANCE may copy: host:port, with commas between",
);

/// The clone that runs, or the last one.
#[derive(Default)]
pub(crate) struct Shared(Mutex<Option<CloneStatus>>);

impl Shared {
    fn change(&self, change: impl FnOnce(&mut CloneStatus)) {
        if let Some(status) = &mut *self.0.lock() {
            change(status);
        }
    }

    fn now(&self) -> Option<CloneStatus> {
        self.0.lock().clone()
    }
}

/// What CLONE INSTANCE keeps.
#[derive(Default)]
pub(crate) struct Clones {
    valid_donors: GlobalValue,
    is_running: AtomicBool,
    shared: Shared,
    times: IoTimes,
}

/// Registers the variable and the tables.
pub(crate) fn register(clones: &Arc<Clones>, registrar: &mut Registrar<'_>) {
    registrar.checked_variable(&VALID_DONORS, &clones.valid_donors, |value| {
        let list = as_text(value);
        let is_good = |donor: &str| {
            let (host, port) = donor.rsplit_once(':').unwrap_or_default();
            !host.is_empty() && !donor.contains(' ') && port.parse::<u32>().is_ok()
        };
        match list.is_empty() || list.split(',').all(is_good) {
            true => Ok(()),
            false => Err(err!(
                CLONE_SYS_CONFIG,
                "Invalid Format. Please enter \"<hostname1>:<port1>,...\"' with no extra space"
            )),
        }
    });
    for definition in table_definitions(include_str!("definitions.txt")) {
        let clones = clones.clone();
        registrar.information_table(Arc::new(CloneTable { definition, clones }));
    }
}

struct CloneTable {
    definition: TableDefinition,
    clones: Arc<Clones>,
}

impl InformationTable for CloneTable {
    fn schema(&self) -> &'static str {
        self.definition.schema
    }

    fn name(&self) -> &'static str {
        self.definition.name
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.definition.columns
    }

    fn rows(
        &self,
        _: &dyn InformationContext,
        _: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        let Some(status) = self.clones.shared.now() else { return Ok(()) };
        match self.definition.name {
            "clone_status" => emit(&status.row()),
            _ => status.stage_rows().iter().try_for_each(|row| emit(row)),
        }
    }
}

/// What the donor says of itself, and what is known here.
struct Facts {
    version: String,
    uuid: String,
    has_log: bool,
    is_encrypted: bool,
}

/// The statement, read.
struct Wanted {
    donor: Address,
    /// A new data directory; none: the data of this server is replaced.
    directory: Option<String>,
}

fn donor_error(failure: Failure, cancel: &CancelToken) -> Error {
    if cancel.is_cancelled() {
        return err!(QUERY_INTERRUPTED);
    }
    match failure {
        Failure::Server(error) => err!(CLONE_DONOR, error.code().0, error.message()),
        Failure::Lost(why) => err!(CLONE_DONOR, 2013, why),
    }
}

fn connect_error(failure: Failure, cancel: &CancelToken) -> Error {
    if cancel.is_cancelled() {
        return err!(QUERY_INTERRUPTED);
    }
    let (number, text) = match failure {
        Failure::Server(error) => (error.code().0, error.message().to_owned()),
        Failure::Lost(why) => (2013, why),
    };
    err!(CLONE_DONOR, format!("Connect failed: {number}"), text)
}

fn file_error(path: &Path, error: &io::Error) -> Error {
    let number = error.raw_os_error().unwrap_or(0);
    Error::with(errors::ErrorCode::ERROR_ON_WRITE, &[&path.display(), &number, error])
}

impl Clones {
    /// At the start of the server.
    pub(crate) fn load(&self, sessions: &dyn SessionFactory) {
        let data_directory = PathBuf::from(sessions.global_text("datadir"));
        *self.shared.0.lock() = staging::found(&data_directory, &self.times);
    }

    /// CLONE INSTANCE FROM.
    ///
    /// # Errors
    /// 1227, 3634, 3862 and its neighbours, I/O; 3707 when the clone is whole and the server stops to take it.
    pub(crate) fn run(
        &self,
        statement: &CloneStatement,
        session: &mut dyn ReplicationSession,
        sessions: &Arc<dyn SessionFactory>,
    ) -> Result<()> {
        session.require_privilege(PRIVILEGE)?;
        let wanted = self.read(statement)?;
        // Pairs with the store below: one clone after another.
        if self.is_running.swap(true, Ordering::AcqRel) {
            bail!(CLONE_TOO_MANY_CONCURRENT_CLONES, 1);
        }
        let source = format!("{}:{}", wanted.donor.host, wanted.donor.port);
        let destination = wanted.directory.clone().unwrap_or_else(|| HERE.to_owned());
        let begun = CloneStatus::begun(session.connection_id(), source, destination);
        *self.shared.0.lock() = Some(begun);
        let cancel = session.cancel();
        let key = session.directory_key();
        let outcome = sys::blocking::blocking(|| {
            let outcome = self.clone_from(&wanted, key, sessions, &cancel);
            self.end(&wanted, &outcome, sessions);
            outcome
        });
        // Pairs with the swap above.
        self.is_running.store(false, Ordering::Release);
        outcome?;
        if wanted.directory.is_some() {
            return Ok(());
        }
        tracing::warn!("the clone is whole: the server stops, and its next start has the new data");
        let local = Local::open(&**sessions, CancelToken::new(), Arc::default());
        local.and_then(|mut local| local.run(b"SHUTDOWN"))?;
        bail!(RESTART_SERVER_FAILED, "mysqld is not managed by supervisor process")
    }

    fn read(&self, statement: &CloneStatement) -> Result<Wanted> {
        let CloneStatement::Instance { user, host, port, password, directory, require_ssl } =
            statement
        else {
            return Err(Error::internal("CLONE LOCAL is the session's"));
        };
        let donor = format!("{host}:{port}");
        let valid = self.valid_donors.text();
        if !valid.split(',').any(|known| known.eq_ignore_ascii_case(&donor)) {
            let text = format!("{donor} is not found in clone_valid_donor_list: {valid}");
            bail!(CLONE_SYS_CONFIG, text);
        }
        let port = u16::try_from(*port).map_err(|_| err!(WRONG_VALUE, "port", port))?;
        if let Some(path) = directory
            && !Path::new(&**path).is_absolute()
        {
            bail!(WRONG_VALUE, "path", path);
        }
        let donor = Address {
            host: host.to_string(),
            port,
            user: user.to_string(),
            password: password.to_string(),
            require_ssl: *require_ssl,
        };
        Ok(Wanted { donor, directory: directory.as_ref().map(ToString::to_string) })
    }

    /// Keeps the end for the tables.
    fn end(&self, wanted: &Wanted, outcome: &Result<()>, sessions: &Arc<dyn SessionFactory>) {
        let error = outcome.as_ref().err();
        if error.is_some() || wanted.directory.is_some() {
            self.shared.change(|status| status.end(error));
        }
        if let Some(error) = error {
            tracing::error!("CLONE INSTANCE failed: {error}");
            self.keep(sessions);
        }
    }

    /// Keeps the status over a restart. Nothing depends on it.
    fn keep(&self, sessions: &Arc<dyn SessionFactory>) {
        let data_directory = PathBuf::from(sessions.global_text("datadir"));
        let Some(now) = self.shared.now() else { return };
        if let Err(error) = status::write(&data_directory, &now, &self.times) {
            tracing::warn!("the status of the clone cannot be written: {error}");
        }
    }

    fn clone_from(
        &self,
        wanted: &Wanted,
        key: Option<Arc<dyn DiskKey>>,
        sessions: &Arc<dyn SessionFactory>,
        cancel: &CancelToken,
    ) -> Result<()> {
        let data_directory = PathBuf::from(sessions.global_text("datadir"));
        let made = match &wanted.directory {
            Some(path) => Staging::at(Path::new(path), &self.times),
            None => {
                check_replaceable(&data_directory)?;
                Staging::within(&data_directory, &self.times)
            }
        };
        let staging = made.map_err(|error| match (&wanted.directory, error.kind()) {
            (Some(path), io::ErrorKind::AlreadyExists) => err!(DB_CREATE_EXISTS, path),
            (Some(path), _) => file_error(Path::new(path), &error),
            (None, _) => file_error(&data_directory, &error),
        })?;
        let halt = Halt::new(cancel.clone());
        let opened = Remote::open(&wanted.donor, &halt, SILENCE_MAX);
        let mut remote = opened.map_err(|failure| connect_error(failure, cancel))?;
        let donor = facts(&mut remote, cancel)?;
        check_donor(&donor, wanted, &**sessions)?;
        self.shared.change(|status| status.enter(status::DROP_DATA));
        let mut receiver = Receiver::new(&staging, key, &self.shared, &halt);
        let statement = match donor.is_encrypted {
            true => receive::PLAIN_STATEMENT,
            false => receive::STATEMENT,
        };
        let sent = remote.query(statement, &mut receiver);
        if let Some(error) = receiver.take_error() {
            return Err(error);
        }
        sent.map_err(|failure| donor_error(failure, cancel))?;
        let executed = receiver.finish()?;
        self.shared.change(|status| {
            status.enter(status::FILE_SYNC);
            status.executed = executed.unwrap_or_default();
        });
        staging.sync().map_err(|error| file_error(&data_directory, &error))?;
        if cancel.is_cancelled() {
            bail!(QUERY_INTERRUPTED);
        }
        if wanted.directory.is_some() {
            staging.keep();
            return Ok(());
        }
        self.shared.change(|status| status.enter(status::RESTART));
        self.keep(sessions);
        staging.make_ready().map_err(|error| file_error(&data_directory, &error))
    }
}

/// Whether the data of this server can be replaced.
fn check_replaceable(data_directory: &Path) -> Result<()> {
    if !sys::files::exists(&data_directory.join("storage")) {
        return Err(Error::not_supported(
            "CLONE INSTANCE into a server that keeps nothing on disk",
        ));
    }
    Ok(())
}

fn facts(remote: &mut Remote, cancel: &CancelToken) -> Result<Facts> {
    let version = remote.version().to_owned();
    if !version.contains("Squall") {
        let (uuid, has_log, is_encrypted) = Default::default();
        return Ok(Facts { version, uuid, has_log, is_encrypted });
    }
    let rows = remote
        .rows("SELECT @@GLOBAL.server_uuid, @@GLOBAL.log_bin, @@GLOBAL.storage_encryption")
        .map_err(|failure| donor_error(failure, cancel))?;
    let row = rows.first().map_or(&[][..], Vec::as_slice);
    let [uuid, log_bin, encryption] = row else {
        return Err(err!(CLONE_PROTOCOL, "the donor says nothing about itself"));
    };
    let is_on = |text: &str| text == "1" || text.eq_ignore_ascii_case("ON");
    let (has_log, is_encrypted) = (is_on(log_bin), is_on(encryption));
    Ok(Facts { version, uuid: uuid.clone(), has_log, is_encrypted })
}

fn check_donor(donor: &Facts, wanted: &Wanted, sessions: &dyn SessionFactory) -> Result<()> {
    let own = sessions.server_version();
    if donor.version != own {
        bail!(CLONE_DONOR_VERSION, donor.version, own);
    }
    if wanted.directory.is_some() {
        return Ok(());
    }
    if donor.uuid == sessions.global_text("server_uuid") {
        let loopback = err!(CLONE_LOOPBACK);
        bail!(CLONE_DONOR, loopback.code().0, loopback.message());
    }
    // Without a log of its own it would not know which transactions it has.
    if donor.has_log && sessions.global_integer("log_bin") == 0 {
        bail!(CLONE_CONFIG, "log_bin", "ON", "OFF");
    }
    Ok(())
}
