//! The list of a backup's files: a text, written last, so that a backup without it is incomplete (docs/format/backup.md).

use std::io;

use sys::disk::{Disk, OpenMode};

/// Name of the list.
pub(crate) const MANIFEST: &str = "manifest";
/// Name of the file of pages.
pub(crate) const SPACE: &str = "space";
/// Name of the checkpoint's file.
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// First line: the kind of file and the version of the format.
const TITLE: &str = "squall-backup 1";
/// No list is longer: a line for each file.
const BYTES_MAX: u64 = 64 << 20;

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileSum {
    pub name: String,
    pub bytes: u64,
    pub crc: u32,
}

/// The description of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Of the data directory that it is of.
    pub identity: String,
    pub page_bytes: u32,
    pub block_bytes: u32,
    pub started_micros: u64,
    pub ended_micros: u64,
    /// Log before it is not needed.
    pub first_segment: u64,
    /// Commits below it are in the backup.
    pub end_position: u64,
    pub files: Vec<FileSum>,
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// The last line of a list.
pub(crate) fn end_line(body: &str) -> String {
    format!("end {:08x}\n", page::crc(body.as_bytes()))
}

impl Manifest {
    pub fn encode(&self) -> String {
        let mut out = format!(
            "{TITLE}\nidentity {}\npage_bytes {}\nblock_bytes {}\nstarted_micros {}\n\
             ended_micros {}\nfirst_segment {}\nend_position {}\n",
            self.identity,
            self.page_bytes,
            self.block_bytes,
            self.started_micros,
            self.ended_micros,
            self.first_segment,
            self.end_position,
        );
        for FileSum { name, bytes, crc } in &self.files {
            out.push_str(&format!("file {name} {bytes} {crc:08x}\n"));
        }
        let end = end_line(&out);
        out + &end
    }

    pub(crate) fn decode(text: &str) -> Option<Manifest> {
        let (body, end) = text.split_at_checked(text.trim_end().rfind('\n')? + 1)?;
        // To the letter: a damaged digit may be the same number.
        if end != end_line(body) {
            return None;
        }
        let mut lines = body.lines().skip(1);
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let mut manifest = Manifest {
            identity: field("identity")?.to_owned(),
            page_bytes: field("page_bytes")?.parse().ok()?,
            block_bytes: field("block_bytes")?.parse().ok()?,
            started_micros: field("started_micros")?.parse().ok()?,
            ended_micros: field("ended_micros")?.parse().ok()?,
            first_segment: field("first_segment")?.parse().ok()?,
            end_position: field("end_position")?.parse().ok()?,
            files: Vec::new(),
        };
        for line in lines {
            let mut words = line.strip_prefix("file ")?.split(' ');
            let (name, bytes, crc) = (words.next()?, words.next()?, words.next()?);
            // A name leads nowhere but into the directory.
            if name.is_empty() || name.contains('/') || name.starts_with('.') {
                return None;
            }
            let (bytes, crc) = (bytes.parse().ok()?, u32::from_str_radix(crc, 16).ok()?);
            manifest.files.push(FileSum { name: name.to_owned(), bytes, crc });
        }
        Some(manifest)
    }

    /// Reads the list of a backup.
    ///
    /// # Errors
    /// It is missing or damaged; I/O.
    pub fn read(disk: &dyn Disk) -> io::Result<Manifest> {
        let file = match disk.open(MANIFEST, OpenMode::Existing) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(invalid(
                    "there is no file `manifest`: this is not a backup, or an incomplete one; \
                     use another backup",
                ));
            }
            other => other?,
        };
        let mut bytes = vec![0; file.size_bytes()?.min(BYTES_MAX) as usize];
        let count = file.read_at(&mut bytes, 0)?;
        let text = String::from_utf8_lossy(&bytes[..count]);
        if text
            .lines()
            .next()
            .is_some_and(|line| line != TITLE && line.starts_with("squall-backup"))
        {
            return Err(invalid(
                "the backup has a format that this version does not know; restore it with the version \
                 that made it, or a later one",
            ));
        }
        Manifest::decode(&text).ok_or_else(|| {
            invalid("the file `manifest` is damaged; use another copy of the backup")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::sim::SimDisk;

    fn sample() -> Manifest {
        let file = |name: &str, bytes| FileSum { name: name.into(), bytes, crc: 0xABCD };
        Manifest {
            identity: "0123".into(),
            page_bytes: 16384,
            block_bytes: 4096,
            started_micros: 1,
            ended_micros: 2,
            first_segment: 3,
            end_position: 4,
            files: vec![file("space", 16384), file("wal-000000000003.log", 4096)],
        }
    }

    fn read(bytes: &[u8]) -> io::Result<Manifest> {
        let disk = SimDisk::new();
        disk.open(MANIFEST, OpenMode::OrCreate)?.write_at(bytes, 0)?;
        Manifest::read(&disk)
    }

    #[test]
    fn a_list_reads_back_and_a_damaged_one_does_not() {
        let text = sample().encode();
        assert_eq!(read(text.as_bytes()).unwrap(), sample());
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut damaged = text.clone().into_bytes();
                damaged[at] ^= 1 << bit;
                assert!(read(&damaged).is_err(), "byte {at} bit {bit}");
            }
            assert!(read(&text.as_bytes()[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        let mut manifest = sample();
        manifest.files[0].name = "../space".into();
        assert!(read(manifest.encode().as_bytes()).is_err());
    }
}
