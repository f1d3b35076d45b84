//! ALTER TABLE: the actions edit a draft; what the new definition asks of the rows decides whether it is instant, builds indexes, or
//! copies.

use std::sync::Arc;

use catalog::{ColumnDefault, Edit, Index, MetadataGuard, PrivilegeSet, Table, same_name};
use engine_api::{EngineError, GetOutcome, IndexDef, IndexId, RowBuf, RowLock, WaitPolicy};
use errors::{Error, ErrorCode, Result, bail, err};
use exec::TransactionSource;
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{AlterAction, AlterTable, ColumnPosition, Ident};
use types::Value;

use super::check_table_name;
use super::create::materialise_indexed_columns;
use super::draft::{CANT_DROP, Draft};
use crate::session::Session;
use crate::statement::Running;

/// How an ALTER TABLE may be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Default,
    Instant,
    Inplace,
    Copy,
}

/// What the actions ask besides the new definition.
struct Request {
    algorithm: Algorithm,
    /// What LOCK= says.
    lock: Box<str>,
    rename: Option<(Arc<str>, Arc<str>)>,
    /// FORCE, ENGINE=, ORDER BY: the rows are written anew.
    rebuild: bool,
    /// ORDER BY: the reference copies, and says how many rows.
    orders: bool,
}

impl Session {
    /// ALTER TABLE.
    pub(crate) fn alter_table(
        &mut self,
        alter: &AlterTable,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.alter_with(alter, PrivilegeSet::ALTER, running, sink)
    }

    /// ALTER TABLE, CREATE INDEX and DROP INDEX, which need different privileges.
    pub(crate) fn alter_with(
        &mut self,
        alter: &AlterTable,
        needed: PrivilegeSet,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if alter.partitioning.is_some() {
            return Err(Error::not_supported("PARTITION BY"));
        }
        let (schema, name) = self.qualify(&alter.name)?;
        let found = self.find_table(&schema, &name);
        let table = match found {
            Err(error) if alter.if_exists && error.code() == ErrorCode::NO_SUCH_TABLE => {
                self.working.push_error(errors::Level::Note, &error);
                return self.send_ok(sink, OkInfo::default());
            }
            found => found?,
        };
        if !table.temporary {
            self.require_on_table(&schema, &name, needed)?;
            self.check_writable()?;
        }
        let ids = if table.temporary { Vec::new() } else { vec![table.id] };
        let mut guard = self.lock_for_ddl(&ids)?;
        // Under the lock the definition stands still.
        let table = self.find_table(&schema, &name)?;
        let mut draft = Draft::of(&table);
        let mut request = Request {
            algorithm: Algorithm::Default,
            lock: "DEFAULT".into(),
            rename: None,
            rebuild: false,
            orders: false,
        };
        for action in &alter.actions {
            self.apply_action(&mut draft, &table, action, &mut request, running)?;
        }
        let outcome = self.carry_out(&table, draft, &request, &mut guard)?;
        drop(guard);
        let (affected_rows, commit) = outcome;
        let only_renames = !alter.actions.is_empty()
            && alter.actions.iter().all(|action| matches!(action, AlterAction::RenameTable(_)));
        let info = if only_renames {
            String::new()
        } else {
            let warnings = self.working.warning_count();
            format!("Records: {affected_rows}  Duplicates: 0  Warnings: {warnings}")
        };
        self.services.row_count = affected_rows as i64;
        self.send_ok(sink, OkInfo { affected_rows, info, commit, ..OkInfo::default() })
    }

