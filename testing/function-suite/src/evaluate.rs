//! Binds and runs calls as the executor does, one value at a time.

use std::collections::HashMap;

use errors::{Diagnostics, Error, ErrorCode, Result};
use plugin_api::test_support::FakeSession;
use plugin_api::{
    ArgInfo, Arity, BindContext, Coercion, FunctionContext, Module, NullRule, Plugin, Registry,
    SessionServices, Volatility,
};
use types::convert::CastContext;
use types::{CollationId, DataType, FixedOffset, SqlMode, TypeKind, Value};

use crate::parse::{Expr, Parser};

/// A value as a client would see it, its type, and the warnings raised.
pub struct Answer {
    /// Text of the value; `None` for NULL.
    pub value: Option<String>,
    /// The type as `KIND(length,decimals)`, `u` for unsigned, `n` for NOT NULL, and the collation's number.
    pub ty: String,
    /// Warnings, `1292 text`.
    pub warnings: Vec<String>,
}

/// All plugins, and a session in UTC.
pub struct Evaluator {
    registry: Registry,
}

impl Default for Evaluator {
    fn default() -> Self {
        let plugins: Vec<Box<dyn Plugin>> = vec![
            Box::new(functions_numeric::NumericFunctions),
            Box::new(functions_string::StringFunctions),
            Box::new(functions_temporal::TemporalFunctions),
            Box::new(functions_json::JsonFunctions),
            Box::new(functions_spatial::SpatialFunctions),
            Box::new(functions_crypto::CryptoFunctions),
            Box::new(functions_misc::MiscFunctions),
            Box::new(aggregates::Aggregates),
        ];
        Evaluator { registry: Registry::build(&plugins) }
    }
}

/// 2026-01-02 03:04:05.678901 UTC.
pub const NOW_MICROS: i64 = 1_767_323_045_678_901;

fn bind_context() -> BindContext {
    BindContext {
        sql_mode: SqlMode::DEFAULT,
        collation_connection: CollationId::UTF8MB4_0900_AI_CI,
        div_precision_increment: 4,
        group_concat_max_len: 1024,
        max_allowed_packet: 128 << 20,
        history: plugin_api::HistorySettings::default(),
        cascades_fire_triggers: false,
    }
}

