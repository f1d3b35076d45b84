//! EXCHANGE PARTITION: the rows of a partition and those of a table that is defined like it change places.
//!
//! A partition is no engine table of its own, so rows move: the partition's are copied into a table that takes the other's place, and the
//! other's are inserted where they were, all in one transaction. Each row is dealt out anew on its way, so WITHOUT VALIDATION too answers
//! 1737 for one that belongs elsewhere: no condition on the partition column would find it.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{Column, Index, PARTITION_COLUMN, Partition, PrivilegeSet, Table, same_name};
use engine_api::CommitHandle;
use errors::{Error, ErrorCode, Result, bail, err};
use exec::TransactionSource;
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{Ident, ObjectName};
use types::SqlMode;

use crate::session::Session;

/// What the statement needs on both tables.
const NEEDED: [PrivilegeSet; 4] =
    [PrivilegeSet::INSERT, PrivilegeSet::CREATE, PrivilegeSet::DROP, PrivilegeSet::ALTER];

/// Options that are no more than `TABLE OPTION` to error 1731.
const OTHER_OPTIONS: &[&str] = &["CHECKSUM", "DELAY_KEY_WRITE", "PACK_KEYS", "STATS_PERSISTENT"];

impl Session {
    /// `ALTER TABLE table EXCHANGE PARTITION partition WITH TABLE other`.
    pub(super) fn exchange_partition(
        &mut self,
        table: &ObjectName,
        partition: &Ident,
        other: &ObjectName,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let names = [self.qualify(table)?, self.qualify(other)?];
        for (schema, name) in &names {
            self.require_for_exchange(schema, name)?;
        }
        let (table, other) = self.exchanged(&names)?;
        self.check_writable()?;
        let guard = self.lock_for_ddl(&[table.id, other.id])?;
        // Under the locks the definitions stand still.
        let (table, other) = self.exchanged(&names)?;
        let (definition, number) = leaf(&table, partition)?;
        check_alike(&table, definition, &other)?;
        let mode = self.settings.sql_mode;
        // The values are in a table already, whatever the mode says of them now.
        let kept = mode.0 & !(SqlMode::NO_ZERO_DATE.0 | SqlMode::NO_ZERO_IN_DATE.0);
        self.settings.sql_mode = SqlMode(kept | SqlMode::ALLOW_INVALID_DATES.0);
        let exchanged = self.exchange_rows(&table, (partition, number), &other);
        self.settings.sql_mode = mode;
        let commit = match exchanged {
            Ok(commit) => commit,
            Err(error) => {
                // While the tables are still locked: what is half done goes first.
                self.transactions.rollback()?;
                return Err(error);
            }
        };
        drop(guard);
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo { commit, ..OkInfo::default() })
    }

    /// 1142 with all privileges that are missing.
    fn require_for_exchange(&self, schema: &str, name: &str) -> Result<()> {
        if self.view().temporary_table(schema, name).is_some() {
            return Ok(());
        }
        let is_missing =
            |needed: &PrivilegeSet| !self.privileges.allows_table(schema, name, *needed);
        let missing: Vec<&str> =
            NEEDED.into_iter().filter(is_missing).flat_map(PrivilegeSet::names).collect();
        if missing.is_empty() || catalog::system_schema(schema).is_some() {
            return self.require_on_table(schema, name, PrivilegeSet::ALTER);
        }
        let host = self.shown_host(&self.account);
        Err(err!(TABLEACCESS_DENIED_ERROR, missing.join(", "), self.account.user, host, name))
    }

    /// Both tables, when they are of the kinds that can exchange rows.
    fn exchanged(&self, names: &[(Arc<str>, Arc<str>); 2]) -> Result<(Arc<Table>, Arc<Table>)> {
        let find = |(schema, name): &(Arc<str>, Arc<str>)| {
            self.find_table(schema, name).map_err(|error| match error.code() {
                ErrorCode::WRONG_OBJECT => err!(CHECK_NO_SUCH_TABLE),
                _ => error,
            })
        };
        let table = find(&names[0])?;
        if names[0] == names[1] {
            bail!(NONUNIQ_TABLE, table.name);
        }
        let other = find(&names[1])?;
        if table.partitioning.is_none() {
            bail!(PARTITION_MGMT_ON_NONPARTITIONED);
        }
        if other.temporary {
            bail!(PARTITION_EXCHANGE_TEMP_TABLE, other.name);
        }
        if other.partitioning.is_some() {
            bail!(PARTITION_EXCHANGE_PART_TABLE, other.name);
        }
        let catalog = self.server.catalog.snapshot();
        let is_parent = catalog.children_of(&other.schema, &other.name).next().is_some();
        if is_parent || !other.foreign_keys.is_empty() {
            bail!(PARTITION_EXCHANGE_FOREIGN_KEY, other.name);
        }
        Ok((table, other))
    }

    /// Moves the rows and publishes the table that stands for `other` from now on.
    fn exchange_rows(
        &mut self,
        table: &Arc<Table>,
        (name, number): (&Ident, u16),
        other: &Arc<Table>,
    ) -> Result<Option<CommitHandle>> {
        let partition = std::slice::from_ref(name);
        let cancel = self.shared.cancel.clone();
        let word = |error: engine_api::EngineError| error.into_error(&cancel);
        // What others committed before the locks were granted must be seen.
        sys::blocking::blocking(|| self.server.catalog.settle(&cancel))?;
        let counter =
            self.transactions.engine(&other.engine)?.auto_increment_next(other.id).map_err(word)?;
        let mut new = Table::clone(other);
        self.draw_ids(&mut new)?;
        for column in &mut new.definition.columns {
            column.instant_default = None;
        }
        let txn = self.transactions.transaction(&other.engine)?;
        for part in new.engine_tables() {
            txn.create_table(&part).map_err(word)?;
        }
        self.move_rows(table, &new, partition, &[])?;
        self.empty_partitions(table, &[number]).map_err(word)?;
        self.move_rows(other, table, &[], partition).map_err(|error| match error.code() {
            ErrorCode::ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET => err!(ROW_DOES_NOT_MATCH_PARTITION),
            _ => error,
        })?;
        let txn = self.transactions.transaction(&other.engine)?;
        for part in other.engine_tables() {
            txn.drop_table(part.id).map_err(word)?;
        }
        let new = Arc::new(new);
        let commit = self.publish_altered(other, new.clone())?;
        // Neither table gives out a value that the other gave out for the rows it has now.
        self.set_next_auto_increment(table, Some(counter))?;
        self.set_next_auto_increment(&new, Some(counter))?;
        Ok(commit)
    }

    /// Inserts the rows of `from` into `to`; of one partition, into one partition.
    fn move_rows(
        &mut self,
        from: &Arc<Table>,
        to: &Table,
        partition: &[Ident],
        into: &[Ident],
    ) -> Result<()> {
        let place = |column: &Column| from.column(&column.name);
        let origins: Vec<Option<usize>> = to.columns.iter().map(place).collect();
        // Under this name no trigger is found, and no statement can write it.
        let mut target = to.clone();
        target.name = format!("#exchange-{}", to.id.0).into();
        let target = Arc::new(target);
        let partition = (!partition.is_empty()).then_some(partition);
        let moved = sys::blocking::blocking(|| {
            self.copy_rows(from, &target, &origins, partition, into).map(|_| ())
        });
        moved.map_err(|error| {
            let message = error.message().replace(&*target.name, &to.name);
            Error::with_sqlstate(error.code(), error.sqlstate(), message)
        })
    }
}

