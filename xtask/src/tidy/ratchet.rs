//! Figures that may only improve. The kept ones are in `xtask/ratchets.toml`; a figure need not improve beyond its target.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The direction in which a figure improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// It counts something undesired.
    Lower,
    /// It counts something desired.
    Higher,
}

/// A measured figure.
#[derive(Debug, Clone)]
pub struct Ratchet {
    /// Its key in `xtask/ratchets.toml`.
    pub name: String,
    /// The direction in which it improves.
    pub better: Better,
    /// Its value now.
    pub value: u64,
    /// The value beyond which it need not improve.
    pub target: u64,
    /// The counted items, each with its place, for `--list`.
    pub places: Vec<String>,
}

impl Ratchet {
    /// Whether `value` is a worse figure than `other`.
    fn is_worse(&self, value: u64, other: u64) -> bool {
        match self.better {
            Better::Lower => value > other,
            Better::Higher => value < other,
        }
    }

    /// The figure to keep: the better of `kept` and the measured one, but not beyond the target.
    fn next(&self, kept: Option<u64>) -> u64 {
        let best = match kept {
            Some(kept) if self.is_worse(self.value, kept) => kept,
            _ => self.value,
        };
        if self.is_worse(self.target, best) { self.target } else { best }
    }
}

/// Result of comparing a figure with the kept one.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It became worse.
    Worse(String),
    /// It became better: the kept figure should follow.
    Better(String),
}

/// The kept figures.
#[derive(Debug, Default)]
pub struct Kept(BTreeMap<String, u64>);

const FILE: &str = "xtask/ratchets.toml";

const HEADER: &str = "\
# Figures that may only improve; `cargo xtask tidy` compares them with the code. `cargo xtask tidy --ratchet` writes improved
# figures, `cargo xtask tidy --list NAME` prints the places that a figure counts. Names of circles are `circle.CRATE`: the most
# files of it that import each other in a circle.

";

impl Kept {
    /// Reads the kept figures.
    ///
    /// # Errors
    /// The file is missing or malformed.
    pub fn read(root: &Path) -> Result<Kept, String> {
        let text = std::fs::read_to_string(root.join(FILE)).map_err(|e| format!("{FILE}: {e}"))?;
        Kept::parse(&text)
    }

    fn parse(text: &str) -> Result<Kept, String> {
        let table: toml::Table = text.parse().map_err(|error| format!("{FILE}: {error}"))?;
        let mut kept = BTreeMap::new();
        for (name, value) in table {
            let value = value.as_integer().and_then(|value| u64::try_from(value).ok());
            kept.insert(name.clone(), value.ok_or(format!("{FILE}: {name} is not a count"))?);
        }
        Ok(Kept(kept))
    }

    /// Compares the measured figures with the kept ones.
    pub fn compare(&self, ratchets: &[Ratchet]) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for ratchet in ratchets {
            let Ratchet { name, value, target, .. } = ratchet;
            let kept = self.0.get(name).copied().unwrap_or(*target);
            let allowed = if ratchet.is_worse(kept, *target) { kept } else { *target };
            if ratchet.is_worse(*value, allowed) {
                let list = format!("`cargo xtask tidy --list {name}` prints the places");
                verdicts
                    .push(Verdict::Worse(format!("{name}: {value} (allowed {allowed}); {list}")));
            } else if ratchet.next(self.0.get(name).copied()) != kept {
                let write = "`cargo xtask tidy --ratchet` keeps it";
                verdicts.push(Verdict::Better(format!("{name}: {value} (kept {kept}); {write}")));
            }
        }
        let unknown = |name: &&String| ratchets.iter().all(|ratchet| &ratchet.name != *name);
        for name in self.0.keys().filter(unknown) {
            verdicts.push(Verdict::Better(format!("{FILE}: nothing is called {name} any more")));
        }
        verdicts
    }

    /// Writes the improved figures. Worse ones stay as they are kept.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, root: &Path, ratchets: &[Ratchet]) -> Result<(), String> {
        std::fs::write(root.join(FILE), self.improved(ratchets))
            .map_err(|error| format!("{FILE}: {error}"))
    }

    fn improved(&self, ratchets: &[Ratchet]) -> String {
        let mut text = HEADER.to_owned();
        for ratchet in ratchets {
            let next = ratchet.next(self.0.get(&ratchet.name).copied());
            // A figure at its target needs no entry: the target is the limit then.
            if next != ratchet.target {
                let _ = writeln!(text, "{} = {next}", key(&ratchet.name));
            }
        }
        text
    }
}

fn key(name: &str) -> String {
    if name.contains('.') { format!("\"{name}\"") } else { name.to_owned() }
}

/// Prints the places that the ratchet `name` counts.
///
/// # Errors
/// No ratchet has this name.
pub fn list(ratchets: &[Ratchet], name: &str) -> Result<(), String> {
    let names: Vec<&str> = ratchets.iter().map(|ratchet| ratchet.name.as_str()).collect();
    let ratchet = ratchets.iter().find(|ratchet| ratchet.name == name);
    let ratchet = ratchet.ok_or_else(|| format!("no ratchet {name}: {}", names.join(", ")))?;
    for place in &ratchet.places {
        println!("{place}");
    }
    println!("{name}: {}", ratchet.value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratchet(better: Better, value: u64, target: u64) -> Ratchet {
        Ratchet { name: "a".into(), better, value, target, places: Vec::new() }
    }

    fn compare(kept: &str, ratchet: Ratchet) -> Vec<Verdict> {
        Kept::parse(kept).unwrap().compare(&[ratchet])
    }

    #[test]
    fn a_worse_figure_is_found() {
        let found = compare("a = 3", ratchet(Better::Lower, 4, 0));
        assert!(matches!(&found[..], [Verdict::Worse(text)] if text.contains("4 (allowed 3)")));
        let found = compare("a = 3", ratchet(Better::Higher, 2, 9));
        assert!(matches!(&found[..], [Verdict::Worse(text)] if text.contains("2 (allowed 3)")));
    }

    #[test]
    fn the_target_is_the_limit_of_what_is_not_kept() {
        assert!(matches!(&compare("", ratchet(Better::Lower, 9, 8))[..], [Verdict::Worse(_)]));
        assert_eq!(compare("", ratchet(Better::Lower, 8, 8)), []);
        assert_eq!(compare("", ratchet(Better::Lower, 2, 8)), []);
    }

    #[test]
    fn a_better_figure_is_said_and_written() {
        let better = ratchet(Better::Lower, 2, 0);
        assert!(matches!(&compare("a = 3", better.clone())[..], [Verdict::Better(_)]));
        assert!(Kept::parse("a = 3").unwrap().improved(&[better]).ends_with("\na = 2\n"));
        let worse = ratchet(Better::Lower, 4, 0);
        assert!(Kept::parse("a = 3").unwrap().improved(&[worse]).ends_with("\na = 3\n"));
        let done = ratchet(Better::Lower, 5, 8);
        assert!(matches!(&compare("a = 9", done.clone())[..], [Verdict::Better(_)]));
        assert_eq!(Kept::parse("a = 9").unwrap().improved(&[done]), HEADER);
    }
}
