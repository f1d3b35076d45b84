//! Data types and CREATE TABLE to text.

use syntax::ast::*;

use crate::Printer;
use crate::expr::unit_name;

impl Printer<'_> {
    pub(super) fn data_type(&mut self, data_type: &DataType) {
        self.s(type_name(data_type.name));
        if let Some(length) = data_type.length {
            self.s("(");
            self.number(length);
            if let Some(decimals) = data_type.decimals {
                self.s(",");
                self.number(decimals);
            }
            self.s(")");
        }
        if matches!(data_type.name, TypeName::Enum | TypeName::Set) {
            self.s("(");
            self.list(&data_type.values, |p, value| p.string(value));
            self.s(")");
        }
        self.when(data_type.unsigned, " unsigned");
        self.when(data_type.zerofill, " zerofill");
        if let Some(charset) = &data_type.charset {
            self.s(" character set ");
            self.word(charset);
        }
        self.when(data_type.binary, " binary");
        if let Some(collation) = &data_type.collation {
            self.s(" collate ");
            self.word(collation);
        }
    }

    /// A type of CAST.
    pub(super) fn cast_type(&mut self, data_type: &DataType) {
        let is_binary = self.options.canonical && data_type.name == TypeName::Binary;
        if data_type.name != TypeName::Char && !is_binary {
            return match self.options.canonical.then(|| full_type(data_type)).flatten() {
                Some(full) => self.data_type(&full),
                None => self.data_type(data_type),
            };
        }
        self.s("char");
        if let Some(length) = data_type.length {
            self.s("(");
            self.number(length);
            self.s(")");
        }
        if is_binary {
            self.s(" charset binary");
        } else if let Some(charset) = &data_type.charset {
            self.s(" charset ");
            self.word(charset);
        } else if let Some(charset) = self.options.cast_charset {
            self.s(" charset ");
            self.s(charset);
        }
        self.when(data_type.binary, " binary");
        if let Some(collation) = &data_type.collation {
            self.s(" collate ");
            self.word(collation);
        }
    }

    /// The type of RETURNING, which MySQL writes in a way of its own.
    pub(super) fn returning_type(&mut self, data_type: &DataType) {
        let charset = data_type.charset.as_ref();
        if data_type.name == TypeName::Decimal {
            let (precision, scale) =
                (data_type.length.unwrap_or(10), data_type.decimals.unwrap_or(0));
            self.s(&format!("decimal({precision}, {scale})"));
        } else if data_type.name == TypeName::Binary {
            self.data_type(data_type);
        } else if data_type.name != TypeName::Char
            || data_type.binary
            || data_type.collation.is_some()
        {
            self.cast_type(data_type);
        } else {
            match (data_type.length, charset) {
                (Some(length), _) => self.s(&format!("char({length})")),
                (None, Some(_)) => self.s("char"),
                (None, None) => self.s("char(1073741823)"),
            }
            if let Some(charset) = charset {
                self.s(" character set ");
                self.word(charset);
            }
        }
    }

    pub(super) fn create_table(&mut self, table: &CreateTable) {
        self.s("CREATE ");
        self.when(table.flags.or_replace, "OR REPLACE ");
        self.when(table.temporary, "TEMPORARY ");
        self.when(table.external, "EXTERNAL ");
        self.s("TABLE ");
        self.when(table.flags.if_not_exists, "IF NOT EXISTS ");
        self.object(&table.name);
        if let Some(like) = &table.like {
            self.s(" LIKE ");
            return self.object(like);
        }
        let elements =
            !table.columns.is_empty() || !table.constraints.is_empty() || !table.periods.is_empty();
        if elements {
            self.table_elements(table);
        }
        for option in &table.options {
            self.s(" ");
            self.table_option(option);
        }
        self.when(table.start_transaction, " START TRANSACTION");
        if let Some(partitioning) = &table.partitioning {
            self.partitioning(partitioning);
        }
        self.s(match table.duplicates {
            LoadDuplicates::Error => "",
            LoadDuplicates::Replace => " REPLACE",
            LoadDuplicates::Ignore => " IGNORE",
        });
        if let Some(query) = &table.query {
            self.s(" AS ");
            self.query(query);
        }
    }

    fn table_elements(&mut self, table: &CreateTable) {
        self.s(" (\n  ");
        let mut first = true;
        let mut next = |p: &mut Self| {
            let separator = if std::mem::take(&mut first) { "" } else { ",\n  " };
            p.s(separator);
        };
        for column in &table.columns {
            next(self);
            self.column_def(column);
        }
        for constraint in &table.constraints {
            next(self);
            self.constraint(constraint);
        }
        for (name, start, end) in &table.periods {
            next(self);
            self.s("PERIOD FOR ");
            self.ident(name);
            self.s(" (");
            self.ident(start);
            self.s(",");
            self.ident(end);
            self.s(")");
        }
        self.s("\n)");
    }

    pub(super) fn column_def(&mut self, column: &ColumnDef) {
        self.ident(&column.name);
        self.s(" ");
        self.data_type(&column.data_type);
        for attribute in &column.attributes {
            self.s(" ");
            self.column_attribute(attribute);
        }
    }

    fn column_attribute(&mut self, attribute: &ColumnAttribute) {
        use ColumnAttribute as A;
        match attribute {
            A::Null(null) => self.s(if *null { "NULL" } else { "NOT NULL" }),
            A::Default { value, parenthesised } => {
                self.s("DEFAULT ");
                self.default_value(value, *parenthesised);
            }
            A::OnUpdateNow(precision) => {
                self.s("ON UPDATE CURRENT_TIMESTAMP");
                if let Some(precision) = precision {
                    self.s(&format!("({precision})"));
                }
            }
            A::AutoIncrement => self.s("AUTO_INCREMENT"),
            A::PrimaryKey => self.s("PRIMARY KEY"),
            A::Unique => self.s("UNIQUE KEY"),
            A::Comment(text) => {
                self.s("COMMENT ");
                self.text(text);
            }
            A::Collation(name) => {
                self.s("COLLATE ");
                self.word(name);
            }
            A::ColumnFormat(word) => self.word_option("COLUMN_FORMAT ", Some(word)),
            A::Storage(word) => self.word_option("STORAGE ", Some(word)),
            A::EngineAttribute(text) => {
                self.s("ENGINE_ATTRIBUTE ");
                self.text(text);
            }
            A::SecondaryEngineAttribute(text) => {
                self.s("SECONDARY_ENGINE_ATTRIBUTE ");
                self.text(text);
            }
            A::Visible(visible) => self.s(if *visible { "VISIBLE" } else { "INVISIBLE" }),
            A::Srid(srid) => self.s(&format!("SRID {srid}")),
            A::NotSecondary => self.s("NOT SECONDARY"),
            A::Generated { expr, stored } => {
                self.s("GENERATED ALWAYS AS (");
                self.expr(expr);
                self.s(if *stored { ") STORED" } else { ") VIRTUAL" });
            }
            A::Check(check) => self.check(check),
            A::References(references) => self.references(references),
            A::RowPeriod(start) => {
                let end = if *start { "START" } else { "END" };
                self.s(&format!("GENERATED ALWAYS AS ROW {end}"));
            }
            A::SystemVersioning(with) => {
                let word = if *with { "WITH" } else { "WITHOUT" };
                self.s(&format!("{word} SYSTEM VERSIONING"));
            }
            A::Compressed => self.s("COMPRESSED"),
        }
    }

    fn default_value(&mut self, value: &Expr, parenthesised: bool) {
        if parenthesised {
            self.s("(");
            self.expr(value);
            return self.s(")");
        }
        match &value.kind {
            // Signed numbers are printed without parentheses here.
            ExprKind::Unary { op, expr } => {
                self.s(if *op == UnaryOp::Neg { "-" } else { "+" });
                self.expr(expr);
            }
            _ => self.expr(value),
        }
    }

    fn check(&mut self, check: &CheckDef) {
        if let Some(name) = &check.name {
            self.s("CONSTRAINT ");
            self.ident(name);
            self.s(" ");
        }
        self.s("CHECK (");
        self.expr(&check.expr);
        self.s(")");
        match check.enforced {
            None => {}
            Some(true) => self.s(" ENFORCED"),
            Some(false) => self.s(" NOT ENFORCED"),
        }
    }

    fn references(&mut self, references: &References) {
        self.s("REFERENCES ");
        self.object(&references.table);
        if !references.columns.is_empty() {
            self.s(" ");
            self.paren_idents(&references.columns);
        }
        self.s(match references.match_kind {
            None => "",
            Some(MatchKind::Full) => " MATCH FULL",
            Some(MatchKind::Partial) => " MATCH PARTIAL",
            Some(MatchKind::Simple) => " MATCH SIMPLE",
        });
        let actions =
            [(" ON DELETE ", references.on_delete), (" ON UPDATE ", references.on_update)];
        for (word, action) in actions {
            let Some(action) = action else { continue };
            self.s(word);
            self.s(match action {
                ReferenceAction::Restrict => "RESTRICT",
                ReferenceAction::Cascade => "CASCADE",
                ReferenceAction::SetNull => "SET NULL",
                ReferenceAction::NoAction => "NO ACTION",
                ReferenceAction::SetDefault => "SET DEFAULT",
            });
        }
    }

    fn constraint(&mut self, constraint: &TableConstraint) {
        match constraint {
            TableConstraint::Check(check) => self.check(check),
            TableConstraint::ForeignKey(key) => {
                if let Some(name) = &key.constraint {
                    self.s("CONSTRAINT ");
                    self.ident(name);
                    self.s(" ");
                }
                self.s("FOREIGN KEY ");
                if let Some(name) = &key.name {
                    self.ident(name);
                    self.s(" ");
                }
                self.paren_idents(&key.columns);
                self.s(" ");
                self.references(&key.references);
            }
            TableConstraint::Index(index) => self.index(index),
        }
    }

    fn index(&mut self, index: &IndexDef) {
        if let Some(name) = &index.constraint {
            self.s("CONSTRAINT ");
            self.ident(name);
            self.s(" ");
        }
        self.s(match index.kind {
            IndexKind::Primary => "PRIMARY KEY ",
            IndexKind::Unique => "UNIQUE KEY ",
            IndexKind::Plain => "KEY ",
            IndexKind::Fulltext => "FULLTEXT KEY ",
            IndexKind::Spatial => "SPATIAL KEY ",
            IndexKind::Vector => "VECTOR KEY ",
        });
        self.when(index.if_not_exists, "IF NOT EXISTS ");
        if let Some(name) = &index.name {
            self.ident(name);
            self.s(" ");
        }
        self.s("(");
        self.list(&index.parts, |p, part| {
            match &part.kind {
                KeyPartKind::Column { name, length } => {
                    p.ident(name);
                    if let Some(length) = length {
                        p.s(&format!("({length})"));
                    }
                }
                KeyPartKind::Expr(expr) => {
                    p.s("(");
                    p.expr(expr);
                    p.s(")");
                }
            }
            p.when(part.desc, " DESC");
            p.when(part.explicit_asc, " ASC");
        });
        if let Some(period) = &index.without_overlaps {
            self.s(",");
            self.ident(period);
            self.s(" WITHOUT OVERLAPS");
        }
        self.s(")");
        for option in &index.options {
            self.s(" ");
            self.index_option(option);
        }
    }

    fn index_option(&mut self, option: &IndexOption) {
        match option {
            IndexOption::Using(IndexAlgorithm::BTree) => self.s("USING BTREE"),
            IndexOption::Using(IndexAlgorithm::Hash) => self.s("USING HASH"),
            IndexOption::Using(IndexAlgorithm::RTree) => self.s("USING RTREE"),
            IndexOption::KeyBlockSize(size) => self.s(&format!("KEY_BLOCK_SIZE={size}")),
            IndexOption::Parser(name) => {
                self.s("WITH PARSER ");
                self.ident(name);
            }
            IndexOption::Comment(text) => {
                self.s("COMMENT ");
                self.text(text);
            }
            IndexOption::Visible(true) => self.s("VISIBLE"),
            IndexOption::Visible(false) => self.s("INVISIBLE"),
            IndexOption::EngineAttribute(text) => {
                self.s("ENGINE_ATTRIBUTE ");
                self.text(text);
            }
            IndexOption::SecondaryEngineAttribute(text) => {
                self.s("SECONDARY_ENGINE_ATTRIBUTE ");
                self.text(text);
            }
            IndexOption::Other(name, value) => {
                self.s(&format!("{}=", name.text));
                self.text(value);
            }
        }
    }

    pub(super) fn table_option(&mut self, option: &TableOption) {
        use TableOption as O;
        let (name, text) = match option {
            O::Engine(engine) => {
                self.s("ENGINE=");
                return self.word(engine);
            }
            O::SecondaryEngine(None) => return self.s("SECONDARY_ENGINE=NULL"),
            O::SecondaryEngine(Some(engine)) => {
                self.s("SECONDARY_ENGINE=");
                return self.word(engine);
            }
            O::AutoIncrement(value) => return self.s(&format!("AUTO_INCREMENT={value}")),
            O::Charset(name) => return self.word_option("DEFAULT CHARSET=", name.as_ref()),
            O::Collation(name) => return self.word_option("COLLATE=", name.as_ref()),
            O::RowFormat(format) => return self.word_option("ROW_FORMAT=", Some(format)),
            O::Tablespace(name) => {
                self.s("TABLESPACE ");
                return self.ident(name);
            }
            O::Storage(name) => return self.word_option("STORAGE ", Some(name)),
            O::Union(tables) => {
                self.s("UNION=(");
                self.list(tables, Self::object);
                return self.s(")");
            }
            O::InsertMethod(method) => return self.word_option("INSERT_METHOD=", Some(method)),
            O::StartTransaction => return self.s("START TRANSACTION"),
            O::AutoextendSize(size) => return self.s(&format!("AUTOEXTEND_SIZE={size}")),
            O::Number(option, value) => {
                let value = value.map_or("DEFAULT".to_owned(), |v| v.to_string());
                return self.s(&format!("{}={value}", number_option_name(*option)));
            }
            O::SystemVersioning => return self.s("WITH SYSTEM VERSIONING"),
            O::Comment(text) => ("COMMENT=", text),
            O::Compression(text) => ("COMPRESSION=", text),
            O::Encryption(text) => ("ENCRYPTION=", text),
            O::DataDirectory(text) => ("DATA DIRECTORY=", text),
            O::IndexDirectory(text) => ("INDEX DIRECTORY=", text),
            O::Connection(text) => ("CONNECTION=", text),
            O::Password(text) => ("PASSWORD=", text),
            O::EngineAttribute(text) => ("ENGINE_ATTRIBUTE=", text),
            O::SecondaryEngineAttribute(text) => ("SECONDARY_ENGINE_ATTRIBUTE=", text),
            O::Other(name, text) => {
                self.s(&name.text);
                ("=", text)
            }
        };
        self.s(name);
        self.text(text);
    }

    /// `name` and a word, or DEFAULT.
    fn word_option(&mut self, name: &str, word: Option<&Ident>) {
        self.s(name);
        match word {
            // DEFAULT is the one reserved word that options take.
            Some(word) if word.is("default") => self.s("DEFAULT"),
            Some(word) => self.word(word),
            None => self.s("DEFAULT"),
        }
    }

    // --- partitions

    fn partitioning(&mut self, partitioning: &Partitioning) {
        self.s("\nPARTITION BY ");
        self.partition_method(&partitioning.method);
        if let Some(count) = partitioning.count {
            self.s(&format!("\nPARTITIONS {count}"));
        }
        if let Some(method) = &partitioning.subpartition {
            self.s("\nSUBPARTITION BY ");
            self.partition_method(method);
            if let Some(count) = partitioning.subpartition_count {
                self.s(&format!("\nSUBPARTITIONS {count}"));
            }
        }
        if !partitioning.partitions.is_empty() {
            self.s("\n(");
            self.list(&partitioning.partitions, Self::partition);
            self.s(")");
        }
    }

    fn partition_method(&mut self, method: &PartitionMethod) {
        match method {
            PartitionMethod::Hash { linear, expr } => {
                self.when(*linear, "LINEAR ");
                self.s("HASH (");
                self.expr(expr);
                self.s(")");
            }
            PartitionMethod::Key { linear, algorithm, columns } => {
                self.when(*linear, "LINEAR ");
                self.s("KEY ");
                if let Some(algorithm) = algorithm {
                    self.s(&format!("ALGORITHM = {algorithm} "));
                }
                self.paren_idents(columns);
            }
            PartitionMethod::Range(expr) | PartitionMethod::List(expr) => {
                let range = matches!(method, PartitionMethod::Range(_));
                self.s(if range { "RANGE (" } else { "LIST (" });
                self.expr(expr);
                self.s(")");
            }
            PartitionMethod::RangeColumns(columns) => {
                self.s("RANGE COLUMNS");
                self.paren_idents(columns);
            }
            PartitionMethod::ListColumns(columns) => {
                self.s("LIST COLUMNS");
                self.paren_idents(columns);
            }
            PartitionMethod::SystemTime { interval, starts, limit, auto } => {
                self.s("SYSTEM_TIME");
                if let Some((amount, unit)) = interval {
                    self.s(" INTERVAL ");
                    self.expr(amount);
                    self.s(" ");
                    self.s(unit_name(*unit));
                }
                if let Some(starts) = starts {
                    self.s(" STARTS ");
                    self.expr(starts);
                }
                if let Some(limit) = limit {
                    self.s(&format!(" LIMIT {limit}"));
                }
                self.when(*auto, " AUTO");
            }
        }
    }

    fn partition(&mut self, partition: &PartitionDef) {
        self.s("PARTITION ");
        self.ident(&partition.name);
        match &partition.values {
            PartitionValues::None => {}
            PartitionValues::LessThan(values) => {
                self.s(" VALUES LESS THAN (");
                self.partition_row(values);
                self.s(")");
            }
            PartitionValues::In(rows) => {
                self.s(" VALUES IN (");
                self.list(rows, |p, row| {
                    p.when(row.len() > 1, "(");
                    p.partition_row(row);
                    p.when(row.len() > 1, ")");
                });
                self.s(")");
            }
            PartitionValues::History => self.s(" HISTORY"),
            PartitionValues::Current => self.s(" CURRENT"),
            PartitionValues::Default => self.s(" DEFAULT"),
        }
        self.partition_options(&partition.options);
        if !partition.subpartitions.is_empty() {
            self.s(" (");
            self.list(&partition.subpartitions, |p, (name, options)| {
                p.s("SUBPARTITION ");
                p.ident(name);
                p.partition_options(options);
            });
            self.s(")");
        }
    }

    fn partition_row(&mut self, values: &[Option<Expr>]) {
        self.list(values, |p, value| match value {
            Some(value) => p.expr(value),
            None => p.s("MAXVALUE"),
        });
    }

    fn partition_options(&mut self, options: &[PartitionOption]) {
        use PartitionOption as O;
        for option in options {
            self.s(" ");
            match option {
                O::Engine(name) => self.word_option("ENGINE = ", Some(name)),
                O::Comment(text) => {
                    self.s("COMMENT = ");
                    self.text(text);
                }
                O::DataDirectory(text) => {
                    self.s("DATA DIRECTORY = ");
                    self.text(text);
                }
                O::IndexDirectory(text) => {
                    self.s("INDEX DIRECTORY = ");
                    self.text(text);
                }
                O::MaxRows(rows) => self.s(&format!("MAX_ROWS = {rows}")),
                O::MinRows(rows) => self.s(&format!("MIN_ROWS = {rows}")),
                O::Tablespace(name) => {
                    self.s("TABLESPACE = ");
                    self.ident(name);
                }
                O::Nodegroup(group) => self.s(&format!("NODEGROUP = {group}")),
            }
        }
    }
}

