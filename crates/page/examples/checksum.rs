//! How fast the checksum of pages is: gigabytes per second of one core, over pages in cache.
//!
//!     cargo run --release -p page --example checksum
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "an example")]

use std::hint::black_box;
use std::time::Instant;

const PAGE_BYTES: usize = 16 << 10;
const ROUNDS: usize = 200_000;

fn main() {
    let page: Vec<u8> = (0..PAGE_BYTES).map(|at| (at * 31 + at / 251) as u8).collect();
    // Which instructions are used is found out by the first call.
    black_box(page::checksum(&page));
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        black_box(page::checksum(black_box(&page)));
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{:.1} GB/s", (PAGE_BYTES * ROUNDS) as f64 / seconds / 1e9);
}