    #[allow(clippy::too_many_lines)]
    fn apply_action(
        &mut self,
        draft: &mut Draft,
        table: &Table,
        action: &AlterAction,
        request: &mut Request,
        running: &Running<'_>,
    ) -> Result<()> {
        match action {
            AlterAction::AddColumn { column, if_not_exists, position } => {
                if draft.column(&column.name.text).is_some() {
                    if *if_not_exists {
                        self.working.note(ErrorCode::DUP_FIELDNAME, &[&column.name.text]);
                        return Ok(());
                    }
                    bail!(DUP_FIELDNAME, column.name.text);
                }
                let built = self.build_column(draft, column, running)?;
                let at = place_for(draft, position.as_ref(), None)?;
                self.add_built_column(draft, built, at)
            }
            AlterAction::ChangeColumn { old, if_exists, column, position } => {
                self.change_column(draft, old, *if_exists, column, position.as_ref(), running)
            }
            AlterAction::ModifyColumn { column, if_exists, position } => {
                let old = column.name.clone();
                self.change_column(draft, &old, *if_exists, column, position.as_ref(), running)
            }
            AlterAction::DropColumn { name, if_exists } => {
                self.drop_column(draft, table, &name.text, *if_exists)
            }
            AlterAction::AddConstraint(constraint) => self.add_constraint(draft, constraint),
            AlterAction::DropForeignKey { name, if_exists } => {
                let position = draft.foreign_keys.iter().position(|key| {
                    key.name.as_ref().is_some_and(|known| same_name(known, &name.text))
                });
                match position {
                    Some(position) => {
                        draft.foreign_keys.remove(position);
                        Ok(())
                    }
                    None => self.missing(&name.text, *if_exists),
                }
            }
            AlterAction::DropPrimaryKey => self.drop_index_of(draft, "PRIMARY", false),
            AlterAction::DropIndex { name, if_exists } => {
                self.drop_index_of(draft, &name.text, *if_exists)
            }
            AlterAction::DropCheck(name) => {
                match find_check(draft, &name.text) {
                    Some(position) => draft.checks.remove(position),
                    None => bail!(CHECK_CONSTRAINT_NOT_FOUND, name.text),
                };
                Ok(())
            }
            AlterAction::DropConstraint { name, if_exists } => {
                self.drop_constraint(draft, &name.text, *if_exists)
            }
            AlterAction::AlterColumnDefault { name, default, parenthesised } => {
                let at = column_of(draft, &name.text, &table.name)?;
                let ty = draft.columns[at].column.ty.clone();
                let value = match default {
                    Some(expr) => {
                        self.column_default(&name.text, &ty, expr, *parenthesised, running)?
                    }
                    None => ColumnDefault::None,
                };
                draft.columns[at].column.default = value;
                Ok(())
            }
            AlterAction::AlterColumnVisible { name, visible } => {
                let at = column_of(draft, &name.text, &table.name)?;
                draft.columns[at].column.invisible = !visible;
                Ok(())
            }
            AlterAction::AlterIndexVisible { name, visible } => {
                let at = draft
                    .index(&name.text)
                    .ok_or_else(|| err!(KEY_DOES_NOT_EXITS, name.text, table.name))?;
                draft.indexes[at].visible = *visible;
                Ok(())
            }
            AlterAction::AlterConstraintEnforced { name, enforced, .. } => {
                let at = find_check(draft, &name.text)
                    .ok_or_else(|| err!(CHECK_CONSTRAINT_NOT_FOUND, name.text))?;
                draft.checks[at].1.enforced = *enforced;
                Ok(())
            }
            AlterAction::RenameColumn { old, new } => {
                let at = column_of(draft, &old.text, &table.name)?;
                if !same_name(&old.text, &new.text) && draft.column(&new.text).is_some() {
                    bail!(DUP_FIELDNAME, new.text);
                }
                super::columns::check_column_name(&new.text)?;
                self.refuse_dependents(draft, at)?;
                rename_column(draft, at, &new.text);
                Ok(())
            }
            AlterAction::RenameIndex { old, new } => {
                let at = draft
                    .index(&old.text)
                    .ok_or_else(|| err!(KEY_DOES_NOT_EXITS, old.text, table.name))?;
                if !same_name(&old.text, &new.text) && draft.index(&new.text).is_some() {
                    bail!(DUP_KEYNAME, new.text);
                }
                draft.indexes[at].name = Some(Arc::from(&*new.text));
                Ok(())
            }
            AlterAction::RenameTable(to) => {
                let schema = match &to.schema {
                    Some(schema) => Arc::from(&*schema.text),
                    None => draft.schema.clone(),
                };
                check_table_name(&to.name.text)?;
                let earlier = request.rename.replace((schema, Arc::from(&*to.name.text)));
                if let Some((_, name)) = earlier {
                    let text = format!("RENAME TO {name}: a later RENAME wins");
                    self.warn_in_words(ErrorCode::OPTION_IGNORED, text);
                }
                Ok(())
            }
            AlterAction::ConvertCharset { charset, collation } => {
                self.convert_charset(draft, charset.as_ref(), collation.as_ref())
            }
            AlterAction::Option(option) => {
                if matches!(option, syntax::ast::TableOption::Engine(_)) {
                    request.rebuild = true;
                }
                self.apply_table_options(draft, std::iter::once(option))
            }
            AlterAction::Algorithm(word) => {
                request.algorithm = match word.text.to_ascii_uppercase().as_str() {
                    "DEFAULT" => Algorithm::Default,
                    "INSTANT" => Algorithm::Instant,
                    "INPLACE" => Algorithm::Inplace,
                    "COPY" => Algorithm::Copy,
                    "NOCOPY" => Algorithm::Inplace,
                    _ => bail!(UNKNOWN_ALTER_ALGORITHM, word.text),
                };
                Ok(())
            }
            AlterAction::Lock(word) => {
                let known = ["DEFAULT", "NONE", "SHARED", "EXCLUSIVE"];
                if !known.iter().any(|known| word.is(known)) {
                    bail!(UNKNOWN_ALTER_LOCK, word.text);
                }
                request.lock = word.text.to_ascii_uppercase().into();
                Ok(())
            }
            AlterAction::Force | AlterAction::OrderBy(_) => {
                request.rebuild = true;
                request.orders |= matches!(action, AlterAction::OrderBy(_));
                Ok(())
            }
            AlterAction::DisableKeys | AlterAction::EnableKeys => {
                self.working.note(ErrorCode::ILLEGAL_HA, &[&table.name]);
                Ok(())
            }
            AlterAction::Validation(_) => Ok(()),
            AlterAction::Partition(_) => Err(err!(PARTITION_MGMT_ON_NONPARTITIONED)),
            AlterAction::DiscardTablespace | AlterAction::ImportTablespace => {
                Err(Error::not_supported("DISCARD and IMPORT TABLESPACE"))
            }
            AlterAction::SecondaryLoad | AlterAction::SecondaryUnload => {
                Err(Error::not_supported("SECONDARY_LOAD"))
            }
            AlterAction::AddPeriod(..)
            | AlterAction::DropPeriod(_)
            | AlterAction::DropSystemVersioning => {
                Err(Error::not_supported("system-versioned tables"))
            }
        }
    }

