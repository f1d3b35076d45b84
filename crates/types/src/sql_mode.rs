//! `sql_mode`: its bits, and their names.

use std::ops::{BitOr, BitOrAssign};

use crate::temporal::TemporalMode;

/// A set of SQL modes, numbered as the reference numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlMode(pub u64);

/// Names in the order of `@@sql_mode`.
const NAMES: [(SqlMode, &str); 21] = [
    (SqlMode::REAL_AS_FLOAT, "REAL_AS_FLOAT"),
    (SqlMode::PIPES_AS_CONCAT, "PIPES_AS_CONCAT"),
    (SqlMode::ANSI_QUOTES, "ANSI_QUOTES"),
    (SqlMode::IGNORE_SPACE, "IGNORE_SPACE"),
    (SqlMode::ONLY_FULL_GROUP_BY, "ONLY_FULL_GROUP_BY"),
    (SqlMode::NO_UNSIGNED_SUBTRACTION, "NO_UNSIGNED_SUBTRACTION"),
    (SqlMode::NO_DIR_IN_CREATE, "NO_DIR_IN_CREATE"),
    (SqlMode::ANSI, "ANSI"),
    (SqlMode::NO_AUTO_VALUE_ON_ZERO, "NO_AUTO_VALUE_ON_ZERO"),
    (SqlMode::NO_BACKSLASH_ESCAPES, "NO_BACKSLASH_ESCAPES"),
    (SqlMode::STRICT_TRANS_TABLES, "STRICT_TRANS_TABLES"),
    (SqlMode::STRICT_ALL_TABLES, "STRICT_ALL_TABLES"),
    (SqlMode::NO_ZERO_IN_DATE, "NO_ZERO_IN_DATE"),
    (SqlMode::NO_ZERO_DATE, "NO_ZERO_DATE"),
    (SqlMode::ALLOW_INVALID_DATES, "ALLOW_INVALID_DATES"),
    (SqlMode::ERROR_FOR_DIVISION_BY_ZERO, "ERROR_FOR_DIVISION_BY_ZERO"),
    (SqlMode::TRADITIONAL, "TRADITIONAL"),
    (SqlMode::HIGH_NOT_PRECEDENCE, "HIGH_NOT_PRECEDENCE"),
    (SqlMode::NO_ENGINE_SUBSTITUTION, "NO_ENGINE_SUBSTITUTION"),
    (SqlMode::PAD_CHAR_TO_FULL_LENGTH, "PAD_CHAR_TO_FULL_LENGTH"),
    (SqlMode::TIME_TRUNCATE_FRACTIONAL, "TIME_TRUNCATE_FRACTIONAL"),
];

impl SqlMode {
    /// No mode.
    pub const EMPTY: SqlMode = SqlMode(0);
    /// `REAL` is `FLOAT`.
    pub const REAL_AS_FLOAT: SqlMode = SqlMode(1);
    /// `||` concatenates.
    pub const PIPES_AS_CONCAT: SqlMode = SqlMode(2);
    /// `"` quotes identifiers.
    pub const ANSI_QUOTES: SqlMode = SqlMode(4);
    /// Blanks are allowed between a function name and `(`.
    pub const IGNORE_SPACE: SqlMode = SqlMode(8);
    /// Selected columns must depend on the grouping.
    pub const ONLY_FULL_GROUP_BY: SqlMode = SqlMode(32);
    /// Unsigned minus anything is signed.
    pub const NO_UNSIGNED_SUBTRACTION: SqlMode = SqlMode(64);
    /// `DATA DIRECTORY` is ignored.
    pub const NO_DIR_IN_CREATE: SqlMode = SqlMode(128);
    /// The group `ANSI`.
    pub const ANSI: SqlMode = SqlMode(0x4_0000);
    /// 0 in an AUTO_INCREMENT column is 0.
    pub const NO_AUTO_VALUE_ON_ZERO: SqlMode = SqlMode(0x8_0000);
    /// Backslash is an ordinary character.
    pub const NO_BACKSLASH_ESCAPES: SqlMode = SqlMode(0x10_0000);
    /// Wrong values are errors in transactional tables.
    pub const STRICT_TRANS_TABLES: SqlMode = SqlMode(0x20_0000);
    /// Wrong values are errors in all tables.
    pub const STRICT_ALL_TABLES: SqlMode = SqlMode(0x40_0000);
    /// Dates with a zero part are invalid.
    pub const NO_ZERO_IN_DATE: SqlMode = SqlMode(0x80_0000);
    /// The zero date is invalid.
    pub const NO_ZERO_DATE: SqlMode = SqlMode(0x100_0000);
    /// Any day up to 31 is accepted in any month.
    pub const ALLOW_INVALID_DATES: SqlMode = SqlMode(0x200_0000);
    /// Division by zero warns, or fails in strict mode.
    pub const ERROR_FOR_DIVISION_BY_ZERO: SqlMode = SqlMode(0x400_0000);
    /// The group `TRADITIONAL`.
    pub const TRADITIONAL: SqlMode = SqlMode(0x800_0000);
    /// `NOT` binds tightly.
    pub const HIGH_NOT_PRECEDENCE: SqlMode = SqlMode(0x2000_0000);
    /// An unknown engine is an error.
    pub const NO_ENGINE_SUBSTITUTION: SqlMode = SqlMode(0x4000_0000);
    /// CHAR is padded when read.
    pub const PAD_CHAR_TO_FULL_LENGTH: SqlMode = SqlMode(0x8000_0000);
    /// Fractions of seconds are truncated, not rounded.
    pub const TIME_TRUNCATE_FRACTIONAL: SqlMode = SqlMode(0x1_0000_0000);

