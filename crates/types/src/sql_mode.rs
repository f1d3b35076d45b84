//! `sql_mode` as a set of bits, with the reference's names and combinations.

/// A set of SQL modes. The bits are the reference's, as binary logs carry them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SqlMode(pub u64);

const NAMES: &[(u64, &str)] = &[
    (1, "REAL_AS_FLOAT"),
    (1 << 1, "PIPES_AS_CONCAT"),
    (1 << 2, "ANSI_QUOTES"),
    (1 << 3, "IGNORE_SPACE"),
    (1 << 5, "ONLY_FULL_GROUP_BY"),
    (1 << 6, "NO_UNSIGNED_SUBTRACTION"),
    (1 << 7, "NO_DIR_IN_CREATE"),
    (1 << 18, "ANSI"),
    (1 << 19, "NO_AUTO_VALUE_ON_ZERO"),
    (1 << 20, "NO_BACKSLASH_ESCAPES"),
    (1 << 21, "STRICT_TRANS_TABLES"),
    (1 << 22, "STRICT_ALL_TABLES"),
    (1 << 23, "NO_ZERO_IN_DATE"),
    (1 << 24, "NO_ZERO_DATE"),
    (1 << 25, "ALLOW_INVALID_DATES"),
    (1 << 26, "ERROR_FOR_DIVISION_BY_ZERO"),
    (1 << 27, "TRADITIONAL"),
    (1 << 29, "HIGH_NOT_PRECEDENCE"),
    (1 << 30, "NO_ENGINE_SUBSTITUTION"),
    (1 << 31, "PAD_CHAR_TO_FULL_LENGTH"),
    (1 << 32, "TIME_TRUNCATE_FRACTIONAL"),
];

impl SqlMode {
    pub const REAL_AS_FLOAT: SqlMode = SqlMode(1);
    pub const PIPES_AS_CONCAT: SqlMode = SqlMode(1 << 1);
    pub const ANSI_QUOTES: SqlMode = SqlMode(1 << 2);
    pub const IGNORE_SPACE: SqlMode = SqlMode(1 << 3);
    pub const ONLY_FULL_GROUP_BY: SqlMode = SqlMode(1 << 5);
    pub const NO_UNSIGNED_SUBTRACTION: SqlMode = SqlMode(1 << 6);
    pub const ANSI: SqlMode = SqlMode(1 << 18);
    pub const NO_AUTO_VALUE_ON_ZERO: SqlMode = SqlMode(1 << 19);
    pub const NO_BACKSLASH_ESCAPES: SqlMode = SqlMode(1 << 20);
    pub const STRICT_TRANS_TABLES: SqlMode = SqlMode(1 << 21);
    pub const STRICT_ALL_TABLES: SqlMode = SqlMode(1 << 22);
    pub const NO_ZERO_IN_DATE: SqlMode = SqlMode(1 << 23);
    pub const NO_ZERO_DATE: SqlMode = SqlMode(1 << 24);
    pub const ALLOW_INVALID_DATES: SqlMode = SqlMode(1 << 25);
    pub const ERROR_FOR_DIVISION_BY_ZERO: SqlMode = SqlMode(1 << 26);
    pub const TRADITIONAL: SqlMode = SqlMode(1 << 27);
    pub const HIGH_NOT_PRECEDENCE: SqlMode = SqlMode(1 << 29);
    pub const NO_ENGINE_SUBSTITUTION: SqlMode = SqlMode(1 << 30);
    pub const PAD_CHAR_TO_FULL_LENGTH: SqlMode = SqlMode(1 << 31);
    pub const TIME_TRUNCATE_FRACTIONAL: SqlMode = SqlMode(1 << 32);

    /// The default of a new server.
    pub const DEFAULT: SqlMode = SqlMode(
        Self::ONLY_FULL_GROUP_BY.0
            | Self::STRICT_TRANS_TABLES.0
            | Self::NO_ZERO_IN_DATE.0
            | Self::NO_ZERO_DATE.0
            | Self::ERROR_FOR_DIVISION_BY_ZERO.0
            | Self::NO_ENGINE_SUBSTITUTION.0,
    );

    /// Whether every mode of `mode` is on.
    pub const fn has(self, mode: SqlMode) -> bool {
        self.0 & mode.0 == mode.0
    }

    /// Both sets together.
    pub const fn with(self, mode: SqlMode) -> SqlMode {
        SqlMode(self.0 | mode.0)
    }

    /// This set without `mode`.
    pub const fn without(self, mode: SqlMode) -> SqlMode {
        SqlMode(self.0 & !mode.0)
    }

    /// Whether a value that does not fit its column is an error.
    pub const fn is_strict(self) -> bool {
        self.0 & (Self::STRICT_TRANS_TABLES.0 | Self::STRICT_ALL_TABLES.0) != 0
    }

    /// Parses a comma-separated list; `ANSI` and `TRADITIONAL` bring the modes they stand for.
    ///
    /// # Errors
    /// The name that is no mode.
    pub fn parse(text: &str) -> Result<SqlMode, String> {
        let mut mode = SqlMode(0);
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let found = NAMES.iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
            let (bit, _) = found.ok_or_else(|| name.to_owned())?;
            mode = mode.with(SqlMode(*bit));
        }
        Ok(mode.expanded())
    }

    /// From the numeric form of the variable.
    ///
    /// # Errors
    /// A bit that is no mode.
    pub fn from_bits(bits: u64) -> Result<SqlMode, u64> {
        let known = NAMES.iter().fold(0, |all, (bit, _)| all | bit);
        if bits & !known == 0 { Ok(SqlMode(bits).expanded()) } else { Err(bits & !known) }
    }

    fn expanded(self) -> SqlMode {
        let mut mode = self;
        if mode.has(Self::ANSI) {
            mode = mode
                .with(Self::REAL_AS_FLOAT)
                .with(Self::PIPES_AS_CONCAT)
                .with(Self::ANSI_QUOTES)
                .with(Self::IGNORE_SPACE)
                .with(Self::ONLY_FULL_GROUP_BY);
        }
        if mode.has(Self::TRADITIONAL) {
            mode = mode
                .with(Self::STRICT_TRANS_TABLES)
                .with(Self::STRICT_ALL_TABLES)
                .with(Self::NO_ZERO_IN_DATE)
                .with(Self::NO_ZERO_DATE)
                .with(Self::ERROR_FOR_DIVISION_BY_ZERO)
                .with(Self::NO_ENGINE_SUBSTITUTION);
        }
        mode
    }
}

impl std::fmt::Display for SqlMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut names = NAMES.iter().filter(|(bit, _)| self.0 & bit != 0).map(|(_, name)| name);
        if let Some(first) = names.next() {
            f.write_str(first)?;
        }
        names.try_for_each(|name| write!(f, ",{name}"))
    }
}
