//! Where statements may read and write files.

use std::path::PathBuf;

use crate::Globals;
use sys::files::canonical;
use types::Value;

/// The path of a file named by a statement, if `secure_file_priv` allows it.
pub fn allowed_path(globals: &Globals, name: &str) -> Option<PathBuf> {
    let allowed = globals.definitions.find("secure_file_priv")?;
    let Value::Bytes(allowed) = globals.get(allowed) else { return None };
    let path = PathBuf::from(name);
    let path =
        if path.is_absolute() { path } else { PathBuf::from(globals.text("datadir")).join(path) };
    let directory = PathBuf::from(String::from_utf8_lossy(allowed.as_slice()).into_owned());
    if directory.as_os_str().is_empty() {
        return Some(path);
    }
    // A link may lead out of the directory: its target counts, or the target's folder while no such file exists.
    let real = canonical(&path).or_else(|_| canonical(path.parent().unwrap_or(&path))).ok()?;
    canonical(&directory).is_ok_and(|directory| real.starts_with(directory)).then_some(path)
}
