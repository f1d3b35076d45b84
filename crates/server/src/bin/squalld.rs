//! The server program.

#[global_allocator]
static ALLOCATOR: sys::mem::Allocator<mimalloc::MiMalloc> = sys::mem::Allocator(mimalloc::MiMalloc);

#[allow(clippy::disallowed_methods, reason = "the arguments are passed on from here")]
fn main() -> std::process::ExitCode {
    server::run(std::env::args().skip(1))
}