impl Evaluator {
    /// The registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Names of all scalar functions, without aliases.
    pub fn function_names(&self) -> Vec<&'static str> {
        let items = self.registry.modules().iter().flat_map(Module::items);
        let functions = items.filter(|(slot, _)| *slot == "FUNCTION");
        functions
            .filter_map(|(_, name)| self.registry.function(name))
            .map(|function| function.name)
            .collect()
    }

    /// Arity of a function; 0 for an unknown one.
    pub fn arity(&self, name: &str) -> Arity {
        self.registry.function(name).map_or(Arity::exactly(0), |function| function.arity)
    }

    /// Calls a function with values, which are bound as constants or not. Packets are at most a mebibyte.
    ///
    /// # Errors
    /// The function's error.
    pub fn call(&self, name: &str, args: &[(Value, DataType)], constant: bool) -> Result<Value> {
        self.call_in(name, args, constant, NOW_MICROS, &mut FakeSession::default())
    }

    /// Likewise, in the caller's session, in a statement that began at `now_micros`.
    ///
    /// # Errors
    /// The function's error.
    pub fn call_in(
        &self,
        name: &str,
        args: &[(Value, DataType)],
        constant: bool,
        now_micros: i64,
        session: &mut dyn SessionServices,
    ) -> Result<Value> {
        let function = self.registry.function(name).ok_or_else(|| Error::internal(name))?;
        let mut diagnostics = Diagnostics::default();
        let zone = FixedOffset::utc();
        let mut ctx = context(&zone, &mut diagnostics, session);
        ctx.now_micros = now_micros;
        ctx.now = types::DateTime::from_unix_micros(now_micros).unwrap_or_default();
        ctx.max_allowed_packet = 1 << 20;
        let infos: Vec<ArgInfo> = args
            .iter()
            .map(|(value, ty)| ArgInfo {
                ty: ty.clone(),
                constant: constant.then(|| value.clone()),
                fixed: constant,
            })
            .collect();
        let bound = function.bind(&bind_context(), &infos)?;
        let mut values = Vec::with_capacity(args.len());
        for (index, (value, ty)) in args.iter().enumerate() {
            values.push(coerce(value, ty, bound.coercion(index), &mut ctx)?);
        }
        if bound.nulls == NullRule::Propagate && values.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        let value = (bound.kernel)(&mut ctx, &values)?;
        let mut out = Vec::new();
        types::to_text(&value, &bound.ty, &mut out);
        Ok(value)
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// The functions' errors; 1064 for syntax outside the small grammar.
    pub fn evaluate(&self, text: &str) -> Result<Answer> {
        let mut diagnostics = Diagnostics::default();
        let (value, ty, _) = self.value(text, &mut diagnostics)?;
        Ok(answer(&value, &ty, &diagnostics))
    }

    /// Runs an aggregate over `aggregate|type|value,value`, the values as `CAST(value AS type)` makes them.
    ///
    /// # Errors
    /// As `evaluate`.
    pub fn aggregate(&self, line: &str) -> Result<Answer> {
        let unknown = || Error::new(ErrorCode(1064), format!("cannot parse {line}"));
        let mut parts = line.splitn(3, '|');
        let (Some(name), Some(kind), Some(values)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(unknown());
        };
        let ty = cast_type(kind).ok_or_else(unknown)?;
        let exprs = crate::parse::list(values).ok_or_else(unknown)?;
        let mut diagnostics = Diagnostics::default();
        let mut session = FakeSession::default();
        let zone = FixedOffset::utc();
        let mut ctx = context(&zone, &mut diagnostics, &mut session);
        let function =
            self.registry.aggregate(&name.to_ascii_uppercase()).cloned().ok_or_else(unknown)?;
        let info = ArgInfo { ty: ty.clone(), constant: None, fixed: false };
        let bound = function.bind(&bind_context(), &[info], None)?;
        let mut accumulator = (bound.accumulator)();
        let coercion = bound.coercions.first().cloned().unwrap_or(Coercion::AsIs);
        for expr in exprs {
            let (value, from, _) = self.run(&expr, &mut ctx)?;
            let value = coerce(&value, &from, &Coercion::To(ty.clone()), &mut ctx)?;
            let value = coerce(&value, &ty, &coercion, &mut ctx)?;
            if !(value.is_null() && bound.skip_nulls) {
                accumulator.update(&mut ctx, &[value])?;
            }
        }
        let value = accumulator.result(&mut ctx)?;
        // A second call answers the same, and a reset group is empty.
        assert_eq!(value, accumulator.result(&mut ctx)?, "{line}");
        let answer = answer(&value, &bound.ty, &diagnostics);
        Ok(answer)
    }

    fn value(&self, text: &str, diagnostics: &mut Diagnostics) -> Result<(Value, DataType, bool)> {
        let mut parser = Parser::new(text);
        let expr = parser.expression().filter(|_| parser.at_end());
        let expr =
            expr.ok_or_else(|| Error::new(ErrorCode(1064), format!("cannot parse {text}")))?;
        let mut session = FakeSession::default();
        let zone = FixedOffset::utc();
        let mut ctx = context(&zone, diagnostics, &mut session);
        self.run(&expr, &mut ctx)
    }

    /// Value, type, and whether it is constant.
    fn run(&self, expr: &Expr, ctx: &mut FunctionContext<'_>) -> Result<(Value, DataType, bool)> {
        let (name, args) = match expr {
            Expr::Literal(value, ty) => return Ok((value.clone(), ty.clone(), true)),
            Expr::Column(value, ty) => return Ok((value.clone(), ty.clone(), false)),
            Expr::Call(name, args) => (name, args),
        };
        let function = self.registry.function(name).cloned();
        let function =
            function.ok_or_else(|| Error::new(ErrorCode(1305), format!("no function {name}")))?;
        if args.len() < function.arity.min || args.len() > function.arity.max {
            return Err(Error::with(
                ErrorCode::WRONG_PARAMCOUNT_TO_NATIVE_FCT,
                &[&name.to_lowercase()],
            ));
        }
        let parts: Vec<_> = args.iter().map(|arg| self.run(arg, ctx)).collect::<Result<_>>()?;
        let constant =
            parts.iter().all(|part| part.2) && function.traits.volatility == Volatility::Immutable;
        let infos: Vec<ArgInfo> = parts
            .iter()
            .map(|(value, ty, constant)| ArgInfo {
                ty: ty.clone(),
                constant: constant.then(|| value.clone()),
                fixed: *constant,
            })
            .collect();
        let bound = function.bind(&bind_context(), &infos)?;
        let mut values = Vec::with_capacity(parts.len());
        for (index, (value, ty, _)) in parts.iter().enumerate() {
            values.push(coerce(value, ty, bound.coercion(index), ctx)?);
        }
        if bound.nulls == NullRule::Propagate && values.iter().any(Value::is_null) {
            return Ok((Value::Null, bound.ty, constant));
        }
        let value = (bound.kernel)(ctx, &values)?;
        Ok((value, bound.ty, constant))
    }
}

fn context<'a>(
    zone: &'a FixedOffset,
    diagnostics: &'a mut Diagnostics,
    session: &'a mut dyn SessionServices,
) -> FunctionContext<'a> {
    FunctionContext {
        sql_mode: SqlMode::DEFAULT,
        time_zone: zone,
        now_micros: NOW_MICROS,
        now: types::DateTime::from_unix_micros(NOW_MICROS).unwrap_or_default(),
        div_precision_increment: 4,
        max_allowed_packet: 128 << 20,
        diagnostics,
        session,
    }
}

fn answer(value: &Value, ty: &DataType, diagnostics: &Diagnostics) -> Answer {
    let mut out = Vec::new();
    types::to_text(value, ty, &mut out);
    let conditions = diagnostics.conditions().iter();
    Answer {
        value: (!value.is_null()).then(|| printable(&out)),
        ty: type_text(ty),
        warnings: conditions.map(|c| format!("{} {}", c.code, c.message)).collect(),
    }
}

