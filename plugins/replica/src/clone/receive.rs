//! The rows of the donor's BACKUP DATABASE TO STREAM as files here. Everything in them is checked: names, places, sums, and at the end that what came is all.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use client::Answer;
use crc_fast::{CrcAlgorithm, Digest};
use errors::{Error, ErrorCode, Result, err};
use sys::disk::DiskKey;
use sys::encryption::FileSealer;
use sys::files::File;

use super::Shared;
use super::staging::Staging;
use super::status::{FILE_COPY, PAGE_COPY, REDO_COPY};
use crate::remote::Halt;

/// What the donor is asked.
pub(crate) const STATEMENT: &str = "BACKUP DATABASE TO STREAM";
/// What an encrypted one is asked: the files without their encryption.
pub(crate) const PLAIN_STATEMENT: &str = "BACKUP DATABASE TO STREAM PLAIN";
const MANIFEST: &str = "manifest";
const MANIFEST_FIRST_LINE: &str = "squall-backup 1";
/// Says which transactions of the binary log the backup has.
const EXECUTED: &str = "binary-log";
const PAGES: &str = "space";
const LOG_PREFIX: &str = "wal-";
/// Most bytes of a file that is kept in memory too.
const TEXT_MAX: usize = 256 << 20;
const NAME_MAX: usize = 255;

/// A file that came.
struct Come {
    name: String,
    bytes: u64,
    crc: u64,
}

/// The file that is coming.
struct Coming {
    name: String,
    file: File,
    bytes: u64,
    sum: Digest,
    /// Where this directory is encrypted.
    sealer: Option<FileSealer>,
}

/// Takes the rows.
pub(crate) struct Receiver<'r> {
    staging: &'r Staging<'r>,
    /// The key under which the files are encrypted here.
    key: Option<Arc<dyn DiskKey>>,
    shared: &'r Shared,
    halt: &'r Halt,
    coming: Option<Coming>,
    files: Vec<Come>,
    manifest: Vec<u8>,
    executed: Vec<u8>,
    has_room: bool,
    error: Option<Error>,
}

fn unexpected(what: &str) -> Error {
    err!(CLONE_PROTOCOL, what)
}

fn write_error(path: &Path, error: &io::Error) -> Error {
    let number = error.raw_os_error().unwrap_or(0);
    Error::with(ErrorCode::ERROR_ON_WRITE, &[&path.display(), &number, error])
}

/// A name that stays in its directory.
fn is_file_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=NAME_MAX).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_plain)
}

/// As the reference shows sizes.
fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    format!("{size:.2} {}", UNITS[unit])
}

