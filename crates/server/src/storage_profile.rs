//! What the server leaves to the file system that the data directory is on (`storage_profile`).

use std::path::Path;

/// The file system that never tears a page that it writes: it writes new records beside the old ones.
const COPIES_ON_WRITE: &str = "zfs";
/// Whether pages are written twice, by the options `storage_profile` and `innodb_doublewrite` and the place of the data directory.
///
/// # Errors
/// An unknown value, a profile of another file system, records that are smaller than a page.
pub(crate) fn doublewrite(
    profile: Option<&str>,
    given: Option<&str>,
    datadir: &Path,
) -> Result<bool, String> {
    let there = |place: &&Path| sys::files::exists(place);
    let place = datadir.ancestors().find(there).unwrap_or(Path::new("."));
    decide(profile, given, &sys::storage::of(place).file_system, sys::storage::record_bytes(place))
}

fn page_bytes() -> u64 {
    engine::PAGE_BYTES as u64
}

fn decide(
    profile: Option<&str>,
    given: Option<&str>,
    file_system: &str,
    record_bytes: u64,
) -> Result<bool, String> {
    let given = match given.map(str::to_ascii_uppercase).as_deref() {
        None => None,
        Some("ON" | "1" | "TRUE" | "DETECT_AND_RECOVER") => Some(true),
        Some("OFF" | "0" | "FALSE") => Some(false),
        Some(other) => return Err(format!("innodb_doublewrite = {other} is not supported")),
    };
    match profile.map(str::to_ascii_lowercase).as_deref() {
        None | Some("auto" | "ext4" | "xfs") => Ok(given.unwrap_or(true)),
        Some(COPIES_ON_WRITE) if given.is_some() => Ok(given.unwrap_or(true)),
        Some(COPIES_ON_WRITE) if file_system != COPIES_ON_WRITE => Err(format!(
            "storage_profile = zfs: the data directory is on {file_system}, where a power failure may tear pages"
        )),
        Some(COPIES_ON_WRITE) if record_bytes < page_bytes() => Err(format!(
            "storage_profile = zfs: the file system's records have {record_bytes} bytes; set recordsize to at least {} \
             before the data directory is made",
            page_bytes()
        )),
        Some(COPIES_ON_WRITE) => Ok(false),
        Some(other) => Err(format!("storage_profile = {other}: auto, ext4, xfs or zfs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_written_once_only_where_they_are_never_torn() {
        let page = page_bytes();
        assert_eq!(decide(None, None, "zfs", page), Ok(true));
        assert_eq!(decide(Some("zfs"), None, "zfs", page), Ok(false));
        assert_eq!(decide(Some("ZFS"), Some("on"), "zfs", page), Ok(true));
        assert!(decide(Some("zfs"), None, "zfs", page / 2).is_err());
        assert!(decide(Some("zfs"), None, "ext4", page).is_err());
        assert_eq!(decide(Some("xfs"), None, "xfs", page), Ok(true));
        assert_eq!(decide(None, Some("OFF"), "ext4", page), Ok(false));
        assert!(decide(None, Some("DETECT_ONLY"), "ext4", page).is_err());
        assert!(decide(Some("btrfs"), None, "btrfs", page).is_err());
    }
}
