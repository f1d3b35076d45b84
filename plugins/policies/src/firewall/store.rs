//! The file `firewall` in the data directory: a line for each change, durable before the change counts. `docs/logs-and-policies.md` says
//! what a backup does about it.
//!
//! `CHECKSUM mode ACCOUNT MODE`, `CHECKSUM rule ACCOUNT RULE` or `CHECKSUM reset ACCOUNT`: a CRC-32 of what follows the blank as eight
//! hexadecimal digits; accounts and rules in hexadecimal digits, as they may have any character. A last line without its end was never
//! acknowledged and does not count.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use sys::files::{self, Existing, File};
use sys::io_times::IoTimes;

use crate::firewall::profiles::Mode;

const NAME: &str = "firewall";
const NEW_NAME: &str = "firewall-new";
const FILE_MODE: u32 = 0o640;

/// A change of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Mode { account: String, mode: Mode },
    Rule { account: String, rule: String },
    Reset { account: String },
}

/// Where changes go.
#[derive(Debug)]
pub(crate) struct Store {
    /// None where there is no data directory: with `--in-memory`.
    directory: Option<PathBuf>,
    times: IoTimes,
}

fn damaged(line: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("line {line} is damaged"))
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Option<String> {
    let pairs = (0..digits.len()).step_by(2);
    let bytes: Option<Vec<u8>> =
        pairs.map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect();
    String::from_utf8(bytes?).ok()
}

fn checksum(text: &str) -> String {
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, text.as_bytes());
    format!("{sum:08x}")
}

impl Entry {
    fn line(&self) -> String {
        let text = match self {
            Entry::Mode { account, mode } => format!("mode {} {}", hex(account), mode.name()),
            Entry::Rule { account, rule } => format!("rule {} {}", hex(account), hex(rule)),
            Entry::Reset { account } => format!("reset {}", hex(account)),
        };
        format!("{} {text}\n", checksum(&text))
    }

    fn parse(line: &str) -> Option<Entry> {
        let (sum, text) = line.split_once(' ')?;
        if sum != checksum(text) {
            return None;
        }
        let mut words = text.split(' ');
        let (word, account) = (words.next()?, unhex(words.next()?)?);
        match word {
            "mode" => Some(Entry::Mode { account, mode: Mode::called(words.next()?)? }),
            "rule" => Some(Entry::Rule { account, rule: unhex(words.next()?)? }),
            "reset" => Some(Entry::Reset { account }),
            _ => None,
        }
    }
}

/// The entries of a file.
fn parse(text: &str) -> io::Result<Vec<Entry>> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().enumerate();
    lines.map(|(at, line)| Entry::parse(line).ok_or_else(|| damaged(at + 1))).collect()
}

impl Store {
    /// The file of a data directory, and what is in it.
    ///
    /// # Errors
    /// I/O, `InvalidData`.
    pub(crate) fn open(directory: &Path) -> io::Result<(Store, Vec<Entry>)> {
        let directory = files::exists(directory).then(|| directory.to_owned());
        let mut store = Store { directory, times: IoTimes::default() };
        let Some(directory) = &store.directory else { return Ok((store, Vec::new())) };
        let bytes = match files::read(&directory.join(NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((store, Vec::new()));
            }
            other => other?,
        };
        let is_whole = bytes.last().is_none_or(|last| *last == b'\n');
        let text = String::from_utf8(bytes).map_err(|_| damaged(1))?;
        let entries = parse(&text)?;
        if !is_whole {
            // The next line must not continue the torn one.
            store.rewrite(entries.iter().cloned())?;
        }
        Ok((store, entries))
    }

    /// Adds a change, durably.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn append(&mut self, entry: &Entry) -> io::Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let path = directory.join(NAME);
        let is_new = !files::exists(&path);
        let mut file = File::create(&path, FILE_MODE, Existing::Append)?;
        let size = file.size_bytes()?;
        let done = file.write_all(entry.line().as_bytes()).and_then(|()| file.sync(&self.times));
        if let Err(error) = done {
            // A part of a line would damage the next one.
            file.set_size(size)?;
            return Err(error);
        }
        if is_new { files::sync_directory(directory, &self.times) } else { Ok(()) }
    }

    /// Writes the file anew, durably.
    ///
    /// # Errors
    /// I/O; the old one stays.
    pub(crate) fn rewrite(&mut self, entries: impl Iterator<Item = Entry>) -> io::Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let new = directory.join(NEW_NAME);
        let mut file = File::create(&new, FILE_MODE, Existing::Replace)?;
        let lines: String = entries.map(|entry| entry.line()).collect();
        file.write_all(lines.as_bytes())?;
        file.sync(&self.times)?;
        files::rename(&new, &directory.join(NAME))?;
        files::sync_directory(directory, &self.times)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

    use super::*;

    fn entries() -> Vec<Entry> {
        let account = || "a b@%".to_owned();
        vec![
            Entry::Mode { account: account(), mode: Mode::Recording },
            Entry::Rule { account: account(), rule: "SELECT `é\n` FROM `t`".into() },
            Entry::Mode { account: account(), mode: Mode::Protecting },
            Entry::Reset { account: "x@h".into() },
        ]
    }

    #[test]
    fn entries_are_read_as_they_were_written_or_not_at_all() {
        let text: String = entries().iter().map(Entry::line).collect();
        assert_eq!(parse(&text).ok(), Some(entries()));
        for at in 0..text.len() - 1 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8_lossy(&bytes).into_owned();
            assert!(parse(&changed).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_torn_last_line_does_not_count_and_damages_nothing() {
        let directory = std::env::temp_dir().join(format!("firewall-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let (mut store, none) = Store::open(&directory).expect("no file");
        assert_eq!(none, []);
        entries().iter().for_each(|entry| store.append(entry).expect("written"));
        let path = directory.join(NAME);
        let bytes = std::fs::read(&path).expect("the file");
        std::fs::write(&path, &bytes[..bytes.len() - 4]).expect("cut");
        let (mut store, read) = Store::open(&directory).expect("read");
        assert_eq!(read, entries()[..3]);
        store.append(&entries()[3]).expect("written");
        assert_eq!(Store::open(&directory).map(|(_, read)| read).ok(), Some(entries()));
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
