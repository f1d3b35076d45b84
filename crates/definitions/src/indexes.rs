//! Index definitions, functional parts included; CREATE INDEX and DROP INDEX as ALTER TABLE.

use std::sync::Arc;

use binder::Disallowed;
use catalog::{Column, ColumnDefault, Generated, IndexMethod, Table};
use errors::{Diagnostics, Error, ErrorCode, Result, bail};
use syntax::ast::{
    self, IndexAlgorithm, IndexDef, IndexKind, IndexOption, KeyPartKind, TableConstraint,
};
use types::fulltext::WordParser;
use types::{DataType, TypeKind};

use crate::columns::add_check;
use crate::context::Context;
use crate::draft::{Draft, DraftColumn, DraftIndex, DraftPart};
use crate::elements::{array_cast, element_type};
use crate::expressions::{bind_over_columns, expression_text, in_place};
use crate::finish::key_bytes_max;
use crate::foreign_keys::foreign_key;
use crate::periods::period_of_key;

/// Adds a key, foreign key or check to a draft.
pub fn add_constraint(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    constraint: &TableConstraint,
) -> Result<()> {
    match constraint {
        TableConstraint::Index(index) => add_index(ctx, draft, index),
        TableConstraint::ForeignKey(key) => {
            let columns: Vec<Arc<str>> =
                key.columns.iter().map(|name| Arc::from(&*name.text)).collect();
            let made = foreign_key(key.constraint.as_ref(), &columns, &key.references, draft)?;
            let index_name = key.name.as_ref().map(|name| Arc::from(&*name.text));
            draft.add_foreign_key(made, index_name)
        }
        TableConstraint::Check(check) => add_check(ctx, draft, check, None),
    }
}

fn add_index(ctx: &mut dyn Context, draft: &mut Draft, definition: &IndexDef) -> Result<()> {
    let fulltext = definition.kind == IndexKind::Fulltext;
    let spatial = definition.kind == IndexKind::Spatial;
    let (primary, unique) = match definition.kind {
        IndexKind::Primary => (true, true),
        IndexKind::Unique => (false, true),
        IndexKind::Plain | IndexKind::Fulltext | IndexKind::Spatial => (false, false),
        IndexKind::Vector => return Err(Error::not_supported("VECTOR indexes")),
    };
    let name = definition.name.as_ref().or(definition.constraint.as_ref());
    if let Some(name) = name
        && definition.if_not_exists
        && draft.index(&name.text).is_some()
    {
        ctx.conditions().note(ErrorCode::DUP_KEYNAME, &[&name.text]);
        return Ok(());
    }
    let mut index = DraftIndex {
        name: if primary {
            Some(Arc::from("PRIMARY"))
        } else {
            name.map(|name| Arc::from(&*name.text))
        },
        primary,
        unique,
        parts: Vec::with_capacity(definition.parts.len()),
        visible: true,
        comment: String::new(),
        origin: None,
        for_foreign_key: false,
        method: None,
        without_overlaps: None,
        fulltext,
        parser: WordParser::Separated,
        spatial,
        entries: None,
    };
    let shown = index.name.clone().unwrap_or_else(|| Arc::from(""));
    index.without_overlaps = period_of_key(definition, &shown)?;
    check_arrays(definition)?;
    check_order(definition, fulltext || spatial)?;
    for (position, part) in definition.parts.iter().enumerate() {
        let (column, prefix_length) = match &part.kind {
            // Words are taken from whole texts, whatever prefix length is given.
            KeyPartKind::Column { name, length } => {
                (Arc::from(&*name.text), length.filter(|_| !fulltext))
            }
            KeyPartKind::Expr(_) if fulltext => bail!(FULLTEXT_FUNCTIONAL_INDEX),
            KeyPartKind::Expr(_) if spatial => bail!(SPATIAL_FUNCTIONAL_INDEX),
            KeyPartKind::Expr(expr) => {
                if primary {
                    bail!(FUNCTIONAL_INDEX_PRIMARY_KEY);
                }
                (hidden_column(ctx, draft, &index, position, expr)?, None)
            }
        };
        index.parts.push(DraftPart { column, prefix_length, descending: part.desc && !fulltext });
    }
    check_method(draft, definition, &index)?;
    if !unique && !fulltext && !spatial && !ctx.settings().sql_mode.is_strict() {
        shorten_prefixes(ctx.conditions(), draft, &mut index);
    }
    for option in &definition.options {
        match option {
            IndexOption::Parser(name) if fulltext => index.parser = word_parser(ctx, &name.text)?,
            option => apply_index_option(&mut index, option)?,
        }
    }
    draft.indexes.push(index);
    Ok(())
}

