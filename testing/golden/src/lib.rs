//! Golden bytes: formats that files and clients depend on, as hexadecimal text under `tests/golden`. A golden file changes only with
//! the format's version (VERSIONING.md).

use std::fmt::Write;

/// The bytes of a golden text: hexadecimal digits; `#` begins a comment.
///
/// # Panics
/// The text has other characters.
pub fn bytes(text: &str) -> Vec<u8> {
    let digits: String = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""))
        .flat_map(|line| line.chars().filter(|character| !character.is_whitespace()))
        .collect();
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(pair, 16).expect("hexadecimal digits")
    };
    pairs.map(byte).collect()
}

/// Fails unless `made` matches the golden text; the message shows the text for `made`. With `GOLDEN_PRINT` set it prints
/// that text and continues, which prints all texts of a new format in one run.
///
/// # Panics
/// They differ.
pub fn check(name: &str, made: &[u8], golden: &str) {
    if made == bytes(golden) {
        return;
    }
    let mut shown = String::new();
    for (line, chunk) in made.chunks(32).enumerate() {
        for word in chunk.chunks(4) {
            word.iter().for_each(|byte| _ = write!(shown, "{byte:02x}"));
            shown.push(' ');
        }
        _ = writeln!(shown, "# {:04x}", line * 32);
    }
    if std::env::var_os("GOLDEN_PRINT").is_some() {
        println!("{name}:\n{shown}");
        return;
    }
    panic!("{name} is not its golden bytes; made:\n{shown}");
}

#[cfg(test)]
mod tests {
    #[test]
    fn comments_and_blanks_do_not_count() {
        assert_eq!(super::bytes("00 ff # 12\n1 0"), [0, 255, 16]);
    }

    #[test]
    #[cfg(panic = "unwind")]
    fn a_difference_is_reported() {
        let differs = std::panic::catch_unwind(|| super::check("x", &[1], "02"));
        assert!(differs.is_err());
    }
}