fn number_option_name(option: NumberOption) -> &'static str {
    match option {
        NumberOption::AvgRowLength => "AVG_ROW_LENGTH",
        NumberOption::Checksum => "CHECKSUM",
        NumberOption::DelayKeyWrite => "DELAY_KEY_WRITE",
        NumberOption::KeyBlockSize => "KEY_BLOCK_SIZE",
        NumberOption::MaxRows => "MAX_ROWS",
        NumberOption::MinRows => "MIN_ROWS",
        NumberOption::PackKeys => "PACK_KEYS",
        NumberOption::StatsAutoRecalc => "STATS_AUTO_RECALC",
        NumberOption::StatsPersistent => "STATS_PERSISTENT",
        NumberOption::StatsSamplePages => "STATS_SAMPLE_PAGES",
    }
}

/// A type of CAST with what it does not say: the digits of DECIMAL, the width of FLOAT.
fn full_type(data_type: &DataType) -> Option<DataType> {
    /// Binary digits of the longest FLOAT; more are a DOUBLE.
    const FLOAT_DIGITS: u64 = 24;
    if data_type.name == TypeName::Decimal {
        let (length, decimals) = (data_type.length.or(Some(10)), data_type.decimals.or(Some(0)));
        return Some(DataType { length, decimals, ..data_type.clone() });
    }
    let digits = data_type.length.filter(|_| data_type.name == TypeName::Float)?;
    let name = if digits > FLOAT_DIGITS { TypeName::Double } else { TypeName::Float };
    Some(DataType { name, length: None, ..data_type.clone() })
}

