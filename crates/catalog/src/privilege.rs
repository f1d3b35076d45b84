//! Privileges as a bit set. Knows their names, not their holders.

use std::ops::{BitAnd, BitOr, BitOrAssign};

/// A set of static privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct PrivilegeSet(u64);

macro_rules! privileges {
    ($($name:ident = $bit:literal, $text:literal;)*) => {
        impl PrivilegeSet {
            $(
                #[doc = concat!("`", $text, "`.")]
                pub const $name: PrivilegeSet = PrivilegeSet(1 << $bit);
            )*
        }
        /// Bit and name, in the order in which SHOW GRANTS lists them.
        const NAMES: &[(PrivilegeSet, &str)] = &[$((PrivilegeSet::$name, $text),)*];
    };
}

privileges! {
    SELECT = 0, "SELECT";
    INSERT = 1, "INSERT";
    UPDATE = 2, "UPDATE";
    DELETE = 3, "DELETE";
    CREATE = 4, "CREATE";
    DROP = 5, "DROP";
    RELOAD = 6, "RELOAD";
    SHUTDOWN = 7, "SHUTDOWN";
    PROCESS = 8, "PROCESS";
    FILE = 9, "FILE";
    REFERENCES = 10, "REFERENCES";
    INDEX = 11, "INDEX";
    ALTER = 12, "ALTER";
    SHOW_DATABASES = 13, "SHOW DATABASES";
    SUPER = 14, "SUPER";
    CREATE_TEMPORARY_TABLES = 15, "CREATE TEMPORARY TABLES";
    LOCK_TABLES = 16, "LOCK TABLES";
    EXECUTE = 17, "EXECUTE";
    REPLICATION_SLAVE = 18, "REPLICATION SLAVE";
    REPLICATION_CLIENT = 19, "REPLICATION CLIENT";
    CREATE_VIEW = 20, "CREATE VIEW";
    SHOW_VIEW = 21, "SHOW VIEW";
    CREATE_ROUTINE = 22, "CREATE ROUTINE";
    ALTER_ROUTINE = 23, "ALTER ROUTINE";
    CREATE_USER = 24, "CREATE USER";
    EVENT = 25, "EVENT";
    TRIGGER = 26, "TRIGGER";
    CREATE_TABLESPACE = 27, "CREATE TABLESPACE";
    CREATE_ROLE = 28, "CREATE ROLE";
    DROP_ROLE = 29, "DROP ROLE";
    GRANT_OPTION = 63, "GRANT OPTION";
}

impl PrivilegeSet {
    /// No privilege.
    pub const NONE: PrivilegeSet = PrivilegeSet(0);
    /// Everything that `GRANT ALL ON *.*` gives; GRANT OPTION is separate.
    pub const ALL_GLOBAL: PrivilegeSet = PrivilegeSet((1 << 30) - 1);
    /// The privileges that `GRANT ALL ON db.*` gives.
    pub const ALL_SCHEMA: PrivilegeSet = PrivilegeSet(
        Self::ALL_TABLE.0
            | Self::CREATE_TEMPORARY_TABLES.0
            | Self::LOCK_TABLES.0
            | Self::EXECUTE.0
            | Self::CREATE_ROUTINE.0
            | Self::ALTER_ROUTINE.0
            | Self::EVENT.0,
    );
    /// The privileges that `GRANT ALL ON db.t` gives.
    pub const ALL_TABLE: PrivilegeSet = PrivilegeSet(
        Self::SELECT.0
            | Self::INSERT.0
            | Self::UPDATE.0
            | Self::DELETE.0
            | Self::CREATE.0
            | Self::DROP.0
            | Self::REFERENCES.0
            | Self::INDEX.0
            | Self::ALTER.0
            | Self::CREATE_VIEW.0
            | Self::SHOW_VIEW.0
            | Self::TRIGGER.0,
    );
    /// The privileges that `GRANT ALL ON PROCEDURE db.p` gives.
    pub const ALL_ROUTINE: PrivilegeSet = PrivilegeSet(Self::EXECUTE.0 | Self::ALTER_ROUTINE.0);
    /// The privileges that may be granted on columns.
    pub const ALL_COLUMN: PrivilegeSet =
        PrivilegeSet(Self::SELECT.0 | Self::INSERT.0 | Self::UPDATE.0 | Self::REFERENCES.0);

