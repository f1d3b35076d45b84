//! JSON duality views: what their queries may be, and what they say about the tables below them.
//!
//! A query is read twice: `check_duality` as it was written, before names mean anything, and `duality_of` in the spelling that the
//! catalog keeps, where each name is complete.

use std::sync::Arc;

use catalog::{Relation, Table};
use errors::{Error, Result, bail};
use syntax::ast::{
    AggregateFunc, BinaryOp, ColumnName, CreateView, DualityObject, DualityTags, Expr, ExprKind,
    NamedTable, Query, Select, SelectItemKind, SetExpr, TableFactor,
};
use types::TypeKind;

/// What messages call the object that is a view's document.
const ROOT: &str = "Root Node";
/// The key of the primary key in a view's document.
const ID: &str = "_id";

/// An object of a JSON duality view.
#[derive(Clone, Debug, PartialEq)]
pub struct DualityTable {
    /// The key that has it in the object above; `None` of the document itself.
    pub link: Option<DualityLink>,
    /// Schema of the table whose rows are these objects.
    pub schema: Arc<str>,
    /// The table.
    pub table: Arc<str>,
    /// What columns name the table with.
    alias: Arc<str>,
    /// What may be changed.
    pub tags: DualityTags,
    /// Columns and their keys.
    pub columns: Vec<(Arc<str>, Arc<str>)>,
    /// Objects within.
    pub children: Vec<DualityTable>,
    /// The table's primary key; empty where the table is not known.
    pub primary: Arc<str>,
}

/// What ties an object to the one that has it.
#[derive(Clone, Debug, PartialEq)]
pub struct DualityLink {
    /// Its key.
    pub key: Arc<str>,
    /// Column of the table of the object above.
    pub parent: Arc<str>,
    /// Column of the own table.
    pub child: Arc<str>,
    /// An array of objects.
    pub is_nested: bool,
}

/// An object's query, taken apart.
struct Parts<'a> {
    from: &'a NamedTable,
    filter: Option<(&'a ColumnName, &'a ColumnName)>,
    object: &'a DualityObject,
    is_nested: bool,
}

/// Checks CREATE JSON DUALITY VIEW as far as its form goes; nothing of other views.
///
/// # Errors
/// 6446 to 6477: what such a statement and its query must not have.
pub fn check_duality(create: &CreateView) -> Result<()> {
    if !create.is_duality {
        return Ok(());
    }
    if !create.columns.is_empty() {
        bail!(JDV_COLUMN_LIST);
    }
    if create.check_option.is_some() {
        bail!(JDV_CHECK_OPTION);
    }
    match &create.query.body {
        SetExpr::Table(_) => bail!(VIEW_WRONG_LIST),
        SetExpr::Select(select) if select.items.len() > 1 => bail!(VIEW_WRONG_LIST),
        SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::SetOp(_) | SetExpr::Query(_) => {}
    }
    if create.query.into.is_some() {
        bail!(VIEW_SELECT_CLAUSE, "INTO");
    }
    check_object(&create.query, ROOT)
}

/// Whether a statement would make a view of one kind from what is of the other.
pub fn is_other_kind(old: &Relation, create: &CreateView) -> bool {
    match old {
        Relation::View(view) => view.is_duality != create.is_duality,
        Relation::Table(_) => create.is_duality,
    }
}

fn check_object(query: &Query, key: &str) -> Result<()> {
    let parts = parts(query, key)?;
    if parts.object.tags.is_repeated {
        bail!(JDV_REPEATED_TAGS);
    }
    for member in &parts.object.members {
        let value = &member.value.kind;
        if matches!(value, ExprKind::UserVar(_) | ExprKind::SystemVar(_)) {
            bail!(VIEW_SELECT_VARIABLE);
        }
        if let ExprKind::Subquery(query) = value {
            check_object(query, &member.key)?;
        } else if !matches!(value, ExprKind::Column(_)) {
            bail!(JDV_INVALID_VALUE, member.key);
        }
    }
    Ok(())
}

fn parts<'a>(query: &'a Query, key: &str) -> Result<Parts<'a>> {
    let select = match &query.body {
        SetExpr::Query(inner) if query.order_by.is_empty() && query.limit.is_none() => {
            return parts(inner, key);
        }
        SetExpr::Select(select) => select,
        SetExpr::Values(_) | SetExpr::Table(_) => bail!(JDV_ONE_TABLE, key),
        SetExpr::SetOp(_) | SetExpr::Query(_) => bail!(JDV_SET_OPERATION, key),
    };
    check_clauses(query, select, key)?;
    let from = match select.from.as_slice() {
        [TableFactor::Table(named)] => named,
        [TableFactor::Derived(_)] => bail!(JDV_BASE_TABLE, "", ""),
        [TableFactor::JsonTable(_)] => bail!(JDV_BASE_TABLE, "", "json_table"),
        [TableFactor::Function(function)] => bail!(JDV_BASE_TABLE, "", function.name.text),
        [] | [TableFactor::Join(_) | TableFactor::List(_)] | [_, _, ..] => {
            bail!(JDV_ONE_TABLE, key)
        }
    };
    let filter = match &select.filter {
        Some(_) if key == ROOT => bail!(JDV_ROOT_WHERE),
        None if key != ROOT => bail!(JDV_WHERE_MISSING, key),
        None => None,
        Some(filter) => Some(compared_columns(filter, key)?),
    };
    let (object, is_nested) = object_of(select, key)?;
    Ok(Parts { from, filter, object, is_nested })
}

