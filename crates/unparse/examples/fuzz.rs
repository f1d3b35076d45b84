//! Feeds the parser, printer, digester and normaliser mutated statements for a while:
//! `cargo run --profile fast -p unparse --example fuzz -- SECONDS [SEED] [FILE ...]`. Seeds are the statements of the tests and those in
//! the files named; a text that panics, takes long or prints to something else is printed whole and ends the run with an error. Prints the
//! seed, so that a run can be repeated. It keeps texts that fail in new ways or parse to new kinds, as starting points for others.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "an example")]

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use syntax::{Normalizer, ParseErrorKind, ParseOptions, digest_text, parse_bytes};

/// Starting points kept in addition to the seeds.
const POOL_MAX: usize = 20_000;
/// Longest text that is made.
const TEXT_MAX: usize = 4_096;
/// No text of that length may take longer, even on a busy machine.
const TIME_MAX: Duration = Duration::from_secs(2);

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Where words end: a crude lexer, so that mutations mostly move whole tokens.
fn pieces(text: &[u8]) -> Vec<&[u8]> {
    let class = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'0'..=b'9' | 0x80.. => 0,
        b' ' | b'\n' | b'\t' => 1,
        other => u16::from(other) + 2,
    };
    text.chunk_by(|a, b| class(*a) == class(*b)).collect()
}

fn mutate(random: &mut Random, pool: &[Vec<u8>], words: &[String]) -> Vec<u8> {
    let mut text = pool[random.below(pool.len())].clone();
    for _ in 0..=random.below(4) {
        let parts = pieces(&text);
        let at = random.below(parts.len());
        let to = (at + random.below(4)).min(parts.len());
        let other = &pool[random.below(pool.len())];
        let others = pieces(other);
        let from = random.below(others.len());
        let until = (from + 1 + random.below(8)).min(others.len());
        let new: Vec<u8> = match random.below(8) {
            0 => [parts[..at].concat(), parts[to..].concat()].concat(),
            1 => [parts[..to].concat(), parts[at..].concat()].concat(),
            2 | 3 => {
                [parts[..at].concat(), others[from..until].concat(), parts[to..].concat()].concat()
            }
            4 => {
                let word = words[random.below(words.len())].as_bytes();
                [&parts[..at].concat()[..], b" ", word, b" ", &parts[at..].concat()].concat()
            }
            5 => [parts[..at].concat(), others[from..].concat()].concat(),
            6 if !text.is_empty() => {
                let at = random.below(text.len());
                let mut bytes = text.clone();
                bytes[at] = random.next() as u8;
                bytes
            }
            _ => {
                let (open, close) =
                    [("(", ")"), ("(SELECT ", ")"), ("'", "'"), ("/*!", "*/"), ("`", "`")]
                        [random.below(5)];
                let inner = parts[at..to].concat();
                let head = parts[..at].concat();
                [&head[..], open.as_bytes(), &inner, close.as_bytes(), &parts[to..].concat()]
                    .concat()
            }
        };
        text = new;
        text.truncate(TEXT_MAX);
    }
    text
}

/// The outcome of a text, coarsely: texts with a new outcome are kept.
fn outcome(text: &[u8], options: &ParseOptions<'_>, normalizer: &mut Normalizer) -> String {
    let digest = normalizer.normalize(text, options);
    assert!(digest.consumed <= text.len());
    let shape = digest_text(text, options);
    match parse_bytes(text, options) {
        Ok((tree, consumed)) => {
            assert!(consumed <= text.len());
            if let Some(printed) = unparse::print_statement(&tree, &Default::default())
                && !printed.contains('\u{fffd}')
            {
                let again = unparse::print_statement(
                    &parse_bytes(printed.as_bytes(), &ParseOptions::default()).expect("reparses").0,
                    &Default::default(),
                );
                assert_eq!(Some(&printed), again.as_ref(), "prints otherwise the second time");
            }
            let words: Vec<&str> = shape.split(' ').take(6).collect();
            words.join(" ")
        }
        Err(error) => match &error.kind {
            ParseErrorKind::Syntax { near, .. } => {
                let at = near.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
                format!("{} near {at}", shape.split(' ').next().unwrap_or(""))
            }
            other => format!("{other:?}").chars().take(40).collect(),
        },
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let seconds: u64 = args.next().and_then(|text| text.parse().ok()).unwrap_or(10);
    let seed: u64 = args.next().and_then(|text| text.parse().ok()).unwrap_or(0x5EED_2026);
    let mut seeds = include_str!("../../syntax/tests/data/accept.sql").to_owned();
    seeds.push_str(include_str!("../../syntax/tests/data/reject.txt"));
    for path in args {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let statements = text.lines().filter_map(|line| line.strip_prefix("> "));
        statements.for_each(|statement| {
            seeds.push('\n');
            seeds.push_str(statement);
        });
    }
    let mut pool: Vec<Vec<u8>> =
        seeds.lines().filter(|line| !line.is_empty()).map(|line| line.into()).collect();
    let words: Vec<String> = syntax::keywords().map(|(word, _)| word.to_owned()).collect();
    println!("seed {seed}, {} texts to start from", pool.len());
    let modes: Vec<ParseOptions<'_>> = (0..8)
        .map(|bits| ParseOptions {
            ansi_quotes: bits & 1 != 0,
            no_backslash_escapes: bits & 2 != 0,
            pipes_as_concat: bits & 4 != 0,
            ..ParseOptions::default()
        })
        .collect();
    let mut random = Random(seed);
    let mut normalizer = Normalizer::new(seed);
    let mut seen = HashSet::new();
    let (started, mut runs, mut findings) = (Instant::now(), 0_u64, 0_u32);
    let first = pool.len();
    while started.elapsed() < Duration::from_secs(seconds) && findings < 20 {
        let text = mutate(&mut random, &pool, &words);
        // The output of mode 0 parses again under default options; the others are only parsed.
        let mode = random.below(modes.len());
        let begun = Instant::now();
        let ran = catch_unwind(AssertUnwindSafe(|| match mode {
            0 => Some(outcome(&text, &modes[0], &mut normalizer)),
            mode => {
                let _ = parse_bytes(&text, &modes[mode]);
                normalizer.normalize(&text, &modes[mode]);
                None
            }
        }));
        runs += 1;
        let slow = begun.elapsed() > TIME_MAX;
        match ran {
            Err(_) => {
                findings += 1;
                println!("FOUND mode {mode}: {:?}", String::from_utf8_lossy(&text));
                normalizer = Normalizer::new(seed);
            }
            Ok(_) if slow => {
                findings += 1;
                println!("SLOW mode {mode}: {:?}", String::from_utf8_lossy(&text));
            }
            Ok(Some(what)) if pool.len() < POOL_MAX && seen.insert(what.clone()) => pool.push(text),
            Ok(_) => {}
        }
    }
    println!(
        "{runs} texts in {:.0} s, {} kept, {findings} findings",
        started.elapsed().as_secs_f64(),
        pool.len() - first
    );
    assert!(findings == 0, "see above");
}
