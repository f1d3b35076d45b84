//! The connection to a source: log-in, what it is asked and told, the stream of events.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use binlog::{EventKind, GtidSet, Header, event};
use client::{Answer, Carrier, Connection, Encryption, Failure, Options, Reach, Target, Tls};
use errors::{Error, ErrorCode};
use sys::net::Stream;
use wire::CommandCode;

use crate::crew::Crew;
use crate::mariadb;
use crate::remote;
use crate::settings::Settings;
use crate::status::now_micros;
use crate::store::Position;

/// The connection is lost, could not be made, or the source refuses. Another attempt may succeed.
const CONNECT_FAILED: ErrorCode = ErrorCode(2003);
/// The connection cannot be encrypted as it must be.
const SSL_FAILED: ErrorCode = ErrorCode(2026);
/// What comes is no binary log.
pub(crate) const STREAM_BROKEN: ErrorCode = ErrorCode(1595);
/// The source is not one that can be followed.
const CANNOT_FOLLOW: ErrorCode = ErrorCode(13117);
/// How often a wait looks whether the channel stops.
const STEP: Duration = Duration::from_millis(200);
/// The binary log begins after four bytes.
const FIRST_POSITION: u64 = 4;

/// Why there is no event.
pub(crate) enum Loss {
    /// The channel stops.
    Stopped,
    /// A new connection may help.
    Connection(Error),
    /// It would not.
    Fatal(Error),
}

impl From<Failure> for Loss {
    fn from(failure: Failure) -> Loss {
        match failure {
            // The source has no log from there on, or does not know what it is asked for.
            Failure::Server(error) if matches!(error.code().0, 1236 | 1235 | 1047) => {
                Loss::Fatal(error)
            }
            Failure::Server(error) => Loss::Connection(error),
            Failure::Lost(why) => Loss::Connection(Error::new(CONNECT_FAILED, why)),
        }
    }
}

/// The socket, which gives up when the channel stops or nothing comes for too long.
struct Wire {
    stream: Stream,
    crew: Arc<Crew>,
    limit: Duration,
}

impl Carrier for Wire {}