/// Without strict mode, parts of a plain key that are too long become prefixes, with a warning.
fn shorten_prefixes(conditions: &mut Diagnostics, draft: &Draft, index: &mut DraftIndex) {
    for part in &mut index.parts {
        let Some(at) = draft.column(&part.column) else { continue };
        let ty = &draft.columns[at].column.ty;
        let length = part.prefix_length.unwrap_or(u64::from(ty.length));
        let character = charset::collation_or_binary(ty.collation).charset.max_length.max(1);
        let most = key_bytes_max(ty) / u64::from(character);
        let has_prefix = part.prefix_length.is_some() || !ty.is_blob();
        if ty.is_string() && ty.kind != TypeKind::Json && has_prefix && length > most {
            conditions.warn(ErrorCode::TOO_LONG_KEY, &[&key_bytes_max(ty)]);
            part.prefix_length = Some(most);
        }
    }
}

/// At most one part of an index may be an array, and it has no order.
fn check_arrays(definition: &IndexDef) -> Result<()> {
    let is_array = |part: &&ast::KeyPart| match &part.kind {
        KeyPartKind::Expr(expr) => array_cast(expr).is_some(),
        KeyPartKind::Column { .. } => false,
    };
    let mut arrays = definition.parts.iter().filter(is_array);
    let Some(first) = arrays.next() else { return Ok(()) };
    if arrays.next().is_some() {
        return Err(Error::not_supported("more than one multi-valued key part per index"));
    }
    if first.desc || first.explicit_asc {
        bail!(WRONG_USAGE, "multi-valued index", "explicit index order");
    }
    Ok(())
}

/// Words, places and hashes have no order to name.
fn check_order(definition: &IndexDef, unordered: bool) -> Result<()> {
    let is_hash = |option: &IndexOption| matches!(option, IndexOption::Using(IndexAlgorithm::Hash));
    let has_no_order = unordered || definition.options.iter().any(is_hash);
    if has_no_order && definition.parts.iter().any(|part| part.desc || part.explicit_asc) {
        bail!(WRONG_USAGE, "spatial/fulltext/hash index", "explicit index order");
    }
    Ok(())
}

/// The parser that cuts texts into grams.
pub const NGRAM: &str = "ngram";

/// `WITH PARSER name`. An index keeps the size of grams that it was made with.
fn word_parser(ctx: &dyn Context, name: &str) -> Result<WordParser> {
    if !name.eq_ignore_ascii_case(NGRAM) {
        bail!(FUNCTION_NOT_DEFINED, name);
    }
    let size = variables::as_u64(&ctx.variable("ngram_token_size"));
    Ok(WordParser::Grams(u8::try_from(size).unwrap_or(u8::MAX).max(1)))
}

/// An index over a geometry is no tree of keys and no hash.
fn check_method(draft: &Draft, definition: &IndexDef, index: &DraftIndex) -> Result<()> {
    let column = index.parts.first().and_then(|part| draft.column(&part.column));
    let is_geometry =
        column.is_some_and(|at| draft.columns[at].column.ty.kind == TypeKind::Geometry);
    for option in &definition.options {
        match option {
            IndexOption::Using(IndexAlgorithm::BTree) if index.spatial || is_geometry => {
                bail!(INDEX_TYPE_NOT_SUPPORTED_FOR_SPATIAL_INDEX, "BTREE");
            }
            IndexOption::Using(IndexAlgorithm::Hash) if index.spatial || is_geometry => {
                bail!(INDEX_TYPE_NOT_SUPPORTED_FOR_SPATIAL_INDEX, "HASH");
            }
            IndexOption::Using(_)
            | IndexOption::Comment(_)
            | IndexOption::Visible(_)
            | IndexOption::KeyBlockSize(_)
            | IndexOption::EngineAttribute(_)
            | IndexOption::SecondaryEngineAttribute(_)
            | IndexOption::Other(..)
            | IndexOption::Parser(_) => {}
        }
    }
    Ok(())
}

