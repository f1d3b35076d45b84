//! The error value that every fallible call of the server returns. Independent of SQL and packets.

use std::fmt::{self, Display, Write};

use crate::{ConditionItems, ErrorCode};

/// Messages are truncated at this length, as clients keep fixed buffers of 512 bytes.
pub const MESSAGE_BYTES_MAX: usize = 511;

/// Result with the server's error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure with number, SQLSTATE and message. One pointer wide.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Record>);

#[derive(Clone, PartialEq, Eq)]
struct Record {
    code: ErrorCode,
    sqlstate: [u8; 5],
    message: String,
    items: Option<Box<ConditionItems>>,
}

impl Error {
    /// Whether the engine has rolled the whole transaction back when it reports this: a deadlock, or the loss of the node that led it.
    #[cold]
    pub fn ends_transaction(&self) -> bool {
        matches!(self.code(), ErrorCode::LOCK_DEADLOCK | ErrorCode::GET_TEMPORARY_ERRMSG)
    }

    /// An error with a finished message. Prefer [`err!`](crate::err), which uses the catalogue's wording.
    #[cold]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Error {
        Error::with_sqlstate(code, code.sqlstate(), message)
    }

    /// An error with an explicit SQLSTATE, as from `SIGNAL`.
    #[cold]
    pub fn with_sqlstate(code: ErrorCode, sqlstate: [u8; 5], message: impl Into<String>) -> Error {
        let mut message = message.into();
        truncate_utf8(&mut message, MESSAGE_BYTES_MAX);
        Error(Box::new(Record { code, sqlstate, message, items: None }))
    }

    /// An error whose message is the catalogue's template filled with `args` in order.
    /// Surplus arguments are dropped and missing ones leave their place empty.
    #[cold]
    pub fn with(code: ErrorCode, args: &[&dyn Display]) -> Error {
        Error::new(code, fill_template(code, args))
    }

    /// The statement needs an unimplemented feature: 1235 with its name.
    #[cold]
    pub fn not_supported(what: impl Display) -> Error {
        Error::with(ErrorCode::NOT_SUPPORTED_YET, &[&what])
    }

    /// A bug was detected and confined to this statement: 1815.
    #[cold]
    pub fn internal(message: impl Display) -> Error {
        Error::with(ErrorCode::INTERNAL_ERROR, &[&message])
    }

    /// The error with the items that SIGNAL gave it.
    #[cold]
    pub fn with_items(mut self, items: ConditionItems) -> Error {
        self.0.items = Some(Box::new(items));
        self
    }

    /// The items that SIGNAL gave it.
    pub fn items(&self) -> Option<&ConditionItems> {
        self.0.items.as_deref()
    }

    /// The number clients see.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The five-byte SQLSTATE.
    pub fn sqlstate(&self) -> [u8; 5] {
        self.0.sqlstate
    }

    /// The SQLSTATE as text.
    pub fn sqlstate_str(&self) -> &str {
        std::str::from_utf8(&self.0.sqlstate).unwrap_or("HY000")
    }

    /// The message text.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

/// The text of `code` with `args` in the places of its template.
pub fn fill_template(code: ErrorCode, args: &[&dyn Display]) -> String {
    let template = code.template().unwrap_or("Unknown error {}");
    let mut message = String::with_capacity(template.len() + 16 * args.len());
    let mut args = args.iter();
    let mut rest = template;
    while let Some(at) = rest.find("{}") {
        message.push_str(&rest[..at]);
        if let Some(arg) = args.next() {
            // Writing to a String fails only if the argument's own Display does; its place is then left empty.
            let _ = write!(message, "{arg}");
        }
        rest = &rest[at + 2..];
    }
    message.push_str(rest);
    message
}

/// Truncates `text` to at most `max` bytes without splitting a character.
fn truncate_utf8(text: &mut String, max: usize) {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.0.code.0, self.sqlstate_str(), self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// `err!(DUP_ENTRY, value, key)`: an [`Error`] with the catalogue's wording.
#[macro_export]
macro_rules! err {
    ($name:ident $(, $arg:expr)* $(,)?) => {
        $crate::Error::with($crate::ErrorCode::$name, &[$(&$arg),*])
    };
}

/// `bail!(DUP_ENTRY, value, key)`: returns the error that [`err!`](crate::err) makes.
#[macro_export]
macro_rules! bail {
    ($($arg:tt)*) => {
        return ::core::result::Result::Err($crate::err!($($arg)*))
    };
}
