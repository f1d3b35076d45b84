//! Small helpers that every layer may use: internal-error checks, little-endian reading and writing, a fast stable hash, short lists, the shortest and longest of some times.
//!
//! Independent of the rest of the project. Allocates only through a caller's `Vec`.

pub mod bytes;
mod extent;
mod few;
mod hash;

pub use extent::{Extent, SharedExtent};
pub use few::Few;
pub use hash::{hash_bytes, mix};

/// A shared reference whose outer count belongs to one owner: cloning it writes no memory that other threads touch.
pub type LocalArc<T> = std::sync::Arc<std::sync::Arc<T>>;

/// For a bug that may end one statement but not the server: panics in debug builds, else returns the given error.
#[macro_export]
macro_rules! never {
    ($condition:expr, $error:expr) => {
        if $condition {
            debug_assert!(false, "never: {}", stringify!($condition));
            return Err($error);
        }
    };
}
