//! CREATE TABLE in its three forms.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{
    CatalogView, Column, ColumnDefault, Edit, PrivilegeSet, Relation, RelationKind, Table,
};
use engine_api::TableId;
use errors::{Error, ErrorCode, Result, bail, err};
use exec::TransactionSource;
use plugin_api::{ColumnMeta, Computed, OkInfo, ResultSink};
use syntax::Statement;
use syntax::ast::{self, CreateTable, TableConstraint};
use types::{DataType, TypeKind, Value};

use super::check_table_name;
use super::draft::{Draft, DraftColumn};
use crate::session::Session;
use crate::sink::NoRows;
use crate::statement::Running;

/// Computed integers of fewer characters become INT.
const INT_DIGITS_END: u32 = 12;
/// Characters of a computed string that becomes a VARCHAR.
const VARCHAR_MADE_MAX: u32 = 512;

impl Session {
    /// CREATE TABLE.
    pub(crate) fn create_table(
        &mut self,
        create: &CreateTable,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let (schema, name) = self.qualify(&create.name)?;
        check_table_name(&name)?;
        if self.is_known_fact(create, &schema, &name) {
            self.working.note(ErrorCode::TABLE_EXISTS_ERROR, &[&name]);
            return self.send_ok(sink, OkInfo::default());
        }
        self.check_create(create, &schema, &name)?;
        if !create.periods.is_empty() {
            return Err(Error::not_supported("PERIOD FOR SYSTEM_TIME"));
        }
        if self.already_there(create, &schema, &name)? {
            return self.send_ok(sink, OkInfo::default());
        }
        if let Some(like) = &create.like {
            let draft = self.draft_like(like, &schema, &name)?;
            return self.finish_create(create, draft, None, running, sink);
        }
        let mut draft = self.new_draft(&schema, &name, create.temporary);
        self.apply_table_options(&mut draft, create.options.iter())?;
        for definition in &create.columns {
            let built = self.build_column(&draft, definition, running)?;
            let position = draft.columns.len();
            self.add_built_column(&mut draft, built, position)?;
        }
        let (keys, others): (Vec<_>, Vec<_>) = create
            .constraints
            .iter()
            .partition(|constraint| matches!(constraint, TableConstraint::Index(_)));
        for constraint in keys.into_iter().chain(others) {
            self.add_constraint(&mut draft, constraint)?;
        }
        let query = create.query.as_deref();
        self.finish_create(create, draft, query, running, sink)
    }

    /// IF NOT EXISTS for a table of `mysql` that is always there: dumps begin with some.
    fn is_known_fact(&self, create: &CreateTable, schema: &str, name: &str) -> bool {
        schema == "mysql"
            && create.flags.if_not_exists
            && !create.temporary
            && self.privileges.on_schema(schema).contains(PrivilegeSet::CREATE)
            && self.server.registry.information_table(schema, name).is_some()
    }

    fn check_create(&self, create: &CreateTable, schema: &str, name: &str) -> Result<()> {
        if create.temporary {
            self.require_on_schema(schema, PrivilegeSet::CREATE_TEMPORARY_TABLES)?;
        } else {
            self.require_on_table(schema, name, PrivilegeSet::CREATE)?;
            self.check_writable()?;
        }
        if self.server.catalog.with(|snapshot| snapshot.schema(schema).is_none()) {
            bail!(BAD_DB_ERROR, schema);
        }
        Ok(())
    }

    /// Whether nothing is to be done because the table exists. OR REPLACE drops it.
    fn already_there(
        &mut self,
        create: &CreateTable,
        schema: &Arc<str>,
        name: &Arc<str>,
    ) -> Result<bool> {
        let view = self.view();
        let exists = if create.temporary {
            view.temporary_table(schema, name).is_some()
        } else {
            view.snapshot.kind(schema, name).is_some()
        };
        if !exists {
            return Ok(false);
        }
        if create.flags.or_replace {
            if create.temporary {
                self.drop_temporary(schema, name)?;
            } else if view.snapshot.kind(schema, name) == Some(RelationKind::Table) {
                let drop = ast::DropTable {
                    temporary: false,
                    if_exists: true,
                    names: vec![create.name.clone()],
                    cascade: None,
                };
                self.drop_tables(&drop, &mut crate::sink::DiscardSink::default())?;
            } else {
                bail!(TABLE_EXISTS_ERROR, name);
            }
            return Ok(false);
        }
        if create.flags.if_not_exists {
            self.working.note(ErrorCode::TABLE_EXISTS_ERROR, &[name]);
            return Ok(true);
        }
        Err(err!(TABLE_EXISTS_ERROR, name))
    }

