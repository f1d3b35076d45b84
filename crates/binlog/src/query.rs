//! Statements in the log, and the context that they run in again.

use crate::read::{Malformed, Reader, Result, put_short_bytes};

/// Bits of `flags2`: settings that are on, or off where the name says so.
pub mod flags2 {
    /// `sql_auto_is_null`.
    pub const AUTO_IS_NULL: u32 = 1 << 14;
    /// `autocommit` is off.
    pub const NOT_AUTOCOMMIT: u32 = 1 << 19;
    /// `foreign_key_checks` is off.
    pub const NO_FOREIGN_KEY_CHECKS: u32 = 1 << 26;
    /// `unique_checks` is off.
    pub const RELAXED_UNIQUE_CHECKS: u32 = 1 << 27;
    /// MariaDB: `explicit_defaults_for_timestamp`.
    pub const MARIADB_EXPLICIT_DEFAULTS: u32 = 1 << 29;
}

/// Numbers of the variables.
mod code {
    pub(super) const FLAGS2: u8 = 0;
    pub(super) const SQL_MODE: u8 = 1;
    pub(super) const CATALOG_OLD: u8 = 2;
    pub(super) const AUTO_INCREMENT: u8 = 3;
    pub(super) const CHARSET: u8 = 4;
    pub(super) const TIME_ZONE: u8 = 5;
    pub(super) const CATALOG: u8 = 6;
    pub(super) const LC_TIME_NAMES: u8 = 7;
    pub(super) const CHARSET_DATABASE: u8 = 8;
    pub(super) const TABLE_MAP_FOR_UPDATE: u8 = 9;
    pub(super) const BYTES_WRITTEN: u8 = 10;
    pub(super) const INVOKER: u8 = 11;
    pub(super) const SCHEMAS: u8 = 12;
    pub(super) const MICROSECONDS: u8 = 13;
    pub(super) const EXPLICIT_DEFAULTS: u8 = 16;
    pub(super) const DDL_XID: u8 = 17;
    pub(super) const DEFAULT_COLLATION: u8 = 18;
    pub(super) const REQUIRE_PRIMARY_KEY: u8 = 19;
    pub(super) const DEFAULT_ENCRYPTION: u8 = 20;
    pub(super) const MARIADB_MICROSECONDS: u8 = 128;
    pub(super) const MARIADB_XID: u8 = 129;
}

/// In place of a number of schemas: too many to list.
const SCHEMAS_TOO_MANY: u8 = 254;
/// Most schemas that are listed.
const SCHEMAS_MAX: usize = 16;

/// The session of a statement. What is `None` (or empty) is not written; a reader keeps what it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryContext<'a> {
    /// See [`flags2`].
    pub flags2: Option<u32>,
    /// `sql_mode`, in the reference's bits.
    pub sql_mode: Option<u64>,
    /// `std`.
    pub catalog: Option<&'a [u8]>,
    /// `auto_increment_increment` and `auto_increment_offset`, unless both are 1.
    pub auto_increment: Option<(u16, u16)>,
    /// Collations of `character_set_client`, of the connection and of the server.
    pub charset: Option<[u16; 3]>,
    /// `time_zone`, for statements that depend on it.
    pub time_zone: Option<&'a [u8]>,
    /// Number of `lc_time_names`, unless it is 0.
    pub lc_time_names: Option<u16>,
    /// `collation_database`.
    pub charset_database: Option<u16>,
    /// Tables of a multi-table update.
    pub table_map_for_update: Option<u64>,
    /// User and host that the statement counts as definer.
    pub invoker: Option<(&'a [u8], &'a [u8])>,
    /// Schemas that it writes.
    pub schemas: Vec<&'a [u8]>,
    /// More schemas than are listed.
    pub schemas_unlisted: bool,
    /// Microseconds of the statement's time.
    pub microseconds: Option<u32>,
    /// `explicit_defaults_for_timestamp`.
    pub explicit_defaults: Option<bool>,
    /// The transaction of a DDL statement.
    pub ddl_xid: Option<u64>,
    /// `default_collation_for_utf8mb4`.
    pub default_collation_for_utf8mb4: Option<u16>,
    /// `sql_require_primary_key`.
    pub require_primary_key: Option<bool>,
    /// `default_table_encryption`.
    pub default_table_encryption: Option<bool>,
}

/// A statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryEvent<'a> {
    /// The connection.
    pub thread_id: u32,
    /// Seconds that it took.
    pub seconds: u32,
    /// The error that it is expected to end with.
    pub error: u16,
    /// Its session.
    pub context: QueryContext<'a>,
    /// The default schema.
    pub schema: &'a [u8],
    /// Its text, in the client's character set.
    pub text: &'a [u8],
}

