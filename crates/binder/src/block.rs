//! Query blocks and what names mean in them.

use std::sync::Arc;

use catalog::{Table, same_name};
use errors::{Result, bail};
use plan::{
    AggregateCall, CastKind, ColumnSource, Expr, InstanceId, Register, WindowCall, WindowFrame,
};
use syntax::ast;
use types::{DataType, TypeKind};

use crate::view_write::ShownView;
use crate::{Binder, PrivilegeKind, RequiredPrivilege};

/// The part of a block that is being bound; decides look-up order and the words of error 1054.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    FieldList,
    Where,
    On,
    Group,
    Having,
    Order,
    WindowSpec,
    Values,
    TableFunction,
}

impl Clause {
    /// As messages name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Clause::FieldList | Clause::Values => "field list",
            Clause::Where => "where clause",
            Clause::On => "on clause",
            Clause::Group => "group statement",
            Clause::Having => "having clause",
            Clause::Order => "order clause",
            Clause::WindowSpec => "window order by",
            Clause::TableFunction => "a table function argument",
        }
    }

    pub(crate) fn allows_aggregates(self) -> bool {
        matches!(self, Clause::FieldList | Clause::Having | Clause::Order | Clause::WindowSpec)
    }
}

/// A column that a table reference shows.
#[derive(Clone, Debug)]
pub(crate) struct ScopeColumn {
    pub name: Arc<str>,
    pub expr: Expr,
    pub source: Option<Arc<ColumnSource>>,
    /// Not part of `*`.
    pub invisible: bool,
}

/// What a table reference stands on.
#[derive(Clone, Debug)]
pub(crate) enum ScopeSource {
    /// A stored table.
    Base { instance: InstanceId, table: Arc<Table> },
    /// Anything else.
    Columns(Vec<ScopeColumn>),
}

/// A table reference of a block.
#[derive(Clone, Debug)]
pub(crate) struct ScopeTable {
    pub schema: Option<Arc<str>>,
    pub alias: Arc<str>,
    pub source: ScopeSource,
    /// On the inner side of an outer join: its columns may be NULL.
    pub nullable: bool,
    /// Entry in the list of privileges, for SELECT.
    pub privilege: Option<usize>,
    /// Its alias was written.
    pub aliased: bool,
    /// It is a view.
    pub view: Option<Arc<ShownView>>,
}

/// A column as `SELECT *` and unqualified names see it.
#[derive(Clone, Debug)]
pub(crate) struct VisibleColumn {
    pub name: Arc<str>,
    pub table: usize,
    pub column: usize,
    /// Set for a column that NATURAL or USING made of two.
    pub merged: Option<Expr>,
}

/// An item of the select list that clauses may refer to.
#[derive(Clone, Debug)]
pub(crate) struct ListedItem {
    pub name: Arc<str>,
    /// An alias was written.
    pub aliased: bool,
    /// Alias of the table, for plain columns.
    pub table: Option<Arc<str>>,
    pub expr: Expr,
}

/// Calls over one window.
#[derive(Clone, Debug)]
pub(crate) struct WindowGroup {
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<plan::SortKey>,
    pub calls: Vec<WindowCall>,
}

/// A window of the WINDOW clause.
#[derive(Clone, Debug)]
pub(crate) struct NamedWindow {
    pub name: Arc<str>,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<plan::SortKey>,
    pub frame: Option<WindowFrame>,
}

/// A query block while it is bound.
#[derive(Debug)]
pub(crate) struct Block {
    pub number: u32,
    /// It stands for ORDER BY behind a set operation, where columns have no tables.
    pub tail: bool,
    pub clause: Clause,
    pub tables: Vec<ScopeTable>,
    /// Tables that names may refer to: all, or those of the join whose ON is bound.
    pub range: std::ops::Range<usize>,
    /// When a join has USING or NATURAL: what unqualified names mean.
    pub visible: Option<Vec<VisibleColumn>>,
    pub items: Vec<ListedItem>,
    /// Aliases of the select list, also of items that are not bound yet.
    pub aliases: Vec<Arc<str>>,
    pub keys: Vec<(Register, Expr)>,
    pub grouped: bool,
    pub aggregates: Vec<AggregateCall>,
    /// Inside the arguments of an aggregate.
    pub in_aggregate: u32,
    pub window_groups: Vec<WindowGroup>,
    pub named_windows: Vec<NamedWindow>,
    /// Inside a window function.
    pub in_window: bool,
    pub allow_windows: bool,
    /// Inner blocks may not look into this one (it binds a derived table).
    pub hidden: u32,
    /// Columns of GROUPING().
    pub grouping: Vec<Option<Register>>,
    /// GROUPING() calls: argument number, argument, register.
    pub wanted_grouping: Vec<(usize, Expr, Register)>,
    /// Registers of repeated GROUPING() calls and the first one's.
    pub same_grouping: Vec<(Register, Register)>,
    pub rollup: bool,
}