    fn missing(&mut self, name: &str, if_exists: bool) -> Result<()> {
        if if_exists {
            self.working.note(CANT_DROP, &[&name]);
            return Ok(());
        }
        Err(Error::with(CANT_DROP, &[&name]))
    }

    fn change_column(
        &mut self,
        draft: &mut Draft,
        old: &Ident,
        if_exists: bool,
        definition: &syntax::ast::ColumnDef,
        position: Option<&ColumnPosition>,
        running: &Running<'_>,
    ) -> Result<()> {
        let Some(at) = draft.column(&old.text) else {
            if if_exists {
                self.working.note(ErrorCode::BAD_FIELD_ERROR, &[&old.text, &draft.name]);
                return Ok(());
            }
            bail!(BAD_FIELD_ERROR, old.text, draft.name);
        };
        let new_name = &*definition.name.text;
        if !same_name(&old.text, new_name) && draft.column(new_name).is_some() {
            bail!(DUP_FIELDNAME, new_name);
        }
        let mut built = self.build_column(draft, definition, running)?;
        built.column.origin = draft.columns[at].origin;
        let was_virtual = |generated: &Option<catalog::Generated>| {
            generated.as_ref().map(|generated| generated.stored)
        };
        let (before, after) = (
            was_virtual(&draft.columns[at].column.generated),
            was_virtual(&built.column.column.generated),
        );
        match (before, after) {
            (Some(false), None | Some(true)) | (None | Some(true), Some(false)) => {
                bail!(UNSUPPORTED_ACTION_ON_GENERATED_COLUMN, "Changing the STORED status");
            }
            _ => {}
        }
        if &*draft.columns[at].column.name != new_name {
            if !same_name(&draft.columns[at].column.name, new_name) {
                self.refuse_dependents(draft, at)?;
            }
            rename_column(draft, at, new_name);
        }
        let name = built.column.column.name.clone();
        draft.columns[at] = built.column;
        if position.is_some() {
            let moved = draft.columns.remove(at);
            let to = place_for(draft, position, None)?;
            draft.columns.insert(to, moved);
        }
        self.add_column_extras(
            draft,
            &name,
            built.primary,
            built.unique,
            &built.checks,
            built.references.as_ref(),
        )
    }

    fn drop_column(
        &mut self,
        draft: &mut Draft,
        table: &Table,
        name: &str,
        if_exists: bool,
    ) -> Result<()> {
        let Some(at) = draft.column(name) else { return self.missing(name, if_exists) };
        if draft.columns.len() == 1 {
            bail!(CANT_REMOVE_ALL_FIELDS);
        }
        let in_key = draft
            .foreign_keys
            .iter()
            .find(|key| key.columns.iter().any(|column| same_name(column, name)));
        if let Some(key) = in_key {
            let key = key.name.clone().unwrap_or_else(|| Arc::from(""));
            bail!(FK_COLUMN_CANNOT_DROP, name, key);
        }
        let snapshot = self.server.catalog.snapshot();
        for child in snapshot.children_of(&table.schema, &table.name) {
            for key in &child.foreign_keys {
                let refers = key.referenced_table == table.name
                    && key.referenced_columns.iter().any(|column| same_name(column, name));
                if refers && self.settings.foreign_key_checks {
                    let child = format!("{}.{}", child.schema, child.name);
                    bail!(FK_COLUMN_CANNOT_DROP_CHILD, name, key.name, child);
                }
            }
        }
        self.refuse_dependents(draft, at)?;
        draft.columns.remove(at);
        // An index loses the column; one without columns is gone.
        for index in &mut draft.indexes {
            let parts = index.parts.len();
            index.parts.retain(|part| !same_name(&part.column, name));
            if index.parts.len() != parts && index.origin.is_some() {
                index.origin = None;
            }
        }
        draft.indexes.retain(|index| !index.parts.is_empty());
        Ok(())
    }