    /// An empty draft.
    pub(crate) fn new_draft(&self, schema: &Arc<str>, name: &Arc<str>, temporary: bool) -> Draft {
        let engine = if temporary {
            self.server.temporary_engine.name()
        } else {
            self.server.default_engine.name()
        };
        let collation = self.schema_collation(schema);
        Draft {
            schema: schema.clone(),
            name: name.clone(),
            engine: engine.into(),
            temporary,
            columns: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            collation,
            declared_collation: collation,
            comment: String::new(),
            options: Vec::new(),
            auto_increment: None,
            created_micros: self.server.now_micros(),
            partitioning: None,
            partition_origin: None,
        }
    }

    /// CREATE TABLE ... LIKE: everything but foreign keys and rows.
    fn draft_like(
        &mut self,
        like: &ast::ObjectName,
        schema: &Arc<str>,
        name: &Arc<str>,
    ) -> Result<Draft> {
        let (from_schema, from) = self.qualify(like)?;
        let table = self.find_table(&from_schema, &from)?;
        self.require_on_table(&from_schema, &from, PrivilegeSet::SELECT)?;
        let mut draft = Draft::of(&table);
        let fresh = self.new_draft(schema, name, false);
        draft.schema = fresh.schema;
        draft.name = fresh.name;
        draft.created_micros = fresh.created_micros;
        draft.foreign_keys.clear();
        draft.partition_origin = None;
        for column in &mut draft.columns {
            column.origin = None;
            column.column.histogram = None;
        }
        for index in &mut draft.indexes {
            index.origin = None;
            index.entries = None;
        }
        for (check_name, _) in &mut draft.checks {
            *check_name = None;
        }
        Ok(draft)
    }

    /// Checks the draft, makes the table, fills it from the query.
    fn finish_create(
        &mut self,
        create: &CreateTable,
        mut draft: Draft,
        query: Option<&ast::Query>,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        draft.temporary = create.temporary;
        let fresh = self.new_draft(&draft.schema, &draft.name, create.temporary);
        draft.engine = fresh.engine;
        if create.temporary && !draft.foreign_keys.is_empty() {
            bail!(CANNOT_ADD_FOREIGN);
        }
        if let Some(query) = query {
            self.add_query_columns(&mut draft, query, running)?;
        }
        materialise_indexed_columns(&mut draft);
        draft.name_constraints(None)?;
        self.check_expressions(&draft)?;
        if let Some(written) = &create.partitioning {
            self.check_partition_qualifiers(&draft, written)?;
            draft.partitioning = Some(self.build_partitioning(&draft, written, running)?);
        }
        self.check_partitioned(&draft)?;
        let requires_key = variables::as_u64(&self.value("sql_require_primary_key")) == 1;
        if requires_key && !draft.indexes.iter().any(|index| index.primary) {
            bail!(TABLE_WITHOUT_PK);
        }
        let next = draft.auto_increment;
        let mut table = draft.finish(TableId(0), None)?;
        self.draw_ids(&mut table)?;
        self.note_repeated_indexes(&table, None);
        self.check_foreign_keys(&mut table, &[])?;
        let table = Arc::new(table);
        if !create.temporary {
            self.server.catalog.with(|snapshot| snapshot.check_constraint_names(&table, None))?;
        }
        if create.temporary {
            return self.create_temporary(table, next, create, query, running, sink);
        }
        let engine = self.server.default_engine.name();
        let txn = self.transactions.transaction(engine)?;
        for definition in table.engine_tables() {
            let created = txn.create_table(&definition);
            created.map_err(|error| error.into_error(&self.shared.cancel))?;
        }
        let filled = self.fill(&table, create, query, running);
        let (affected_rows, info) = match filled {
            Ok(filled) => filled,
            Err(error) => {
                // The table goes with the transaction that made it.
                let _ = self.transactions.rollback();
                return Err(error);
            }
        };
        let edits = [Edit::CreateTable(table.clone())];
        let commit = self.commit_definitions(&edits)?;
        self.set_next_auto_increment(&table, next)?;
        self.services.row_count = affected_rows as i64;
        let ok = OkInfo { affected_rows, info, commit: Some(commit), ..OkInfo::default() };
        self.send_ok(sink, ok)
    }