fn type_name(name: TypeName) -> &'static str {
    match name {
        TypeName::TinyInt => "tinyint",
        TypeName::SmallInt => "smallint",
        TypeName::MediumInt => "mediumint",
        TypeName::Int => "int",
        TypeName::BigInt => "bigint",
        TypeName::Serial => "serial",
        TypeName::Bool => "bool",
        TypeName::Bit => "bit",
        TypeName::Decimal => "decimal",
        TypeName::Float => "float",
        TypeName::Double => "double",
        TypeName::Date => "date",
        TypeName::Time => "time",
        TypeName::Datetime => "datetime",
        TypeName::Timestamp => "timestamp",
        TypeName::Year => "year",
        TypeName::Char => "char",
        TypeName::Varchar => "varchar",
        TypeName::Binary => "binary",
        TypeName::Varbinary => "varbinary",
        TypeName::TinyText => "tinytext",
        TypeName::Text => "text",
        TypeName::MediumText => "mediumtext",
        TypeName::LongText => "longtext",
        TypeName::TinyBlob => "tinyblob",
        TypeName::Blob => "blob",
        TypeName::MediumBlob => "mediumblob",
        TypeName::LongBlob => "longblob",
        TypeName::Enum => "enum",
        TypeName::Set => "set",
        TypeName::Json => "json",
        TypeName::Vector => "vector",
        TypeName::Geometry => "geometry",
        TypeName::Point => "point",
        TypeName::LineString => "linestring",
        TypeName::Polygon => "polygon",
        TypeName::MultiPoint => "multipoint",
        TypeName::MultiLineString => "multilinestring",
        TypeName::MultiPolygon => "multipolygon",
        TypeName::GeometryCollection => "geomcollection",
        TypeName::Uuid => "uuid",
        TypeName::Inet4 => "inet4",
        TypeName::Inet6 => "inet6",
        TypeName::Signed => "signed",
        TypeName::Unsigned => "unsigned",
    }
}
