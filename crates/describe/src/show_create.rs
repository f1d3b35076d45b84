//! SHOW CREATE exactly as in the reference: clients parse it.

use catalog::{
    Column, ColumnDefault, ColumnHistory, DISCARDED_OPTION, ForeignKey, Index, IndexMethod, Medium,
    RecordFormat, ReferenceAction, Schema, Table, View,
};
use engine_api::IndexId;
use types::fulltext::WordParser;
use types::{CollationId, TypeKind, Value, ZoneRules};

use definitions::{
    AUTOEXTEND_SIZE, DECLARED_ENGINE, NGRAM, has_generated_key, literal, needs_quotes,
    partitioning_text, quote, quote_for, shown_engine, type_text,
};

/// A session's style for definitions: ANSI_QUOTES, ANSI and sql_quote_show_create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// Names are in double quotes.
    pub(crate) ansi_quotes: bool,
    /// Names are quoted only if necessary.
    pub(crate) spare_quotes: bool,
    /// Clauses that only this server understands are omitted.
    pub(crate) portable: bool,
    /// A generated invisible primary key is left out.
    pub(crate) hides_generated_key: bool,
    /// It is a statement for the binary log.
    pub(crate) is_logged: bool,
}

impl Style {
    fn quote(self, name: &str) -> String {
        if self.spare_quotes && !needs_quotes(name) {
            return name.to_owned();
        }
        quote_for(self.ansi_quotes, name)
    }