    /// Gives a table that will be made its id, and those of its FULLTEXT indexes' entries.
    pub(crate) fn draw_ids(&self, table: &mut Table) -> Result<()> {
        table.id = self.server.catalog.new_table_id()?;
        table.definition.id = table.id;
        for index in &mut table.fulltext {
            index.entries = self.server.catalog.new_table_id()?;
        }
        Ok(())
    }

    fn create_temporary(
        &mut self,
        table: Arc<Table>,
        next: Option<u64>,
        create: &CreateTable,
        query: Option<&ast::Query>,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let definition = table.definition.clone();
        self.in_own_temporary_transaction(|txn| txn.create_table(&definition))?;
        let key = (table.schema.clone(), table.name.clone());
        let shadowed = Arc::make_mut(&mut self.temporary).insert(key, table.clone());
        debug_assert!(shadowed.is_none(), "an existing temporary table was refused before");
        let filled = self.fill(&table, create, query, running);
        let (affected_rows, info) = match filled {
            Ok(filled) => filled,
            Err(error) => {
                let (schema, name) = (table.schema.clone(), table.name.clone());
                self.drop_temporary(&schema, &name)?;
                return Err(error);
            }
        };
        self.set_next_auto_increment(&table, next)?;
        let commit = self.finish_transaction_scope()?;
        self.services.row_count = affected_rows as i64;
        self.send_ok(sink, OkInfo { affected_rows, info, commit, ..OkInfo::default() })
    }

    /// AUTO_INCREMENT = n of a table whose counter is where its rows have brought it.
    pub(crate) fn set_next_auto_increment(
        &mut self,
        table: &Table,
        next: Option<u64>,
    ) -> Result<()> {
        let has_column = table.columns.iter().any(|column| column.auto_increment);
        let Some(next) = next.filter(|next| has_column && *next > 0) else { return Ok(()) };
        let engine = self.transactions.engine(&table.engine)?;
        let current = engine
            .auto_increment_next(table.id)
            .map_err(|error| error.into_error(&self.shared.cancel))?;
        self.set_auto_increment(table, next.max(current))
    }

    /// Sets the counter, below where it was too.
    pub(crate) fn set_auto_increment(&self, table: &Table, next: u64) -> Result<()> {
        let engine = self.transactions.engine(&table.engine)?;
        engine
            .auto_increment_set(table.id, next)
            .map_err(|error| error.into_error(&self.shared.cancel))
    }

    /// Runs `INSERT INTO table SELECT ...` on a table that only this statement knows yet.
    fn fill(
        &mut self,
        table: &Arc<Table>,
        create: &CreateTable,
        query: Option<&ast::Query>,
        running: &Running<'_>,
    ) -> Result<(u64, String)> {
        let Some(query) = query else { return Ok((0, String::new())) };
        // The query's columns are the last ones of the table.
        let count = self.query_columns(query, running)?.len();
        let visible: Vec<&Column> =
            table.columns.iter().filter(|column| !super::is_hidden(column)).collect();
        let names = self.query_columns(query, running)?;
        let columns = names
            .iter()
            .map(|meta| ast::ColumnName {
                schema: None,
                table: None,
                name: ast::Ident::new(&meta.name),
            })
            .collect();
        debug_assert!(count <= visible.len(), "every column of the query has one in the table");
        let insert = ast::Insert {
            replace: create.duplicates == ast::LoadDuplicates::Replace,
            priority: ast::Priority::Normal,
            ignore: create.duplicates == ast::LoadDuplicates::Ignore,
            hints: None,
            table: ast::ObjectName {
                schema: Some(ast::Ident::new(&table.schema)),
                name: ast::Ident::new(&table.name),
            },
            partitions: Vec::new(),
            columns: Some(columns),
            source: ast::InsertSource::Query(Box::new(query.clone())),
            row_alias: None,
            on_duplicate: Vec::new(),
            returning: Vec::new(),
        };
        let statement = Statement::Insert(Box::new(insert));
        let outcome = self.run_on_new_table(table, &statement, running)?;
        Ok(outcome)
    }

