//! Messages as RFC 3164 and RFC 5424 have them.

use plugin_api::Severity;
use types::{FixedOffset, ZoneRules as _};

/// Facilities by number.
const NUMBERS: [(&str, u8); 12] = [
    ("USER", 1),
    ("DAEMON", 3),
    ("AUTH", 4),
    ("AUTHPRIV", 10),
    ("LOCAL0", 16),
    ("LOCAL1", 17),
    ("LOCAL2", 18),
    ("LOCAL3", 19),
    ("LOCAL4", 20),
    ("LOCAL5", 21),
    ("LOCAL6", 22),
    ("LOCAL7", 23),
];

/// Their names, as the variable takes them.
pub(crate) const FACILITIES: &[&str] = &{
    let mut names = [""; NUMBERS.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = NUMBERS[index].0;
        index += 1;
    }
    names
};

/// Bytes of a message; the rest of a longer one is left out. What system logs take by default.
pub(crate) const MESSAGE_BYTES_MAX: usize = 8192;
/// Bytes of a program's name in RFC 5424.
const IDENT_CHARS_MAX: usize = 48;

/// How messages look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `<30>squalld[7]: text`; the system's log adds its time.
    Rfc3164,
    /// `<30>1 2026-01-31T12:00:00.000000Z - squalld 7 statement - text`
    Rfc5424,
}

impl Form {
    /// The form that the variable names.
    pub(crate) fn of(text: &str) -> Form {
        match text.eq_ignore_ascii_case("RFC5424") {
            true => Form::Rfc5424,
            false => Form::Rfc3164,
        }
    }
}

/// What stands before a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header<'a> {
    pub(crate) form: Form,
    pub(crate) facility: &'a str,
    pub(crate) severity: Severity,
    pub(crate) ident: &'a str,
    /// What the message is about: `error_log` or `statement`.
    pub(crate) kind: &'a str,
}

impl Header<'_> {
    fn priority(&self) -> u8 {
        let named = NUMBERS.iter().find(|(name, _)| name.eq_ignore_ascii_case(self.facility));
        let facility = named.map_or(3, |(_, number)| *number);
        let severity = match self.severity {
            Severity::Error => 3,
            Severity::Warning => 4,
            Severity::Information => 6,
            Severity::Debug => 7,
        };
        facility * 8 + severity
    }

    /// The whole message. Control characters of the text become spaces, so that it stays one line.
    pub(crate) fn message(&self, text: &str) -> Vec<u8> {
        let plain = |c: char| if c.is_ascii_graphic() && !"[]:".contains(c) { c } else { '_' };
        let ident: String = self.ident.chars().map(plain).take(IDENT_CHARS_MAX).collect();
        let (priority, process, kind) = (self.priority(), sys::process::id(), self.kind);
        let mut message = match self.form {
            Form::Rfc3164 => format!("<{priority}>{ident}[{process}]: {kind} "),
            Form::Rfc5424 => format!("<{priority}>1 {} - {ident} {process} {kind} - ", now()),
        };
        for c in text.chars().map(|c| if c.is_control() { ' ' } else { c }) {
            if message.len() + c.len_utf8() > MESSAGE_BYTES_MAX {
                break;
            }
            message.push(c);
        }
        message.into_bytes()
    }
}

/// `2026-01-31T12:00:00.000000Z`.
fn now() -> String {
    let micros = i64::try_from(sys::clock::wall().as_micros()).unwrap_or(i64::MAX);
    let at = FixedOffset::utc().utc_to_local(micros);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.microsecond()
    )
}
