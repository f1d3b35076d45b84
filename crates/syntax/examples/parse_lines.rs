//! Reads statements, one a line, and writes for each `ok` or the error: for comparing with another
//! server. With `digest` as argument writes digest texts; with `keywords`, the words.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "an example")]

use std::io::{self, BufRead};

use syntax::{ParseErrorKind, ParseOptions, digest_text, keywords, parse_one};

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    if mode == "keywords" {
        for (word, reserved) in keywords() {
            println!("{word}\t{}", u8::from(reserved));
        }
        return;
    }
    let options = ParseOptions { multi_statements: false, ..ParseOptions::default() };
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        if mode == "digest" {
            println!("{}", digest_text(line.as_bytes(), &options));
            continue;
        }
        match parse_one(&line, &options) {
            Ok(_) => println!("ok"),
            Err(error) => match &error.kind {
                ParseErrorKind::Syntax { near, line } => println!("1064 {line} {near}"),
                _ => println!("{} {error}", error.code()),
            },
        }
    }
}
