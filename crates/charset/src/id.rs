//! The number that names a collation on the wire and in a type.

/// Id of a collation, as the reference numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollationId(pub u16);

impl CollationId {
    /// `latin1_swedish_ci`.
    pub const LATIN1_SWEDISH_CI: CollationId = CollationId(8);
    /// `ascii_general_ci`.
    pub const ASCII_GENERAL_CI: CollationId = CollationId(11);
    /// `utf8mb3_general_ci`.
    pub const UTF8MB3_GENERAL_CI: CollationId = CollationId(33);
    /// `utf8mb4_general_ci`.
    pub const UTF8MB4_GENERAL_CI: CollationId = CollationId(45);
    /// `utf8mb4_bin`.
    pub const UTF8MB4_BIN: CollationId = CollationId(46);
    /// `latin1_bin`.
    pub const LATIN1_BIN: CollationId = CollationId(47);
    /// `binary`: bytes without a character set.
    pub const BINARY: CollationId = CollationId(63);
    /// `ascii_bin`.
    pub const ASCII_BIN: CollationId = CollationId(65);
    /// `utf8mb3_bin`.
    pub const UTF8MB3_BIN: CollationId = CollationId(83);
    /// `utf8mb4_unicode_ci`.
    pub const UTF8MB4_UNICODE_CI: CollationId = CollationId(224);
    /// `utf8mb4_unicode_520_ci`.
    pub const UTF8MB4_UNICODE_520_CI: CollationId = CollationId(246);
    /// `utf8mb4_0900_ai_ci`, the default.
    pub const UTF8MB4_0900_AI_CI: CollationId = CollationId(255);
    /// `utf8mb4_0900_as_cs`.
    pub const UTF8MB4_0900_AS_CS: CollationId = CollationId(278);
    /// `utf8mb4_0900_as_ci`.
    pub const UTF8MB4_0900_AS_CI: CollationId = CollationId(305);
    /// `utf8mb4_0900_bin`.
    pub const UTF8MB4_0900_BIN: CollationId = CollationId(309);
}
