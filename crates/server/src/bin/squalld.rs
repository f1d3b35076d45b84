//! The server program.

#[global_allocator]
static ALLOCATOR: sys::mem::Allocator<mimalloc::MiMalloc> = sys::mem::Allocator(mimalloc::MiMalloc);

fn main() -> std::process::ExitCode {
    server::run(std::env::args().skip(1))
}