/// The partition that a name stands for or belongs to, and its number; 1735, 1734.
fn leaf<'t>(table: &'t Table, name: &Ident) -> Result<(&'t Partition, u16)> {
    let unknown = || err!(UNKNOWN_PARTITION, name.text, table.name);
    let partitioning = table.partitioning.as_ref().ok_or_else(unknown)?;
    let numbers = partitioning.named(&name.text).ok_or_else(unknown)?;
    let mut partitions = partitioning.partitions.iter();
    let is_subpartitioned = partitioning.sub.is_some();
    if is_subpartitioned && partitions.clone().any(|own| same_name(&own.name, &name.text)) {
        bail!(PARTITION_INSTEAD_OF_SUBPARTITION);
    }
    let number = *numbers.first().ok_or_else(unknown)?;
    let found = partitions.find(|own| own.number == number / partitioning.subpartitions());
    Ok((found.ok_or_else(unknown)?, number))
}

/// 1731, 1736, 3106 where the definitions differ in more than defaults, comments, CHECK, visibility and the directions of indexes.
fn check_alike(table: &Table, partition: &Partition, other: &Table) -> Result<()> {
    let differs = |name: &str| option(&table.options, name) != option(&other.options, name);
    if row_format(table) != row_format(other) {
        bail!(PARTITION_EXCHANGE_DIFFERENT_OPTION, "ROW_FORMAT");
    }
    check_columns(&own_columns(table), &own_columns(other))?;
    let alike = |index: &Index| {
        let known = other.indexes.iter().find(|known| known.name == index.name);
        known.is_some_and(|known| {
            known.unique == index.unique && parts(other, known) == parts(table, index)
        })
    };
    if table.indexes.len() != other.indexes.len()
        || table.fulltext.len() != other.fulltext.len()
        || !table.indexes.iter().all(alike)
    {
        bail!(TABLES_DIFFERENT_METADATA);
    }
    if differs("AVG_ROW_LENGTH") {
        bail!(PARTITION_EXCHANGE_DIFFERENT_OPTION, "AVG_ROW_LENGTH");
    }
    if OTHER_OPTIONS.iter().any(|name| differs(name)) {
        bail!(PARTITION_EXCHANGE_DIFFERENT_OPTION, "TABLE OPTION");
    }
    if table.collation != other.collation {
        bail!(PARTITION_EXCHANGE_DIFFERENT_OPTION, "CHARACTER SET");
    }
    for name in ["MAX_ROWS", "MIN_ROWS"] {
        if option(&partition.options, name) != option(&other.options, name) {
            bail!(PARTITION_EXCHANGE_DIFFERENT_OPTION, name);
        }
    }
    Ok(())
}

