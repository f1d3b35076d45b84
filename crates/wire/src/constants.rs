//! Numbers of the protocol: capabilities, status flags, commands, column types.

/// A set of flags in an integer.
macro_rules! flags {
    ($(#[$doc:meta])* $name:ident: $int:ty { $($(#[$fdoc:meta])* $flag:ident = $value:expr;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(pub $int);

        impl $name {
            $($(#[$fdoc])* pub const $flag: $name = $name($value);)*

            /// Whether all flags of `other` are set.
            #[inline]
            pub const fn contains(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether any flag of `other` is set.
            #[inline]
            pub const fn intersects(self, other: $name) -> bool {
                self.0 & other.0 != 0
            }

            /// Flags of both.
            #[must_use]
            #[inline]
            pub const fn union(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }

            /// These flags without those of `other`.
            #[must_use]
            #[inline]
            pub const fn without(self, other: $name) -> $name {
                $name(self.0 & !other.0)
            }

            /// These flags with `other` set if `condition` holds.
            #[must_use]
            #[inline]
            pub const fn with_if(self, other: $name, condition: bool) -> $name {
                if condition { self.union(other) } else { self }
            }
        }

        impl std::ops::BitOr for $name {
            type Output = $name;
            #[inline]
            fn bitor(self, other: $name) -> $name {
                self.union(other)
            }
        }

        impl std::ops::BitAnd for $name {
            type Output = $name;
            fn bitand(self, other: $name) -> $name {
                $name(self.0 & other.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut left = self.0;
                let mut first = true;
                $(
                    if $value != 0 && left & $value == $value {
                        write!(f, "{}{}", if first { "" } else { "|" }, stringify!($flag))?;
                        left &= !$value;
                        first = false;
                    }
                )*
                if left != 0 || first {
                    write!(f, "{}{left:#x}", if first { "" } else { "|" })?;
                }
                Ok(())
            }
        }
    };
}

flags! {
    /// Capability flags of either side. Those that both have are in force.
    Capabilities: u32 {
        /// Old password hashing is improved; always set.
        LONG_PASSWORD = 1;
        /// Affected rows count matched rows.
        FOUND_ROWS = 1 << 1;
        /// Long column flags; always set.
        LONG_FLAG = 1 << 2;
        /// The handshake response names a schema.
        CONNECT_WITH_DB = 1 << 3;
        /// Refuse `database.table.column`.
        NO_SCHEMA = 1 << 4;
        /// The compressed protocol with zlib.
        COMPRESS = 1 << 5;
        /// An ODBC client; without effect.
        ODBC = 1 << 6;
        /// LOAD DATA LOCAL may be requested.
        LOCAL_FILES = 1 << 7;
        /// Spaces before `(` after a function name are allowed.
        IGNORE_SPACE = 1 << 8;
        /// The 4.1 protocol; required.
        PROTOCOL_41 = 1 << 9;
        /// `interactive_timeout` instead of `wait_timeout`.
        INTERACTIVE = 1 << 10;
        /// Switch to TLS after the first client packet.
        SSL = 1 << 11;
        /// Client ignores SIGPIPE; without effect.
        IGNORE_SIGPIPE = 1 << 12;
        /// Status flags in OK packets; always set.
        TRANSACTIONS = 1 << 13;
        /// Formerly the 4.1 protocol; without effect.
        RESERVED = 1 << 14;
        /// 20-byte nonce (formerly SECURE_CONNECTION); always set.
        SECURE_CONNECTION = 1 << 15;
        /// Several statements in one COM_QUERY.
        MULTI_STATEMENTS = 1 << 16;
        /// Several results for one COM_QUERY.
        MULTI_RESULTS = 1 << 17;
        /// Several results for one COM_STMT_EXECUTE.
        PS_MULTI_RESULTS = 1 << 18;
        /// Authentication methods are named.
        PLUGIN_AUTH = 1 << 19;
        /// The handshake response carries connection attributes.
        CONNECT_ATTRS = 1 << 20;
        /// The authentication data's length is length-encoded.
        PLUGIN_AUTH_LENENC = 1 << 21;
        /// The client can talk to an account with an expired password.
        CAN_HANDLE_EXPIRED_PASSWORDS = 1 << 22;
        /// OK packets carry session state changes.
        SESSION_TRACK = 1 << 23;
        /// An OK packet ends a result set instead of EOF.
        DEPRECATE_EOF = 1 << 24;
        /// The client does not need column definitions.
        OPTIONAL_RESULTSET_METADATA = 1 << 25;
        /// The compressed protocol with zstd.
        ZSTD_COMPRESSION = 1 << 26;
        /// COM_QUERY and COM_STMT_EXECUTE carry attributes.
        QUERY_ATTRIBUTES = 1 << 27;
        /// More than one authentication factor.
        MULTI_FACTOR = 1 << 28;
        /// The capability set is extended; reserved.
        CAPABILITY_EXTENSION = 1 << 29;
        /// Client-side only: verify the server's certificate.
        SSL_VERIFY_SERVER_CERT = 1 << 30;
        /// Client-side only: do not reset options after a failed connect.
        REMEMBER_OPTIONS = 1 << 31;
    }
}

flags! {
    /// Server status in OK and EOF packets.
    StatusFlags: u16 {
        /// A transaction is open.
        IN_TRANSACTION = 0x0001;
        /// Autocommit is on.
        AUTOCOMMIT = 0x0002;
        /// Another result follows.
        MORE_RESULTS_EXIST = 0x0008;
        /// The statement used no good index.
        NO_GOOD_INDEX_USED = 0x0010;
        /// The statement used no index.
        NO_INDEX_USED = 0x0020;
        /// A cursor was opened.
        CURSOR_EXISTS = 0x0040;
        /// The last row of a cursor was sent.
        LAST_ROW_SENT = 0x0080;
        /// A schema was dropped.
        DB_DROPPED = 0x0100;
        /// `NO_BACKSLASH_ESCAPES` is on.
        NO_BACKSLASH_ESCAPES = 0x0200;
        /// Metadata changed since the prepare.
        METADATA_CHANGED = 0x0400;
        /// The statement was slow.
        QUERY_WAS_SLOW = 0x0800;
        /// The result carries OUT parameters.
        PS_OUT_PARAMS = 0x1000;
        /// The open transaction is read-only.
        IN_TRANSACTION_READONLY = 0x2000;
        /// Session state changes follow.
        SESSION_STATE_CHANGED = 0x4000;
    }
}

flags! {
    /// Flags of a column definition.
    ColumnFlags: u16 {
        /// NOT NULL.
        NOT_NULL = 1;
        /// Part of the primary key.
        PRIMARY_KEY = 1 << 1;
        /// Part of a unique key.
        UNIQUE_KEY = 1 << 2;
        /// First column of a non-unique key.
        MULTIPLE_KEY = 1 << 3;
        /// TEXT, BLOB, JSON or GEOMETRY.
        BLOB = 1 << 4;
        /// UNSIGNED.
        UNSIGNED = 1 << 5;
        /// ZEROFILL.
        ZEROFILL = 1 << 6;
        /// Compared as bytes.
        BINARY = 1 << 7;
        /// ENUM.
        ENUM = 1 << 8;
        /// AUTO_INCREMENT.
        AUTO_INCREMENT = 1 << 9;
        /// TIMESTAMP.
        TIMESTAMP = 1 << 10;
        /// SET.
        SET = 1 << 11;
        /// Has no default value.
        NO_DEFAULT_VALUE = 1 << 12;
        /// ON UPDATE CURRENT_TIMESTAMP.
        ON_UPDATE_NOW = 1 << 13;
        /// Part of some key.
        PART_KEY = 1 << 14;
        /// A number; set by clients.
        NUM = 1 << 15;
    }
}

flags! {
    /// Flags byte of COM_STMT_EXECUTE.
    CursorFlags: u8 {
        /// Open a read-only cursor.
        READ_ONLY = 1;
        /// For update; not used by any client.
        FOR_UPDATE = 2;
        /// Scrollable; not used by any client.
        SCROLLABLE = 4;
        /// A parameter count precedes the parameters.
        PARAMETER_COUNT_AVAILABLE = 8;
    }
}

/// An enumeration of protocol numbers with a total conversion from the number.
macro_rules! numbers {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $value:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $variant = $value,)* }

        impl $name {
            /// The variant with this number, if any.
            pub const fn from_u8(number: u8) -> Option<$name> {
                match number {
                    $($value => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

numbers! {
    /// First byte of a command packet.
    CommandCode {
        /// Internal to the reference.
        Sleep = 0;
        /// Close the connection.
        Quit = 1;
        /// Change the schema.
        InitDb = 2;
        /// Run statements as text.
        Query = 3;
        /// Columns of a table.
        FieldList = 4;
        /// Removed from the reference.
        CreateDb = 5;
        /// Removed from the reference.
        DropDb = 6;
        /// Removed from the reference.
        Refresh = 7;
        /// Removed from the reference.
        Shutdown = 8;
        /// A line of statistics.
        Statistics = 9;
        /// Removed from the reference.
        ProcessInfo = 10;
        /// Internal.
        Connect = 11;
        /// Kill a connection.
        ProcessKill = 12;
        /// Write state to the log.
        Debug = 13;
        /// Are you there?
        Ping = 14;
        /// Internal.
        Time = 15;
        /// Internal.
        DelayedInsert = 16;
        /// Log in again on this connection.
        ChangeUser = 17;
        /// Stream the binary log by position.
        BinlogDump = 18;
        /// Internal.
        TableDump = 19;
        /// Internal.
        ConnectOut = 20;
        /// Announce a replica.
        RegisterReplica = 21;
        /// Prepare a statement.
        StmtPrepare = 22;
        /// Execute a prepared statement.
        StmtExecute = 23;
        /// Send a parameter in pieces.
        StmtSendLongData = 24;
        /// Forget a prepared statement.
        StmtClose = 25;
        /// Close cursor and forget long data.
        StmtReset = 26;
        /// Multi statements on or off.
        SetOption = 27;
        /// Rows from a cursor.
        StmtFetch = 28;
        /// Internal.
        Daemon = 29;
        /// Stream the binary log by GTID.
        BinlogDumpGtid = 30;
        /// Forget session state.
        ResetConnection = 31;
        /// Start a clone.
        Clone = 32;
    }
}

numbers! {
    /// Type of a column or parameter on the wire.
    ColumnType {
        /// Old DECIMAL.
        Decimal = 0;
        /// TINYINT.
        Tiny = 1;
        /// SMALLINT.
        Short = 2;
        /// INT.
        Long = 3;
        /// FLOAT.
        Float = 4;
        /// DOUBLE.
        Double = 5;
        /// NULL.
        Null = 6;
        /// TIMESTAMP.
        Timestamp = 7;
        /// BIGINT.
        LongLong = 8;
        /// MEDIUMINT.
        Int24 = 9;
        /// DATE.
        Date = 10;
        /// TIME.
        Time = 11;
        /// DATETIME.
        DateTime = 12;
        /// YEAR.
        Year = 13;
        /// DATE, internal form.
        NewDate = 14;
        /// VARCHAR, internal form.
        VarChar = 15;
        /// BIT.
        Bit = 16;
        /// TIMESTAMP, internal form.
        Timestamp2 = 17;
        /// DATETIME, internal form.
        DateTime2 = 18;
        /// TIME, internal form.
        Time2 = 19;
        /// Multi-valued index key, internal.
        TypedArray = 20;
        /// VECTOR.
        Vector = 242;
        /// No type.
        Invalid = 243;
        /// BOOL, internal.
        Bool = 244;
        /// JSON.
        Json = 245;
        /// DECIMAL.
        NewDecimal = 246;
        /// ENUM, internal form.
        Enum = 247;
        /// SET, internal form.
        Set = 248;
        /// TINYBLOB, internal form.
        TinyBlob = 249;
        /// MEDIUMBLOB, internal form.
        MediumBlob = 250;
        /// LONGBLOB, internal form.
        LongBlob = 251;
        /// BLOB and TEXT of any size.
        Blob = 252;
        /// VARCHAR and VARBINARY.
        VarString = 253;
        /// CHAR, BINARY, ENUM and SET.
        String = 254;
        /// GEOMETRY.
        Geometry = 255;
    }
}

numbers! {
    /// Kind of a session state change.
    TrackType {
        /// A system variable's new value.
        SystemVariables = 0;
        /// The new current schema.
        Schema = 1;
        /// Something changed.
        StateChange = 2;
        /// GTIDs of the statement.
        Gtids = 3;
        /// Statement that would restart the transaction like this one.
        TransactionCharacteristics = 4;
        /// State of the transaction.
        TransactionState = 5;
    }
}
