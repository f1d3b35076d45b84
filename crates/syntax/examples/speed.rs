//! How long the way from text to plan-cache key and to tree takes: `cargo run --release -p syntax --example speed`.

use syntax::{Normalizer, ParseOptions, parse_one};

fn main() {
    let sql = "SELECT c FROM sbtest1 WHERE id=5023";
    let options = ParseOptions::default();
    let mut normalizer = Normalizer::new(42);
    let rounds = 200_000;
    let time = |name: &str, work: &mut dyn FnMut()| {
        let mut best = u128::MAX;
        for _ in 0..5 {
            let started = std::time::Instant::now();
            for _ in 0..rounds {
                work();
            }
            best = best.min(started.elapsed().as_nanos() / rounds);
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
