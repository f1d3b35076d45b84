//! Where a clone is written, and how it takes the place of the data of this server.
//!
//! A clone that replaces the data is written to `clone-staging` in the data directory. Once it is whole and durable it gets the file `ready`. The next start of
//! the server, before anything is opened, moves the old data to `clone-old` and the clone in its place, by renames alone: a start that was ended
//! between two of them goes on where it was. A clone without `ready` is removed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sys::files::{self, Existing, File};
use sys::io_times::IoTimes;

use super::status::{self, CloneStatus};

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const STAGING: &str = "clone-staging";
const OLD: &str = "clone-old";
const READY: &str = "ready";
const STORAGE: &str = "storage";
const LOG: &str = "binary-log";
/// In the directory of the binary log: which transactions the clone has.
const CLONED: &str = "cloned";
/// What is replaced.
const PARTS: [&str; 2] = [STORAGE, LOG];

/// A directory that a clone is written to. It is removed unless the clone gets whole.
pub(crate) struct Staging<'t> {
    root: PathBuf,
    times: &'t IoTimes,
    is_whole: bool,
}

impl<'t> Staging<'t> {
    /// Makes a directory of a user's choice, which must not exist.
    ///
    /// # Errors
    /// `AlreadyExists`, I/O.
    pub(crate) fn at(root: &Path, times: &'t IoTimes) -> io::Result<Staging<'t>> {
        files::create_directory(root, DIRECTORY_MODE)?;
        let staging = Staging { root: root.to_owned(), times, is_whole: false };
        for part in PARTS {
            files::create_directory(&staging.root.join(part), DIRECTORY_MODE)?;
        }
        Ok(staging)
    }

    /// Makes the one whose content will take the place of the server's data.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn within(data_directory: &Path, times: &'t IoTimes) -> io::Result<Staging<'t>> {
        let root = data_directory.join(STAGING);
        // Of a clone whose removal failed. The server runs, so nothing of them is needed.
        for left in [&root, &data_directory.join(OLD)] {
            remove_directory(left)?;
        }
        Staging::at(&root, times)
    }

    /// Where a file of the engine goes.
    pub(crate) fn storage(&self, name: &str) -> PathBuf {
        self.root.join(STORAGE).join(name)
    }

    /// Where goes which transactions the clone has.
    pub(crate) fn cloned(&self) -> PathBuf {
        self.root.join(LOG).join(CLONED)
    }

    /// Bytes that can be written.
    pub(crate) fn space(&self) -> Option<u64> {
        files::space(&self.root).map(|(free, _)| free)
    }

    /// Begins a file.
    ///
    /// # Errors
    /// `AlreadyExists`, I/O.
    pub(crate) fn create(&self, path: &Path) -> io::Result<File> {
        File::create(path, FILE_MODE, Existing::Refuse)
    }

    /// Ends a file.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn finish(&self, file: &File) -> io::Result<()> {
        file.sync(self.times)
    }

    /// Makes the names durable. The files are.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn sync(&self) -> io::Result<()> {
        for part in PARTS {
            files::sync_directory(&self.root.join(part), self.times)?;
        }
        files::sync_directory(&self.root, self.times)?;
        self.root.parent().map_or(Ok(()), |above| files::sync_directory(above, self.times))
    }

    /// The directory stays as it is.
    pub(crate) fn keep(mut self) {
        self.is_whole = true;
    }

    /// The next start of the server takes it. All of it is durable.
    ///
    /// # Errors
    /// I/O: it is not taken.
    pub(crate) fn make_ready(self) -> io::Result<()> {
        let mut file = self.create(&self.root.join(READY))?;
        file.write_all(b"squall-clone 1\n")?;
        file.sync(self.times)?;
        files::sync_directory(&self.root, self.times)?;
        self.keep();
        Ok(())
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        if !self.is_whole
            && let Err(error) = remove_directory(&self.root)
        {
            let path = self.root.display();
            tracing::warn!("the rest of a clone cannot be removed: {path}: {error}");
        }
    }
}

