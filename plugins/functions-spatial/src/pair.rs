//! Functions of two geometries in one reference system.

use errors::{Error, ErrorCode, Result};
use plugin_api::{ArgInfo, BoundFunction, Coercion, FunctionContext};
use types::geometry::{KnownSystem, Shape};
use types::{DataType, Value};

use crate::argument;
use crate::argument::coercion;
use crate::check::{self, Source};
use crate::flat::Flat;
use crate::geodesic::Ellipsoid;

/// Two geometries in one reference system.
pub(crate) struct Pair {
    pub(crate) name: &'static str,
    pub(crate) first: Shape,
    pub(crate) second: Shape,
    pub(crate) system: KnownSystem,
}

impl Pair {
    /// The first two arguments.
    ///
    /// # Errors
    /// 3033, 3037, 3055, 3548, 3731, 3732.
    pub(crate) fn read(
        ctx: &FunctionContext<'_>,
        name: &'static str,
        args: &[Value],
    ) -> Result<Pair> {
        let first = argument::geometry(name, &args[0])?;
        let second = argument::geometry(name, &args[1])?;
        check::finite(name, &first.shape)?;
        check::finite(name, &second.shape)?;
        if first.srid != second.srid {
            let code = ErrorCode::GIS_DIFFERENT_SRIDS;
            return Err(Error::with(code, &[&name, &first.srid, &second.srid]));
        }
        let system = argument::known(ctx, first.srid)?;
        check::shape(name, &first.shape, &system, Source::Parameter)?;
        check::shape(name, &second.shape, &system, Source::Parameter)?;
        check::computable(name, &first.shape)?;
        check::computable(name, &second.shape)?;
        Ok(Pair { name, first: first.shape, second: second.shape, system })
    }

    /// An error that names both kinds.
    pub(crate) fn not_for(&self, code: ErrorCode) -> Error {
        let kinds = format!("{}, {}", self.first.kind().name(), self.second.kind().name());
        Error::with(code, &[&self.name, &kinds])
    }

    /// Both on one plane.
    ///
    /// # Errors
    /// 3618 for what spans nearly half of the Earth.
    pub(crate) fn flat(&self, ellipsoid: Ellipsoid) -> Result<(Flat, Shape, Shape)> {
        let flat = Flat::pair(ellipsoid, &self.first, &self.second);
        flat.ok_or_else(|| self.not_for(ErrorCode::NOT_IMPLEMENTED_FOR_GEOGRAPHIC_SRS))
    }

    /// Refuses geographic reference systems.
    ///
    /// # Errors
    /// 3618.
    pub(crate) fn plane_only(&self) -> Result<()> {
        match self.system.is_geographic() {
            true => Err(self.not_for(ErrorCode::NOT_IMPLEMENTED_FOR_GEOGRAPHIC_SRS)),
            false => Ok(()),
        }
    }
}

/// A function of two geometries and perhaps more.
pub(crate) fn of_pair(
    name: &'static str,
    args: &[ArgInfo],
    ty: DataType,
    rest: &[Coercion],
    answer: fn(Pair, &[Value]) -> Result<Value>,
) -> Result<BoundFunction> {
    let mut coercions = vec![coercion(&args[0]), coercion(&args[1])];
    coercions.extend_from_slice(rest);
    Ok(BoundFunction::new(ty, coercions, move |ctx, args| {
        answer(Pair::read(ctx, name, args)?, &args[2..])
    }))
}

/// The points of a shape that consists only of points.
pub(crate) fn points(shape: &Shape) -> Option<&[types::geometry::Position]> {
    match shape {
        Shape::Point(at) => Some(std::slice::from_ref(at)),
        Shape::MultiPoint(points) => Some(points),
        _ => None,
    }
}