    /// 3108, 3959, 3837 when an expression of the table reads the column at `at`, which is dropped or renamed.
    fn refuse_dependents(&self, draft: &Draft, at: usize) -> Result<()> {
        let name = draft.columns[at].column.name.clone();
        let reads = |text: &str| {
            self.bind_over_columns(&draft.columns, text)
                .is_ok_and(|bound| bound.columns.contains(&at))
        };
        for other in &draft.columns {
            if let Some(generated) = &other.column.generated
                && reads(&generated.expression)
            {
                if generated.hidden {
                    bail!(CANNOT_DROP_COLUMN_FUNCTIONAL_INDEX, name);
                }
                bail!(DEPENDENT_BY_GENERATED_COLUMN, name);
            }
            if let ColumnDefault::Expression(text) = &other.column.default
                && reads(text)
            {
                bail!(DEPENDENT_BY_DEFAULT_GENERATED_VALUE, name);
            }
        }
        for (check_name, check) in &draft.checks {
            if reads(&check.expression) {
                let shown = check_name.clone().unwrap_or_else(|| check.name.clone());
                // The reference's error 3959; the catalogue does not list it.
                return Err(Error::new(
                    ErrorCode(3959),
                    format!(
                        "Check constraint '{shown}' uses column '{name}', hence column cannot be dropped or renamed."
                    ),
                ));
            }
        }
        Ok(())
    }

    fn drop_index_of(&mut self, draft: &mut Draft, name: &str, if_exists: bool) -> Result<()> {
        let Some(at) = draft.index(name) else { return self.missing(name, if_exists) };
        let index = draft.indexes.remove(at);
        for part in &index.parts {
            let hidden = draft
                .column(&part.column)
                .filter(|position| super::is_hidden(&draft.columns[*position].column));
            if let Some(position) = hidden {
                draft.columns.remove(position);
            }
        }
        // A foreign key must keep an index that begins with its columns.
        for key in &draft.foreign_keys {
            let covers = |index: &super::draft::DraftIndex| {
                index.parts.len() >= key.columns.len()
                    && key
                        .columns
                        .iter()
                        .zip(&index.parts)
                        .all(|(column, part)| same_name(column, &part.column))
            };
            if covers(&index) && !draft.indexes.iter().any(covers) {
                bail!(DROP_INDEX_FK, name);
            }
        }
        Ok(())
    }

    fn drop_constraint(&mut self, draft: &mut Draft, name: &str, if_exists: bool) -> Result<()> {
        if let Some(at) = find_check(draft, name) {
            draft.checks.remove(at);
            return Ok(());
        }
        let key = draft
            .foreign_keys
            .iter()
            .position(|key| key.name.as_ref().is_some_and(|known| same_name(known, name)));
        if let Some(at) = key {
            draft.foreign_keys.remove(at);
            return Ok(());
        }
        match draft.index(name) {
            Some(at) if draft.indexes[at].unique => self.drop_index_of(draft, name, if_exists),
            _ if if_exists => self.missing(name, true),
            _ => Err(err!(CONSTRAINT_NOT_FOUND, name)),
        }
    }

    /// CONVERT TO CHARACTER SET: every text column changes.
    fn convert_charset(
        &mut self,
        draft: &mut Draft,
        charset: Option<&Ident>,
        collation: Option<&Ident>,
    ) -> Result<()> {
        let text = |name: Option<&Ident>| name.map(|name| name.text.clone());
        let schema = self.schema_collation(&draft.schema);
        let (charset, collation) = (text(charset), text(collation));
        self.note_charset(charset.as_deref(), collation.as_deref());
        let collation =
            super::options::choose_collation(charset.as_deref(), collation.as_deref(), schema)?;
        draft.collation = collation;
        for column in &mut draft.columns {
            let ty = &mut column.column.ty;
            let has_text =
                ty.is_text() || matches!(ty.kind, types::TypeKind::Enum | types::TypeKind::Set);
            if has_text {
                ty.collation = collation;
            }
        }
        Ok(())
    }