/// What a column name turned out to be.
pub(crate) struct Resolved {
    pub expr: Expr,
    pub level: usize,
    /// Table and column of the block, when it is one of theirs.
    pub place: Option<(usize, usize)>,
    /// Seen from a subquery: what the block's select list calls so.
    pub from_list: bool,
}

impl Block {
    pub(crate) fn new(number: u32) -> Block {
        Block {
            number,
            tail: false,
            clause: Clause::FieldList,
            tables: Vec::new(),
            range: 0..usize::MAX,
            visible: None,
            items: Vec::new(),
            aliases: Vec::new(),
            keys: Vec::new(),
            grouped: false,
            aggregates: Vec::new(),
            in_aggregate: 0,
            window_groups: Vec::new(),
            named_windows: Vec::new(),
            in_window: false,
            allow_windows: false,
            hidden: 0,
            grouping: Vec::new(),
            wanted_grouping: Vec::new(),
            same_grouping: Vec::new(),
            rollup: false,
        }
    }

    pub(crate) fn accepts_aggregates(&self) -> bool {
        self.clause.allows_aggregates() && self.in_aggregate == 0
    }
}

impl ScopeTable {
    /// Position of the column called `name`.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        match &self.source {
            ScopeSource::Base { table, .. } => table
                .columns
                .iter()
                .position(|column| {
                    names_equal(&column.name, name)
                        && !column.generated.as_ref().is_some_and(|generated| generated.hidden)
                })
                .or_else(|| if names_equal(name, "_rowid") { row_id(table) } else { None }),
            ScopeSource::Columns(columns) => {
                columns.iter().position(|column| names_equal(&column.name, name))
            }
        }
    }

    /// Whether two columns share this name (possible in views and derived tables only before 1060 is raised).
    fn matches(&self, schema: Option<&str>, table: &str) -> bool {
        *self.alias == *table && schema.is_none_or(|schema| self.schema.as_deref() == Some(schema))
    }

    /// Number of columns.
    pub(crate) fn len(&self) -> usize {
        match &self.source {
            ScopeSource::Base { table, .. } => table.columns.len(),
            ScopeSource::Columns(columns) => columns.len(),
        }
    }

    pub(crate) fn column_name(&self, index: usize) -> &Arc<str> {
        match &self.source {
            ScopeSource::Base { table, .. } => &table.columns[index].name,
            ScopeSource::Columns(columns) => &columns[index].name,
        }
    }

    /// Whether `*` leaves the column out.
    pub(crate) fn is_invisible(&self, index: usize) -> bool {
        match &self.source {
            ScopeSource::Base { table, .. } => {
                let column = &table.columns[index];
                column.invisible
                    || column.generated.as_ref().is_some_and(|generated| generated.hidden)
            }
            ScopeSource::Columns(columns) => columns[index].invisible,
        }
    }
}

/// Column names without regard to case, the common ASCII case first.
pub(crate) fn names_equal(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!(a.is_ascii() && b.is_ascii()) && same_name(a, b))
}

/// Whether an expression reads the result of an aggregate of the block.
fn reads_aggregate(block: &Block, expr: &Expr) -> bool {
    expr.any(&mut |node| {
        node.as_column()
            .is_some_and(|register| block.aggregates.iter().any(|call| call.output == register))
    })
}

/// The name as messages show it.
pub(crate) fn written(name: &ast::ColumnName) -> String {
    let mut text = String::new();
    for part in [&name.schema, &name.table].into_iter().flatten() {
        text.push_str(&part.text);
        text.push('.');
    }
    text.push_str(&name.name.text);
    text
}