fn check_clauses(query: &Query, select: &Select, key: &str) -> Result<()> {
    if query.with.is_some() {
        bail!(JDV_WITH, key);
    }
    if select.group_by.is_some() || select.having.is_some() {
        bail!(JDV_GROUP_BY, key);
    }
    if select.qualify.is_some() {
        bail!(JDV_WINDOW, key);
    }
    if query.limit.is_some() {
        bail!(JDV_LIMIT, key);
    }
    if !query.order_by.is_empty() {
        bail!(JDV_ORDER_BY, key);
    }
    Ok(())
}

fn compared_columns<'a>(filter: &'a Expr, key: &str) -> Result<(&'a ColumnName, &'a ColumnName)> {
    if let ExprKind::Binary { op: BinaryOp::Eq, left, right } = &filter.kind
        && let (ExprKind::Column(left), ExprKind::Column(right)) = (&left.kind, &right.kind)
    {
        return Ok((left, right));
    }
    bail!(JDV_WHERE_FORM, key)
}

/// The only item of a select list, and whether it makes arrays.
fn object_of<'a>(select: &'a Select, key: &str) -> Result<(&'a DualityObject, bool)> {
    let item = match select.items.as_slice() {
        [item] => &item.kind,
        [] | [_, _, ..] => bail!(OPERAND_COLUMNS, 1),
    };
    let SelectItemKind::Expr { expr, .. } = item else { bail!(JDV_NESTED_LIST, key) };
    if let ExprKind::DualityObject(object) = &expr.kind {
        return Ok((object, false));
    }
    if key == ROOT {
        bail!(JDV_ROOT_LIST);
    }
    let ExprKind::Aggregate(call) = &expr.kind else { bail!(JDV_NESTED_LIST, key) };
    if call.func != AggregateFunc::JsonArrayAgg {
        bail!(JDV_NESTED_LIST, key);
    }
    if call.over.is_some() {
        bail!(JDV_WINDOW, key);
    }
    let argument = call.args.first().map(|arg| &arg.kind);
    let Some(ExprKind::DualityObject(object)) = argument else { bail!(JDV_ARRAY_OF, key) };
    Ok((object, true))
}

/// Reads the query that the catalog keeps of a view. `find`: what a schema's name stands for.
///
/// # Errors
/// 6465 to 6480: what the tables and columns of such a view must be.
pub fn duality_of(
    definition: &str,
    find: &dyn Fn(&str, &str) -> Option<Relation>,
) -> Result<DualityTable> {
    let parsed = syntax::parse_one(definition, &syntax::ParseOptions::default());
    let Ok((syntax::Statement::Query(query), _)) = parsed else {
        return Err(Error::internal("the body of a view is not a query"));
    };
    let root = read_object(&query, ROOT, None, find)?;
    let mut all = Vec::new();
    root.each(&mut |table| all.push(table));
    for (position, table) in all.iter().enumerate() {
        let same = |other: &&&DualityTable| {
            catalog::same_name(&other.schema, &table.schema)
                && catalog::same_name(&other.table, &table.table)
        };
        let differs = |other: &DualityTable| column_set(other) != column_set(table);
        if all[..position].iter().find(same).is_some_and(|other| differs(other)) {
            bail!(JDV_UNLIKE_COLUMNS, table.schema, table.table);
        }
    }
    Ok(root)
}

fn column_set(table: &DualityTable) -> Vec<String> {
    let mut names: Vec<String> =
        table.columns.iter().map(|(name, _)| name.to_lowercase()).collect();
    names.sort();
    names
}

fn read_object(
    query: &Query,
    key: &str,
    parent: Option<&DualityTable>,
    find: &dyn Fn(&str, &str) -> Option<Relation>,
) -> Result<DualityTable> {
    let parts = parts(query, key)?;
    let schema = parts.from.name.schema.as_ref().map_or("", |schema| &*schema.text);
    let name = &*parts.from.name.name.text;
    let found = find(schema, name);
    let Some(Relation::Table(table)) = &found else { bail!(JDV_BASE_TABLE, schema, name) };
    let mut own = DualityTable {
        link: None,
        schema: table.schema.clone(),
        table: table.name.clone(),
        alias: parts.from.alias.as_ref().map_or(name, |alias| &*alias.text).into(),
        tags: parts.object.tags,
        columns: Vec::new(),
        children: Vec::new(),
        primary: primary_of(table, key)?,
    };
    read_columns(&mut own, parts.object, table, key, parent)?;
    if let (Some(parent), Some(filter)) = (parent, parts.filter) {
        own.link = Some(link(&own, parent, filter, key, parts.is_nested)?);
    }
    if let Some(link) = &own.link
        && !link.is_nested
        && own.tags.delete
    {
        bail!(JDV_SINGLETON_TAGS, key);
    }
    for member in &parts.object.members {
        if let ExprKind::Subquery(query) = &member.value.kind {
            let child = read_object(query, &member.key, Some(&own), find)?;
            own.children.push(child);
        }
    }
    Ok(own)
}