    /// Makes the new definition true.
    fn carry_out(
        &mut self,
        table: &Arc<Table>,
        mut draft: Draft,
        request: &Request,
        guard: &mut MetadataGuard,
    ) -> Result<(u64, Option<engine_api::CommitHandle>)> {
        materialise_indexed_columns(&mut draft);
        draft.name_constraints()?;
        self.check_expressions(&draft)?;
        let next = draft.auto_increment;
        let existing: Vec<Arc<str>> = draft
            .foreign_keys
            .iter()
            .filter(|key| key.existing)
            .filter_map(|key| key.name.clone())
            .collect();
        let origins: Vec<Option<usize>> =
            draft.columns.iter().map(|column| column.origin).collect();
        let mut new = draft.finish(table.id, Some(table))?;
        self.check_foreign_keys(&mut new, &existing)?;
        let adds_keys = new.foreign_keys.len() > existing.len();
        let adds_checks = new.checks.iter().any(|check| {
            check.enforced
                && !table
                    .checks
                    .iter()
                    .any(|known| known.enforced && known.expression == check.expression)
        });
        let way = choose_way(table, &mut new);
        let must_copy = way.is_none() || request.rebuild || adds_keys || adds_checks;
        let copies = must_copy || request.algorithm == Algorithm::Copy;
        let needs_copy = reference_copies(table, &new, &origins);
        let counts_rows = request.algorithm == Algorithm::Copy
            || request.orders
            || adds_checks
            || adds_keys && self.settings.foreign_key_checks
            || needs_copy;
        if must_copy && request.algorithm == Algorithm::Instant && !request.rebuild {
            bail!(ALTER_OPERATION_NOT_SUPPORTED, "ALGORITHM=INSTANT", "ALGORITHM=COPY/INPLACE");
        }
        check_demands(request, needs_copy, copies)?;
        if let Some((schema, name)) = &request.rename {
            let same = *schema == table.schema && *name == table.name;
            let taken =
                self.server.catalog.with(|snapshot| snapshot.relation(schema, name).is_some());
            if !same && taken {
                bail!(TABLE_EXISTS_ERROR, name);
            }
        }
        if copies {
            let (rows, commit) =
                self.alter_by_copy(table, new, &origins, request.rename.as_ref(), next)?;
            return Ok((if counts_rows { rows } else { 0 }, commit));
        }
        let changes = way.unwrap_or_default();
        if request.algorithm == Algorithm::Instant && !changes.added.is_empty() {
            bail!(ALTER_OPERATION_NOT_SUPPORTED, "ALGORITHM=INSTANT", "ALGORITHM=COPY/INPLACE");
        }
        if request.lock.as_ref() == "NONE" && !builds_online(table, &new, &changes) {
            let reason = "indexes over columns added by the same statement are built with a lock";
            bail!(ALTER_OPERATION_NOT_SUPPORTED_REASON, "LOCK=NONE", reason, "LOCK=SHARED");
        }
        match self.alter_in_place(table, &new, &changes, guard) {
            Err(EngineError::Other(error)) if error.code() == ErrorCode::NOT_SUPPORTED_YET => {
                self.transactions.rollback()?;
                if request.algorithm == Algorithm::Instant {
                    bail!(
                        ALTER_OPERATION_NOT_SUPPORTED,
                        "ALGORITHM=INSTANT",
                        "ALGORITHM=COPY/INPLACE"
                    );
                }
                let (rows, commit) =
                    self.alter_by_copy(table, new, &origins, request.rename.as_ref(), next)?;
                return Ok((if counts_rows { rows } else { 0 }, commit));
            }
            Err(EngineError::DuplicateKey { index, locator }) => {
                let index = new.indexes.iter().find(|known| known.id == index);
                let name = index.map_or("", |index| &index.name);
                let key = format!("{}.{name}", table.name);
                let entry = index.and_then(|index| self.shown_entry(table, index, &locator));
                self.transactions.rollback()?;
                bail!(DUP_ENTRY, entry.unwrap_or_default(), key);
            }
            Err(error) => {
                // While the table is still locked: what is half done goes first.
                self.transactions.rollback()?;
                return Err(error.into_error(&self.shared.cancel));
            }
            Ok(()) => {}
        }
        let new = Arc::new(new);
        let commit = self.publish_altered(table, new.clone(), request.rename.as_ref())?;
        self.set_next_auto_increment(&new, next)?;
        Ok((0, commit))
    }

