//! Arguments and results of spatial functions.

use errors::{Error, ErrorCode, Result};
use plugin_api::{ArgInfo, Coercion, FunctionContext, kit};
use types::geometry::{
    Geometry, GeometryError, GeometryKind, KnownSystem, Position, ReferenceSystem, Shape,
};
use types::{DataType, SqlBytes, TypeKind, Value};

/// 3037.
#[cold]
pub(crate) fn invalid(name: &str) -> Error {
    Error::with(ErrorCode::GIS_INVALID_DATA, &[&name])
}

/// The coercion of a geometry argument: a value of any type is read as bytes.
pub(crate) fn coercion(arg: &ArgInfo) -> Coercion {
    match arg.ty.kind {
        TypeKind::Geometry => Coercion::AsIs,
        _ => Coercion::Text,
    }
}

/// The geometry in an argument.
///
/// # Errors
/// 3037 for bytes that are not a geometry, 3055 for a big-endian one.
pub(crate) fn geometry(name: &str, value: &Value) -> Result<Geometry> {
    Geometry::read(kit::bytes(value)).map_err(|error| match error {
        GeometryError::BigEndian => Error::with(ErrorCode::GIS_DATA_WRONG_ENDIANESS, &[]),
        GeometryError::Invalid => invalid(name),
    })
}

/// The geometry in an argument, and its reference system.
///
/// # Errors
/// Those of `geometry`, and 3548 for an unknown reference system.
pub(crate) fn placed(
    ctx: &FunctionContext<'_>,
    name: &str,
    value: &Value,
) -> Result<(Geometry, KnownSystem)> {
    let geometry = geometry(name, value)?;
    let system = known(ctx, geometry.srid)?;
    Ok((geometry, system))
}

/// The reference system of a number.
///
/// # Errors
/// 3548.
pub(crate) fn known(ctx: &FunctionContext<'_>, srid: u32) -> Result<KnownSystem> {
    ctx.session
        .reference_system(srid)
        .ok_or_else(|| Error::with(ErrorCode::SRS_NOT_FOUND, &[&srid]))
}

/// The SRID in an argument.
///
/// # Errors
/// 1690.
pub(crate) fn srid(name: &str, value: &Value) -> Result<u32> {
    u32::try_from(kit::integer(value))
        .map_err(|_| Error::with(ErrorCode::DATA_OUT_OF_RANGE, &[&"SRID", &name]))
}

/// The type of results that are always points.
pub(crate) fn point_type() -> DataType {
    let mut ty = DataType::geometry();
    ty.spatial.kind = GeometryKind::Point;
    ty
}

/// A geometry as a value.
pub(crate) fn value(srid: u32, shape: Shape) -> Value {
    Value::Bytes(SqlBytes::from(Geometry { srid, shape }.to_bytes()))
}

/// The point in an argument.
///
/// # Errors
/// 3516.
pub(crate) fn point(name: &str, shape: &Shape) -> Result<Position> {
    match shape {
        Shape::Point(position) => Ok(*position),
        other => Err(unexpected("POINT", other.kind(), name)),
    }
}

/// 3516.
#[cold]
pub(crate) fn unexpected(what: &str, kind: GeometryKind, name: &str) -> Error {
    Error::with(ErrorCode::UNEXPECTED_GEOMETRY_TYPE, &[&what, &kind.name(), &name])
}

/// Refuses geographic reference systems.
///
/// # Errors
/// 3618.
pub(crate) fn plane_only(name: &str, geometry: &Geometry, system: &ReferenceSystem) -> Result<()> {
    if !system.is_geographic() {
        return Ok(());
    }
    let kind = geometry.shape.kind().name();
    Err(Error::with(ErrorCode::NOT_IMPLEMENTED_FOR_GEOGRAPHIC_SRS, &[&name, &kind]))
}
