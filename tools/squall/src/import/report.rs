//! What an import did, and what it could not bring over.

use std::fmt::Write as _;

/// The findings of an import, in the order of its steps.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Objects by kind that were made.
    made: Vec<(&'static str, u64)>,
    /// What the target has in another form than the source.
    changed: Vec<String>,
    /// What the target does not have.
    missing: Vec<String>,
    /// What is left to do.
    pub(super) remarks: Vec<String>,
}

impl Report {
    /// Counts an object.
    pub(super) fn made(&mut self, kind: &'static str) {
        match self.made.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.made.push((kind, 1)),
        }
    }

    /// Names something that is there in another form.
    pub(super) fn changed(&mut self, what: impl Into<String>) {
        self.changed.push(what.into());
    }

    /// Names something that is not there.
    pub(super) fn missing(&mut self, what: impl Into<String>) {
        self.missing.push(what.into());
    }

    /// Whether the target has everything.
    pub(super) fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// For the user.
    pub(super) fn text(&self) -> String {
        let mut text = String::from("Imported:\n");
        for (kind, count) in &self.made {
            let _ = writeln!(text, "  {count:>8} {kind}");
        }
        let parts = [
            ("Not imported", &self.missing),
            ("In another form", &self.changed),
            ("To do", &self.remarks),
        ];
        for (title, lines) in parts.iter().filter(|(_, lines)| !lines.is_empty()) {
            let _ = writeln!(text, "{title}:");
            for line in *lines {
                let _ = writeln!(text, "  {}", line.replace('\n', "\n  "));
            }
        }
        text
    }
}