/// Removes a directory if there is one.
fn remove_directory(path: &Path) -> io::Result<()> {
    match files::remove_directory(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Before anything is opened: a whole clone takes the place of the data, a part of one goes. True when this start has new data.
///
/// # Errors
/// I/O: the next start goes on.
pub fn adopt(data_directory: &Path, times: &IoTimes) -> io::Result<bool> {
    let (staging, old) = (data_directory.join(STAGING), data_directory.join(OLD));
    if !files::exists(&staging) {
        return Ok(false);
    }
    if !files::exists(&staging.join(READY)) {
        remove_directory(&staging)?;
        return Ok(false);
    }
    if !files::exists(&old) {
        files::create_directory(&old, DIRECTORY_MODE)?;
    }
    for part in PARTS {
        let (from, to) = (staging.join(part), data_directory.join(part));
        // An earlier start has moved it.
        if !files::exists(&from) {
            continue;
        }
        if files::exists(&to) {
            files::rename(&to, &old.join(part))?;
            files::sync_directory(&old, times)?;
            files::sync_directory(data_directory, times)?;
        }
        files::rename(&from, &to)?;
        files::sync_directory(data_directory, times)?;
        files::sync_directory(&staging, times)?;
    }
    if let Some(mut known) = status::read(data_directory) {
        known.has_been_adopted();
        status::write(data_directory, &known, times)?;
    }
    remove_directory(&staging)?;
    files::sync_directory(data_directory, times)?;
    Ok(true)
}

/// Before the log is archived: an archive of the log of data that a clone replaced ends, and its files move to a directory of their own in it. Returns the
/// directory.
///
/// # Errors
/// I/O: the next start goes on.
pub fn end_archive(
    data_directory: &Path,
    archive: &Path,
    times: &IoTimes,
) -> io::Result<Option<PathBuf>> {
    // It goes when the server is ready.
    if !files::exists(&data_directory.join(OLD)) || !files::exists(&archive.join(IDENTITY)) {
        return Ok(None);
    }
    let identity = files::read_text(&archive.join(IDENTITY))?;
    let letters = identity.chars().filter(char::is_ascii_alphanumeric);
    let letters: String = letters.rev().take(IDENTITY_LETTERS).collect();
    let ended = archive.join(format!("before-clone-{letters}"));
    if !files::exists(&ended) {
        files::create_directory(&ended, DIRECTORY_MODE)?;
    }
    // What says whose the archive is goes last.
    let mut names = files::names(archive)?;
    names.sort_by_key(|name| name == IDENTITY);
    for name in names {
        files::rename(&archive.join(&name), &ended.join(&name))?;
    }
    files::sync_directory(&ended, times)?;
    files::sync_directory(archive, times)?;
    Ok(Some(ended))
}

/// Whose log an archive is.
const IDENTITY: &str = "identity";
/// Letters of it that name the directory of an archive that has ended.
const IDENTITY_LETTERS: usize = 16;

/// The server has opened what it adopted: what was there before goes.
///
/// # Errors
/// I/O.
pub fn forget_old(data_directory: &Path) -> io::Result<()> {
    remove_directory(&data_directory.join(OLD))
}

/// What a start finds of the last clone.
pub(crate) fn found(data_directory: &Path, times: &IoTimes) -> Option<CloneStatus> {
    if let Err(error) = status::forget_unfinished(data_directory) {
        tracing::warn!("an unfinished status of the last clone cannot be removed: {error}");
    }
    let mut known = status::read(data_directory)?;
    if known.is_under_way() {
        known.server_has_started();
        if let Err(error) = status::write(data_directory, &known, times) {
            tracing::warn!("the status of the last clone cannot be written: {error}");
        }
    }
    Some(known)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

    use super::*;

    fn text(path: &Path) -> Option<String> {
        std::fs::read_to_string(path).ok()
    }

    /// A data directory with old data and a whole clone beside it.
    fn prepared(name: &str, is_ready: bool) -> PathBuf {
        let root = std::env::temp_dir().join(format!("squall-clone-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        for (directory, content) in [("", "old"), (STAGING, "new")] {
            for part in PARTS {
                let directory = root.join(directory).join(part);
                std::fs::create_dir_all(&directory).expect("a directory");
                std::fs::write(directory.join("data"), content).expect("a file");
            }
        }
        if is_ready {
            std::fs::write(root.join(STAGING).join(READY), "").expect("a file");
        }
        root
    }

    fn data(root: &Path) -> Vec<Option<String>> {
        PARTS.iter().map(|part| text(&root.join(part).join("data"))).collect()
    }

    #[test]
    fn a_part_of_a_clone_goes_and_the_data_stays() {
        let (root, times) = (prepared("part", false), IoTimes::default());
        assert!(!adopt(&root, &times).expect("adopts"));
        assert_eq!(data(&root), [Some("old".to_owned()), Some("old".to_owned())]);
        assert!(!root.join(STAGING).exists());
        std::fs::remove_dir_all(&root).expect("is there");
    }

    #[test]
    fn a_status_that_a_crash_cut_goes() {
        let (root, times) = (prepared("status", false), IoTimes::default());
        std::fs::write(root.join("clone-status-new"), "{").expect("a file");
        assert_eq!(found(&root, &times), None);
        assert!(!root.join("clone-status-new").exists());
        assert_eq!(found(&root, &times), None, "nothing is left to do");
        std::fs::remove_dir_all(&root).expect("is there");
    }

    #[test]
    fn a_swap_that_was_ended_anywhere_goes_on() {
        // Each number is how many renames were done before.
        for done in 0..=4 {
            let (root, times) = (prepared(&format!("swap-{done}"), true), IoTimes::default());
            let (staging, old) = (root.join(STAGING), root.join(OLD));
            let moves = PARTS.iter().flat_map(|part| {
                [(root.join(part), old.join(part)), (staging.join(part), root.join(part))]
            });
            for (from, to) in moves.take(done) {
                std::fs::create_dir_all(&old).expect("a directory");
                std::fs::rename(from, to).expect("renames");
            }
            assert!(adopt(&root, &times).expect("adopts"), "{done}");
            assert_eq!(data(&root), [Some("new".to_owned()), Some("new".to_owned())], "{done}");
            assert_eq!(data(&old), [Some("old".to_owned()), Some("old".to_owned())], "{done}");
            assert!(!staging.exists());
            assert!(!adopt(&root, &times).expect("adopts"), "nothing is left to do");
            forget_old(&root).expect("removes");
            assert!(!old.exists());
            std::fs::remove_dir_all(&root).expect("is there");
        }
    }
}
