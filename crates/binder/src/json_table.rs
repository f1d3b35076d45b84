//! JSON_TABLE: its paths are the rows of a leaf of the plan, its columns are computed from the items found.

use std::sync::Arc;

use errors::{Error, Result, bail};
use plan::{Expr, JsonLevel, JsonRows, Logical, Making, OutputColumn};
use syntax::ast;
use types::{CollationId, DataType, Fixed, FunctionRole, NOT_FIXED_DECIMALS, TypeKind, Value};

use crate::binder::Binder;
use crate::literal;
use crate::scope::{BoundQuery, Clause};

/// The maximum number of NESTED PATHs of a JSON_TABLE.
const NESTED_MAX: usize = 16;
/// Display width of FOR ORDINALITY.
const ORDINALITY_WIDTH: u32 = 10;

/// The parts of a JSON_TABLE bound so far.
struct Parts {
    alias: Arc<str>,
    levels: Vec<JsonLevel>,
    names: Vec<Arc<str>>,
    outputs: Vec<OutputColumn>,
}

impl Binder<'_> {
    pub(crate) fn bind_json_table(&mut self, table: &ast::JsonTable) -> Result<Logical> {
        let clause = std::mem::replace(&mut self.block().clause, Clause::TableFunction);
        let document = self.bind_single(&table.doc);
        self.block().clause = clause;
        let document = document?;
        let alias: Arc<str> = Arc::from(&*table.alias.text);
        let mut parts = Parts {
            alias: alias.clone(),
            levels: Vec::new(),
            names: Vec::new(),
            outputs: Vec::new(),
        };
        self.bind_json_level(&table.path, &table.columns, None, &mut parts)?;
        let lateral = !document.is_constant();
        let function = Arc::from("json_table");
        let rows = JsonRows { document, function, alias: alias.clone(), levels: parts.levels };
        let bound = BoundQuery {
            plan: Logical::JsonRows(Box::new(rows)),
            outputs: parts.outputs,
            mergeable: false,
            block: self.blocks.last().map_or(1, |block| block.number),
        };
        self.attach(bound, None, alias, &parts.names, lateral, None)
    }

    fn bind_json_level(
        &mut self,
        path: &str,
        columns: &[ast::JsonTableColumn],
        parent: Option<usize>,
        parts: &mut Parts,
    ) -> Result<()> {
        if parts.levels.len() > NESTED_MAX {
            bail!(JT_MAX_NESTED_PATH, NESTED_MAX, parts.alias);
        }
        check_path(path)?;
        let level = parts.levels.len();
        let (item, ordinal) = (self.new_register(), self.new_register());
        parts.levels.push(JsonLevel { path: Arc::from(path), parent, item, ordinal });
        let mut json = DataType::new(TypeKind::Json, u32::MAX, 0);
        json.collation = CollationId::BINARY;
        let item = Expr::column(item, json.with_nullable(true));
        for column in columns {
            let (name, expr) = match column {
                ast::JsonTableColumn::Nested { path, columns } => {
                    self.bind_json_level(path, columns, Some(level), parts)?;
                    continue;
                }
                ast::JsonTableColumn::Ordinality(name) => {
                    let ty = DataType::new(TypeKind::BigInt, ORDINALITY_WIDTH, 0);
                    let ty = ty.with_nullable(true);
                    (name, Expr::column(ordinal, ty))
                }
                ast::JsonTableColumn::Exists { name, data_type, path } => {
                    check_path(path)?;
                    let ty = self.json_column_type(data_type, &name.text)?;
                    let text =
                        |text: &str| literal::text(text.as_bytes(), CollationId::UTF8MB4_BIN);
                    let args = vec![item.clone(), text("one"), text(path)];
                    let found = self.function(FunctionRole::JsonContainsPath, args)?;
                    let kind = plan::CastKind::Explicit;
                    (name, Expr::Cast { operand: Box::new(found), kind, ty })
                }
                ast::JsonTableColumn::Path { name, data_type, path, on_empty, on_error } => {
                    check_path(path)?;
                    let ty = self.json_column_type(data_type, &name.text)?;
                    let text =
                        |text: &str| literal::text(text.as_bytes(), CollationId::UTF8MB4_BIN);
                    let mut args = vec![item.clone(), text(path), Expr::literal(Value::Null, ty)];
                    args.push(text(&name.text));
                    for on in [on_empty, on_error] {
                        args.extend(self.bind_json_on(on.as_ref())?);
                    }
                    (name, self.function(FunctionRole::JsonTableColumn, args)?)
                }
            };
            if name.text.ends_with(' ') {
                bail!(WRONG_COLUMN_NAME, name.text);
            }
            let name: Arc<str> = Arc::from(&*name.text);
            parts.names.push(name.clone());
            parts.outputs.push(OutputColumn { name, expr, source: None, making: Making::Kept });
        }
        Ok(())
    }

    /// A clause as a number and its DEFAULT.
    fn bind_json_on(&mut self, on: Option<&ast::JsonOn>) -> Result<[Expr; 2]> {
        let null = || Expr::literal(Value::Null, DataType::null());
        Ok(match on {
            None | Some(ast::JsonOn::Null) => [literal::integer(0), null()],
            Some(ast::JsonOn::Error) => [literal::integer(1), null()],
            Some(ast::JsonOn::Default(given)) => {
                if !matches!(&given.kind, ast::ExprKind::Literal(ast::Literal::String(_))) {
                    return Err(Error::not_supported(
                        "non-string DEFAULT value for a column in a JSON_TABLE expression",
                    ));
                }
                self.wants_literals = true;
                [literal::integer(2), self.bind_single(given)?]
            }
        })
    }

    /// The type of a column.
    fn json_column_type(&mut self, written: &ast::DataType, name: &str) -> Result<DataType> {
        use ast::TypeName;
        let integer = |kind: TypeKind, width: u32| {
            let mut ty = DataType::new(kind, width, 0);
            ty.unsigned = written.unsigned || written.zerofill;
            if ty.unsigned && kind != TypeKind::BigInt {
                ty.length -= 1;
            }
            ty
        };
        let digits = written.length.unwrap_or(0);
        let length = digits.min(u64::from(u32::MAX)) as u32;
        let fraction = |kind: TypeKind, whole: u32| -> Result<DataType> {
            if digits > 6 {
                bail!(TOO_BIG_PRECISION, digits, name, 6);
            }
            Ok(DataType::new(kind, literal::width(whole, digits as u8), digits as u8))
        };
        let ty = match written.name {
            TypeName::Bool => DataType::new(TypeKind::TinyInt, 1, 0),
            TypeName::TinyInt => integer(TypeKind::TinyInt, 4),
            TypeName::SmallInt => integer(TypeKind::SmallInt, 6),
            TypeName::MediumInt => integer(TypeKind::MediumInt, 9),
            TypeName::Int => integer(TypeKind::Int, 11),
            TypeName::BigInt => integer(TypeKind::BigInt, 20),
            TypeName::Decimal => self.cast_type(written, &literal::integer(0))?,
            TypeName::Float => DataType::new(TypeKind::Float, 12, NOT_FIXED_DECIMALS),
            TypeName::Double => DataType::new(TypeKind::Double, 22, NOT_FIXED_DECIMALS),
            TypeName::Date => DataType::new(TypeKind::Date, 10, 0),
            TypeName::Time => fraction(TypeKind::Time, 10)?,
            TypeName::Datetime | TypeName::Timestamp => fraction(TypeKind::DateTime, 19)?,
            TypeName::Year => DataType::new(TypeKind::Year, 4, 0),
            TypeName::Json => {
                let mut ty = DataType::new(TypeKind::Json, u32::MAX, 0);
                ty.collation = CollationId::BINARY;
                ty
            }
            TypeName::Char => self.json_text_type(written, TypeKind::Char, digits.max(1))?,
            TypeName::Varchar => self.json_text_type(written, TypeKind::VarChar, digits)?,
            TypeName::TinyText => self.json_text_type(written, TypeKind::TinyText, 255)?,
            TypeName::Text => self.json_text_type(written, TypeKind::Text, 65_535)?,
            TypeName::MediumText => {
                self.json_text_type(written, TypeKind::MediumText, 0xFF_FFFF)?
            }
            TypeName::LongText => {
                self.json_text_type(written, TypeKind::LongText, u64::from(u32::MAX))?
            }
            TypeName::Binary => DataType::new(TypeKind::Binary, length.max(1), 0),
            TypeName::Varbinary => DataType::new(TypeKind::VarBinary, length, 0),
            TypeName::TinyBlob => DataType::new(TypeKind::TinyBlob, 255, 0),
            TypeName::Blob => DataType::new(TypeKind::Blob, 65_535, 0),
            TypeName::MediumBlob => DataType::new(TypeKind::MediumBlob, 0xFF_FFFF, 0),
            TypeName::LongBlob => DataType::new(TypeKind::LongBlob, u32::MAX, 0),
            TypeName::Uuid => DataType::fixed(Fixed::Uuid),
            TypeName::Inet4 => DataType::fixed(Fixed::Inet4),
            TypeName::Inet6 => DataType::fixed(Fixed::Inet6),
            other => return Err(Error::not_supported(format!("{other:?} in JSON_TABLE"))),
        };
        Ok(ty.with_nullable(true))
    }

    fn json_text_type(
        &mut self,
        written: &ast::DataType,
        kind: TypeKind,
        length: u64,
    ) -> Result<DataType> {
        let mut ty = DataType::new(kind, length.min(u64::from(u32::MAX)) as u32, 0);
        ty.collation = match (&written.collation, &written.charset) {
            (Some(name), _) => match charset::collation_by_name(&name.text) {
                Some(collation) => collation.id,
                None => bail!(UNKNOWN_COLLATION, name.text),
            },
            (None, Some(name)) => match charset::charset_by_name(&name.text) {
                Some(charset) => charset.default_collation,
                None => bail!(UNKNOWN_CHARACTER_SET, name.text),
            },
            (None, None) => CollationId::UTF8MB4_0900_AI_CI,
        };
        Ok(ty)
    }
}

/// 3143 for an invalid path.
fn check_path(path: &str) -> Result<()> {
    match types::JsonPath::parse(path.as_bytes()) {
        Ok(_) => Ok(()),
        Err(position) => bail!(INVALID_JSON_PATH, position),
    }
}