    /// Changes the definition and its indexes without writing rows anew. New indexes are built while others use the table, if they can be.
    fn alter_in_place(
        &mut self,
        table: &Table,
        new: &Table,
        changes: &IndexChanges,
        guard: &mut MetadataGuard,
    ) -> Result<(), EngineError> {
        let engine = if table.temporary {
            self.server.temporary_engine.clone()
        } else {
            self.server.default_engine.clone()
        };
        let is_added = |index: &&IndexDef| changes.added.contains(&index.id);
        let added: Vec<_> = new.definition.indexes.iter().filter(is_added).cloned().collect();
        let online = !added.is_empty() && !table.temporary && builds_online(table, new, changes);
        let mut left = added.as_slice();
        if online && self.transactions.transaction(engine.name())?.begin_indexes(table.id, left)? {
            guard.downgrade();
            let txn = self.transactions.transaction(engine.name())?;
            sys::blocking::blocking(|| txn.fill_indexes(table.id))?;
            let timeout = self.settings.lock_wait_timeout;
            guard.upgrade(timeout, &self.shared.cancel).map_err(EngineError::Other)?;
            self.transactions.transaction(engine.name())?.finish_indexes(table.id)?;
            left = &[];
        }
        let txn = self.transactions.transaction(engine.name())?;
        for index in &changes.dropped {
            txn.drop_index(table.id, *index)?;
        }
        let mut definition = new.definition.clone();
        let mut before = table.definition.clone();
        before.indexes.retain(|index| !changes.dropped.contains(&index.id));
        match left {
            [] => before.indexes.extend(added.iter().cloned()),
            left => definition.indexes.retain(|index| !left.contains(index)),
        }
        if definition != before {
            txn.alter_table(&definition)?;
        }
        for index in left {
            sys::blocking::blocking(|| txn.create_index(table.id, index))?;
        }
        Ok(())
    }