/// The type that a CAST to it has.
fn cast_type(text: &str) -> Option<DataType> {
    let (name, numbers) = text.split_once('(').unwrap_or((text, ""));
    let numbers: Vec<u32> =
        numbers.trim_end_matches(')').split(',').filter_map(|number| number.parse().ok()).collect();
    let first = numbers.first().copied().unwrap_or(0);
    let length = |base: u32| if first > 0 { base + 1 + first } else { base };
    Some(match name {
        "signed" => DataType::bigint(),
        "unsigned" => DataType::bigint_unsigned(),
        "decimal" => DataType::decimal(first, *numbers.get(1)? as u8),
        "double" => DataType::double(),
        "char" => DataType::varchar(first, CollationId::UTF8MB4_0900_AI_CI),
        "binary" => DataType::varbinary(first),
        "date" => DataType::new(TypeKind::Date, 10, 0),
        "time" => DataType::new(TypeKind::Time, length(10), first as u8),
        "datetime" => DataType::new(TypeKind::DateTime, length(19), first as u8),
        "json" => DataType::new(TypeKind::Json, u32::MAX, 0),
        _ => return None,
    })
}

fn coerce(
    value: &Value,
    ty: &DataType,
    coercion: &Coercion,
    ctx: &mut FunctionContext<'_>,
) -> Result<Value> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let today = ctx.now.date();
    let mut cast = CastContext::new(ctx.sql_mode, ctx.diagnostics);
    cast.today = today;
    Ok(match coercion {
        Coercion::AsIs => value.clone(),
        Coercion::Integer => match value {
            Value::Int(_) | Value::UInt(_) => value.clone(),
            value => Value::Int(types::to_i64(value, ty, &mut cast)),
        },
        Coercion::Double => Value::Double(types::to_f64(value, ty, &mut cast)),
        Coercion::Decimal => Value::Decimal(types::to_decimal(value, ty, &mut cast)),
        Coercion::Text => {
            let mut out = Vec::new();
            types::to_text(value, ty, &mut out);
            Value::Bytes(out.into())
        }
        Coercion::Bytes => types::cast(value, ty, &DataType::varbinary(u32::MAX), &mut cast)?,
        Coercion::Date => types::cast(value, ty, &DataType::new(TypeKind::Date, 10, 0), &mut cast)?,
        Coercion::DateTime => {
            types::cast(value, ty, &DataType::new(TypeKind::DateTime, 26, 6), &mut cast)?
        }
        Coercion::Time => types::cast(value, ty, &DataType::new(TypeKind::Time, 17, 6), &mut cast)?,
        Coercion::Json => {
            types::cast(value, ty, &DataType::new(TypeKind::Json, u32::MAX, 0), &mut cast)?
        }
        Coercion::To(target) => types::cast(value, ty, target, &mut cast)?,
    })
}

/// Bytes that are not text are shown in hexadecimal digits.
fn printable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(|c: char| c.is_control() && c != '\n') => {
            text.replace('\n', "\\n")
        }
        _ => bytes.iter().fold(String::from("0x"), |out, byte| format!("{out}{byte:02X}")),
    }
}

fn type_text(ty: &DataType) -> String {
    let names: HashMap<TypeKind, &str> = HashMap::from([
        (TypeKind::Null, "NULL"),
        (TypeKind::Int, "LONG"),
        (TypeKind::BigInt, "LONGLONG"),
        (TypeKind::Decimal, "NEWDECIMAL"),
        (TypeKind::Float, "FLOAT"),
        (TypeKind::Double, "DOUBLE"),
        (TypeKind::Year, "YEAR"),
        (TypeKind::Date, "DATE"),
        (TypeKind::Time, "TIME"),
        (TypeKind::DateTime, "DATETIME"),
        (TypeKind::VarChar, "VAR_STRING"),
        (TypeKind::VarBinary, "VAR_STRING"),
        (TypeKind::Char, "STRING"),
        (TypeKind::MediumText, "MEDIUM_BLOB"),
        (TypeKind::MediumBlob, "MEDIUM_BLOB"),
        (TypeKind::LongText, "LONG_BLOB"),
        (TypeKind::LongBlob, "LONG_BLOB"),
        (TypeKind::Json, "JSON"),
    ]);
    let name = names.get(&ty.kind).copied().unwrap_or("?");
    let (length, decimals) = match ty.kind {
        TypeKind::Json => {
            return format!("{name} {}", if ty.nullable { "" } else { "n" }).trim_end().to_owned();
        }
        TypeKind::Decimal => (ty.length + u32::from(ty.decimals > 0) + 1, ty.decimals),
        _ if ty.is_text() => (ty.length.saturating_mul(4), 31),
        _ if ty.is_string() => (ty.length, 31),
        _ => (ty.length, ty.decimals),
    };
    let unsigned = if ty.unsigned { "u" } else { "" };
    let not_null = if ty.nullable { "" } else { "n" };
    let binary = if ty.is_text() { "" } else { "b" };
    format!("{name}({length},{decimals}){unsigned}{not_null}{binary}")
}
