//! The parts of a query while it is bound: blocks, the tables that they read, common table expressions. Data only: the operations
//! on them are the business of `Binder`.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use catalog::{Table, same_name};
use plan::{
    AggregateCall, CastKind, ColumnSource, CteId, Expr, GroupSets, InstanceId, Logical,
    OutputColumn, Register, WindowCall, WindowFrame,
};
use syntax::ast;
use types::{DataType, TypeKind};

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

/// The time of the rows that a reference means.
#[derive(Clone, Debug)]
pub(crate) enum RowsOf {
    All,
    AsOf(Expr),
    Between(Expr, Expr),
    FromTo(Expr, Expr),
}

/// The source of a table reference.
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
    /// Set for a column that NATURAL or USING merged from two.
    pub merged: Option<Expr>,
    /// Of one that full joins merged: the columns of which it has the first value that is not NULL, and their texts.
    pub parts: Vec<(Expr, Arc<str>)>,
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
    /// It represents ORDER BY after a set operation, where columns have no tables.
    pub tail: bool,
    pub clause: Clause,
    pub tables: Vec<ScopeTable>,
    /// Tables that names may refer to: all, or those of the join whose ON is bound.
    pub range: std::ops::Range<usize>,
    /// Tables that names may not refer to: the left sides of the RIGHT JOINs whose right sides are being bound.
    pub barred: Vec<std::ops::Range<usize>>,
    /// When a join has USING or NATURAL: the columns that unqualified names mean.
    pub visible: Option<Vec<VisibleColumn>>,
    pub items: Vec<ListedItem>,
    /// How often expressions of ORDER BY named items of the select list.
    pub items_named: u32,
    /// Aliases of the select list, also of items that are not bound yet.
    pub aliases: Vec<Arc<str>>,
    pub keys: Vec<(Register, Expr)>,
    pub grouped: bool,
    pub aggregates: Vec<AggregateCall>,
    /// Some aggregate is no part of a window function.
    pub has_own_aggregate: bool,
    /// Inside the arguments of an aggregate.
    pub in_aggregate: u32,
    pub window_groups: Vec<WindowGroup>,
    pub named_windows: Vec<NamedWindow>,
    /// Inside a window function.
    pub in_window: bool,
    pub allow_windows: bool,
    /// Inner blocks may not see this one (it binds a derived table).
    pub hidden: u32,
    /// Columns of GROUPING().
    pub grouping: Vec<Option<Register>>,
    /// GROUPING() calls: argument number, argument, register.
    pub wanted_grouping: Vec<(usize, Expr, Register)>,
    /// Registers of repeated GROUPING() calls and the first one's.
    pub same_grouping: Vec<(Register, Register)>,
    pub sets: GroupSets,
}

/// The result of resolving a column name.
pub(crate) struct Resolved {
    pub expr: Expr,
    pub level: usize,
    /// Table and column of the block, when it is one of theirs.
    pub place: Option<(usize, usize)>,
    /// Seen from a subquery: the name is an alias in the block's select list.
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
            barred: Vec::new(),
            visible: None,
            items: Vec::new(),
            items_named: 0,
            aliases: Vec::new(),
            keys: Vec::new(),
            grouped: false,
            aggregates: Vec::new(),
            has_own_aggregate: false,
            in_aggregate: 0,
            window_groups: Vec::new(),
            named_windows: Vec::new(),
            in_window: false,
            allow_windows: false,
            hidden: 0,
            grouping: Vec::new(),
            wanted_grouping: Vec::new(),
            same_grouping: Vec::new(),
            sets: GroupSets::One,
        }
    }

    /// Whether names may refer to the table at a place.
    pub(crate) fn shows(&self, table: usize) -> bool {
        self.range.contains(&table) && !self.barred.iter().any(|range| range.contains(&table))
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

    /// Whether `schema.table` or `table` before a column's name means this table.
    pub(crate) fn matches(&self, schema: Option<&str>, table: &str) -> bool {
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

/// Column names case-insensitively, the common ASCII case first.
pub(crate) fn names_equal(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!(a.is_ascii() && b.is_ascii()) && same_name(a, b))
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

/// A view in FROM.
#[derive(Clone, Debug)]
pub(crate) struct ShownView {
    pub schema: Arc<str>,
    pub name: Arc<str>,
    /// It shows the rows of several tables.
    pub joins: bool,
    /// The stored tables whose rows it shows one by one; empty when it cannot be written through.
    pub written: Vec<InstanceId>,
}

impl ShownView {
    pub(crate) fn is_updatable(&self) -> bool {
        !self.written.is_empty()
    }
}

/// The row of `VALUES(column)`: registers of the row that could not be inserted.
#[derive(Clone, Debug)]
pub(crate) struct NewRow {
    pub table: Arc<Table>,
    /// Of column 0 of the catalog's table.
    pub base: Register,
    /// The view that names them.
    pub view: Option<InsertView>,
}

/// A view through which rows are inserted.
#[derive(Clone, Debug)]
pub(crate) struct InsertView {
    pub schema: Arc<str>,
    pub name: Arc<str>,
    /// Its columns and the table's that they are.
    pub columns: Vec<(Arc<str>, usize)>,
}

/// A query after binding.
#[derive(Debug)]
pub(crate) struct BoundQuery {
    pub plan: Logical,
    pub outputs: Vec<OutputColumn>,
    /// Only selects, joins, filters and computes: a reference to it can be merged.
    pub mergeable: bool,
    /// Number of its block.
    pub block: u32,
}

/// A common table expression in scope.
#[derive(Debug)]
pub(crate) struct CteDefinition {
    pub name: Arc<str>,
    pub columns: Vec<ast::Ident>,
    pub query: ast::Query,
    pub recursive: bool,
    /// Blocks that existed around the definition.
    pub level: usize,
    /// Definitions that its body can see.
    pub visible: usize,
    pub shared: RefCell<Option<SharedCte>>,
    /// While the recursive part is bound.
    pub working: RefCell<Option<(CteId, Vec<(Arc<str>, DataType)>)>>,
    pub referenced: Cell<u32>,
    /// Blocks around the FROM clauses that may refer to it then.
    pub depth: Cell<usize>,
    /// Its body is being bound: a reference to it now is one to itself.
    pub binding: Cell<bool>,
}

/// A common table expression that is computed once.
#[derive(Clone, Debug)]
pub(crate) struct SharedCte {
    pub id: CteId,
    pub columns: Vec<(Arc<str>, DataType)>,
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

/// The columns of `*` in a block.
pub(crate) fn visible_or_all(block: &Block) -> Vec<VisibleColumn> {
    match &block.visible {
        Some(visible) => visible.clone(),
        None => block
            .tables
            .iter()
            .enumerate()
            .flat_map(|(index, table)| visible_columns(table, index))
            .collect(),
    }
}

/// The type of an integer column without the display width that its definition named: expressions are as wide as the values that a column
/// can hold. `None` when it named no width, or the type's default.
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

/// The columns of a table that `*` shows.
pub(crate) fn visible_columns(
    table: &ScopeTable,
    index: usize,
) -> impl Iterator<Item = VisibleColumn> {
    (0..table.len()).filter(|column| !table.is_invisible(*column)).map(move |column| {
        VisibleColumn {
            name: table.column_name(column).clone(),
            table: index,
            column,
            merged: None,
            parts: Vec::new(),
        }
    })
}
