//! How long the way from text to plan-cache key and to tree takes: `cargo run --release -p syntax --example speed`. Counts the
//! thread's own time where the kernel reports it, so that other programs disturb little. A point select must parse in under 2 us.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "an example")]

use syntax::{Normalizer, ParseOptions, parse_one};

/// Nanoseconds that this thread ran so far; wall-clock time since `started` where that is unknown.
fn ran_nanos(started: std::time::Instant) -> u128 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let field = text.split(' ').next().and_then(|field| field.parse().ok());
    field.unwrap_or_else(|| started.elapsed().as_nanos())
}

fn main() {
    let origin = std::time::Instant::now();
    let sql = "SELECT c FROM sbtest1 WHERE id=5023";
    let options = ParseOptions::default();
    let mut normalizer = Normalizer::new(42);
    let rounds = 200_000;
    let time = |name: &str, work: &mut dyn FnMut()| {
        let mut best = u128::MAX;
        for _ in 0..5 {
            let started = ran_nanos(origin);
            for _ in 0..rounds {
                work();
            }
            best = best.min((ran_nanos(origin) - started) / rounds);
        }
        println!("{name}: {best} ns");
    };
    time("normalize", &mut || {
        std::hint::black_box(normalizer.normalize(std::hint::black_box(sql.as_bytes()), &options));
    });
    time("parse", &mut || {
        std::hint::black_box(parse_one(std::hint::black_box(sql), &options)).expect("valid");
    });
}
