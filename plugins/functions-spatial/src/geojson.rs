//! `ST_AsGeoJSON` and `ST_GeomFromGeoJSON`. A position of GeoJSON has the longitude first, as a stored one has.

mod read;

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, json_type, scalar};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, ScalarFunction};
use types::geometry::{GeoJsonStyle, SystemName};
use types::{DataType, TypeKind, Value};

use crate::argument::{self, coercion};

/// The options of `ST_AsGeoJSON`: the bounding box, the reference system by its short name, or by its long one.
const WITH_BOUNDS: i128 = 1;
const WITH_SHORT_NAME: i128 = 2;
const WITH_LONG_NAME: i128 = 4;
const OPTIONS_MAX: i128 = 7;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "ST_ASGEOJSON",
        Arity::between(1, 3),
        "ST_ASGEOJSON(geometry[, max_dec_digits[, options]])\nA geometry as GeoJSON.",
        bind_write,
    ),
    scalar(
        "ST_GEOMFROMGEOJSON",
        Arity::between(1, 3),
        "ST_GEOMFROMGEOJSON(document[, options[, srid]])\nThe geometry of GeoJSON.",
        read::bind,
    ),
];

fn incorrect_type(argument: &str, name: &str) -> Error {
    Error::with(ErrorCode::INCORRECT_TYPE, &[&argument, &name])
}

fn is_whole(arg: &ArgInfo) -> bool {
    arg.ty.is_integer() || arg.ty.is_string() || arg.ty.kind == TypeKind::Null
}

fn bind_write(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let name = "st_asgeojson";
    let is_geometry =
        |ty: &DataType| ty.is_binary() || matches!(ty.kind, TypeKind::Geometry | TypeKind::Null);
    if !is_geometry(&args[0].ty) {
        return Err(incorrect_type("geometry", name));
    }
    for (arg, what) in args[1..].iter().zip(["max decimal digits", "options"]) {
        if !is_whole(arg) {
            return Err(incorrect_type(what, name));
        }
    }
    let coercions = vec![coercion(&args[0]), Coercion::Integer];
    Ok(BoundFunction::new(json_type(), coercions, move |_, args| {
        let geometry = argument::geometry(name, &args[0])?;
        let digits = option(name, "max decimal digits", args.get(1), 0, i32::MAX.into())?;
        let options = option(name, "options", args.get(2), 0, OPTIONS_MAX)?.unwrap_or(0);
        kit::json_document(&geometry.to_json(&GeoJsonStyle {
            digits: digits.and_then(|digits| digits.try_into().ok()),
            bounds: options & WITH_BOUNDS != 0,
            system: match (options & WITH_LONG_NAME, options & WITH_SHORT_NAME) {
                (0, 0) => None,
                (0, _) => Some(SystemName::Short),
                _ => Some(SystemName::Long),
            },
        }))
    }))
}

/// A number among the arguments.
///
/// # Errors
/// 1411 when it is not between `least` and `most`.
fn option(
    name: &str,
    what: &str,
    arg: Option<&Value>,
    least: i128,
    most: i128,
) -> Result<Option<i128>> {
    let Some(arg) = arg else { return Ok(None) };
    let number = kit::integer(arg);
    if number < least || number > most {
        return Err(Error::with(ErrorCode::WRONG_VALUE_FOR_TYPE, &[&what, &number, &name]));
    }
    Ok(Some(number))
}