    /// Runs a statement in a view of the catalog that has `table` in it.
    pub(crate) fn run_on_new_table(
        &mut self,
        table: &Arc<Table>,
        statement: &Statement,
        running: &Running<'_>,
    ) -> Result<(u64, String)> {
        let mut view = self.view();
        let key = (table.schema.clone(), table.name.clone());
        Arc::make_mut(&mut view.temporary).insert(key, table.clone());
        let types = self.parameter_types(running);
        let planned = self.plan_in_view(&view, statement, running.source, types.as_deref())?;
        let timeout = self.settings.lock_wait_timeout;
        let uses: Vec<(TableId, catalog::Usage)> =
            planned.uses.iter().filter(|(id, _)| *id != table.id).copied().collect();
        let locks = self.server.metadata_locks.clone();
        locks.use_tables(&self.transactions.slot, &uses, timeout, &self.shared.cancel)?;
        let outcome = self.run_program(&planned, running.parameters, &mut NoRows)?;
        Ok((outcome.affected, outcome.info))
    }

    /// Result columns of a query.
    fn query_columns(
        &mut self,
        query: &ast::Query,
        running: &Running<'_>,
    ) -> Result<Vec<ColumnMeta>> {
        let statement = Statement::Query(Box::new(query.clone()));
        let types = self.parameter_types(running);
        let planned = self.plan_statement(&statement, running.source, types.as_deref())?;
        if !planned.privileges.is_empty() {
            // The rights on what it reads are checked as for the SELECT itself.
            self.lock_plan(&planned)?;
        }
        Ok(planned.program.columns().to_vec())
    }

    /// Columns of CREATE TABLE ... SELECT that the statement does not define itself.
    fn add_query_columns(
        &mut self,
        draft: &mut Draft,
        query: &ast::Query,
        running: &Running<'_>,
    ) -> Result<()> {
        let view = self.view();
        let metas = self.query_columns(query, running)?;
        for (at, meta) in metas.iter().enumerate() {
            if metas[..at].iter().any(|before| catalog::same_name(&before.name, &meta.name)) {
                bail!(DUP_FIELDNAME, meta.name);
            }
            if draft.column(&meta.name).is_some() {
                continue;
            }
            super::columns::check_column_name(&meta.name)?;
            let source = source_column(&view, meta);
            let ty = storable(meta);
            self.note_fixed_float(&ty);
            let default = match (&source, ty.nullable) {
                (Some(column), true) if column.generated.is_some() => {
                    ColumnDefault::Constant(Value::Null)
                }
                (Some(column), false) if column.auto_increment => zero_default(&ty),
                (Some(column), _) => column.default.clone(),
                (None, true) => ColumnDefault::Constant(Value::Null),
                (None, false) => zero_default(&ty),
            };
            draft.columns.push(DraftColumn {
                column: Column {
                    name: Arc::from(&*meta.name),
                    ty,
                    stored: None,
                    default,
                    on_update_now: source.as_ref().and_then(|column| column.on_update_now),
                    auto_increment: false,
                    generated: None,
                    invisible: false,
                    collation_written: source
                        .as_ref()
                        .is_some_and(|column| column.collation_written),
                    comment: source.map_or_else(String::new, |column| column.comment),
                    histogram: None,
                },
                origin: None,
                null_written: None,
            });
        }
        Ok(())
    }
}

/// The catalog's column behind a result column.
fn source_column(view: &CatalogView, meta: &ColumnMeta) -> Option<Column> {
    match view.relation(&meta.schema, &meta.org_table)? {
        Relation::Table(table) => {
            table.column(&meta.org_name).map(|position| table.columns[position].clone())
        }
        Relation::View(_) => None,
    }
}

/// What a computed NOT NULL column gets for a default, as the reference shows it.
fn zero_default(ty: &DataType) -> ColumnDefault {
    if ty.is_integer() {
        let zero = if ty.unsigned { Value::UInt(0) } else { Value::Int(0) };
        return ColumnDefault::Constant(zero);
    }
    match ty.kind {
        TypeKind::Decimal => {
            let zero = types::Decimal::from(0_i64).rescale(ty.decimals);
            ColumnDefault::Constant(Value::Decimal(zero))
        }
        TypeKind::Float | TypeKind::Double => ColumnDefault::Constant(Value::Double(0.0)),
        TypeKind::Time => ColumnDefault::Constant(Value::Time(types::Time::ZERO)),
        TypeKind::Char | TypeKind::VarChar | TypeKind::Binary | TypeKind::VarBinary => {
            ColumnDefault::Constant(Value::text(""))
        }
        _ => ColumnDefault::None,
    }
}

