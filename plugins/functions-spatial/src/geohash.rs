//! Geohashes: five bits a character, longitude and latitude alternating, each bit halving the remaining range.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, any_nullable, scalar, text_type};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, ScalarFunction};
use types::geometry::{Position, Shape};
use types::{DataType, SqlBytes, TypeKind, Value};

use crate::argument::{coercion, known, placed, point_type, srid, value};
use crate::check::{is_latitude, is_longitude};

/// The characters, by their five bits.
const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
/// Longest geohash.
const LENGTH_MAX: i128 = 100;
/// Significant digits of a double.
const DIGITS_MAX: i32 = 15;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "ST_GEOHASH",
        Arity::between(2, 3),
        "ST_GEOHASH(longitude, latitude, max_length)\nST_GEOHASH(point, max_length): the geohash of a position.",
        bind_hash,
    ),
    scalar(
        "ST_LATFROMGEOHASH",
        Arity::exactly(1),
        "ST_LATFROMGEOHASH(geohash)\nThe latitude of a geohash.",
        |_, args| bind_degrees("ST_LATFROMGEOHASH", args, |at| at.y),
    ),
    scalar(
        "ST_LONGFROMGEOHASH",
        Arity::exactly(1),
        "ST_LONGFROMGEOHASH(geohash)\nThe longitude of a geohash.",
        |_, args| bind_degrees("ST_LONGFROMGEOHASH", args, |at| at.x),
    ),
    scalar(
        "ST_POINTFROMGEOHASH",
        Arity::exactly(2),
        "ST_POINTFROMGEOHASH(geohash, srid)\nThe point of a geohash.",
        bind_point,
    ),
];

fn incorrect_type(what: &str, name: &str) -> Error {
    Error::with(ErrorCode::INCORRECT_TYPE, &[&what, &name])
}

fn bind_hash(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let name = "st_geohash";
    let ty = text_type(LENGTH_MAX as u64, ctx.collation_connection);
    let ty = ty.with_nullable(any_nullable(args));
    if args.len() == 3 {
        let coercions = vec![Coercion::Double, Coercion::Double, Coercion::Integer];
        return Ok(BoundFunction::new(ty, coercions, move |_, args| {
            let at = Position { x: kit::double(&args[0]), y: kit::double(&args[1]) };
            hash_value(name, at, &args[2])
        }));
    }
    let first = &args[0].ty;
    if !first.is_binary() && !matches!(first.kind, TypeKind::Geometry | TypeKind::Null) {
        return Err(incorrect_type("point", name));
    }
    let coercions = vec![coercion(&args[0]), Coercion::Integer];
    Ok(BoundFunction::new(ty, coercions, move |ctx, args| {
        let (geometry, system) = placed(ctx, name, &args[0])?;
        let Shape::Point(at) = geometry.shape else { return Err(incorrect_type("point", name)) };
        if geometry.srid != 0 && !system.is_geographic() {
            return Err(Error::with(ErrorCode::ONLY_IMPLEMENTED_SRID_0_AND_4326, &[&name]));
        }
        hash_value(name, at, &args[1])
    }))
}

fn hash_value(name: &str, at: Position, length: &Value) -> Result<Value> {
    let out_of_range = |what: &str| Error::with(ErrorCode::DATA_OUT_OF_RANGE, &[&what, &name]);
    if !is_longitude(at.x) {
        return Err(out_of_range("longitude"));
    }
    if !is_latitude(at.y) {
        return Err(out_of_range("latitude"));
    }
    let length = kit::integer(length);
    if !(1..=LENGTH_MAX).contains(&length) {
        return Err(out_of_range("max geohash length"));
    }
    Ok(Value::Bytes(SqlBytes::from(hash(at, length as usize))))
}

