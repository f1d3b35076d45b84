//! The calls to the kernel that the process may make: a filter that it gives itself and cannot take off again (`--seccomp`).
//!
//! The list is what the server, its libraries and the C library call; a call that is not on it is error EPERM. So who makes the process run code of his
//! own cannot start a program, follow another process, load a module, mount or change the clock. The list does not look at paths: reading and writing files
//! stays what the user of the process may do.

use std::io;

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
mod filter;

/// For all threads from now on.
///
/// # Errors
/// The kernel has no filters, or none is built for this kind of processor.
pub fn confine() -> io::Result<()> {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
    ))]
    return filter::confine_all();
    #[allow(unreachable_code, reason = "of other processors")]
    Err(io::Error::new(io::ErrorKind::Unsupported, "no filter is built for this processor"))
}
