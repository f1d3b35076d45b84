//! Compares what a test printed with its result file.

/// Lines shown before the first difference, and at most after it.
const CONTEXT_LINES: usize = 3;
const SHOWN_LINES: usize = 8;

/// Compares two texts line by line.
///
/// # Errors
/// They differ: the place, with lines around it.
pub fn compare(expected: &str, printed: &str) -> Result<(), String> {
    if expected == printed {
        return Ok(());
    }
    let (wanted, got): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), printed.lines().collect());
    let same = wanted.iter().zip(&got).take_while(|(wanted, got)| wanted == got).count();
    let mut message = format!("    line {} of the result differs:\n", same + 1);
    for line in &wanted[same.saturating_sub(CONTEXT_LINES)..same] {
        message.push_str(&format!("      {line}\n"));
    }
    for (mark, lines) in [('-', &wanted), ('+', &got)] {
        for line in lines.iter().skip(same).take(SHOWN_LINES) {
            message.push_str(&format!("    {mark} {line}\n"));
        }
    }
    Err(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown() {
        assert!(compare("a\nb\n", "a\nb\n").is_ok());
        let message = compare("a\nb\nc\n", "a\nx\nc\n").unwrap_err();
        assert!(message.contains("line 2") && message.contains("- b") && message.contains("+ x"));
        assert!(compare("a\n", "a\nb\n").is_err());
        assert!(compare("a\n", "a").is_err());
    }
}
