//! Coordinates within the range of their reference system.

use errors::{Error, ErrorCode, Result};
use plugin_api::FunctionContext;
use types::geometry::{Geometry, KnownSystem, ReferenceSystem, Shape};

use crate::argument::invalid;

/// Least longitude, which is outside of the range, and greatest.
const LONGITUDES: (f64, f64) = (-180.0, 180.0);
/// Least and greatest latitude.
const LATITUDES: (f64, f64) = (-90.0, 90.0);

/// Greatest coordinate used in computations: the fourth power of a difference fits a double.
pub(crate) const COMPUTABLE_MAX: f64 = 1e75;

/// The error to return for a coordinate out of range.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// A text or a number: 3616, 3617.
    Given,
    /// An argument that is a geometry: 3731, 3732.
    Parameter,
}

/// Whether a longitude is out of range. 180 degrees west is within, although messages say otherwise.
pub(crate) fn is_longitude(degrees: f64) -> bool {
    (LONGITUDES.0..=LONGITUDES.1).contains(&degrees)
}

/// Whether a latitude is out of range.
pub(crate) fn is_latitude(degrees: f64) -> bool {
    (LATITUDES.0..=LATITUDES.1).contains(&degrees)
}

/// Checks a longitude.
///
/// # Errors
/// 3616, 3731.
pub(crate) fn longitude(name: &str, degrees: f64, source: Source) -> Result<()> {
    if is_longitude(degrees) {
        return Ok(());
    }
    let [is, from, to] = [degrees, LONGITUDES.0, LONGITUDES.1].map(|n| format!("{n:.6}"));
    Err(match source {
        Source::Given => Error::with(ErrorCode::LONGITUDE_OUT_OF_RANGE, &[&is, &name, &from, &to]),
        Source::Parameter => {
            let code = ErrorCode::GEOMETRY_PARAM_LONGITUDE_OUT_OF_RANGE;
            Error::with(code, &[&name, &is, &from, &to])
        }
    })
}

/// Checks a latitude.
///
/// # Errors
/// 3617, 3732.
pub(crate) fn latitude(name: &str, degrees: f64, source: Source) -> Result<()> {
    if is_latitude(degrees) {
        return Ok(());
    }
    let [is, from, to] = [degrees, LATITUDES.0, LATITUDES.1].map(|n| format!("{n:.6}"));
    Err(match source {
        Source::Given => Error::with(ErrorCode::LATITUDE_OUT_OF_RANGE, &[&is, &name, &from, &to]),
        Source::Parameter => {
            let code = ErrorCode::GEOMETRY_PARAM_LATITUDE_OUT_OF_RANGE;
            Error::with(code, &[&name, &is, &from, &to])
        }
    })
}

/// Checks all coordinates of a shape.
///
/// # Errors
/// 3616, 3617, 3731, 3732.
pub(crate) fn shape(
    name: &str,
    shape: &Shape,
    system: &ReferenceSystem,
    source: Source,
) -> Result<()> {
    if !system.is_geographic() {
        return Ok(());
    }
    let mut checked = Ok(());
    shape.visit(&mut |position| {
        if checked.is_ok() {
            checked = longitude(name, position.x, source)
                .and_then(|()| latitude(name, position.y, source));
        }
    });
    checked
}

/// Refuses coordinates that are not finite numbers.
///
/// # Errors
/// 3037.
pub(crate) fn finite(name: &str, shape: &Shape) -> Result<()> {
    let mut finite = true;
    shape.visit(&mut |position| finite &= position.x.is_finite() && position.y.is_finite());
    if finite { Ok(()) } else { Err(invalid(name)) }
}

/// Refuses coordinates whose products, as used for areas and angles, overflow a double.
///
/// # Errors
/// 3037.
pub(crate) fn computable(name: &str, shape: &Shape) -> Result<()> {
    let within = |number: f64| number.abs() <= COMPUTABLE_MAX;
    let mut computable = true;
    shape.visit(&mut |position| computable &= within(position.x) && within(position.y));
    if computable { Ok(()) } else { Err(invalid(name)) }
}

/// The geometry in an argument for a computation.
///
/// # Errors
/// Those of `argument` and `computable`.
pub(crate) fn operand(
    ctx: &FunctionContext<'_>,
    name: &str,
    value: &types::Value,
) -> Result<(Geometry, KnownSystem)> {
    let (geometry, system) = argument(ctx, name, value)?;
    computable(name, &geometry.shape)?;
    Ok((geometry, system))
}

/// The geometry in an argument; its coordinates must be numbers in the range of its reference system.
///
/// # Errors
/// 3037, 3055, 3548, 3731, 3732.
pub(crate) fn argument(
    ctx: &FunctionContext<'_>,
    name: &str,
    value: &types::Value,
) -> Result<(Geometry, KnownSystem)> {
    let geometry = crate::argument::geometry(name, value)?;
    finite(name, &geometry.shape)?;
    let system = crate::argument::known(ctx, geometry.srid)?;
    shape(name, &geometry.shape, &system, Source::Parameter)?;
    Ok((geometry, system))
}
