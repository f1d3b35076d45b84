//! Random texts: none makes the parser panic, and a text that parses prints to a text that parses to the same.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::time::{Duration, Instant};

use syntax::{ParseErrorKind, ParseOptions, parse_bytes, parse_one};

/// Runs on a stack of the size of a worker's, whatever the test harness gives.
fn small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(test).expect("a thread");
    thread.join().expect("no overflow, no panic");
}

/// A small generator: fixed seed, same texts on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// A text that parses prints to a text that parses to the same.
fn round_trip(text: &[u8]) {
    let options = ParseOptions::default();
    let Ok((tree, _)) = parse_bytes(text, &options) else { return };
    let Some(printed) = unparse::print_statement(&tree, &Default::default()) else { return };
    if printed.contains('\u{fffd}') {
        return;
    }
    match parse_one(&printed, &options) {
        Ok((again, _)) => {
            assert_eq!(again, tree, "{} / {printed}", String::from_utf8_lossy(text));
        }
        Err(error) if error.kind == ParseErrorKind::TooDeep => {}
        Err(error) => panic!("{} / {printed} / {error}", String::from_utf8_lossy(text)),
    }
}

#[test]
fn garbage_never_panics() {
    small_stack(|| {
        let seed = 0x5eed_1234_abcd_0001;
        let mut random = Random(seed);
        let corpus: Vec<&str> =
            include_str!("../../syntax/tests/data/accept.sql").lines().collect();
        let words: Vec<&str> =
            corpus.iter().flat_map(|l| l.split_inclusive([' ', '(', ')', ','])).collect();
        let started = Instant::now();
        for round in 0.. {
            if started.elapsed() > Duration::from_secs(4) {
                break;
            }
            let mut text: Vec<u8> = match round % 3 {
                0 => (0..random.below(60)).map(|_| random.next() as u8).collect(),
                1 => (0..1 + random.below(30))
                    .flat_map(|_| words[random.below(words.len())].bytes())
                    .collect(),
                _ => corpus[random.below(corpus.len())].bytes().collect(),
            };
            for _ in 0..random.below(4) {
                if text.is_empty() {
                    break;
                }
                let at = random.below(text.len());
                match random.below(3) {
                    0 => text[at] = random.next() as u8,
                    1 => text.truncate(at),
                    _ => {
                        let word = words[random.below(words.len())];
                        text.splice(at..at, word.bytes());
                    }
                }
            }
            parse_and_digest(&text);
            round_trip(&text);
        }
    });
}

/// Texts from bytes: none makes the parser or the digest panic or overflow.
fn parse_and_digest(bytes: &[u8]) {
    let flags = bytes.first().copied().unwrap_or(0);
    let options = syntax::ParseOptions {
        ansi_quotes: flags & 1 != 0,
        pipes_as_concat: flags & 2 != 0,
        no_backslash_escapes: flags & 4 != 0,
        ignore_space: flags & 8 != 0,
        high_not_precedence: flags & 16 != 0,
        multi_statements: flags & 32 != 0,
        ..syntax::ParseOptions::default()
    };
    let digest_of = syntax::Normalizer::new(7).normalize(bytes, &options).literals.len();
    assert!(digest_of <= bytes.len());
    let _ = syntax::digest_text(bytes, &options);
    let mut rest = bytes;
    for _ in 0..16 {
        match syntax::parse_bytes(rest, &options) {
            Ok((_, used)) if used > 0 && used < rest.len() => rest = &rest[used..],
            _ => break,
        }
    }
}
