//! Events of log files, or of a server that sends them.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use binlog::event::{self, CHECKSUM_BYTES, Events, HEADER_BYTES, MAGIC};
use binlog::{Event, EventKind, GtidSet, Header, decode};
use wire::CommandCode;

use crate::import::address::Address;
use crate::import::server::Server;

/// What an encrypted file begins with.
const ENCRYPTED: [u8; 4] = [0xfd, b'b', b'i', b'n'];
/// Most bytes of an event: MySQL's largest packet and its frame.
const EVENT_BYTES_MAX: u32 = (1 << 30) + (1 << 16);
/// Most bytes of a compressed transaction once it is not.
const PAYLOAD_BYTES_MAX: u64 = 1 << 32;

/// Where an event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The file's name, without its directory.
    pub(super) file: String,
    /// The first byte of the event; of events in a compressed transaction, that of the whole.
    pub(super) start: u64,
    /// The byte after it.
    pub(super) end: u64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.file, self.start)
    }
}

/// Takes an event: its place, its header, its body without checksum. It breaks to end the reading.
pub(super) type Take<'t> =
    dyn FnMut(&Place, &Header, &[u8]) -> Result<ControlFlow<()>, String> + 't;

/// The log files of directories and files, in order of their names' numbers.
///
/// # Errors
/// A directory cannot be read or has no log file.
pub(super) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::new();
    for path in paths {
        if !path.is_dir() {
            all.push(path.clone());
            continue;
        }
        let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut found = Vec::new();
        for entry in std::fs::read_dir(path).map_err(wrong)? {
            let file = entry.map_err(wrong)?.path();
            if file.is_file() && number_of(&file).is_some() {
                found.push(file);
            }
        }
        if found.is_empty() {
            return Err(format!("{}: no log file like binlog.000001", path.display()));
        }
        found.sort_by_key(|file| (file.file_stem().map(ToOwned::to_owned), number_of(file)));
        all.append(&mut found);
    }
    Ok(all)
}

/// The number at the end of a log file's name.
fn number_of(path: &Path) -> Option<u64> {
    let digits = path.extension()?.to_str()?;
    let are_digits = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| are_digits)
}

/// Gives the events of a file to `take`, from its first on; `Break` when `take` ended it.
///
/// # Errors
/// The file cannot be read, is no log, is encrypted or damaged; those of `take`.
pub(super) fn file(path: &Path, take: &mut Take<'_>) -> Result<ControlFlow<()>, String> {
    let shown = path.display();
    let opened = File::open(path).map_err(|error| format!("{shown}: {error}"))?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    log(&mut BufReader::new(opened), &name, take).map_err(|error| match error {
        Wrong::Log(text) => format!("{shown}: {text}"),
        Wrong::Taker(text) => text,
    })
}

/// Why reading ended too early.
#[derive(Debug)]
pub(super) enum Wrong {
    /// The log itself.
    Log(String),
    /// An error of what takes the events.
    Taker(String),
}

/// Gives the events of a log to `take`.
pub(super) fn log(
    input: &mut dyn Read,
    name: &str,
    take: &mut Take<'_>,
) -> Result<ControlFlow<()>, Wrong> {
    let mut magic = [0; 4];
    if input.read_exact(&mut magic).is_err() || magic != MAGIC {
        return Err(Wrong::Log(if magic == ENCRYPTED {
            "the file is encrypted: read it from its server with --from".to_owned()
        } else {
            "this is no binary log".to_owned()
        }));
    }
    let mut start = MAGIC.len() as u64;
    let mut has_checksums = false;
    loop {
        let damaged = |why: &str| {
            Wrong::Log(format!("damaged at position {start}: {why}; nothing after it is read"))
        };
        let Some(event) = next_event(input).map_err(|why| damaged(&why))? else {
            return Ok(ControlFlow::Continue(()));
        };
        let header = Header::read(&event).map_err(|error| damaged(&error.to_string()))?;
        if header.kind == EventKind::FORMAT_DESCRIPTION {
            // It says itself whether events have one; the byte is before its own.
            let at = event.len().checked_sub(CHECKSUM_BYTES + 1);
            has_checksums = at.and_then(|at| event.get(at)) == Some(&1);
        } else if start == MAGIC.len() as u64 {
            return Err(damaged("the log does not begin with its format"));
        }
        let body = body_of(&header, &event, has_checksums).map_err(|why| damaged(&why))?;
        let end = start + event.len() as u64;
        let place = Place { file: name.to_owned(), start, end };
        if pass(&place, &header, body, take)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        start = end;
    }
}