/// The column type that holds values of a result column's type.
fn storable(meta: &ColumnMeta) -> DataType {
    let mut ty = meta.ty.clone();
    ty.collation = super::charsets::stored_collation(charset::collation_or_binary(ty.collation)).id;
    match ty.kind {
        TypeKind::Null => {
            ty.kind = TypeKind::VarBinary;
            ty.length = 0;
            ty.nullable = true;
        }
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt | TypeKind::Int
            if meta.computed == Some(Computed::Subquery) =>
        {
            ty.kind = TypeKind::BigInt;
            ty.length = 20;
        }
        TypeKind::TinyInt
        | TypeKind::SmallInt
        | TypeKind::MediumInt
        | TypeKind::Int
        | TypeKind::BigInt
            if meta.computed.is_some_and(|computed| computed != Computed::IfNull) =>
        {
            fit_integer(&mut ty);
        }
        TypeKind::Bit if meta.computed.is_some() => {
            ty.unsigned = true;
            (ty.kind, ty.length) = match ty.length {
                0..=31 => (TypeKind::Int, 10),
                _ => (TypeKind::BigInt, 20),
            };
        }
        TypeKind::BigInt => ty.length = 20,
        TypeKind::Char if meta.computed.is_some() => ty.kind = TypeKind::VarChar,
        TypeKind::Binary if meta.computed.is_some() => ty.kind = TypeKind::VarBinary,
        TypeKind::Enum | TypeKind::Set
            if meta.computed.is_some() || meta.materialized && meta.org_table.is_empty() =>
        {
            ty.kind = TypeKind::VarChar;
            ty.members = None;
        }
        _ => {}
    }
    if !ty.is_string() || !meta.org_table.is_empty() {
        return ty;
    }
    fit_string(&mut ty, meta);
    ty
}

/// Small computed numbers become INT, as in the reference.
fn fit_integer(ty: &mut DataType) {
    (ty.kind, ty.length) = match (ty.length < INT_DIGITS_END, ty.unsigned) {
        (true, true) => (TypeKind::Int, 10),
        (true, false) => (TypeKind::Int, 11),
        (false, _) => (TypeKind::BigInt, 20),
    };
}

/// A string that was made gets a TEXT or BLOB beyond `VARCHAR_MADE_MAX` characters.
fn fit_string(ty: &mut DataType, meta: &ColumnMeta) {
    let char_bytes =
        u32::from(charset::collation_or_binary(ty.collation).charset.max_length.max(1));
    let aggregated = meta.computed.is_none() && is_aggregated(ty);
    let bytes = ty.length.saturating_mul(if aggregated { 1 } else { char_bytes });
    let short = matches!(ty.kind, TypeKind::VarChar | TypeKind::VarBinary);
    let made = meta.computed.is_some() || meta.materialized;
    if short && (!made || ty.length <= VARCHAR_MADE_MAX) && bytes <= 65_535
        || matches!(ty.kind, TypeKind::Char | TypeKind::Binary)
    {
        return;
    }
    let fitted = short || meta.materialized || aggregated;
    let binary = ty.is_binary();
    (ty.kind, ty.length) = match (bytes, binary) {
        _ if !fitted && meta.computed.is_none() => return,
        (256..=65_535, true) if fitted => (TypeKind::Blob, 65_535),
        (256..=65_535, false) if fitted => (TypeKind::Text, 65_535),
        (0..=255, true) if fitted => (TypeKind::TinyBlob, 255),
        (0..=255, false) if fitted => (TypeKind::TinyText, 255),
        (65_536..=0xFF_FFFF, true) if fitted => (TypeKind::MediumBlob, 0xFF_FFFF),
        (65_536..=0xFF_FFFF, false) if fitted => (TypeKind::MediumText, 0xFF_FFFF),
        (_, true) => (TypeKind::LongBlob, u32::MAX),
        (_, false) => (TypeKind::LongText, u32::MAX),
    };
}

/// Whether a long string is made of many values, like that of GROUP_CONCAT.
fn is_aggregated(ty: &DataType) -> bool {
    matches!(ty.kind, TypeKind::LongText | TypeKind::LongBlob) && ty.length < u32::MAX
}

/// A virtual column that an index needs takes room in the record.
pub(crate) fn materialise_indexed_columns(draft: &mut Draft) {
    let indexed: Vec<Arc<str>> = draft
        .indexes
        .iter()
        .flat_map(|index| index.parts.iter().map(|part| part.column.clone()))
        .collect();
    for column in &mut draft.columns {
        let is_virtual =
            column.column.generated.as_ref().is_some_and(|generated| !generated.stored);
        let is_indexed = indexed.iter().any(|name| catalog::same_name(name, &column.column.name));
        if is_virtual {
            column.column.stored = is_indexed.then_some(usize::MAX);
        }
    }
}
