//! The file `state`: what of the log's files is durable, and where in the engine's log the rest follows.

use std::fmt::Write as _;
use std::io;

use sys::disk::{Disk, OpenMode};
use types::GtidSet;

const NAME: &str = "state";
const NEW_NAME: &str = "state-new";
const FIRST_LINE: &str = "squall-binary-log 1";
/// What a clone brings: the transactions that it has (`docs/format/backup.md`).
pub(crate) const CLONED: &str = "cloned";
const FIRST_LINE_OF_CLONE: &str = "squall-backup-log 1";

/// What is durable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Durable {
    /// Number of the newest file.
    pub file: u64,
    /// Its bytes.
    pub size: u64,
    /// Number of its last transaction.
    pub sequence: i64,
    /// Position of the last commit in it.
    pub position: u64,
    /// All transactions executed.
    pub executed: GtidSet,
    /// Those no longer in the log.
    pub purged: GtidSet,
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file `state` of the binary log is damaged")
}

impl Durable {
    fn text(&self) -> String {
        let Durable { file, size, sequence, position, executed, purged } = self;
        let mut text = format!("{FIRST_LINE}\nfile {file}\nsize {size}\nsequence {sequence}\n");
        // Sets are shown with line breaks.
        let (executed, purged) = (executed.to_string(), purged.to_string());
        let [executed, purged] = [executed, purged].map(|set| set.replace('\n', ""));
        // Writing to a string does not fail.
        let _ = write!(text, "position {position}\nexecuted {executed}\npurged {purged}\n");
        let sum = binlog::event::checksum(text.as_bytes());
        let _ = writeln!(text, "checksum {sum:08x}");
        text
    }

    fn parse(text: &str) -> Option<Durable> {
        let mut lines = checked_lines(text, FIRST_LINE)?;
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        Some(Durable {
            file: field("file")?.parse().ok()?,
            size: field("size")?.parse().ok()?,
            sequence: field("sequence")?.parse().ok()?,
            position: field("position")?.parse().ok()?,
            executed: GtidSet::parse(field("executed")?)?,
            purged: GtidSet::parse(field("purged")?)?,
        })
    }

    /// Reads the file; `None` when there is none.
    ///
    /// # Errors
    /// I/O; `InvalidData`.
    pub fn read(disk: &dyn Disk) -> io::Result<Option<Durable>> {
        let Some(text) = read_text(disk, NAME)? else { return Ok(None) };
        Durable::parse(&text).map(Some).ok_or_else(damaged)
    }

    /// The beginning of the log of a data directory that was cloned; `None` in another one. Nothing is written yet: there is no file of the log.
    ///
    /// # Errors
    /// I/O; `InvalidData`.
    pub fn of_clone(disk: &dyn Disk) -> io::Result<Option<Durable>> {
        let Some(text) = read_text(disk, CLONED)? else { return Ok(None) };
        Durable::parse_clone(&text).map(Some).ok_or_else(damaged)
    }

    fn parse_clone(text: &str) -> Option<Durable> {
        let mut lines = text.lines();
        if lines.next()? != FIRST_LINE_OF_CLONE {
            return None;
        }
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let end: u64 = field("position")?.parse().ok()?;
        let executed = GtidSet::parse(field("executed")?)?;
        (lines.next()? == "end").then(|| Durable {
            // Commits at or after the end are not in the clone.
            position: end.saturating_sub(1),
            purged: executed.clone(),
            executed,
            ..Durable::default()
        })
    }

    /// What a clone brought is not needed any more: the state has it, or there is no log.
    ///
    /// # Errors
    /// I/O.
    pub fn forget_clone(disk: &dyn Disk) -> io::Result<()> {
        match disk.remove(CLONED) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Writes the file anew, durably.
    ///
    /// # Errors
    /// I/O; the old one stays.
    pub fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        let file = disk.open(NEW_NAME, OpenMode::OrCreate)?;
        file.set_size(0)?;
        file.write_at(self.text().as_bytes(), 0)?;
        file.sync()?;
        disk.rename(NEW_NAME, NAME)?;
        disk.sync_dir()
    }
}

/// The content of a file; `None` when there is none.
fn read_text(disk: &dyn Disk, name: &str) -> io::Result<Option<String>> {
    let file = match disk.open(name, OpenMode::Existing) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut bytes = vec![0; file.size_bytes()? as usize];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    String::from_utf8(bytes).map(Some).map_err(|_| damaged())
}

/// The lines after `first` of a text that ends with the checksum of what is before; `None` when it is damaged or another text.
pub(crate) fn checked_lines<'t>(text: &'t str, first: &str) -> Option<std::str::Lines<'t>> {
    let (content, sum) = text.trim_end_matches('\n').rsplit_once('\n')?;
    let sum = u32::from_str_radix(sum.strip_prefix("checksum ")?, 16).ok()?;
    if binlog::event::checksum(format!("{content}\n").as_bytes()) != sum {
        return None;
    }
    let mut lines = content.lines();
    (lines.next()? == first).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    #[test]
    fn the_log_of_a_clone_begins_after_what_the_clone_has() {
        let text =
            |end: &str| format!("squall-backup-log 1\nposition 50\nexecuted {UUID}:1-7\n{end}");
        let begun = Durable::parse_clone(&text("end\n")).expect("whole");
        assert_eq!((begun.position, begun.file, begun.size), (49, 0, 0));
        assert_eq!(begun.executed.to_string(), format!("{UUID}:1-7"));
        assert_eq!(begun.purged, begun.executed);
        assert_eq!(Durable::parse_clone(&text("")), None);
        let empty = "squall-backup-log 1\nposition 50\nexecuted \nend\n";
        assert!(Durable::parse_clone(empty).expect("whole").executed.is_empty());
    }

    #[test]
    fn a_state_is_read_as_it_was_written_or_not_at_all() {
        let set = |text: &str| GtidSet::parse(text).expect("a set");
        let durable = Durable {
            file: 3,
            size: 77,
            sequence: 5,
            position: 1234,
            executed: set(&format!("{UUID}:1-7")),
            purged: GtidSet::default(),
        };
        let text = durable.text();
        assert_eq!(Durable::parse(&text), Some(durable));
        for at in 0..text.len() - 1 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8_lossy(&bytes).into_owned();
            assert_eq!(Durable::parse(&changed), None, "byte {at}");
        }
    }
}