    /// The columns of an index in one row, as error 1062 shows them.
    fn shown_entry(&mut self, table: &Table, index: &Index, locator: &[u8]) -> Option<String> {
        let txn = self.transactions.transaction(&table.engine).ok()?;
        let mut row = RowBuf::default();
        let (clustered, wait) = (IndexId::CLUSTERED, WaitPolicy::Wait);
        let found = txn.get(table.id, clustered, locator, RowLock::None, wait, &mut row).ok()?;
        if found != GetOutcome::Found {
            return None;
        }
        let types: Vec<_> = table.definition.columns.iter().map(|c| c.ty.clone()).collect();
        let layout = types::record::RecordLayout::new(&types);
        let columns = &table.definition.columns;
        let mut text = Vec::new();
        for (at, part) in index.parts.iter().enumerate() {
            let column = &table.columns.get(part.column)?;
            let stored = column.stored?;
            let missing = columns.get(stored)?.instant_default.as_ref();
            if at > 0 {
                text.push(b'-');
            }
            match layout.value(&row.record, stored, missing)? {
                Value::Null => text.extend_from_slice(b"NULL"),
                Value::DateTime(_) if column.ty.kind == types::TypeKind::Timestamp => return None,
                value => types::to_text(&value, &column.ty, &mut text),
            }
        }
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Makes an altered table the current one, renamed when the statement says so.
    pub(crate) fn publish_altered(
        &mut self,
        old: &Table,
        new: Arc<Table>,
        rename: Option<&(Arc<str>, Arc<str>)>,
    ) -> Result<Option<engine_api::CommitHandle>> {
        let mut new = new;
        let mut edits = Vec::new();
        if let Some((schema, name)) = rename {
            let mut renamed = Table::clone(&new);
            renamed.schema = schema.clone();
            renamed.name = name.clone();
            new = Arc::new(renamed);
        }
        if old.temporary {
            let tables = Arc::make_mut(&mut self.temporary);
            tables.remove(&(old.schema.clone(), old.name.clone()));
            tables.insert((new.schema.clone(), new.name.clone()), new);
            return Ok(Some(self.transactions.commit()?));
        }
        edits.push(Edit::ReplaceTable { old: old.id, new: new.clone() });
        edits.extend(self.child_edits(old, &new));
        self.commit_definitions(&edits).map(Some)
    }

    /// Tables whose foreign keys follow renamed tables and columns of their parent.
    fn child_edits(&self, old: &Table, new: &Table) -> Vec<Edit> {
        let snapshot = self.server.catalog.snapshot();
        let mut edits = Vec::new();
        for child in snapshot.children_of(&old.schema, &old.name) {
            if child.id == old.id {
                continue;
            }
            let mut changed = Table::clone(child);
            for key in &mut changed.foreign_keys {
                if key.referenced_schema != old.schema || key.referenced_table != old.name {
                    continue;
                }
                key.referenced_schema = new.schema.clone();
                key.referenced_table = new.name.clone();
                for column in &mut key.referenced_columns {
                    let place = old.column(column).and_then(|at| old.columns[at].stored);
                    let renamed = place.and_then(|place| {
                        new.columns.iter().find(|column| column.stored == Some(place))
                    });
                    if new.column(column).is_none()
                        && let Some(renamed) = renamed
                    {
                        *column = renamed.name.clone();
                    }
                }
            }
            if changed.foreign_keys != child.foreign_keys {
                edits.push(Edit::ReplaceTable { old: child.id, new: Arc::new(changed) });
            }
        }
        edits
    }
}

/// Whether all new indexes are over columns that the rows have already: then they can be built before anything else changes.
fn builds_online(old: &Table, new: &Table, changes: &IndexChanges) -> bool {
    let (before, after) = (&old.definition.columns, &new.definition.columns);
    let added = new.definition.indexes.iter().filter(|index| changes.added.contains(&index.id));
    added.flat_map(|index| &index.parts).all(|part| {
        before.get(part.column).map(|column| &column.ty)
            == after.get(part.column).map(|column| &column.ty)
    })
}

/// 1221, 1845, 1846 where ALGORITHM and LOCK ask for what will not happen.
fn check_demands(request: &Request, needs_copy: bool, copies: bool) -> Result<()> {
    const TYPE: &str = "Cannot change column type INPLACE";
    let lock = request.lock.as_ref();
    if request.algorithm == Algorithm::Instant && lock != "DEFAULT" {
        bail!(WRONG_USAGE, "ALGORITHM=INSTANT", "LOCK=NONE/SHARED/EXCLUSIVE");
    }
    if request.algorithm == Algorithm::Inplace && needs_copy {
        bail!(ALTER_OPERATION_NOT_SUPPORTED_REASON, "ALGORITHM=INPLACE", TYPE, "ALGORITHM=COPY");
    }
    if lock == "NONE" && copies {
        let reason = match (request.algorithm, needs_copy) {
            (Algorithm::Copy, _) => "COPY algorithm requires a lock",
            (_, true) => TYPE,
            (_, false) => "rows are written anew under a lock",
        };
        bail!(ALTER_OPERATION_NOT_SUPPORTED_REASON, "LOCK=NONE", reason, "LOCK=SHARED");
    }
    Ok(())
}

/// Whether the reference makes a copy for what changed, and so reports the rows; other rebuilds report none.
fn reference_copies(old: &Table, new: &Table, origins: &[Option<usize>]) -> bool {
    let loses_primary = old.definition.primary().is_some() && new.definition.primary().is_none();
    loses_primary
        || new.columns.iter().zip(origins).any(|(now, origin)| {
            let stored_expression = |column: &catalog::Column| {
                let generated = column.generated.as_ref();
                generated.filter(|generated| generated.stored).map(|g| g.expression.clone())
            };
            match origin.and_then(|origin| old.columns.get(origin)) {
                Some(was) => {
                    let mut ty = was.ty.clone();
                    ty.nullable = now.ty.nullable;
                    let grows_length_bytes = now.ty.kind == types::TypeKind::VarChar
                        && (length_bytes(&ty) != length_bytes(&now.ty));
                    !same_encoding(&ty, &now.ty)
                        || grows_length_bytes
                        || stored_expression(was) != stored_expression(now)
                }
                None => {
                    stored_expression(now).is_some()
                        || matches!(now.default, ColumnDefault::Expression(_))
                }
            }
        })
}

/// Bytes of the length of a VARCHAR in the reference's records.
fn length_bytes(ty: &types::DataType) -> u8 {
    let widest = charset::collation_or_binary(ty.collation).charset.max_length.max(1);
    if ty.length.saturating_mul(u32::from(widest)) > 255 { 2 } else { 1 }
}

fn column_of(draft: &Draft, name: &str, table: &str) -> Result<usize> {
    draft.column(name).ok_or_else(|| err!(BAD_FIELD_ERROR, name, table))
}

fn find_check(draft: &Draft, name: &str) -> Option<usize> {
    draft
        .checks
        .iter()
        .position(|(known, _)| known.as_ref().is_some_and(|known| same_name(known, name)))
}

/// Where FIRST and AFTER put a column; at the end (or `default`) when nothing is said.
fn place_for(
    draft: &Draft,
    position: Option<&ColumnPosition>,
    default: Option<usize>,
) -> Result<usize> {
    match position {
        None => Ok(default.unwrap_or(draft.columns.len())),
        Some(ColumnPosition::First) => Ok(0),
        Some(ColumnPosition::After(name)) => {
            column_of(draft, &name.text, &draft.name).map(|at| at + 1)
        }
    }
}

/// Gives a column another name in everything that names it.
fn rename_column(draft: &mut Draft, at: usize, new: &str) {
    let old = draft.columns[at].column.name.clone();
    let name: Arc<str> = Arc::from(new);
    draft.columns[at].column.name = name.clone();
    for index in &mut draft.indexes {
        for part in &mut index.parts {
            if same_name(&part.column, &old) {
                part.column = name.clone();
            }
        }
    }
    for key in &mut draft.foreign_keys {
        for column in &mut key.columns {
            if same_name(column, &old) {
                *column = name.clone();
            }
        }
        if key.key.referenced_schema == draft.schema && key.key.referenced_table == draft.name {
            for column in &mut key.key.referenced_columns {
                if same_name(column, &old) {
                    *column = name.clone();
                }
            }
        }
    }
}

/// Indexes that come and go without a copy.
#[derive(Debug, Default)]
struct IndexChanges {
    added: Vec<IndexId>,
    dropped: Vec<IndexId>,
}

/// What an in-place change does to indexes, or `None` when the rows must be written anew. Gives new columns their instant default.
fn choose_way(old: &Table, new: &mut Table) -> Option<IndexChanges> {
    let before = old.definition.columns.len();
    if new.definition.columns.len() < before {
        return None;
    }
    for (place, column) in old.definition.columns.iter().enumerate() {
        // A stored column must be the same one, at its place.
        let was = old.columns.iter().find(|column| column.stored == Some(place))?;
        let now = new.columns.iter().find(|column| column.stored == Some(place))?;
        let same_expression = was.generated.as_ref().map(|generated| &generated.expression)
            == now.generated.as_ref().map(|generated| &generated.expression);
        if !same_expression || !same_encoding(&column.ty, &new.definition.columns[place].ty) {
            return None;
        }
    }
    for place in before..new.definition.columns.len() {
        let column = new.columns.iter().find(|column| column.stored == Some(place))?;
        if column.generated.is_some() || column.auto_increment {
            return None;
        }
        let default = match &column.default {
            ColumnDefault::Constant(value) => value.clone(),
            ColumnDefault::None if column.ty.nullable => Value::Null,
            ColumnDefault::None => implicit_default(&column.ty)?,
            ColumnDefault::Now(_) | ColumnDefault::Expression(_) => return None,
        };
        new.definition.columns[place].instant_default =
            if default.is_null() { None } else { Some(default) };
    }
    let primary = |table: &Table| table.definition.primary().map(|index| index.parts.clone());
    if primary(old) != primary(new) {
        return None;
    }
    let mut changes = IndexChanges::default();
    let same = |one: &engine_api::IndexDef, other: &engine_api::IndexDef| {
        one.id == other.id && one.unique == other.unique && one.parts == other.parts
    };
    for index in &old.definition.indexes {
        if !new.definition.indexes.iter().any(|other| same(index, other)) {
            changes.dropped.push(index.id);
        }
    }
    for index in &new.definition.indexes {
        if !old.definition.indexes.iter().any(|other| same(index, other)) {
            // An index that changes under its old id is dropped first.
            changes.added.push(index.id);
        }
    }
    Some(changes)
}

/// What old rows have in a NOT NULL column without a default, as the reference fills it; `None` when that takes a copy.
fn implicit_default(ty: &types::DataType) -> Option<Value> {
    use types::TypeKind::*;
    Some(match ty.kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt if ty.unsigned => Value::UInt(0),
        TinyInt | SmallInt | MediumInt | Int | BigInt => Value::Int(0),
        Bit | Set => Value::UInt(0),
        Enum => Value::UInt(1),
        Float | Double => Value::Double(0.0),
        Decimal => Value::Decimal(types::Decimal::from(0_i64).rescale(ty.decimals)),
        VarChar | TinyText | Text | MediumText | LongText | VarBinary | TinyBlob | Blob
        | MediumBlob | LongBlob | Char => Value::text(""),
        Null | Year | Date | Time | DateTime | Timestamp | Binary | Json | Vector | Geometry => {
            return None;
        }
    })
}

/// Whether records hold values of both types in the same bytes, and every value of the first is one of the second.
fn same_encoding(old: &types::DataType, new: &types::DataType) -> bool {
    use types::TypeKind::*;
    if old == new {
        return true;
    }
    // NULL becoming NOT NULL needs a look at the rows; the other way changes index keys.
    if old.nullable != new.nullable
        || old.collation != new.collation
        || old.unsigned != new.unsigned
    {
        return false;
    }
    match (old.kind, new.kind) {
        (VarChar, VarChar) | (VarBinary, VarBinary) => new.length >= old.length,
        (Enum, Enum) | (Set, Set) => match (&old.members, &new.members) {
            // More members may take wider numbers.
            (Some(before), Some(after)) => {
                after.names.starts_with(&before.names)
                    && types::record::fixed_length(old) == types::record::fixed_length(new)
            }
            _ => false,
        },
        (TinyInt, TinyInt)
        | (SmallInt, SmallInt)
        | (MediumInt, MediumInt)
        | (Int, Int)
        | (BigInt, BigInt) => true,
        _ => false,
    }
}