impl<'a> QueryContext<'a> {
    fn write(&self, out: &mut Vec<u8>) {
        fn put<const N: usize>(code: u8, bytes: Option<[u8; N]>, out: &mut Vec<u8>) {
            if let Some(bytes) = bytes {
                out.push(code);
                out.extend_from_slice(&bytes);
            }
        }
        put(code::FLAGS2, self.flags2.map(u32::to_le_bytes), out);
        put(code::SQL_MODE, self.sql_mode.map(u64::to_le_bytes), out);
        if let Some(catalog) = self.catalog {
            out.push(code::CATALOG);
            put_short_bytes(catalog, out);
        }
        if let Some((increment, offset)) = self.auto_increment {
            put(code::AUTO_INCREMENT, Some(increment.to_le_bytes()), out);
            out.extend_from_slice(&offset.to_le_bytes());
        }
        if let Some(charset) = self.charset {
            out.push(code::CHARSET);
            charset.iter().for_each(|id| out.extend_from_slice(&id.to_le_bytes()));
        }
        if let Some(zone) = self.time_zone {
            out.push(code::TIME_ZONE);
            put_short_bytes(zone, out);
        }
        put(code::LC_TIME_NAMES, self.lc_time_names.map(u16::to_le_bytes), out);
        put(code::CHARSET_DATABASE, self.charset_database.map(u16::to_le_bytes), out);
        put(code::TABLE_MAP_FOR_UPDATE, self.table_map_for_update.map(u64::to_le_bytes), out);
        if let Some((user, host)) = self.invoker {
            out.push(code::INVOKER);
            put_short_bytes(user, out);
            put_short_bytes(host, out);
        }
        if self.schemas_unlisted || self.schemas.len() > SCHEMAS_MAX {
            out.extend_from_slice(&[code::SCHEMAS, SCHEMAS_TOO_MANY]);
        } else if !self.schemas.is_empty() {
            out.extend_from_slice(&[code::SCHEMAS, self.schemas.len() as u8]);
            for schema in &self.schemas {
                out.extend_from_slice(schema);
                out.push(0);
            }
        }
        let micros = self.microseconds.map(u32::to_le_bytes);
        put(code::MICROSECONDS, micros.map(|[a, b, c, _]| [a, b, c]), out);
        let flag = |flag: Option<bool>| flag.map(|flag| [u8::from(flag)]);
        put(code::EXPLICIT_DEFAULTS, flag(self.explicit_defaults), out);
        put(code::DDL_XID, self.ddl_xid.map(u64::to_le_bytes), out);
        let collation = self.default_collation_for_utf8mb4.map(u16::to_le_bytes);
        put(code::DEFAULT_COLLATION, collation, out);
        put(code::REQUIRE_PRIMARY_KEY, flag(self.require_primary_key), out);
        put(code::DEFAULT_ENCRYPTION, flag(self.default_table_encryption), out);
    }

    fn read(bytes: &'a [u8]) -> Result<QueryContext<'a>> {
        let mut context = QueryContext::default();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            match reader.u8()? {
                code::FLAGS2 => context.flags2 = Some(reader.u32()?),
                code::SQL_MODE => context.sql_mode = Some(reader.u64()?),
                code::CATALOG_OLD => {
                    context.catalog = Some(reader.short_bytes()?);
                    reader.u8()?;
                }
                code::AUTO_INCREMENT => {
                    context.auto_increment = Some((reader.u16()?, reader.u16()?));
                }
                code::CHARSET => {
                    context.charset = Some([reader.u16()?, reader.u16()?, reader.u16()?]);
                }
                code::TIME_ZONE => context.time_zone = Some(reader.short_bytes()?),
                code::CATALOG => context.catalog = Some(reader.short_bytes()?),
                code::LC_TIME_NAMES => context.lc_time_names = Some(reader.u16()?),
                code::CHARSET_DATABASE => context.charset_database = Some(reader.u16()?),
                code::TABLE_MAP_FOR_UPDATE => context.table_map_for_update = Some(reader.u64()?),
                code::BYTES_WRITTEN => _ = reader.u32()?,
                code::INVOKER => {
                    context.invoker = Some((reader.short_bytes()?, reader.short_bytes()?));
                }
                code::SCHEMAS => match reader.u8()? {
                    SCHEMAS_TOO_MANY => context.schemas_unlisted = true,
                    count => {
                        for _ in 0..count {
                            context.schemas.push(reader.null_terminated()?);
                        }
                    }
                },
                code::MICROSECONDS => context.microseconds = Some(reader.uint(3)? as u32),
                code::MARIADB_MICROSECONDS => context.microseconds = Some(reader.uint(3)? as u32),
                code::MARIADB_XID => _ = reader.u64()?,
                code::EXPLICIT_DEFAULTS => context.explicit_defaults = Some(reader.u8()? != 0),
                code::DDL_XID => context.ddl_xid = Some(reader.u64()?),
                code::DEFAULT_COLLATION => {
                    context.default_collation_for_utf8mb4 = Some(reader.u16()?);
                }
                code::REQUIRE_PRIMARY_KEY => context.require_primary_key = Some(reader.u8()? != 0),
                code::DEFAULT_ENCRYPTION => {
                    context.default_table_encryption = Some(reader.u8()? != 0);
                }
                // Of another server: their length is unknown, so what follows is too.
                _ => break,
            }
        }
        Ok(context)
    }
}

impl<'a> QueryEvent<'a> {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        let schema = &self.schema[..self.schema.len().min(255)];
        let mut context = Vec::new();
        self.context.write(&mut context);
        out.extend_from_slice(&self.thread_id.to_le_bytes());
        out.extend_from_slice(&self.seconds.to_le_bytes());
        out.push(schema.len() as u8);
        out.extend_from_slice(&self.error.to_le_bytes());
        out.extend_from_slice(&(context.len() as u16).to_le_bytes());
        out.extend_from_slice(&context);
        out.extend_from_slice(schema);
        out.push(0);
        out.extend_from_slice(self.text);
    }

    pub(crate) fn read(body: &'a [u8]) -> Result<QueryEvent<'a>> {
        let mut reader = Reader::new(body);
        let (thread_id, seconds) = (reader.u32()?, reader.u32()?);
        let schema_length = reader.u8()?;
        let (error, context_length) = (reader.u16()?, reader.u16()?);
        let context = QueryContext::read(reader.bytes(usize::from(context_length))?)?;
        let schema = reader.bytes(usize::from(schema_length))?;
        if reader.u8()? != 0 {
            return Err(Malformed("schema of a statement"));
        }
        Ok(QueryEvent { thread_id, seconds, error, context, schema, text: reader.rest() })
    }
}
