//! The kept figures: `name = instructions`, a line each, and the processor that they hold for.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// The percentage by which a statement may exceed its figure, and the percentage below it at which the figure should be lowered.
const MORE_PERCENT: f64 = 3.0;
const FEWER_PERCENT: f64 = 3.0;
/// The line that names the processor.
const PROCESSOR: &str = "processor =";

/// The file, its comments included.
#[derive(Default)]
pub struct Figures {
    comment: String,
    /// See `processor`; empty before the first figures.
    processor: String,
    figures: BTreeMap<String, u64>,
}

/// The result of comparing a count with its figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The file has no figure for it.
    Unknown,
    /// About the same.
    Same { percent: f64 },
    /// Clearly fewer: the figure is too high.
    Fewer { percent: f64 },
    /// Clearly more.
    More { percent: f64 },
}

impl Figures {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or a line is not a figure.
    pub fn read(path: &Path) -> Result<Figures, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Figures::parse(&text)
    }

    fn parse(text: &str) -> Result<Figures, String> {
        let mut read = Figures::default();
        for line in text.lines() {
            if line.starts_with('#') {
                read.comment += line;
                read.comment.push('\n');
            } else if let Some(processor) = line.strip_prefix(PROCESSOR) {
                read.processor = processor.trim().trim_matches('"').to_owned();
            } else if !line.trim().is_empty() {
                let figure = line.split_once('=').and_then(|(name, figure)| {
                    Some((name.trim().to_owned(), figure.trim().replace('_', "").parse().ok()?))
                });
                let (name, figure) = figure.ok_or_else(|| format!("no figure: {line}"))?;
                read.figures.insert(name, figure);
            }
        }
        Ok(read)
    }

    /// Compares a count with its figure.
    pub fn judge(&self, name: &str, counted: u64) -> Verdict {
        let Some(figure) = self.figures.get(name) else { return Verdict::Unknown };
        let percent = (counted as f64 / *figure as f64 - 1.0) * 100.0;
        match percent {
            _ if percent > MORE_PERCENT => Verdict::More { percent },
            _ if percent < -FEWER_PERCENT => Verdict::Fewer { percent },
            _ => Verdict::Same { percent },
        }
    }

    /// Whether the figures hold for this processor: libraries choose code by its features.
    pub fn hold_for(&self, processor: &str) -> bool {
        self.processor == processor
    }

    /// Records the processor for which the figures hold from now on.
    pub fn keep_processor(&mut self, processor: &str) {
        processor.clone_into(&mut self.processor);
    }

    /// Records a count as the figure from now on.
    pub fn keep(&mut self, name: &str, counted: u64) {
        self.figures.insert(name.to_owned(), counted);
    }

    /// Writes the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        std::fs::write(path, self.print()).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn print(&self) -> String {
        let lines = self.figures.iter().map(|(name, figure)| format!("{name} = {figure}\n"));
        let lines = lines.collect::<String>();
        format!("{}\n{PROCESSOR} \"{}\"\n{lines}", self.comment, self.processor)
    }
}

/// The processor's architecture and the features by which code is chosen at run time.
pub fn processor() -> String {
    const FEATURES: &[&str] =
        &["aes", "avx", "avx2", "bmi2", "erms", "fma", "pclmulqdq", "rdrand", "sse4_2"];
    let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = facts.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    let has = |feature: &&&str| flags.split_whitespace().any(|flag| flag == **feature);
    let features = FEATURES.iter().filter(has).copied();
    [std::env::consts::ARCH].into_iter().chain(features).collect::<Vec<_>>().join(" ")
}

impl Verdict {
    /// Whether it is within its limit. A statement without a figure is not compared, which must be fixed.
    pub fn is_met(self) -> bool {
        matches!(self, Verdict::Same { .. } | Verdict::Fewer { .. })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Unknown => write!(f, "NO FIGURE"),
            Verdict::Same { percent } => write!(f, "{percent:+.1} %"),
            Verdict::Fewer { percent } => write!(f, "{percent:+.1} %: lower the figure"),
            Verdict::More { percent } => write!(f, "{percent:+.1} %: TOO MANY"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_judged_by_their_figure() {
        let figures = Figures::parse("# Why.\n\npoint = 10_000\n").unwrap();
        let verdict = |counted| figures.judge("point", counted);
        assert!(matches!(verdict(10_290), Verdict::Same { .. }));
        assert!(matches!(verdict(10_310), Verdict::More { .. }));
        assert!(!verdict(10_310).is_met());
        assert!(matches!(verdict(9_710), Verdict::Same { .. }));
        assert!(matches!(verdict(9_690), Verdict::Fewer { .. }));
        assert!(verdict(9_690).is_met());
        assert_eq!(figures.judge("other", 1), Verdict::Unknown);
        assert!(!Verdict::Unknown.is_met());
    }

    #[test]
    fn printing_keeps_comments() {
        let text = "# Why.\n# And how.\n\nprocessor = \"x86_64 avx\"\na = 5\nb = 1000\n";
        assert_eq!(Figures::parse(text).unwrap().print(), text);
    }

    #[test]
    fn figures_hold_for_one_processor() {
        let figures = Figures::parse("processor = \"x86_64 avx\"\na = 5\n").unwrap();
        assert!(figures.hold_for("x86_64 avx") && !figures.hold_for("x86_64 avx avx2"));
    }

    #[test]
    fn a_line_that_is_no_figure_is_an_error() {
        assert!(Figures::parse("point = many\n").is_err());
        assert!(Figures::parse("point 5\n").is_err());
    }
}
