//! The two text formats: Prometheus 0.0.4 and OpenMetrics 1.0.0.

use std::fmt::{Display, Write as _};

/// Which format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' own.
    Prometheus,
    /// OpenMetrics.
    OpenMetrics,
}

impl Format {
    /// The one that a client prefers.
    pub fn accepted(header: &str) -> Format {
        match header.contains("application/openmetrics-text") {
            true => Format::OpenMetrics,
            false => Format::Prometheus,
        }
    }

    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// It only rises.
    Counter,
    /// It rises and falls.
    Gauge,
    /// Counts by size.
    Histogram,
    /// A fact in labels, with the value 1.
    Info,
    /// Nobody said.
    Unknown,
}

impl Type {
    fn name(self, format: Format) -> &'static str {
        match (self, format) {
            (Type::Counter, _) => "counter",
            (Type::Gauge, _) | (Type::Info, Format::Prometheus) => "gauge",
            (Type::Histogram, _) => "histogram",
            (Type::Info, Format::OpenMetrics) => "info",
            (Type::Unknown, Format::Prometheus) => "untyped",
            (Type::Unknown, Format::OpenMetrics) => "unknown",
        }
    }

    /// What the names of its samples end with.
    fn suffix(self) -> &'static str {
        match self {
            Type::Counter => "_total",
            Type::Info => "_info",
            Type::Gauge | Type::Histogram | Type::Unknown => "",
        }
    }
}

/// Labels with their values.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// Writes families of samples.
pub struct Writer {
    format: Format,
    out: String,
    name: String,
    suffix: &'static str,
}

impl Writer {
    /// Nothing yet.
    pub fn new(format: Format) -> Writer {
        Writer { format, out: String::with_capacity(64 << 10), name: String::new(), suffix: "" }
    }

    /// Begins the family `squall_NAME`. The names of counters do not end with `_total` here.
    pub fn family(&mut self, name: &str, ty: Type, help: &str) {
        self.name = format!("squall_{name}");
        self.suffix = ty.suffix();
        let described = match self.format {
            Format::Prometheus => format!("{}{}", self.name, self.suffix),
            Format::OpenMetrics => self.name.clone(),
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let help = match self.format {
            Format::Prometheus => help,
            Format::OpenMetrics => help.replace('"', "\\\""),
        };
        // Writing to memory does not fail.
        let _ = writeln!(self.out, "# TYPE {described} {}", ty.name(self.format));
        let _ = writeln!(self.out, "# HELP {described} {help}");
    }

    /// A sample of the family.
    pub fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        let suffix = self.suffix;
        self.put(suffix, labels, &value);
    }

    /// A family with one sample.
    pub fn one(&mut self, name: &str, ty: Type, help: &str, value: impl Display) {
        self.family(name, ty, help);
        self.sample(&[], value);
    }

    /// A series of a histogram: `counts` by the bounds in seconds and one for what is beyond them, and the sum of all in seconds.
    pub fn histogram(&mut self, labels: Labels<'_>, bounds: &[f64], counts: &[u64], sum: f64) {
        let mut total = 0;
        for (at, count) in counts.iter().enumerate() {
            total += count;
            let bound = bounds.get(at).map_or_else(|| "+Inf".to_owned(), |bound| number(*bound));
            let mut all = labels.to_vec();
            all.push(("le", &bound));
            self.put("_bucket", &all, &total);
        }
        self.put("_sum", labels, &number(sum));
        self.put("_count", labels, &total);
    }

    fn put(&mut self, suffix: &str, labels: Labels<'_>, value: &dyn Display) {
        self.out.push_str(&self.name);
        self.out.push_str(suffix);
        for (at, (name, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let open = if at == 0 { '{' } else { ',' };
            let _ = write!(self.out, "{open}{name}=\"{value}\"");
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.out, "{close} {value}");
    }

    /// The whole text.
    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
        self.out
    }
}

/// A number that both formats read as a float.
fn number(value: f64) -> String {
    let text = value.to_string();
    if text.contains(['.', 'e', 'N', 'i']) { text } else { format!("{text}.0") }
}

/// A name as metrics have it: small letters, digits and `_`.
pub fn metric_name(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    name.chars().map(letter).collect()
}