    /// The default mode of a server.
    pub const DEFAULT: SqlMode = SqlMode(
        SqlMode::ONLY_FULL_GROUP_BY.0
            | SqlMode::STRICT_TRANS_TABLES.0
            | SqlMode::NO_ZERO_IN_DATE.0
            | SqlMode::NO_ZERO_DATE.0
            | SqlMode::ERROR_FOR_DIVISION_BY_ZERO.0
            | SqlMode::NO_ENGINE_SUBSTITUTION.0,
    );

    const ANSI_GROUP: SqlMode = SqlMode(
        SqlMode::REAL_AS_FLOAT.0
            | SqlMode::PIPES_AS_CONCAT.0
            | SqlMode::ANSI_QUOTES.0
            | SqlMode::IGNORE_SPACE.0
            | SqlMode::ONLY_FULL_GROUP_BY.0
            | SqlMode::ANSI.0,
    );

    const TRADITIONAL_GROUP: SqlMode = SqlMode(
        SqlMode::STRICT_TRANS_TABLES.0
            | SqlMode::STRICT_ALL_TABLES.0
            | SqlMode::NO_ZERO_IN_DATE.0
            | SqlMode::NO_ZERO_DATE.0
            | SqlMode::ERROR_FOR_DIVISION_BY_ZERO.0
            | SqlMode::TRADITIONAL.0
            | SqlMode::NO_ENGINE_SUBSTITUTION.0,
    );

    /// Whether all of `other` are on.
    #[inline]
    pub const fn contains(self, other: SqlMode) -> bool {
        self.0 & other.0 == other.0
    }

    /// Either strict mode.
    pub const fn is_strict(self) -> bool {
        self.0 & (SqlMode::STRICT_TRANS_TABLES.0 | SqlMode::STRICT_ALL_TABLES.0) != 0
    }

    /// The number of the mode.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Without `other`.
    pub const fn without(self, other: SqlMode) -> SqlMode {
        SqlMode(self.0 & !other.0)
    }

    /// With the members of the groups that are in it.
    pub const fn expanded(self) -> SqlMode {
        let mut bits = self.0;
        if self.contains(SqlMode::ANSI) {
            bits |= SqlMode::ANSI_GROUP.0;
        }
        if self.contains(SqlMode::TRADITIONAL) {
            bits |= SqlMode::TRADITIONAL_GROUP.0;
        }
        SqlMode(bits)
    }

    /// Which dates these modes accept.
    pub const fn temporal(self) -> TemporalMode {
        TemporalMode {
            no_zero_date: self.contains(SqlMode::NO_ZERO_DATE),
            no_zero_in_date: self.contains(SqlMode::NO_ZERO_IN_DATE),
            allow_invalid_dates: self.contains(SqlMode::ALLOW_INVALID_DATES),
            truncate_fraction: self.contains(SqlMode::TIME_TRUNCATE_FRACTIONAL),
        }
    }

    /// Reads a list of names; the first unknown one is the error.
    pub fn parse(text: &str) -> Result<SqlMode, String> {
        let mut mode = SqlMode::EMPTY;
        for name in text.split(',') {
            let name = name.trim_end();
            if name.is_empty() {
                continue;
            }
            match NAMES.iter().find(|(_, known)| known.eq_ignore_ascii_case(name)) {
                Some((bit, _)) => mode |= *bit,
                None => return Err(name.to_owned()),
            }
        }
        Ok(mode.expanded())
    }

    /// The mode of a number, if all bits are known.
    pub fn from_bits(bits: u64) -> Option<SqlMode> {
        let known = NAMES.iter().fold(0, |all, (bit, _)| all | bit.0) | 16;
        if bits & !known == 0 { Some(SqlMode(bits).expanded()) } else { None }
    }

    /// Names separated by commas.
    pub fn to_text(self) -> String {
        let names: Vec<&str> =
            NAMES.iter().filter(|(bit, _)| self.contains(*bit)).map(|(_, name)| *name).collect();
        names.join(",")
    }
}

impl Default for SqlMode {
    fn default() -> Self {
        SqlMode::DEFAULT
    }
}

impl BitOr for SqlMode {
    type Output = SqlMode;
    fn bitor(self, other: SqlMode) -> SqlMode {
        SqlMode(self.0 | other.0)
    }
}

impl BitOrAssign for SqlMode {
    fn bitor_assign(&mut self, other: SqlMode) {
        self.0 |= other.0;
    }
}
