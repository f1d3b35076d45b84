//! `ST_AsText` and `ST_AsBinary`.

use errors::{ErrorCode, Result};
use plugin_api::kit::{self, scalar, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
};
use types::geometry::{Geometry, Position, Shape};
use types::text::write_f64;
use types::{DataType, SqlBytes, TypeKind, Value};

use crate::argument::{self, coercion};
use crate::check;
use crate::options::AxisOrder;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "ST_ASTEXT",
        Arity::between(1, 2),
        "ST_ASTEXT(geometry[, options])\nThe well-known text of a geometry.",
        bind_text,
    )
    .aliases(&["ST_ASWKT"]),
    scalar(
        "ST_ASBINARY",
        Arity::between(1, 2),
        "ST_ASBINARY(geometry[, options])\nThe well-known binary form of a geometry.",
        |_, args| bind_binary("st_asbinary", args),
    ),
    scalar(
        "ST_ASWKB",
        Arity::between(1, 2),
        "ST_ASWKB(geometry[, options])\nThe well-known binary form of a geometry.",
        |_, args| bind_binary("st_aswkb", args),
    ),
];

fn bind_text(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = text_type(kit::UNBOUNDED_CHARACTERS, ctx.collation_connection);
    let coercions = vec![coercion(&args[0]), Coercion::Text];
    Ok(BoundFunction::new(ty, coercions, |ctx, args| {
        let geometry = outward(ctx, "st_astext", args)?;
        if check::finite("st_astext", &geometry.shape).is_err() {
            return Ok(Value::Null);
        }
        let mut out = Vec::new();
        write(&geometry.shape, &mut out);
        Ok(Value::Bytes(SqlBytes::from(out)))
    }))
}

fn bind_binary(name: &'static str, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = DataType::new(TypeKind::LongBlob, u32::MAX, 0);
    let coercions = vec![coercion(&args[0]), Coercion::Text];
    Ok(BoundFunction::new(ty, coercions, move |ctx, args| {
        let geometry = outward(ctx, name, args)?;
        let mut out = Vec::new();
        geometry.shape.write_wkb(&mut out);
        Ok(Value::Bytes(SqlBytes::from(out)))
    }))
}

/// The geometry of a call with its axes in the order that clients see.
fn outward(ctx: &mut FunctionContext<'_>, name: &str, args: &[Value]) -> Result<Geometry> {
    let mut geometry = argument::geometry(name, &args[0])?;
    let options = args.get(1).map(kit::text).unwrap_or_default();
    let order = AxisOrder::read(name, &options)?;
    match ctx.session.reference_system(geometry.srid) {
        Some(system) if order.swaps(&system) => geometry.shape.swap_axes(),
        Some(_) => {}
        None => {
            let code = ErrorCode::WARN_SRS_NOT_FOUND_AXIS_ORDER;
            ctx.diagnostics.warn(code, &[&geometry.srid]);
        }
    }
    Ok(geometry)
}

/// Appends the well-known text.
pub(crate) fn write(shape: &Shape, out: &mut Vec<u8>) {
    let name = match shape {
        Shape::Collection(_) => "GEOMETRYCOLLECTION",
        other => other.kind().name(),
    };
    out.extend_from_slice(name.as_bytes());
    match shape {
        Shape::Point(position) => write_wrapped(*position, out),
        Shape::LineString(line) => write_line(line, out),
        Shape::Polygon(lines) | Shape::MultiLineString(lines) => write_lines(lines, out),
        Shape::MultiPoint(points) => {
            write_list(points, out, |point, out| write_wrapped(*point, out));
        }
        Shape::MultiPolygon(polygons) => {
            write_list(polygons, out, |rings, out| write_lines(rings, out));
        }
        Shape::Collection(shapes) => write_list(shapes, out, write),
    }
}

fn write_list<T>(items: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    if items.is_empty() {
        out.extend_from_slice(b" EMPTY");
        return;
    }
    for (index, item) in items.iter().enumerate() {
        out.push(if index == 0 { b'(' } else { b',' });
        write(item, out);
    }
    out.push(b')');
}

fn write_lines(lines: &[Vec<Position>], out: &mut Vec<u8>) {
    write_list(lines, out, |line, out| write_line(line, out));
}

fn write_line(line: &[Position], out: &mut Vec<u8>) {
    write_list(line, out, |position, out| write_position(*position, out));
}

fn write_wrapped(position: Position, out: &mut Vec<u8>) {
    out.push(b'(');
    write_position(position, out);
    out.push(b')');
}

fn write_position(position: Position, out: &mut Vec<u8>) {
    write_f64(position.x, out);
    out.push(b' ');
    write_f64(position.y, out);
}