    /// From stored bits.
    pub const fn from_bits(bits: u64) -> PrivilegeSet {
        PrivilegeSet(bits)
    }

    /// For storing. Bit positions never change their meaning.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether all of `needed` are in the set.
    pub const fn contains(self, needed: PrivilegeSet) -> bool {
        self.0 & needed.0 == needed.0
    }

    /// Whether any of `other` is in the set.
    pub const fn intersects(self, other: PrivilegeSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether nothing is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set without `other`.
    pub const fn without(self, other: PrivilegeSet) -> PrivilegeSet {
        PrivilegeSet(self.0 & !other.0)
    }

    /// The privilege called `name` (words in upper case with one blank between).
    pub fn named(name: &str) -> Option<PrivilegeSet> {
        match name {
            "USAGE" => Some(PrivilegeSet::NONE),
            _ => NAMES.iter().find(|(_, text)| *text == name).map(|(set, _)| *set),
        }
    }

    /// Names in SHOW GRANTS order, GRANT OPTION left out.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES
            .iter()
            .filter(move |(set, _)| *set != PrivilegeSet::GRANT_OPTION && self.contains(*set))
            .map(|(_, name)| *name)
    }
}

impl BitOr for PrivilegeSet {
    type Output = PrivilegeSet;
    fn bitor(self, other: PrivilegeSet) -> PrivilegeSet {
        PrivilegeSet(self.0 | other.0)
    }
}

impl BitOrAssign for PrivilegeSet {
    fn bitor_assign(&mut self, other: PrivilegeSet) {
        self.0 |= other.0;
    }
}

impl BitAnd for PrivilegeSet {
    type Output = PrivilegeSet;
    fn bitand(self, other: PrivilegeSet) -> PrivilegeSet {
        PrivilegeSet(self.0 & other.0)
    }
}

/// Dynamic privileges that exist here. Names in upper case.
const DYNAMIC: &[&str] = &[
    "ALLOW_NONEXISTENT_DEFINER",
    "APPLICATION_PASSWORD_ADMIN",
    "AUDIT_ABORT_EXEMPT",
    "AUDIT_ADMIN",
    "AUTHENTICATION_POLICY_ADMIN",
    "BACKUP_ADMIN",
    "BINLOG_ADMIN",
    "BINLOG_ENCRYPTION_ADMIN",
    "CLONE_ADMIN",
    "CONNECTION_ADMIN",
    "CREATE_SPATIAL_REFERENCE_SYSTEM",
    "ENCRYPTION_KEY_ADMIN",
    "FIREWALL_EXEMPT",
    "FLUSH_OPTIMIZER_COSTS",
    "FLUSH_PRIVILEGES",
    "FLUSH_STATUS",
    "FLUSH_TABLES",
    "FLUSH_USER_RESOURCES",
    "GROUP_REPLICATION_ADMIN",
    "GROUP_REPLICATION_STREAM",
    "INNODB_REDO_LOG_ARCHIVE",
    "INNODB_REDO_LOG_ENABLE",
    "MANAGE_DATA_MASKING_POLICY",
    "OPTIMIZE_LOCAL_TABLE",
    "PASSWORDLESS_USER_ADMIN",
    "PERSIST_RO_VARIABLES_ADMIN",
    "REPLICATION_APPLIER",
    "REPLICATION_SLAVE_ADMIN",
    "RESOURCE_GROUP_ADMIN",
    "RESOURCE_GROUP_USER",
    "ROLE_ADMIN",
    "SENSITIVE_VARIABLES_OBSERVER",
    "SERVICE_CONNECTION_ADMIN",
    "SESSION_VARIABLES_ADMIN",
    "SET_ANY_DEFINER",
    "SHOW_ROUTINE",
    "SYSTEM_USER",
    "SYSTEM_VARIABLES_ADMIN",
    "TABLE_ENCRYPTION_ADMIN",
    "TELEMETRY_LOG_ADMIN",
    "TRANSACTION_GTID_TAG",
    "XA_RECOVER_ADMIN",
];

/// Whether `name` (upper case) is a dynamic privilege of the server.
pub fn is_dynamic_privilege(name: &str) -> bool {
    DYNAMIC.binary_search(&name).is_ok()
}

/// All dynamic privileges, sorted.
pub(crate) fn dynamic_privileges() -> &'static [&'static str] {
    DYNAMIC
}
