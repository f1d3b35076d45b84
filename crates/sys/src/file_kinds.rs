//! Kinds and open modes of files that are named by their path.

/// The action when a file to be written exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Fail with `AlreadyExists`.
    Refuse,
    /// Write over it.
    Replace,
    /// Append to it.
    Append,
}

/// The kind of file at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// An ordinary file: neither a directory nor a device nor a pipe.
    pub is_file: bool,
    /// A directory.
    pub is_directory: bool,
    /// Size in bytes.
    pub size_bytes: u64,
}