fn primary_of(table: &Table, key: &str) -> Result<Arc<str>> {
    let named = table.primary().filter(|index| &*index.name == "PRIMARY");
    let unique = || {
        let whole = |part: &catalog::IndexPart| {
            part.prefix_length.is_none() && !table.columns[part.column].ty.nullable
        };
        table.indexes.iter().find(|index| index.unique && index.parts.iter().all(whole))
    };
    let Some(index) = named.or_else(unique) else {
        bail!(JDV_NO_PRIMARY_KEY, table.schema, table.name)
    };
    match index.parts.as_slice() {
        [part] => Ok(table.columns[part.column].name.clone()),
        _ => bail!(JDV_COMPOSITE_KEY, key, table.schema, table.name),
    }
}

fn read_columns(
    own: &mut DualityTable,
    object: &DualityObject,
    table: &Table,
    key: &str,
    parent: Option<&DualityTable>,
) -> Result<()> {
    for (position, member) in object.members.iter().enumerate() {
        if object.members[..position].iter().any(|other| other.key == member.key) {
            bail!(JDV_REPEATED_KEY, key, member.key);
        }
        let ExprKind::Column(name) = &member.value.kind else { continue };
        if !is_of(name, own) {
            let (schema, other) = match parent.filter(|parent| is_of(name, parent)) {
                Some(parent) => (parent.schema.clone(), parent.table.clone()),
                None => {
                    let text = |ident: &Option<syntax::ast::Ident>| {
                        Arc::from(ident.as_ref().map_or("", |ident| &*ident.text))
                    };
                    (text(&name.schema), text(&name.table))
                }
            };
            bail!(JDV_FOREIGN_COLUMN, key, own.schema, own.table, schema, other);
        }
        let at = table.column(&name.name.text);
        let Some(column) = at.map(|at| &table.columns[at]) else {
            return Err(Error::internal("a column that was found is gone"));
        };
        let refused = [
            (column.generated.is_some(), "GENERATED"),
            (column.ty.kind == TypeKind::Json, "JSON"),
            (column.ty.kind == TypeKind::Geometry, "GEOMETRY"),
        ];
        if let Some((_, kind)) = refused.iter().find(|(is_so, _)| *is_so) {
            bail!(JDV_COLUMN_TYPE, key, own.schema, own.table, column.name, kind);
        }
        if column.ty.kind == TypeKind::Vector {
            bail!(WRONG_ARGUMENTS, "json_duality_object");
        }
        if own.columns.iter().any(|(other, _)| catalog::same_name(other, &column.name)) {
            bail!(JDV_REPEATED_COLUMN, key, own.schema, own.table, column.name);
        }
        own.columns.push((column.name.clone(), Arc::from(&*member.key)));
    }
    let primary = own.columns.iter().find(|(name, _)| *name == own.primary);
    match primary {
        Some((_, shown)) if parent.is_none() && &**shown != ID => bail!(JDV_ROOT_KEY),
        None => bail!(JDV_KEY_MISSING, key, own.schema, own.table),
        Some(_) => Ok(()),
    }
}

fn is_of(name: &ColumnName, table: &DualityTable) -> bool {
    let schema_fits = name.schema.as_ref().is_none_or(|schema| *schema.text == *table.schema);
    schema_fits && name.table.as_ref().is_some_and(|alias| *alias.text == *table.alias)
}

fn link(
    own: &DualityTable,
    parent: &DualityTable,
    (left, right): (&ColumnName, &ColumnName),
    key: &str,
    is_nested: bool,
) -> Result<DualityLink> {
    let (child, above) = if is_of(left, own) && is_of(right, parent) {
        (left, right)
    } else if is_of(right, own) && is_of(left, parent) {
        (right, left)
    } else {
        bail!(JDV_WHERE_TABLES, key)
    };
    let (keyed, column) = if is_nested { (parent, above) } else { (own, child) };
    if !catalog::same_name(&keyed.primary, &column.name.text) {
        bail!(JDV_WHERE_KEY, key);
    }
    Ok(DualityLink {
        key: key.into(),
        parent: Arc::from(&*above.name.text),
        child: Arc::from(&*child.name.text),
        is_nested,
    })
}

impl DualityTable {
    /// Calls `visit` for this object and each within it, an object before those within.
    pub fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a DualityTable)) {
        visit(self);
        self.children.iter().for_each(|child| child.each(visit));
    }
}