impl Binder<'_> {
    pub(crate) fn block(&mut self) -> &mut Block {
        self.blocks.last_mut().expect("a name or expression is bound inside a block")
    }

    pub(crate) fn push_block(&mut self) -> usize {
        self.block_count += 1;
        self.blocks.push(Block::new(self.block_count));
        self.blocks.len() - 1
    }

    /// Binds a column reference.
    pub(crate) fn bind_column(&mut self, name: &ast::ColumnName) -> Result<Expr> {
        Ok(self.resolve(name)?.expr)
    }

    /// Finds what `name` means, in the innermost block that knows it.
    pub(crate) fn resolve(&mut self, name: &ast::ColumnName) -> Result<Resolved> {
        for level in (0..self.blocks.len()).rev() {
            if self.blocks[level].hidden > 0 {
                continue;
            }
            if let Some(found) = self.resolve_in(level, name)? {
                if !found.from_list {
                    self.deepest_reference =
                        Some(self.deepest_reference.map_or(level, |deepest| deepest.max(level)));
                }
                return Ok(found);
            }
        }
        let around = self.blocks.len().saturating_sub(1);
        let comes_later = name.table.is_none()
            && self.blocks[..around].iter().any(|block| {
                block.hidden == 0
                    && block.clause == Clause::FieldList
                    && block.aliases.iter().any(|alias| names_equal(alias, &name.name.text))
            });
        if comes_later {
            bail!(ILLEGAL_REFERENCE, name.name.text, "forward reference in item list");
        }
        let clause = self.blocks.last().map_or("field list", |block| block.clause.name());
        if let Some(table) = &name.table
            && self.blocks.last().is_some_and(|block| block.tail)
        {
            bail!(TABLENAME_NOT_ALLOWED_HERE, table.text, "global ORDER clause")
        }
        if let Some(table) = &name.table
            && self.blocks.iter().all(|block| block.tables.is_empty())
        {
            bail!(UNKNOWN_TABLE, table.text, clause)
        }
        bail!(BAD_FIELD_ERROR, written(name), clause)
    }

    fn resolve_in(&mut self, level: usize, name: &ast::ColumnName) -> Result<Option<Resolved>> {
        let block = &self.blocks[level];
        let resolved = |expr| Some(Resolved { expr, level, place: None, from_list: false });
        // A subquery sees the tables of the blocks around it first, then what their select lists show.
        let from_inside = level + 1 < self.blocks.len();
        if block.clause == Clause::Having && block.in_aggregate == 0 && !from_inside {
            let listed = self.resolve_listed(level, name)?;
            let place = match self.find_in_tables(level, name) {
                Err(_) if listed.is_some() => None,
                found => found?,
            };
            if let Some((table, column)) = place
                && (listed.is_none() || !self.blocks[level].keys.is_empty())
            {
                let expr = self.scope_column(level, table, column)?;
                let block = &self.blocks[level];
                // A key of GROUP BY comes before an item of the select list. An item that is the column itself may have any alias.
                let is_key = block.keys.iter().any(|(_, key)| *key == expr);
                if is_key || listed.is_none() && block.items.iter().any(|item| item.expr == expr) {
                    self.spell_column(name, level, (table, column));
                    return Ok(Some(Resolved {
                        expr,
                        level,
                        place: Some((table, column)),
                        from_list: false,
                    }));
                }
            }
            return Ok(listed.and_then(resolved));
        }
        if name.table.is_none()
            && let Some((merged, place)) = self.find_merged(level, &name.name.text)?
        {
            self.spell_column(name, level, place);
            return Ok(resolved(merged));
        }
        if let Some((table, column)) = self.find_in_tables(level, name)? {
            self.spell_column(name, level, (table, column));
            let expr = self.scope_column(level, table, column)?;
            return Ok(Some(Resolved {
                expr,
                level,
                place: Some((table, column)),
                from_list: false,
            }));
        }
        let block = &self.blocks[level];
        if from_inside && matches!(block.clause, Clause::FieldList | Clause::Having) {
            let listed = self.resolve_listed(level, name)?;
            if let Some(expr) = &listed
                && block.clause == Clause::FieldList
                && reads_aggregate(block, expr)
            {
                bail!(ILLEGAL_REFERENCE, written(name), "reference to group function");
            }
            let found = |expr| Resolved { expr, level, place: None, from_list: true };
            return Ok(listed.map(found));
        }
        if matches!(block.clause, Clause::Order | Clause::Group) && block.in_aggregate == 0 {
            return Ok(self.resolve_listed(level, name)?.and_then(resolved));
        }
        Ok(None)
    }

    /// Looks in the select list: by alias, or the same column.
    pub(crate) fn resolve_listed(
        &self,
        level: usize,
        name: &ast::ColumnName,
    ) -> Result<Option<Expr>> {
        let block = &self.blocks[level];
        let mut found: Option<&ListedItem> = None;
        for item in &block.items {
            let same = names_equal(&item.name, &name.name.text)
                && match &name.table {
                    None => true,
                    Some(table) => item.table.as_deref() == Some(&*table.text) && !item.aliased,
                };
            if !same {
                continue;
            }
            match found {
                // A plain column wins over nothing, an alias over a column of the same name.
                Some(before) if before.expr == item.expr => {}
                Some(before) if before.aliased && !item.aliased => {}
                Some(before) if !before.aliased && item.aliased => found = Some(item),
                Some(_) => {
                    bail!(NON_UNIQ_ERROR, written(name), block.clause.name())
                }
                None => found = Some(item),
            }
        }
        Ok(found.map(|item| item.expr.clone()))
    }

    /// A column that a join made of two, and the table and column it comes from.
    fn find_merged(&self, level: usize, name: &str) -> Result<Option<(Expr, (usize, usize))>> {
        let block = &self.blocks[level];
        let Some(visible) = &block.visible else { return Ok(None) };
        let mut found = visible
            .iter()
            .filter(|column| block.range.contains(&column.table))
            .filter(|column| names_equal(&column.name, name));
        let Some(first) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            bail!(NON_UNIQ_ERROR, name, block.clause.name());
        }
        Ok(first.merged.clone().map(|merged| (merged, (first.table, first.column))))
    }

    /// Table and column of the block that `name` names.
    fn find_in_tables(
        &self,
        level: usize,
        name: &ast::ColumnName,
    ) -> Result<Option<(usize, usize)>> {
        let block = &self.blocks[level];
        let range = block.range.start..block.range.end.min(block.tables.len());
        let mut found = None;
        for index in range {
            let table = &block.tables[index];
            if let Some(wanted) = &name.table
                && !table.matches(name.schema.as_ref().map(|schema| &*schema.text), &wanted.text)
            {
                continue;
            }
            let Some(column) = table.find(&name.name.text) else { continue };
            if let Some(before) = found
                && !self.same_visible(level, before, (index, column))
            {
                bail!(NON_UNIQ_ERROR, written(name), block.clause.name());
            }
            found.get_or_insert((index, column));
        }
        Ok(found)
    }

    /// With USING, one of two equal columns stands for both.
    fn same_visible(&self, level: usize, a: (usize, usize), b: (usize, usize)) -> bool {
        let Some(visible) = &self.blocks[level].visible else { return false };
        let shown = |place: (usize, usize)| visible.iter().any(|c| (c.table, c.column) == place);
        shown(a) != shown(b)
    }

    /// The expression for a column of a table reference.
    pub(crate) fn scope_column(
        &mut self,
        level: usize,
        table: usize,
        column: usize,
    ) -> Result<Expr> {
        let scope = &self.blocks[level].tables[table];
        let nullable = scope.nullable;
        let privilege = scope.privilege;
        let mut expr = match &scope.source {
            ScopeSource::Columns(columns) => columns[column].expr.clone(),
            ScopeSource::Base { instance, table } => {
                let (instance, table) = (*instance, table.clone());
                if let Some(index) = privilege {
                    self.use_column(index, &table.columns[column].name);
                }
                self.base_column(instance, &table, column)?
            }
        };
        if let (Some(index), ScopeSource::Columns(columns)) =
            (privilege, &self.blocks[level].tables[table].source)
        {
            let name = columns[column].name.clone();
            self.use_column(index, &name);
        }
        if nullable {
            make_nullable(&mut expr);
        }
        Ok(expr)
    }

    fn use_column(&mut self, privilege: usize, name: &Arc<str>) {
        let columns = &mut self.privileges[privilege].columns;
        if !columns.iter().any(|known| known == name) {
            columns.push(name.clone());
        }
    }

    /// The expression for a column of a stored table.
    pub(crate) fn base_column(
        &mut self,
        id: InstanceId,
        table: &Arc<Table>,
        index: usize,
    ) -> Result<Expr> {
        let column = &table.columns[index];
        let register = self.instance(id).register(index);
        if column.stored.is_none() {
            self.bind_virtual_column(id, table, index)?;
        }
        Ok(column_read(register, &column.ty))
    }

    /// Where a result column comes from.
    pub(crate) fn column_source(
        &self,
        level: usize,
        table: usize,
        column: usize,
    ) -> Option<ColumnSource> {
        let scope = &self.blocks[level].tables[table];
        match &scope.source {
            ScopeSource::Columns(columns) => {
                let source = columns[column].source.as_ref()?;
                let mut source = ColumnSource::clone(source);
                source.table = scope.alias.clone();
                Some(source)
            }
            ScopeSource::Base { table, .. } => Some(base_source(table, &scope.alias, column)),
        }
    }

    pub(crate) fn require(
        &mut self,
        schema: &Arc<str>,
        table: &Arc<str>,
        kind: PrivilegeKind,
    ) -> usize {
        self.privileges.push(RequiredPrivilege {
            schema: schema.clone(),
            table: table.clone(),
            columns: Vec::new(),
            kind,
            definer: self.definer.clone(),
        });
        self.privileges.len() - 1
    }
}

