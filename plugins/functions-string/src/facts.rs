//! Properties of an expression's character set, human-readable sizes and times, and LOAD_FILE.

use errors::Result;
use plugin_api::kit::{self, any_nullable, scalar, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionRole, OperatorCall,
    ScalarFunction,
};
use types::{CollationId, TypeKind, Value};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "COLLATION",
        Arity::exactly(1),
        "COLLATION(str)\nThe collation of a string expression.",
        |ctx, args| Ok(bind_name(ctx, charset::collation_or_binary(declared(&args[0])).name)),
    ).role(FunctionRole::Operator(OperatorCall::CollationName)),
    scalar(
        "CHARSET",
        Arity::exactly(1),
        "CHARSET(str)\nThe character set of a string expression.",
        |ctx, args| {
            Ok(bind_name(ctx, charset::collation_or_binary(declared(&args[0])).charset.name))
        },
    ).role(FunctionRole::Operator(OperatorCall::CharsetName)),
    scalar(
        "COERCIBILITY",
        Arity::exactly(1),
        "COERCIBILITY(str)\nHow readily the collation of a string expression gives way: 0 never, 6 always.",
        bind_coercibility,
    ).role(FunctionRole::Operator(OperatorCall::Coercibility)),
    scalar(
        "LOAD_FILE",
        Arity::exactly(1),
        "LOAD_FILE(file_name)\nThe contents of a file; NULL unless allowed.",
        bind_load_file,
    )
    .volatile()
    .not_in_definitions(),
    scalar(
        "FORMAT_BYTES",
        Arity::exactly(1),
        "FORMAT_BYTES(count)\nA number of bytes with a unit.",
        |ctx, args| Ok(bind_units(ctx, args, format_bytes)),
    ),
    scalar(
        "FORMAT_PICO_TIME",
        Arity::exactly(1),
        "FORMAT_PICO_TIME(time_val)\nA number of picoseconds with a unit.",
        |ctx, args| Ok(bind_units(ctx, args, format_pico_time)),
    ),
];

/// Longest name of a collation.
const NAME_LENGTH: u64 = 64;
/// The announced length of formatted sizes and times.
const UNITS_LENGTH: u64 = 11;

fn declared(arg: &ArgInfo) -> CollationId {
    let named = arg.ty.is_text() || matches!(arg.ty.kind, TypeKind::Enum | TypeKind::Set);
    if named { arg.ty.collation } else { CollationId::BINARY }
}

fn bind_name(ctx: &BindContext, name: &'static str) -> BoundFunction {
    let ty = text_type(NAME_LENGTH, ctx.collation_connection);
    BoundFunction::new(ty, vec![Coercion::AsIs], move |_, _| Ok(Value::text(name))).with_nulls()
}

fn bind_coercibility(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let arg = &args[0];
    let level = match arg.ty.kind {
        TypeKind::Null => 6,
        _ if arg.ty.is_numeric() || arg.ty.is_temporal() => 5,
        _ if arg.constant.is_some() => 4,
        _ => 2,
    };
    let ty = kit::integer_type(10, false);
    Ok(BoundFunction::new(ty, vec![Coercion::AsIs], move |_, _| Ok(Value::Int(level))).with_nulls())
}

/// Files of the server are not readable through SQL.
fn bind_load_file(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::binary_type(1 << 24);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |ctx, args| {
        let Value::Bytes(name) = &args[0] else { return Ok(Value::Null) };
        let name = String::from_utf8_lossy(name.as_slice());
        let contents = ctx.session.load_file(&name, ctx.max_allowed_packet);
        Ok(contents.map_or(Value::Null, |bytes| Value::Bytes(bytes.into())))
    }))
}

fn bind_units(ctx: &BindContext, args: &[ArgInfo], format: fn(f64) -> String) -> BoundFunction {
    let nullable = any_nullable(args) || !args.is_empty();
    let ty = text_type(UNITS_LENGTH, ctx.collation_connection).with_nullable(nullable);
    BoundFunction::new(ty, vec![Coercion::Double], move |_, args| {
        Ok(Value::from(format(kit::double(&args[0])).as_str()))
    })
}

/// Two decimals and a unit; numbers of five digits or more in scientific notation.
fn scaled(number: f64, divisor: f64, unit: &str) -> String {
    let scaled = number / divisor;
    if scaled.abs() >= 100_000.0 {
        let exponent = scaled.abs().log10().floor() as i32;
        return format!("{:.2}e+{exponent:02} {unit}", scaled / 10f64.powi(exponent));
    }
    format!("{scaled:.2} {unit}")
}

fn format_bytes(count: f64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count.abs() < 1024.0 {
        return format!("{:>4} bytes", count.trunc());
    }
    let power =
        (1..UNITS.len()).take_while(|power| count.abs() >= 1024f64.powi(*power as i32 + 1)).count();
    scaled(count, 1024f64.powi(power as i32 + 1), UNITS[power])
}

fn format_pico_time(time: f64) -> String {
    const UNITS: [(f64, &str); 7] = [
        (86_400e12, "d"),
        (3_600e12, "h"),
        (60e12, "min"),
        (1e12, "s"),
        (1e9, "ms"),
        (1e6, "us"),
        (1e3, "ns"),
    ];
    match UNITS.iter().find(|(size, _)| time.abs() >= *size) {
        Some((size, unit)) => scaled(time, *size, unit),
        None => format!("{:>3} ps", time.trunc()),
    }
}