impl Wire {
    fn check(&self, since: Duration) -> io::Result<()> {
        if self.crew.is_halted() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if sys::clock::monotonic() - since > self.limit {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

impl Read for Wire {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let since = sys::clock::monotonic();
        loop {
            match self.stream.read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            self.check(since)?;
            // There is time now.
            self.crew.channel.pending.settle();
            self.stream.wait_readable(STEP)?;
        }
    }
}

impl Write for Wire {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let since = sys::clock::monotonic();
        loop {
            match self.stream.write(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            self.check(since)?;
            self.stream.wait_writable(STEP)?;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The replica as its source sees it.
#[derive(Clone, Debug)]
pub(crate) struct Itself {
    pub(crate) server_id: u32,
    pub(crate) uuid: String,
    /// The host, user and port that the source shows of it.
    pub(crate) host: String,
    pub(crate) user: String,
    pub(crate) port: u16,
    /// It acknowledges what it has, if the source wants it.
    pub(crate) is_semi_sync: bool,
}

/// What a source says about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    pub(crate) server_id: u32,
    /// Empty for MariaDB.
    pub(crate) uuid: String,
    pub(crate) is_mariadb: bool,
    pub(crate) is_squall: bool,
    pub(crate) clock_ahead_micros: i64,
}

/// A source that sends its events.
pub(crate) struct Source {
    connection: Connection,
    crew: Arc<Crew>,
    has_checksums: bool,
    /// The source may ask for acknowledgements: each event has two bytes before it.
    is_semi_sync: bool,
    pub(crate) about: About,
}

/// Begins the two bytes before an event, and an acknowledgement.
const SEMI_SYNC_MAGIC: u8 = 0xef;
/// The second byte, where the source waits for an acknowledgement.
const SEMI_SYNC_ASKS: u8 = 1;
/// There is no such variable.
const UNKNOWN_VARIABLE: ErrorCode = ErrorCode(1193);

/// An event of the source.
pub(crate) struct Received {
    pub(crate) header: Header,
    /// Without the checksum, which was compared.
    pub(crate) body: Vec<u8>,
    /// Whether the source waits until it is acknowledged.
    pub(crate) asks: bool,
}

/// The cells of the last row.
#[derive(Default)]
struct Cells(Vec<String>);

impl Answer for Cells {
    fn row(&mut self, cells: &[Option<&[u8]>]) {
        let text = |cell: &Option<&[u8]>| String::from_utf8_lossy(cell.unwrap_or(b"")).into_owned();
        self.0 = cells.iter().map(text).collect();
    }
}

impl Source {
    /// Connects, logs in and asks for the events after where the crew is. While nothing comes, what is pending is made durable.
    pub(crate) fn open(
        settings: &Settings,
        itself: &Itself,
        crew: &Arc<Crew>,
    ) -> Result<Source, Loss> {
        let stream = connect(settings)?;
        // A source that says nothing for twice as long as it promised is gone.
        let limit = Duration::from_secs_f64((settings.heartbeat * 2.0).max(60.0));
        let wire = Wire { stream, crew: crew.clone(), limit };
        let options = Options {
            target: Target::Tcp(settings.host.clone(), settings.port),
            user: settings.user.clone(),
            password: settings.password.clone(),
            database: None,
            tls: encryption(settings)?,
            framings: settings.framings(),
            expired_passwords: false,
        };
        let opened = Connection::over(Box::new(wire), Reach::Network, &options);
        let connection = opened.map_err(|failure| loss(failure, crew))?;
        let about = About::default();
        let mut source = Source {
            connection,
            crew: crew.clone(),
            has_checksums: true,
            is_semi_sync: false,
            about,
        };
        source.introduce(settings, itself)?;
        let progress = crew.progress();
        if source.about.is_mariadb {
            let position = settings.auto_position.then_some(&progress.position.gtid_slave_pos);
            for statement in mariadb::introduction(position) {
                source.cells(&statement)?;
            }
        }
        source.ask(settings, &progress.position, &progress.executed, itself)?;
        Ok(source)
    }

    fn cells(&mut self, sql: &str) -> Result<Vec<String>, Loss> {
        let mut cells = Cells::default();
        let outcome = self.connection.query(sql.as_bytes(), &mut cells);
        outcome.map_err(|failure| loss(failure, &self.crew))?;
        Ok(cells.0)
    }

    fn introduce(&mut self, settings: &Settings, itself: &Itself) -> Result<(), Loss> {
        let is_mariadb = self.connection.server_version.contains("MariaDB");
        let uuid = if is_mariadb { "''" } else { "@@GLOBAL.server_uuid" };
        let facts = self.cells(&format!(
            "SELECT UNIX_TIMESTAMP(NOW(6)), @@GLOBAL.server_id, {uuid}, @@GLOBAL.binlog_checksum"
        ))?;
        let fact = |index: usize| facts.get(index).map_or("", String::as_str);
        let seconds: f64 = fact(0).parse().unwrap_or(0.0);
        self.about = About {
            server_id: fact(1).parse().unwrap_or(0),
            uuid: fact(2).to_owned(),
            is_mariadb,
            is_squall: self.connection.server_version.contains("Squall"),
            clock_ahead_micros: (seconds * 1e6) as i64 - now_micros(),
        };
        self.has_checksums = !fact(3).eq_ignore_ascii_case("NONE");
        if self.about.server_id == itself.server_id || self.about.uuid == itself.uuid {
            let text = "The replica I/O thread stops because source and replica have equal MySQL \
                        server ids; these ids must be different for replication to work.";
            return Err(Loss::Fatal(Error::new(CANNOT_FOLLOW, text)));
        }
        let nanoseconds = (settings.heartbeat * 1e9) as u64;
        let checksum = fact(3).to_owned();
        self.cells(&format!(
            "SET @master_heartbeat_period = {nanoseconds}, @source_heartbeat_period = {nanoseconds}, \
             @master_binlog_checksum = '{checksum}', @source_binlog_checksum = '{checksum}', \
             @slave_uuid = '{uuid}', @replica_uuid = '{uuid}'",
            uuid = itself.uuid,
        ))?;
        // MariaDB's names are others.
        if itself.is_semi_sync && !is_mariadb {
            // A source that does not know them is followed without acknowledgements.
            match self.cells("SELECT @@GLOBAL.rpl_semi_sync_source_enabled") {
                Ok(_) => {
                    self.cells("SET @rpl_semi_sync_replica = 1")?;
                    self.is_semi_sync = true;
                }
                Err(Loss::Connection(error)) if error.code() == UNKNOWN_VARIABLE => {
                    tracing::warn!(
                        "the source does not wait for replicas: acknowledgements are off"
                    );
                }
                Err(loss) => return Err(loss),
            }
        }
        Ok(())
    }

    /// Whether it may ask for acknowledgements.
    pub(crate) fn is_semi_sync(&self) -> bool {
        self.is_semi_sync
    }

    /// Tells the source that all up to a position is here to stay.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) fn acknowledge(&mut self, file: &str, offset: u64) -> Result<(), Loss> {
        let mut payload = vec![SEMI_SYNC_MAGIC];
        payload.extend_from_slice(&offset.to_le_bytes());
        payload.extend_from_slice(file.as_bytes());
        let sent = self.connection.send_beside(&payload);
        sent.map_err(|failure| loss(failure, &self.crew))
    }

    /// COM_REGISTER_REPLICA and COM_BINLOG_DUMP(_GTID).
    fn ask(
        &mut self,
        settings: &Settings,
        position: &Position,
        executed: &GtidSet,
        itself: &Itself,
    ) -> Result<(), Loss> {
        let mut payload = itself.server_id.to_le_bytes().to_vec();
        // A password that others might reach it with is not told.
        for text in [&*itself.host, &*itself.user, ""] {
            put_short(text, &mut payload);
        }
        payload.extend_from_slice(&itself.port.to_le_bytes());
        payload.extend_from_slice(&[0; 8]);
        let crew = self.crew.clone();
        let sent = self.connection.send_command(CommandCode::RegisterReplica, &payload);
        sent.map_err(|failure| loss(failure, &crew))?;
        self.connection.next_packet().map_err(|failure| loss(failure, &crew))?;
        payload.clear();
        let is_mariadb = self.about.is_mariadb;
        let code = if settings.auto_position && !is_mariadb {
            let is_tagged = executed.iter().any(|(_, tag, _)| !tag.is_empty());
            binlog::envelope::write_dump_gtid(itself.server_id, executed, is_tagged, &mut payload);
            CommandCode::BinlogDumpGtid
        } else {
            let offset = if settings.auto_position { 0 } else { position.offset };
            let offset = offset.max(FIRST_POSITION);
            let offset = u32::try_from(offset).unwrap_or(u32::MAX);
            payload.extend_from_slice(&offset.to_le_bytes());
            payload.extend_from_slice(&0u16.to_le_bytes());
            payload.extend_from_slice(&itself.server_id.to_le_bytes());
            // MariaDB was told before from which identifiers on.
            if !settings.auto_position {
                payload.extend_from_slice(position.file.as_bytes());
            }
            CommandCode::BinlogDump
        };
        let sent = self.connection.send_command(code, &payload);
        sent.map_err(|failure| loss(failure, &crew))
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Result<Received, Loss> {
        let mut received = self.read()?;
        if self.about.is_mariadb {
            received = mariadb::plain(received)?;
        }
        if received.asks {
            self.connection.number_anew();
        }
        Ok(received)
    }

    fn read(&mut self) -> Result<Received, Loss> {
        let crew = self.crew.clone();
        let packet = self.connection.next_packet().map_err(|failure| loss(failure, &crew))?;
        let ended = || Loss::Connection(Error::new(CONNECT_FAILED, "the source ended the stream"));
        // A zero byte precedes each event.
        let mut event = packet.and_then(|packet| packet.split_first()).ok_or_else(ended)?.1;
        let broken = |malformed: binlog::Malformed| {
            Loss::Fatal(Error::new(STREAM_BROKEN, malformed.to_string()))
        };
        let mut asks = false;
        if self.is_semi_sync {
            let [SEMI_SYNC_MAGIC, flag, rest @ ..] = event else {
                return Err(broken(binlog::Malformed("semi-synchronous header")));
            };
            (asks, event) = (*flag == SEMI_SYNC_ASKS, rest);
        }
        let header = Header::read(event).map_err(broken)?;
        if header.kind == EventKind::FORMAT_DESCRIPTION {
            // It says itself whether it has one; the byte is before it.
            let at = event.len().checked_sub(event::CHECKSUM_BYTES + 1);
            self.has_checksums = at.and_then(|at| event.get(at)) == Some(&1);
        }
        if self.has_checksums {
            let (header, body) = event::open(event).map_err(broken)?;
            return Ok(Received { header, body: body.to_vec(), asks });
        }
        if header.size as usize != event.len() {
            return Err(broken(binlog::Malformed("size")));
        }
        // The format has room for a checksum in any case.
        let is_format = header.kind == EventKind::FORMAT_DESCRIPTION;
        let end = event.len() - if is_format { event::CHECKSUM_BYTES } else { 0 };
        let body = event.get(event::HEADER_BYTES..end).unwrap_or_default().to_vec();
        Ok(Received { header, body, asks })
    }
}

/// As for the reference, certificates count only where the connection must be encrypted.
fn encryption(settings: &Settings) -> Result<Encryption, Loss> {
    if !settings.ssl {
        return Ok(Encryption::Preferred);
    }
    let mut authorities = read_file(&settings.ssl_ca)?;
    authorities.extend(read_directory(&settings.ssl_capath)?);
    if settings.ssl_verify && authorities.is_empty() {
        let text = "SOURCE_SSL_VERIFY_SERVER_CERT needs the authorities of SOURCE_SSL_CA or SOURCE_SSL_CAPATH";
        return Err(Loss::Fatal(Error::new(SSL_FAILED, text)));
    }
    let mut revoked = read_file(&settings.ssl_crl)?;
    revoked.extend(read_directory(&settings.ssl_crlpath)?);
    if authorities.is_empty() && !revoked.is_empty() {
        let text = "lists of revoked certificates need the authorities of SOURCE_SSL_CA or SOURCE_SSL_CAPATH";
        return Err(Loss::Fatal(Error::new(SSL_FAILED, text)));
    }
    let has_identity = !(settings.ssl_cert.is_empty() && settings.ssl_key.is_empty());
    let identity = match has_identity {
        true => Some((read_file(&settings.ssl_cert)?, read_file(&settings.ssl_key)?)),
        false => None,
    };
    let parts = |text: &str, by: char| -> Vec<String> {
        text.split(by).map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let mut ciphers = parts(&settings.ssl_cipher, ':');
    ciphers.extend(parts(&settings.tls_ciphersuites, ':'));
    let name = settings.ssl_verify.then(|| settings.host.clone());
    let versions = parts(&settings.tls_version, ',');
    Ok(Encryption::As(Box::new(Tls { authorities, revoked, name, identity, versions, ciphers })))
}

/// The content of a file; nothing for no name.
fn read_file(name: &str) -> Result<Vec<u8>, Loss> {
    if name.is_empty() {
        return Ok(Vec::new());
    }
    sys::files::read(Path::new(name)).map_err(|error| unreadable(Path::new(name), &error))
}

/// Most files of a directory of certificates.
const CERTIFICATES_MAX: usize = 10_000;

/// The content of the files in a directory, one after the other; nothing for no name.
fn read_directory(name: &str) -> Result<Vec<u8>, Loss> {
    let mut content = Vec::new();
    if name.is_empty() {
        return Ok(content);
    }
    let directory = Path::new(name);
    let names = sys::files::names(directory).map_err(|error| unreadable(directory, &error))?;
    for file in names.iter().take(CERTIFICATES_MAX) {
        let path = directory.join(file);
        content.extend(sys::files::read(&path).map_err(|error| unreadable(&path, &error))?);
        content.push(b'\n');
    }
    Ok(content)
}

fn unreadable(path: &Path, error: &io::Error) -> Loss {
    let text = format!("SSL connection error: {}: {error}", path.display());
    Loss::Connection(Error::new(SSL_FAILED, text))
}

/// Appends a text after its length, a byte; what is longer is cut off.
fn put_short(text: &str, out: &mut Vec<u8>) {
    let text = &text.as_bytes()[..text.len().min(usize::from(u8::MAX))];
    out.push(text.len() as u8);
    out.extend_from_slice(text);
}

fn loss(failure: Failure, crew: &Crew) -> Loss {
    if crew.is_halted() { Loss::Stopped } else { failure.into() }
}

fn connect(settings: &Settings) -> Result<Stream, Loss> {
    let lost = |error: io::Error| {
        let text = format!(
            "Error connecting to source '{}@{}:{}'. {error}",
            settings.user, settings.host, settings.port
        );
        Loss::Connection(Error::new(CONNECT_FAILED, text))
    };
    remote::connect(&settings.host, settings.port).map_err(lost)
}