fn bind_degrees(
    name: &'static str,
    args: &[ArgInfo],
    coordinate: fn(Position) -> f64,
) -> Result<BoundFunction> {
    check_text(name, args)?;
    let ty = DataType::double().with_nullable(any_nullable(args));
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |_, args| {
        Ok(Value::Double(coordinate(position(name, &args[0])?)))
    }))
}

fn bind_point(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let name = "st_pointfromgeohash";
    check_text(name, args)?;
    let coercions = vec![Coercion::Text, Coercion::Integer];
    let ty = point_type().with_nullable(any_nullable(args));
    Ok(BoundFunction::new(ty, coercions, move |ctx, args| {
        let srid = srid(name, &args[1])?;
        known(ctx, srid)?;
        Ok(value(srid, Shape::Point(position(name, &args[0])?)))
    }))
}

fn check_text(name: &str, args: &[ArgInfo]) -> Result<()> {
    let ty = &args[0].ty;
    match ty.is_string() || ty.kind == TypeKind::Null {
        true => Ok(()),
        false => Err(incorrect_type("geohash", name)),
    }
}

/// A range of degrees that is halved.
#[derive(Clone, Copy)]
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    const LONGITUDE: Range = Range { low: -180.0, high: 180.0 };
    const LATITUDE: Range = Range { low: -90.0, high: 90.0 };

    fn middle(self) -> f64 {
        (self.low + self.high) / 2.0
    }

    fn halve(&mut self, upper: bool) {
        let middle = self.middle();
        *(if upper { &mut self.low } else { &mut self.high }) = middle;
    }

    fn can_be_halved(self) -> bool {
        self.low < self.middle() && self.middle() < self.high
    }

    /// The number in it with the fewest decimals that its width allows.
    fn shortest(self) -> f64 {
        let middle = self.middle();
        let mut error = (self.high - self.low) / 2.0;
        let mut decimals = 0;
        while error > 0.0 && error <= 0.1 && decimals <= DIGITS_MAX {
            decimals += 1;
            error *= 10.0;
        }
        for decimals in decimals..=DIGITS_MAX {
            let scale = 10_f64.powi(decimals);
            let rounded = (middle * scale).round_ties_even() / scale;
            if (self.low..=self.high).contains(&rounded) {
                // No negative zero.
                return rounded + 0.0;
            }
        }
        middle
    }
}

/// The geohash of a position: `length` characters, or fewer when they reach the precision of a double.
fn hash(at: Position, length: usize) -> Vec<u8> {
    let (mut x, mut y) = (Range::LONGITUDE, Range::LATITUDE);
    let mut out = Vec::with_capacity(length);
    let mut is_longitude = true;
    while out.len() < length && (x.can_be_halved() || y.can_be_halved()) {
        let mut bits = 0;
        for _ in 0..5 {
            let (range, degrees) = if is_longitude { (&mut x, at.x) } else { (&mut y, at.y) };
            let upper = degrees >= range.middle();
            range.halve(upper);
            bits = bits << 1 | usize::from(upper);
            is_longitude = !is_longitude;
        }
        out.push(ALPHABET[bits]);
    }
    out
}

/// The position of a geohash.
///
/// # Errors
/// 1411.
fn position(name: &str, hash: &Value) -> Result<Position> {
    let text = kit::text(hash);
    let incorrect = || Error::with(ErrorCode::WRONG_VALUE_FOR_TYPE, &[&"geohash", &text, &name]);
    if text.is_empty() {
        return Err(incorrect());
    }
    let (mut x, mut y) = (Range::LONGITUDE, Range::LATITUDE);
    let mut is_longitude = true;
    for character in text.bytes() {
        let known = ALPHABET.iter().position(|known| *known == character.to_ascii_lowercase());
        let bits = known.ok_or_else(incorrect)?;
        for bit in (0..5).rev() {
            let range = if is_longitude { &mut x } else { &mut y };
            range.halve(bits >> bit & 1 == 1);
            is_longitude = !is_longitude;
        }
    }
    Ok(Position { x: x.shortest(), y: y.shortest() })
}