/// The type of an integer column without the display width that its definition named: expressions are as wide as what a column
/// can hold. `None` when it named none, or one that belongs to the type.
fn wide_integer(ty: &DataType) -> Option<DataType> {
    let width = match ty.kind {
        TypeKind::TinyInt if ty.length == 1 && !ty.unsigned => return None,
        TypeKind::TinyInt => 4,
        TypeKind::SmallInt => 6,
        TypeKind::MediumInt => 9,
        TypeKind::Int => 11,
        TypeKind::BigInt => 20,
        _ => return None,
    };
    let sign = u32::from(ty.unsigned && ty.kind != TypeKind::BigInt);
    let length = width - sign;
    (!ty.zerofill && ty.length != length).then(|| DataType { length, ..ty.clone() })
}

/// Reads a column's register; a TIMESTAMP is turned to local time.
pub(crate) fn column_read(register: Register, ty: &DataType) -> Expr {
    if let Some(ty) = wide_integer(ty) {
        return Expr::Column { register, ty };
    }
    let column = Expr::Column { register, ty: ty.clone() };
    if ty.kind == TypeKind::Timestamp {
        let ty = ty.clone();
        Expr::Cast { operand: Box::new(column), kind: CastKind::TimestampToLocal, ty }
    } else {
        column
    }
}