fn apply_index_option(index: &mut DraftIndex, option: &IndexOption) -> Result<()> {
    match option {
        IndexOption::Comment(text) => {
            index.comment = text.to_string();
        }
        IndexOption::Visible(visible) => index.visible = *visible,
        IndexOption::Using(method) => {
            index.method = match method {
                IndexAlgorithm::BTree => Some(IndexMethod::BTree),
                IndexAlgorithm::Hash => Some(IndexMethod::Hash),
                IndexAlgorithm::RTree => None,
            };
        }
        IndexOption::KeyBlockSize(_)
        | IndexOption::EngineAttribute(_)
        | IndexOption::SecondaryEngineAttribute(_)
        | IndexOption::Other(..) => {}
        IndexOption::Parser(_) => bail!(WRONG_USAGE, "INDEX", "WITH PARSER"),
    }
    Ok(())
}

/// Warns of new indexes that duplicate another one, and of spatial ones that no query uses: the column may have geometries of several
/// reference systems.
pub fn note_repeated_indexes(conditions: &mut Diagnostics, made: &Table, before: Option<&Table>) {
    let is_new = |index: &&catalog::Index| {
        !before.is_some_and(|before| before.indexes.iter().any(|known| known.id == index.id))
    };
    for index in made.indexes.iter().filter(is_new) {
        let column = made.spatial_column(index).map(|at| &made.columns[at]);
        if let Some(column) = column.filter(|column| column.ty.spatial.srid.is_none()) {
            conditions.warn(ErrorCode::WARN_USELESS_SPATIAL_INDEX, &[&column.name]);
        }
    }
    for name in Draft::repeated_indexes(made, before) {
        let words: [&dyn std::fmt::Display; 3] = [&name, &made.schema, &made.name];
        conditions.warn(ErrorCode::DUP_INDEX, &words);
    }
}

/// The hidden generated column of a functional part.
fn hidden_column(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    index: &DraftIndex,
    position: usize,
    expr: &ast::Expr,
) -> Result<Arc<str>> {
    if matches!(expr.kind, ast::ExprKind::Column(_)) {
        bail!(FUNCTIONAL_INDEX_ON_FIELD);
    }
    let (text, elements) = match array_cast(expr) {
        Some(cast) => (expression_text(&cast.expr), Some(element_type(cast)?)),
        None => (expression_text(expr), None),
    };
    let bound = bind_over_columns(ctx, &draft.columns, &text);
    let bound = bound.map_err(|error| in_place(&error, "functional index"))?;
    let shown = index.name.clone().unwrap_or_else(|| Arc::from("functional_index"));
    match bound.disallowed {
        Some(Disallowed::Variable) => bail!(DEFAULT_VAL_GENERATED_VARIABLES, shown),
        Some(_) => bail!(FUNCTIONAL_INDEX_FUNCTION_IS_NOT_ALLOWED, shown),
        None => {}
    }
    if bound.columns.iter().any(|read| draft.columns[*read].column.auto_increment) {
        bail!(FUNCTIONAL_INDEX_REF_AUTO_INCREMENT, shown);
    }
    let mut ty = match &elements {
        Some(_) => DataType::new(TypeKind::Json, u32::MAX, 0),
        None => bound.expr.ty(),
    };
    let made = Generated { expression: text, stored: false, hidden: true, elements };
    let of_entry = made.elements.as_ref().unwrap_or(&ty);
    if of_entry.kind == TypeKind::Null || of_entry.is_string() && of_entry.length == 0 {
        bail!(WRONG_KEY_COLUMN_FUNCTIONAL_INDEX, made.shown());
    }
    if ty.kind == TypeKind::Geometry {
        bail!(SPATIAL_FUNCTIONAL_INDEX);
    }
    if ty.kind == TypeKind::Json && made.elements.is_none() {
        bail!(FUNCTIONAL_INDEX_ON_JSON_OR_GEOMETRY_FUNCTION);
    }
    if ty.is_blob() && made.elements.is_none() {
        bail!(FUNCTIONAL_INDEX_ON_LOB);
    }
    ty.nullable = true;
    let name: Arc<str> = (0..)
        .map(|number| format!("!hidden!{shown}!{position}!{number}"))
        .find(|name| draft.column(name).is_none())
        .unwrap_or_default()
        .into();
    draft.columns.push(DraftColumn {
        column: Column {
            name: name.clone(),
            ty,
            stored: None,
            default: ColumnDefault::None,
            on_update_now: None,
            auto_increment: false,
            generated: Some(made),
            invisible: true,
            comment: String::new(),
            collation_written: false,
            histogram: None,
            placement: catalog::Placement::default(),
            history: catalog::ColumnHistory::Kept,
        },
        origin: None,
        null_written: None,
        history_written: None,
    });
    Ok(name)
}
