//! The file `streams`: the change streams and how far their readers are. `docs/format/binary-log.md` describes it.

use std::fmt::Write as _;
use std::io;

use sys::disk::{Disk, OpenMode};
use types::GtidSet;

use crate::state_file::checked_lines;
use crate::streams::{Scope, SinkSpec, Stream, one_line};

const NAME: &str = "streams";
const NEW_NAME: &str = "streams-new";
const FIRST_LINE: &str = "squall-change-streams 2";
/// Without sinks.
const OLD_FIRST_LINE: &str = "squall-change-streams 1";

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file `streams` of the binary log is damaged")
}

/// A text as hexadecimal digits: names may have any character.
fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Option<String> {
    let pairs = (0..digits.len()).step_by(2);
    let bytes: Option<Vec<u8>> =
        pairs.map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect();
    String::from_utf8(bytes?).ok()
}

fn text(streams: &[Stream]) -> String {
    let mut text = format!("{FIRST_LINE}\n");
    for stream in streams {
        put(stream, &mut text);
    }
    let sum = binlog::event::checksum(text.as_bytes());
    // Writing to a string does not fail.
    let _ = writeln!(text, "checksum {sum:08x}");
    text
}

fn put(stream: &Stream, out: &mut String) {
    let Stream { retention_bytes, retention_seconds, confirmed_micros, .. } = stream;
    let flag = u8::from;
    let _ = writeln!(out, "stream {}", hex(&stream.name));
    match &stream.scope {
        Scope::All => out.push_str("scope all\n"),
        Scope::Schema(schema) => {
            let _ = writeln!(out, "scope schema {}", hex(schema));
        }
        Scope::Tables(tables) => {
            let names =
                tables.iter().map(|(schema, table)| format!(" {}.{}", hex(schema), hex(table)));
            let _ = writeln!(out, "scope tables{}", names.collect::<String>());
        }
    }
    let _ = writeln!(out, "confirmed {}", one_line(&stream.confirmed));
    let _ = writeln!(out, "confirmed_at {confirmed_micros}");
    let _ = writeln!(out, "retention {retention_bytes} {retention_seconds}");
    let (snapshot, before) = (flag(stream.wants_snapshot), flag(stream.has_before));
    let _ = writeln!(out, "flags {snapshot} {before} {}", flag(stream.has_schema));
    let lost = stream.lost.as_deref().map_or_else(|| "-".to_owned(), hex);
    let _ = writeln!(out, "lost {lost}");
    match &stream.sink {
        None => out.push_str("sink -\n"),
        Some(SinkSpec { name, options, batch_events, batch_bytes }) => {
            let options = options.iter().map(|(name, value)| format!(" {name}={}", hex(value)));
            let (paused, options) = (flag(stream.is_paused), options.collect::<String>());
            let _ =
                writeln!(out, "sink {} {paused} {batch_events} {batch_bytes}{options}", hex(name));
        }
    }
}

/// The sink, and whether it waits.
fn parse_sink(text: &str) -> Option<(Option<SinkSpec>, bool)> {
    if text == "-" {
        return Some((None, false));
    }
    let mut words = text.split(' ');
    let mut sink = SinkSpec::new(&unhex(words.next()?)?);
    let is_paused = words.next()? == "1";
    sink.batch_events = words.next()?.parse().ok()?;
    sink.batch_bytes = words.next()?.parse().ok()?;
    for option in words {
        let (name, value) = option.split_once('=')?;
        sink.options.set(name, &unhex(value)?);
    }
    Some((Some(sink), is_paused))
}