impl<'r> Receiver<'r> {
    pub(crate) fn new(
        staging: &'r Staging<'r>,
        key: Option<Arc<dyn DiskKey>>,
        shared: &'r Shared,
        halt: &'r Halt,
    ) -> Receiver<'r> {
        Receiver {
            staging,
            key,
            shared,
            halt,
            coming: None,
            files: Vec::new(),
            manifest: Vec::new(),
            executed: Vec::new(),
            has_room: false,
            error: None,
        }
    }

    /// Why it stopped to take rows.
    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    fn take(&mut self, cells: &[Option<&[u8]>]) -> Result<()> {
        let [Some(name), Some(offset), Some(data), Some(sum), Some(expected)] = cells else {
            return Err(unexpected("a row of another form"));
        };
        let number = |cell: &[u8]| std::str::from_utf8(cell).ok()?.parse::<u64>().ok();
        let name = std::str::from_utf8(name).ok().filter(|name| is_file_name(name));
        let (Some(name), Some(offset), Some(sum), Some(expected)) =
            (name, number(offset), number(sum), number(expected))
        else {
            return Err(unexpected("a row without name, place or checksum"));
        };
        if crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, data) != sum {
            return Err(unexpected(&format!("wrong checksum in file {name} at {offset}")));
        }
        self.check_room(expected)?;
        if self.coming.as_ref().is_none_or(|coming| coming.name != name) {
            self.finish_file()?;
            self.begin_file(name)?;
        }
        let Some(coming) = &mut self.coming else { return Ok(()) };
        if coming.bytes != offset {
            return Err(unexpected(&format!("file {name} goes on at another place")));
        }
        coming.bytes += data.len() as u64;
        coming.sum.update(data);
        let path = path_of(self.staging, name);
        let sealed = coming.sealer.as_mut().map(|sealer| sealer.seal(data));
        let written = coming.file.write_all(sealed.as_deref().unwrap_or(data));
        written.map_err(|error| write_error(&path, &error))?;
        if let Some(text) = match name {
            MANIFEST => Some(&mut self.manifest),
            EXECUTED => Some(&mut self.executed),
            _ => None,
        } {
            text.extend_from_slice(data);
            if text.len() > TEXT_MAX {
                return Err(unexpected(&format!("file {name} is too large")));
            }
        }
        let stage = match name {
            PAGES => FILE_COPY,
            _ if name.starts_with(LOG_PREFIX) => REDO_COPY,
            MANIFEST | EXECUTED => REDO_COPY,
            _ => PAGE_COPY,
        };
        let expected = if stage == FILE_COPY { expected } else { 0 };
        self.shared.change(|status| status.add(stage, data.len() as u64, expected));
        Ok(())
    }

    /// Once, as soon as the donor has said how much comes.
    fn check_room(&mut self, expected: u64) -> Result<()> {
        if self.has_room || expected == 0 {
            return Ok(());
        }
        self.has_room = true;
        match self.staging.space() {
            Some(free) if free < expected => {
                Err(err!(CLONE_DISK_SPACE, size_text(expected), size_text(free)))
            }
            _ => Ok(()),
        }
    }

    fn begin_file(&mut self, name: &str) -> Result<()> {
        if self.files.iter().any(|known| known.name == name) {
            return Err(unexpected(&format!("file {name} comes twice")));
        }
        let path = path_of(self.staging, name);
        let mut file = self.staging.create(&path).map_err(|error| write_error(&path, &error))?;
        let mut sealer = None;
        if let Some(key) = self.key.as_ref().filter(|_| name != MANIFEST) {
            let sealed = FileSealer::new(&**key).and_then(|(sealer, header)| {
                file.write_all(&header)?;
                Ok(sealer)
            });
            sealer = Some(sealed.map_err(|error| write_error(&path, &error))?);
        }
        let sum = Digest::new(CrcAlgorithm::Crc32Iscsi);
        self.coming = Some(Coming { name: name.to_owned(), file, bytes: 0, sum, sealer });
        Ok(())
    }

    fn finish_file(&mut self) -> Result<()> {
        let Some(mut coming) = self.coming.take() else { return Ok(()) };
        let path = path_of(self.staging, &coming.name);
        if let Some(sealer) = coming.sealer.take() {
            let written = coming.file.write_all(&sealer.end());
            written.map_err(|error| write_error(&path, &error))?;
        }
        self.staging.finish(&coming.file).map_err(|error| write_error(&path, &error))?;
        let Coming { name, bytes, sum, .. } = coming;
        self.files.push(Come { name, bytes, crc: sum.finalize() });
        Ok(())
    }

    /// The donor has sent all: whether that is a whole backup. Returns the transactions that it has, when the donor has a binary log.
    pub(crate) fn finish(&mut self) -> Result<Option<String>> {
        self.finish_file()?;
        if let Some(key) = &self.key {
            // With it the keyring of this server opens the clone.
            let (name, text) = key.file();
            let path = self.staging.storage(name);
            let written = self.staging.create(&path).and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                self.staging.finish(&file)
            });
            written.map_err(|error| write_error(&path, &error))?;
        }
        let text = std::str::from_utf8(&self.manifest).ok();
        let listed = text.and_then(listed_files);
        let listed = listed.ok_or_else(|| unexpected("the list of files is missing or damaged"))?;
        for (name, bytes, crc) in &listed {
            let is_same = |come: &&Come| come.name == *name;
            let come = self.files.iter().find(is_same);
            if come.is_none_or(|come| (come.bytes, come.crc) != (*bytes, *crc)) {
                return Err(unexpected(&format!("file {name} is missing or damaged")));
            }
        }
        let is_known = |come: &Come| {
            matches!(come.name.as_str(), MANIFEST | EXECUTED)
                || listed.iter().any(|(name, ..)| *name == come.name)
        };
        if let Some(stranger) = self.files.iter().find(|come| !is_known(come)) {
            return Err(unexpected(&format!("file {} is not listed", stranger.name)));
        }
        if self.executed.is_empty() {
            return Ok(None);
        }
        let executed = std::str::from_utf8(&self.executed).ok().and_then(executed_set);
        executed.map(Some).ok_or_else(|| unexpected("the list of transactions is damaged"))
    }
}

