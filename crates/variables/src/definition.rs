//! Definition of a system variable: name, scope, type, range. Knows no session.

/// Where a variable has values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One value for the server.
    Global,
    /// A value in each session only.
    Session,
    /// A value in each session, which starts from the global one.
    Both,
}

/// The values that a variable takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// ON or OFF.
    Bool,
    /// A signed integer within a range.
    Int { min: i64, max: i64 },
    /// An unsigned integer within a range, rounded down to a multiple.
    UInt { min: u64, max: u64, block: u64 },
    /// A floating-point number within a range.
    Double { min: f64, max: f64 },
    /// Any text.
    Text,
    /// Any text or NULL.
    NullableText,
    /// One of these words, or its position from 0.
    Enum(&'static [&'static str]),
    /// Some of these words, separated by commas, or a number with a bit for each.
    Set(&'static [&'static str]),
    /// `name=on,other=off`.
    Switches,
    /// SQL mode: a set with combination modes.
    SqlMode,
    /// A character set name.
    Charset,
    /// A character set name or NULL.
    NullableCharset,
    /// A collation name.
    Collation,
    /// `SYSTEM`, an offset or a zone name.
    TimeZone,
}

/// Where the value comes from when it is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Stored.
    Stored,
    /// Computed from the session or server when read; a SET has a special effect.
    Computed,
}

/// One system variable.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Lower case.
    pub name: &'static str,
    /// Where it has values.
    pub scope: Scope,
    /// The values that it takes.
    pub kind: Kind,
    /// As SET would accept it.
    pub default: &'static str,
    /// SET can change it while the server runs.
    pub dynamic: bool,
    /// Whether its value is stored.
    pub source: Source,
    /// One sentence with the unit.
    pub description: &'static str,
}

const fn define(
    name: &'static str,
    scope: Scope,
    kind: Kind,
    default: &'static str,
    description: &'static str,
) -> Definition {
    Definition { name, scope, kind, default, dynamic: true, source: Source::Stored, description }
}

impl Definition {
    /// A variable with a global and a session value.
    pub const fn both(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        description: &'static str,
    ) -> Definition {
        define(name, Scope::Both, kind, default, description)
    }

    /// A global variable that SET GLOBAL changes.
    pub const fn global(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        description: &'static str,
    ) -> Definition {
        define(name, Scope::Global, kind, default, description)
    }

    /// A global variable that only the command line sets.
    pub const fn fixed(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        description: &'static str,
    ) -> Definition {
        let mut definition = define(name, Scope::Global, kind, default, description);
        definition.dynamic = false;
        definition
    }

    /// A session variable without a global value.
    pub const fn session(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        description: &'static str,
    ) -> Definition {
        define(name, Scope::Session, kind, default, description)
    }

    /// The same, computed when read.
    pub const fn computed(mut self) -> Definition {
        self.source = Source::Computed;
        self
    }

    /// The same, not to be changed by SET.
    pub const fn read_only(mut self) -> Definition {
        self.dynamic = false;
        self
    }
}

/// Kind of a byte or item count without a block.
pub const fn uint(min: u64, max: u64) -> Kind {
    Kind::UInt { min, max, block: 1 }
}

/// Kind of a count that is rounded down.
pub const fn blocks(min: u64, max: u64, block: u64) -> Kind {
    Kind::UInt { min, max, block }
}