/// The bytes of the next event; `None` at the end.
fn next_event(input: &mut dyn Read) -> Result<Option<Vec<u8>>, String> {
    const CUT: &str = "the file ends within an event";
    let mut event = Vec::new();
    let read = (&mut *input).take(HEADER_BYTES as u64).read_to_end(&mut event);
    match read.map_err(|error| error.to_string())? {
        0 => return Ok(None),
        HEADER_BYTES => {}
        _ => return Err(CUT.to_owned()),
    }
    let size = Header::read(&event).map_err(|error| error.to_string())?.size;
    if size > EVENT_BYTES_MAX {
        return Err(format!("an event of {size} bytes"));
    }
    let rest = u64::from(size) - HEADER_BYTES as u64;
    match (&mut *input).take(rest).read_to_end(&mut event) {
        Ok(read) if read as u64 == rest => Ok(Some(event)),
        Ok(_) => Err(CUT.to_owned()),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(CUT.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The body, after a comparison of the checksum if there is one.
fn body_of<'e>(header: &Header, event: &'e [u8], has_checksums: bool) -> Result<&'e [u8], String> {
    if has_checksums {
        return event::open(event).map(|(_, body)| body).map_err(|error| error.to_string());
    }
    if header.size as usize != event.len() {
        return Err("size".to_owned());
    }
    // The format has room for a checksum in any case.
    let is_format = header.kind == EventKind::FORMAT_DESCRIPTION;
    let end = event.len() - if is_format { CHECKSUM_BYTES } else { 0 };
    event.get(HEADER_BYTES..end).ok_or_else(|| "size".to_owned())
}

/// Gives an event to `take`, or those in it if it is a compressed transaction.
fn pass(
    place: &Place,
    header: &Header,
    body: &[u8],
    take: &mut Take<'_>,
) -> Result<ControlFlow<()>, Wrong> {
    let damaged = |error| Wrong::Log(format!("damaged at position {}: {error}", place.start));
    if header.kind == EventKind::FORMAT_DESCRIPTION
        && let Event::FormatDescription(format) = decode(header.kind, body).map_err(damaged)?
    {
        let version = String::from_utf8_lossy(format.server_version);
        if version.contains("MariaDB") {
            return Err(Wrong::Log(format!("the log of {version}: only MySQL's is read")));
        }
    }
    if header.kind != EventKind::TRANSACTION_PAYLOAD {
        return take(place, header, body).map_err(Wrong::Taker);
    }
    let Event::TransactionPayload(payload) = decode(header.kind, body).map_err(damaged)? else {
        return Ok(ControlFlow::Continue(()));
    };
    let bytes = payload.events(PAYLOAD_BYTES_MAX).map_err(damaged)?;
    let mut events = Events::new(&bytes);
    for (header, event) in events.by_ref() {
        let body = event.get(HEADER_BYTES..).unwrap_or_default();
        if take(place, &header, body).map_err(Wrong::Taker)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    match events.rest() {
        [] => Ok(ControlFlow::Continue(())),
        _ => Err(damaged(binlog::Malformed("payload"))),
    }
}

/// Gives the events of a server to `take`, without the transactions in `without`, up to where its log ends now.
///
/// # Errors
/// The server cannot be reached or refuses; what it sends is damaged; those of `take`.
pub(super) fn server(
    address: &Address,
    without: &GtidSet,
    take: &mut Take<'_>,
) -> Result<(), String> {
    let mut server = Server::new(address.connect()?)?;
    if server.connection.server_version.contains("MariaDB") {
        return Err(format!("{address} is a MariaDB: only MySQL's log is read"));
    }
    let checksum = server.cell("SELECT @@GLOBAL.binlog_checksum")?;
    server.run(&format!(
        "SET @source_binlog_checksum = '{checksum}', @master_binlog_checksum = '{checksum}'"
    ))?;
    let purged = server.cell("SELECT @@GLOBAL.gtid_purged")?;
    let purged = GtidSet::parse(&purged).ok_or("the server's gtid_purged is no set")?;
    let without = without.union(&purged);
    let mut payload = Vec::new();
    let is_tagged = without.iter().any(|(_, tag, _)| !tag.is_empty());
    binlog::envelope::write_dump_gtid(0, &without, is_tagged, &mut payload);
    // It ends where the log ends instead of waiting.
    payload[0] |= 1;
    let failed = |error: client::Failure| format!("{address}: {error}");
    server.connection.send_command(CommandCode::BinlogDumpGtid, &payload).map_err(failed)?;
    let mut has_checksums = !checksum.eq_ignore_ascii_case("NONE");
    let mut file = String::new();
    while let Some(packet) = server.connection.next_packet().map_err(failed)? {
        let event = packet.get(1..).unwrap_or_default();
        let damaged = |why: String| format!("{address}: a damaged event in {file}: {why}");
        let header = Header::read(event).map_err(|error| damaged(error.to_string()))?;
        if header.kind == EventKind::FORMAT_DESCRIPTION {
            let at = event.len().checked_sub(CHECKSUM_BYTES + 1);
            has_checksums = at.and_then(|at| event.get(at)) == Some(&1);
        }
        let body = body_of(&header, event, has_checksums).map_err(damaged)?;
        if header.kind == EventKind::ROTATE
            && let Ok(Event::Rotate(rotate)) = decode(header.kind, body)
        {
            file = String::from_utf8_lossy(rotate.name).into_owned();
        }
        let end = u64::from(header.position);
        let place =
            Place { file: file.clone(), start: end.saturating_sub(u64::from(header.size)), end };
        let passed = pass(&place, &header, body, take).map_err(|wrong| match wrong {
            Wrong::Log(text) => format!("{address}: {text}"),
            Wrong::Taker(text) => text,
        });
        if passed?.is_break() {
            break;
        }
    }
    Ok(())
}