    /// Converts a text whose names are in backticks.
    fn requoted(self, text: &str) -> String {
        if !self.ansi_quotes && !self.spare_quotes {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['`', '\'']) {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let length = quoted_length(from);
            let (quoted, after) = from.split_at(length);
            match quoted.strip_prefix('`').and_then(|name| name.strip_suffix('`')) {
                Some(name) => out.push_str(&self.quote(&name.replace("``", "`"))),
                None => out.push_str(quoted),
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

/// Bytes of the quoted text that `text` begins with, quotes included. A doubled quote does not end it, nor one after a backslash
/// in a literal.
fn quoted_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let quote = bytes[0];
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote == b'\'' => at += 1,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 1,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// A statement that makes a table like this one on another server where `current` is the current schema.
pub fn create_table_statement(
    table: &Table,
    current: Option<&str>,
    zone: &dyn ZoneRules,
) -> String {
    let style = Style { is_logged: true, ..Style::default() };
    let name = quote(&table.name);
    let qualified = format!("{}.{name}", quote(&table.schema));
    let text = create_table(table, None, zone, style);
    match current {
        Some(current) if *current == *table.schema => text,
        _ => text.replacen(&name, &qualified, 1),
    }
}

/// CREATE TABLE text. `next`: the AUTO_INCREMENT counter, if it has been used.
pub(crate) fn create_table(
    table: &Table,
    next: Option<u64>,
    zone: &dyn ZoneRules,
    style: Style,
) -> String {
    // It is the first column and the first index.
    let hidden = usize::from(style.hides_generated_key && has_generated_key(table));
    let next = next.filter(|_| hidden == 0);
    let columns = table.columns.iter().skip(hidden).filter(|column| !column.is_unlisted());
    let mut lines: Vec<String> =
        columns.map(|column| format!("  {}", column_text(table, column, zone, style))).collect();
    if let Some(period) = &table.period {
        let [start, end] =
            [period.start, period.end].map(|at| style.quote(&table.columns[at].name));
        lines.push(format!("  PERIOD FOR {} ({start}, {end})", style.quote(&period.name)));
    }
    let indexes = table.indexes.iter().skip(hidden);
    lines.extend(indexes.map(|index| format!("  {}", index_text(table, index, style))));
    lines.extend(table.fulltext.iter().map(|index| {
        let columns = index.columns.iter().map(|at| style.quote(&table.columns[*at].name));
        let columns = columns.collect::<Vec<_>>().join(",");
        let mut line = format!("  FULLTEXT KEY {} ({columns})", style.quote(&index.name));
        push_index_options(&mut line, &index.comment, index.visible);
        if let WordParser::Grams(_) = index.parser {
            // With the space that the reference has at the end.
            let name = style.quote(NGRAM);
            line.push_str(&format!(" /*!50100 WITH PARSER {name} */ "));
        }
        line
    }));
    if let Some((start, end)) = declared_times(table) {
        let (start, end) = (style.quote(&start.name), style.quote(&end.name));
        lines.push(format!("  PERIOD FOR SYSTEM_TIME ({start}, {end})"));
    }
    for key in &table.foreign_keys {
        lines.push(format!("  {}", style.requoted(&foreign_key_text(table, key))));
    }
    for check in &table.checks {
        let mut line =
            format!("  CONSTRAINT {} CHECK ({})", style.quote(&check.name), check.expression);
        if !check.enforced {
            line.push_str(" /*!80016 NOT ENFORCED */");
        }
        lines.push(line);
    }
    let temporary = if table.temporary { "TEMPORARY " } else { "" };
    let mut text =
        format!("CREATE {temporary}TABLE {} (\n{}\n)", style.quote(&table.name), lines.join(",\n"));
    if style.is_logged && table.is_sequence() {
        text.push_str(" SEQUENCE=1");
        if !table.comment.is_empty() {
            text.push_str(&format!(" COMMENT={}", literal(&table.comment)));
        }
        return text;
    }
    if style.portable {
        if !table.comment.is_empty() {
            text.push_str(&format!(" COMMENT={}", literal(&table.comment)));
        }
        return text;
    }
    text.push_str(&options_text(table, next));
    if table.row_times().is_some() {
        text.push_str(" WITH SYSTEM VERSIONING");
    }
    if let Some(partitioning) = &table.partitioning {
        text.push_str(&partitioning_text(partitioning, zone));
    }
    text
}

fn options_text(table: &Table, next: Option<u64>) -> String {
    let mut text = String::new();
    if let Some((_, name)) = table.options.iter().find(|(option, _)| option == TABLESPACE) {
        text.push_str(&format!(" /*!50100 TABLESPACE {name} */"));
    }
    if let Some((_, bytes)) = table.options.iter().find(|(option, _)| option == AUTOEXTEND_SIZE) {
        text.push_str(&format!(" /*!80023 {AUTOEXTEND_SIZE}={bytes} */"));
    }
    text.push_str(&format!(" ENGINE={}", shown_engine(table)));
    if let Some(next) = next.filter(|next| *next > 1) {
        text.push_str(&format!(" AUTO_INCREMENT={next}"));
    }
    let collation = charset::collation_or_binary(table.collation);
    text.push_str(&format!(" DEFAULT CHARSET={}", collation.charset.name));
    // The default collation is omitted, except for utf8mb4, whose default has changed over time.
    if !collation.is_default || collation.charset.name == "utf8mb4" {
        text.push_str(&format!(" COLLATE={}", collation.name));
    }
    for (name, value) in options_in_order(&table.options) {
        match name.as_str() {
            // Older servers do not know it.
            "ENCRYPTION" if value.eq_ignore_ascii_case("'Y'") => {
                text.push_str(&format!(" /*!80016 {name}={value} */"))
            }
            _ => text.push_str(&format!(" {name}={value}")),
        }
    }
    if !table.comment.is_empty() {
        text.push_str(&format!(" COMMENT={}", literal(&table.comment)));
    }
    text
}

/// The option that is shown before the engine.
pub(crate) const TABLESPACE: &str = "TABLESPACE";

/// Options in the order in which the reference shows them, without the engine, which comes first.
pub(crate) fn options_in_order(options: &[(String, String)]) -> Vec<&(String, String)> {
    const ORDER: [&str; 13] = [
        "MIN_ROWS",
        "MAX_ROWS",
        "AVG_ROW_LENGTH",
        "PACK_KEYS",
        "STATS_PERSISTENT",
        "STATS_AUTO_RECALC",
        "STATS_SAMPLE_PAGES",
        "CHECKSUM",
        "DELAY_KEY_WRITE",
        "ROW_FORMAT",
        "KEY_BLOCK_SIZE",
        "COMPRESSION",
        "ENCRYPTION",
    ];
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let mut sorted: Vec<&(String, String)> = options
        .iter()
        .filter(|(name, _)| {
            !matches!(&**name, DECLARED_ENGINE | DISCARDED_OPTION | TABLESPACE | AUTOEXTEND_SIZE)
        })
        .collect();
    sorted.sort_by_key(|(name, _)| place(name).unwrap_or(ORDER.len()));
    sorted
}

fn column_text(table: &Table, column: &Column, zone: &dyn ZoneRules, style: Style) -> String {
    let mut text = format!("{} {}", style.quote(&column.name), type_text(&column.ty));
    text.push_str(&collation_text(table.collation, column));
    if let Some(text_of_time) = row_time_text(column.history) {
        text.push_str(&format!(" GENERATED ALWAYS AS {text_of_time}"));
        if column.invisible {
            text.push_str(" INVISIBLE");
        }
        if !column.comment.is_empty() {
            text.push_str(&format!(" COMMENT {}", literal(&column.comment)));
        }
        return text;
    }
    if let Some(generated) = &column.generated {
        let kind = if generated.stored { "STORED" } else { "VIRTUAL" };
        text.push_str(&format!(" GENERATED ALWAYS AS ({}) {kind}", generated.expression));
    }
    if !column.ty.nullable {
        text.push_str(" NOT NULL");
    } else if column.ty.kind == TypeKind::Timestamp {
        text.push_str(" NULL");
    }
    if let Some(srid) = column.ty.spatial.srid {
        text.push_str(&format!(" /*!80003 SRID {srid} */"));
    }
    match column.placement.medium {
        None => {}
        Some(Medium::Disk) => text.push_str(" /*!50606 STORAGE DISK */"),
        Some(Medium::Memory) => text.push_str(" /*!50606 STORAGE MEMORY */"),
    }
    match column.placement.format {
        None => {}
        Some(RecordFormat::Fixed) => text.push_str(" /*!50606 COLUMN_FORMAT FIXED */"),
        Some(RecordFormat::Dynamic) => text.push_str(" /*!50606 COLUMN_FORMAT DYNAMIC */"),
    }
    if column.generated.is_none()
        && let Some(default) = default_text(column, zone)
    {
        text.push_str(&format!(" DEFAULT {default}"));
    }
    if let Some(digits) = column.on_update_now {
        text.push_str(&format!(" ON UPDATE {}", now_text(digits)));
    }
    if column.auto_increment {
        text.push_str(" AUTO_INCREMENT");
    }
    if column.invisible {
        text.push_str(" /*!80023 INVISIBLE */");
    }
    if !column.comment.is_empty() {
        text.push_str(&format!(" COMMENT {}", literal(&column.comment)));
    }
    if column.history == ColumnHistory::NotKept {
        text.push_str(" WITHOUT SYSTEM VERSIONING");
    }
    text
}

/// The columns of PERIOD FOR SYSTEM_TIME.
fn declared_times(table: &Table) -> Option<(&Column, &Column)> {
    let times = table.row_times()?;
    let (start, end) = (&table.columns[times.start], &table.columns[times.end]);
    (!start.history.is_undeclared_time()).then_some((start, end))
}

/// What a column of a row's times is generated as.
pub(crate) fn row_time_text(history: ColumnHistory) -> Option<&'static str> {
    match history {
        ColumnHistory::RowStart { .. } => Some("ROW START"),
        ColumnHistory::RowEnd { .. } => Some("ROW END"),
        ColumnHistory::Kept | ColumnHistory::NotKept => None,
    }
}

/// CHARACTER SET and COLLATE of a column that differs from its table.
fn collation_text(table: CollationId, column: &Column) -> String {
    let has_text = column.ty.is_text() || matches!(column.ty.kind, TypeKind::Enum | TypeKind::Set);
    if !has_text {
        return String::new();
    }
    let own = charset::collation_or_binary(column.ty.collation);
    let mut text = String::new();
    if column.collation_written || column.ty.collation != table {
        text.push_str(&format!(" CHARACTER SET {}", own.charset.name));
    }
    // As for tables, the default collation of utf8mb4 is never omitted.
    let is_told = own.is_default && (own.charset.name != "utf8mb4" || column.ty.collation == table);
    if column.collation_written || !is_told {
        text.push_str(&format!(" COLLATE {}", own.name));
    }
    text
}

fn now_text(digits: u8) -> String {
    match digits {
        0 => "CURRENT_TIMESTAMP".into(),
        digits => format!("CURRENT_TIMESTAMP({digits})"),
    }
}

/// The text after DEFAULT; `None` without a default.
fn default_text(column: &Column, zone: &dyn ZoneRules) -> Option<String> {
    match &column.default {
        ColumnDefault::None => None,
        // TEXT and BLOB columns show no DEFAULT NULL.
        ColumnDefault::Constant(Value::Null) => {
            (column.ty.nullable && !is_lob(column.ty.kind)).then(|| "NULL".into())
        }
        ColumnDefault::Constant(Value::UInt(bits)) if column.ty.kind == TypeKind::Bit => {
            Some(format!("b'{bits:b}'"))
        }
        ColumnDefault::Constant(value) => Some(match not_text(column, value) {
            Some(bytes) => crate::columns::hex_text(bytes),
            None => literal(&constant_text(column, value, zone)),
        }),
        ColumnDefault::Now(digits) => Some(now_text(*digits)),
        ColumnDefault::Expression(text) => Some(format!("({text})")),
    }
}

/// Bytes of a binary column that are no text of UTF-8.
fn not_text<'v>(column: &Column, value: &'v Value) -> Option<&'v [u8]> {
    let Value::Bytes(bytes) = value else { return None };
    let is_binary = matches!(column.ty.kind, TypeKind::Binary | TypeKind::VarBinary);
    (is_binary && std::str::from_utf8(bytes).is_err()).then_some(bytes)
}

fn is_lob(kind: TypeKind) -> bool {
    use TypeKind::*;
    matches!(
        kind,
        TinyText | Text | MediumText | LongText | TinyBlob | Blob | MediumBlob | LongBlob
    )
}

/// A constant default as text; TIMESTAMP in the session's zone.
pub(crate) fn constant_text(column: &Column, value: &Value, zone: &dyn ZoneRules) -> String {
    let local = match value {
        Value::DateTime(utc) if column.ty.kind == TypeKind::Timestamp && !utc.is_zero() => {
            utc.to_unix_micros().map(|micros| Value::DateTime(zone.utc_to_local(micros)))
        }
        _ => None,
    };
    let mut text = Vec::new();
    types::text::to_text(local.as_ref().unwrap_or(value), &column.ty, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn index_text(table: &Table, index: &Index, style: Style) -> String {
    let period = table.period.as_ref().filter(|_| index.without_overlaps);
    let parts: Vec<String> = index
        .own_parts()
        .iter()
        .map(|part| {
            let column = &table.columns[part.column];
            let mut text = match &column.generated {
                Some(generated) if generated.hidden => format!("({})", generated.shown()),
                _ => style.quote(&column.name),
            };
            if let Some(length) = part.prefix_length {
                text.push_str(&format!("({length})"));
            }
            if part.descending {
                text.push_str(" DESC");
            }
            text
        })
        .collect();
    let mut parts = parts.join(",");
    if let Some(period) = period {
        parts.push_str(&format!(",{} WITHOUT OVERLAPS", style.quote(&period.name)));
    }
    let mut text = match (index.id, index.unique) {
        (IndexId::CLUSTERED, _) => format!("PRIMARY KEY ({parts})"),
        (_, true) => format!("UNIQUE KEY {} ({parts})", style.quote(&index.name)),
        (_, false) => {
            let kind = table.spatial_column(index).map_or("", |_| "SPATIAL ");
            format!("{kind}KEY {} ({parts})", style.quote(&index.name))
        }
    };
    match index.method {
        None => {}
        Some(IndexMethod::BTree) => text.push_str(" USING BTREE"),
        Some(IndexMethod::Hash) => text.push_str(" USING HASH"),
    }
    push_index_options(&mut text, &index.comment, index.visible);
    text
}

fn push_index_options(text: &mut String, comment: &str, visible: bool) {
    if !comment.is_empty() {
        text.push_str(&format!(" COMMENT {}", literal(comment)));
    }
    if !visible {
        text.push_str(" /*!80000 INVISIBLE */");
    }
}

fn action_text(clause: &str, action: ReferenceAction) -> String {
    let word = match action {
        ReferenceAction::NoAction => return String::new(),
        ReferenceAction::Restrict => "RESTRICT",
        ReferenceAction::Cascade => "CASCADE",
        ReferenceAction::SetNull => "SET NULL",
        ReferenceAction::SetDefault => "SET DEFAULT",
    };
    format!(" {clause} {word}")
}

/// `CONSTRAINT x FOREIGN KEY (...) REFERENCES ...`.
pub(crate) fn foreign_key_text(table: &Table, key: &ForeignKey) -> String {
    let own: Vec<String> =
        key.columns.iter().map(|column| quote(&table.columns[*column].name)).collect();
    let other: Vec<String> = key.referenced_columns.iter().map(|name| quote(name)).collect();
    let parent = if key.referenced_schema == table.schema {
        quote(&key.referenced_table)
    } else {
        format!("{}.{}", quote(&key.referenced_schema), quote(&key.referenced_table))
    };
    format!(
        "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {parent} ({}){}{}",
        quote(&key.name),
        own.join(", "),
        other.join(", "),
        action_text("ON DELETE", key.on_delete),
        action_text("ON UPDATE", key.on_update),
    )
}

/// CREATE DATABASE text.
pub(crate) fn create_schema(schema: &Schema, style: Style) -> String {
    let collation = charset::collation_or_binary(schema.options.collation);
    let collate = if collation.is_default && collation.charset.name != "utf8mb4" {
        String::new()
    } else {
        format!(" COLLATE {}", collation.name)
    };
    format!(
        "CREATE DATABASE {} /*!40100 DEFAULT CHARACTER SET {}{collate} */ /*!80016 DEFAULT ENCRYPTION='{}' */{}",
        style.quote(&schema.name),
        collation.charset.name,
        if schema.options.is_encrypted { 'Y' } else { 'N' },
        if schema.options.is_read_only { " /* READ ONLY = 1 */" } else { "" },
    )
}

/// Whether the SELECT gives the view's columns their names, so that no list is needed.
fn names_itself(view: &View) -> bool {
    let parsed = syntax::parse_one(&view.definition, &syntax::ParseOptions::default());
    let Ok((syntax::ast::Statement::Query(query), _)) = parsed else { return false };
    let syntax::ast::SetExpr::Select(select) = &query.body else { return false };
    select.items.len() == view.columns.len()
        && select.items.iter().zip(&view.columns).all(|(item, name)| match &item.kind {
            syntax::ast::SelectItemKind::Expr { alias: Some(alias), .. } => *alias.text == **name,
            syntax::ast::SelectItemKind::Expr { expr, alias: None } => {
                matches!(&expr.kind, syntax::ast::ExprKind::Column(column)
                    if *column.name.text == **name)
            }
            _ => false,
        })
}

/// A view's query without the view's schema, when all its tables are in that schema.
fn query_at_home(view: &View) -> Option<String> {
    let options = unparse::PrintOptions { canonical: true, ..unparse::PrintOptions::default() };
    match syntax::parse_one(&view.definition, &syntax::ParseOptions::default()) {
        Ok((syntax::ast::Statement::Query(query), _)) => {
            unparse::print_query_at_home(&query, &options, &view.schema)
        }
        _ => None,
    }
}

/// CREATE VIEW text, as seen from schema `current`.
pub(crate) fn create_view(view: &View, current: Option<&str>, style: Style) -> String {
    let is_home = current == Some(&*view.schema);
    let name = match is_home {
        true => quote(&view.name),
        false => format!("{}.{}", quote(&view.schema), quote(&view.name)),
    };
    let at_home = if is_home { query_at_home(view) } else { None };
    let (user, host) = view.definer.rsplit_once('@').unwrap_or((&view.definer, "%"));
    let security = if view.invoker { "INVOKER" } else { "DEFINER" };
    let columns: Vec<String> = view.columns.iter().map(|name| quote(name)).collect();
    let columns = if columns.is_empty() || view.is_duality || names_itself(view) {
        String::new()
    } else {
        format!(" ({})", columns.join(","))
    };
    let check = match &*view.check_option {
        "NONE" | "" => String::new(),
        option => format!(" WITH {option} CHECK OPTION"),
    };
    let how = match style.portable {
        true => String::new(),
        false => {
            let (user, host) = (quote(user), quote(host));
            let algorithm = &view.algorithm;
            format!("ALGORITHM={algorithm} DEFINER={user}@{host} SQL SECURITY {security} ")
        }
    };
    let query = at_home.as_deref().unwrap_or(&view.definition);
    let kind = if view.is_duality { "JSON RELATIONAL DUALITY VIEW" } else { "VIEW" };
    style.requoted(&format!("CREATE {how}{kind} {name}{columns} AS {query}{check}"))
}
