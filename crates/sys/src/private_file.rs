//! Files with secrets: read only while strangers can neither read nor change them.

use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::files;
use crate::simulation::current;

/// Permissions that no such file may give: writing by its group, anything to others.
const FORBIDDEN_MODE: u32 = 0o027;

/// What changes when a file is written or replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    size_bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(about: &Metadata) -> Stamp {
        Stamp {
            inode: about.ino(),
            size_bytes: about.len(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}

/// The stamp of the file now.
///
/// # Errors
/// `NotFound`, I/O.
pub fn stamp(path: &Path) -> io::Result<Stamp> {
    if current().is_some() {
        return Ok(Stamp::default());
    }
    fs::metadata(path).map(|about| Stamp::of(&about))
}

/// The text of a file of at most `bytes_max`, and its stamp. The permissions are those of the file that is read, whatever its name leads to next.
///
/// # Errors
/// `PermissionDenied` when the file belongs to another user than root or the process's own, when its group may write it, or others may read or
/// write it; `FileTooLarge`; `InvalidData` when it is not UTF-8; `NotFound`, I/O.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<(Stamp, String)> {
    if current().is_some() {
        return files::read_text(path).map(|text| (Stamp::default(), text));
    }
    let mut file = fs::File::open(path)?;
    let about = file.metadata()?;
    check(&about)?;
    if about.len() > bytes_max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut text = String::new();
    file.by_ref().take(bytes_max).read_to_string(&mut text)?;
    Ok((Stamp::of(&about), text))
}

fn check(about: &Metadata) -> io::Result<()> {
    let denied = |reason: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    if !about.is_file() {
        return denied("it is no ordinary file");
    }
    if about.uid() != 0 && about.uid() != rustix::process::geteuid().as_raw() {
        return denied("it belongs to another user than root or the server's own");
    }
    if about.mode() & FORBIDDEN_MODE != 0 {
        return denied("its group may write it, or others may use it: chmod 640 at most");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_strangers_can_use_is_not_read() {
        let path = std::env::temp_dir().join(format!("private-file-{}", std::process::id()));
        fs::write(&path, "secret").expect("a file");
        for (mode, is_read) in [(0o600, true), (0o640, true), (0o644, false), (0o660, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            assert_eq!(read(&path, 100).is_ok(), is_read, "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        assert_eq!(read(&path, 5).expect_err("too large").kind(), io::ErrorKind::FileTooLarge);
        let before = stamp(&path).expect("a stamp");
        assert_eq!(read(&path, 6).expect("a text"), (before, "secret".to_owned()));
        fs::write(&path, "longer secret").expect("a file");
        assert_ne!(stamp(&path).expect("a stamp"), before);
        fs::remove_file(&path).expect("a file");
    }
}