fn option<'o>(options: &'o [(String, String)], name: &str) -> Option<&'o str> {
    let found = options.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

/// The format that ROW_FORMAT and KEY_BLOCK_SIZE mean to the reference.
fn row_format(table: &Table) -> &str {
    match (option(&table.options, "ROW_FORMAT"), option(&table.options, "KEY_BLOCK_SIZE")) {
        (None, Some(_)) => "COMPRESSED",
        (written, _) => written.unwrap_or("DYNAMIC"),
    }
}

/// All columns but the one that holds the partition's number.
fn own_columns(table: &Table) -> Vec<&Column> {
    table.columns.iter().filter(|column| &*column.name != PARTITION_COLUMN).collect()
}

fn check_columns(own: &[&Column], others: &[&Column]) -> Result<()> {
    if own.len() != others.len() {
        bail!(TABLES_DIFFERENT_METADATA);
    }
    for (own, other) in own.iter().zip(others) {
        let [expression, others_expression] = [own, other].map(|column| {
            column.generated.as_ref().map(|generated| (&generated.expression, generated.hidden))
        });
        if !same_name(&own.name, &other.name)
            || own.ty != other.ty
            || own.auto_increment != other.auto_increment
            || expression != others_expression
        {
            bail!(TABLES_DIFFERENT_METADATA);
        }
        let [stored, others_stored] =
            [own, other].map(|column| column.generated.as_ref().map(|generated| generated.stored));
        if stored != others_stored {
            let action = "Exchanging partitions for non-generated columns";
            bail!(UNSUPPORTED_ACTION_ON_GENERATED_COLUMN, action);
        }
    }
    Ok(())
}

/// Columns of an index with their prefixes.
fn parts(table: &Table, index: &Index) -> Vec<(String, Option<u32>)> {
    let name = |at: usize| table.columns[at].name.to_lowercase();
    index.parts.iter().map(|part| (name(part.column), part.prefix_length)).collect()
}