fn path_of(staging: &Staging<'_>, name: &str) -> std::path::PathBuf {
    if name == EXECUTED { staging.cloned() } else { staging.storage(name) }
}

/// The files of a manifest: `docs/format/backup.md`.
fn listed_files(manifest: &str) -> Option<Vec<(&str, u64, u64)>> {
    let end = manifest.trim_end_matches('\n').rfind('\n')? + 1;
    let (content, last) = manifest.split_at(end);
    let crc = u64::from_str_radix(last.trim_end().strip_prefix("end ")?, 16).ok()?;
    if crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, content.as_bytes()) != crc {
        return None;
    }
    let mut lines = content.lines();
    if lines.next()? != MANIFEST_FIRST_LINE {
        return None;
    }
    let files = lines.filter_map(|line| line.strip_prefix("file ")).map(|line| {
        let mut words = line.split(' ');
        let (name, bytes, crc) = (words.next()?, words.next()?, words.next()?);
        Some((name, bytes.parse().ok()?, u64::from_str_radix(crc, 16).ok()?))
    });
    files.collect()
}

/// The set of transactions of the file `binary-log`.
fn executed_set(text: &str) -> Option<String> {
    let set = text.lines().find_map(|line| line.strip_prefix("executed "))?;
    binlog::GtidSet::parse(set)?;
    text.ends_with("\nend\n").then(|| set.to_owned())
}

impl Answer for Receiver<'_> {
    fn row(&mut self, cells: &[Option<&[u8]>]) {
        if self.error.is_some() {
            return;
        }
        if let Err(error) = self.take(cells) {
            self.error = Some(error);
            // The rest is not read.
            self.halt.fail();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_directory() {
        for good in ["space", "wal-0000.log", "undo-1_2", "straddle-1"] {
            assert!(is_file_name(good), "{good}");
        }
        for bad in ["", ".", "..", "../x", "a/b", "a\0b", "/etc/passwd", ".hidden"] {
            assert!(!is_file_name(bad), "{bad}");
        }
    }

    #[test]
    fn a_manifest_is_read_whole_or_not_at_all() {
        let content =
            "squall-backup 1\nidentity 00\nfile space 16384 0a0b0c0d\nfile undo 1 00000001\n";
        let crc = crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, content.as_bytes());
        let whole = format!("{content}end {crc:08x}\n");
        assert_eq!(listed_files(&whole), Some(vec![("space", 16384, 0x0a0b_0c0d), ("undo", 1, 1)]));
        for cut in [0, 5, content.len(), whole.len() - 3] {
            assert_eq!(listed_files(&whole[..cut]), None, "{cut}");
        }
        assert_eq!(listed_files(&whole.replace("16384", "16385")), None);
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(size_text(512), "512.00 bytes");
        assert_eq!(size_text(3 << 30), "3.00 GiB");
    }
}