fn parse(text: &str) -> Option<Vec<Stream>> {
    let (mut lines, has_sinks) = match checked_lines(text, FIRST_LINE) {
        Some(lines) => (lines, true),
        None => (checked_lines(text, OLD_FIRST_LINE)?, false),
    };
    let mut streams = Vec::new();
    while let Some(line) = lines.next() {
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let mut stream = Stream::new(&unhex(line.strip_prefix("stream ")?)?, GtidSet::default());
        stream.scope = parse_scope(field("scope")?)?;
        stream.confirmed = GtidSet::parse(field("confirmed")?)?;
        stream.confirmed_micros = field("confirmed_at")?.parse().ok()?;
        let (bytes, seconds) = field("retention")?.split_once(' ')?;
        (stream.retention_bytes, stream.retention_seconds) =
            (bytes.parse().ok()?, seconds.parse().ok()?);
        let flags: Vec<bool> = field("flags")?.split(' ').map(|flag| flag == "1").collect();
        let [snapshot, before, schema] = flags[..] else { return None };
        (stream.wants_snapshot, stream.has_before, stream.has_schema) = (snapshot, before, schema);
        let lost = field("lost")?;
        stream.lost = if lost == "-" { None } else { Some(unhex(lost)?) };
        if has_sinks {
            (stream.sink, stream.is_paused) = parse_sink(field("sink")?)?;
        }
        streams.push(stream);
    }
    Some(streams)
}

fn parse_scope(text: &str) -> Option<Scope> {
    if text == "all" {
        return Some(Scope::All);
    }
    if let Some(schema) = text.strip_prefix("schema ") {
        return Some(Scope::Schema(unhex(schema)?));
    }
    let pair = |name: &str| {
        let (schema, table) = name.split_once('.')?;
        Some((unhex(schema)?, unhex(table)?))
    };
    let names = text.strip_prefix("tables")?.split_whitespace();
    Some(Scope::Tables(names.map(pair).collect::<Option<_>>()?))
}

/// Reads the streams; none without a file.
///
/// # Errors
/// I/O; `InvalidData`.
pub(crate) fn read(disk: &dyn Disk) -> io::Result<Vec<Stream>> {
    let file = match disk.open(NAME, OpenMode::Existing) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut bytes = vec![0; file.size_bytes()? as usize];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    let text = String::from_utf8(bytes).map_err(|_| damaged())?;
    parse(&text).ok_or_else(damaged)
}

/// Writes the file anew, durably.
///
/// # Errors
/// I/O; the old one stays.
pub(crate) fn write(disk: &dyn Disk, streams: &[Stream]) -> io::Result<()> {
    let file = disk.open(NEW_NAME, OpenMode::OrCreate)?;
    file.set_size(0)?;
    file.write_at(text(streams).as_bytes(), 0)?;
    file.sync()?;
    disk.rename(NEW_NAME, NAME)?;
    disk.sync_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_read_as_they_were_written_or_not_at_all() {
        let set = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7";
        let mut first = Stream::new("a b\n", GtidSet::parse(set).expect("a set"));
        first.scope = Scope::Tables(vec![("s".into(), "t.u".into()), ("é".into(), "x".into())]);
        first.lost = Some("why".into());
        let mut second = Stream::new("c", GtidSet::default());
        second.scope = Scope::Schema("s".into());
        second.wants_snapshot = true;
        second.has_before = false;
        let mut third = Stream::new("d", GtidSet::default());
        let mut sink = SinkSpec::new("webhook");
        sink.options.set("url", "http://a/?b=c d");
        sink.batch_events = 7;
        (third.sink, third.is_paused) = (Some(sink), true);
        let streams = vec![first, second, third];
        let text = text(&streams);
        assert_eq!(parse(&text), Some(streams));
        let old = "squall-change-streams 1\nstream 63\nscope all\nconfirmed \nconfirmed_at 5\n\
                   retention 1 2\nflags 0 1 1\nlost -\n";
        let old = format!("{old}checksum {:08x}\n", binlog::event::checksum(old.as_bytes()));
        assert_eq!(parse(&old).map(|streams| streams.len()), Some(1));
        for at in 0..text.len() - 1 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8_lossy(&bytes).into_owned();
            assert_eq!(parse(&changed), None, "byte {at}");
        }
    }
}