/// The column that `_rowid` means: the integer that alone is the primary key, or else the first unique key without NULL.
fn row_id(table: &Table) -> Option<usize> {
    let is_key = |index: &&catalog::Index| {
        index.unique && index.parts.iter().all(|part| !table.columns[part.column].ty.nullable)
    };
    let primary = table.indexes.iter().find(|index| &*index.name == "PRIMARY");
    let key = primary.or_else(|| table.indexes.iter().find(is_key))?;
    match key.parts.as_slice() {
        [part] if table.columns[part.column].ty.is_integer() => Some(part.column),
        _ => None,
    }
}

/// Marks a plain column as one that may be NULL.
pub(crate) fn make_nullable(expr: &mut Expr) {
    match expr {
        Expr::Column { ty, .. } => ty.nullable = true,
        Expr::Cast { operand, ty, .. } => {
            ty.nullable = true;
            make_nullable(operand);
        }
        _ => {}
    }
}

/// Result-set facts of a stored column.
pub(crate) fn base_source(table: &Table, alias: &Arc<str>, index: usize) -> ColumnSource {
    let column = &table.columns[index];
    let mut source = ColumnSource {
        schema: table.schema.clone(),
        table: alias.clone(),
        org_table: table.name.clone(),
        org_name: column.name.clone(),
        auto_increment: column.auto_increment,
        no_default: matches!(column.default, catalog::ColumnDefault::None)
            && !column.ty.nullable
            && !column.auto_increment
            && column.generated.is_none(),
        on_update_now: column.on_update_now.is_some(),
        default_now: matches!(column.default, catalog::ColumnDefault::Now(_)),
        display_width: wide_integer(&column.ty).map(|_| column.ty.length),
        ..ColumnSource::default()
    };
    for key in &table.indexes {
        let Some(position) = key.parts.iter().position(|part| part.column == index) else {
            continue;
        };
        if &*key.name == "PRIMARY" {
            source.primary_key = true;
        } else if key.unique && key.parts.len() == 1 {
            source.unique_key = true;
        } else if position == 0 {
            source.multiple_key = true;
        }
    }
    source
}

/// What `*` means in a block.
pub(crate) fn visible_or_all(block: &Block) -> Vec<VisibleColumn> {
    match &block.visible {
        Some(visible) => visible.clone(),
        None => block
            .tables
            .iter()
            .enumerate()
            .flat_map(|(index, table)| crate::from::visible_columns(table, index))
            .collect(),
    }
}
