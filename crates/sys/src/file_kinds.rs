//! What is said of files that are named by their path.

/// What to do when a file to be written exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Fail with `AlreadyExists`.
    Refuse,
    /// Write over it.
    Replace,
    /// Write after what it has.
    Append,
}

/// What there is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// An ordinary file: neither a directory nor a device nor a pipe.
    pub is_file: bool,
    /// A directory.
    pub is_directory: bool,
    /// Size in bytes.
    pub size_bytes: u64,
}
