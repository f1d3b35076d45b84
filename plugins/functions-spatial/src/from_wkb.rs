//! `ST_GeomFromWKB` and similar functions.

use errors::Result;
use plugin_api::kit::{self, scalar};
use plugin_api::{ArgInfo, Arity, BoundFunction, Coercion, FunctionContext, ScalarFunction};
use types::DataType;
use types::Value;
use types::geometry::{GeometryKind, KnownSystem, Shape, WkbRules};

use crate::argument::{invalid, known, srid, unexpected, value};
use crate::check::{self, Source};
use crate::options::AxisOrder;

/// A function for each name; each contains its own name for messages.
macro_rules! functions {
    ($($name:literal $lower:literal $kind:ident),* $(,)?) => {
        &[$(scalar(
            $name,
            Arity::between(1, 3),
            concat!($name, "(wkb[, srid[, options]])\nThe geometry of its well-known binary form."),
            |_, args| bind($lower, args, GeometryKind::$kind),
        )),*]
    };
}

pub(crate) const FUNCTIONS: &[ScalarFunction] = functions! {
    "ST_GEOMFROMWKB" "st_geomfromwkb" Geometry,
    "ST_GEOMETRYFROMWKB" "st_geometryfromwkb" Geometry,
    "ST_POINTFROMWKB" "st_pointfromwkb" Point,
    "ST_LINEFROMWKB" "st_linefromwkb" LineString,
    "ST_LINESTRINGFROMWKB" "st_linestringfromwkb" LineString,
    "ST_POLYFROMWKB" "st_polyfromwkb" Polygon,
    "ST_POLYGONFROMWKB" "st_polygonfromwkb" Polygon,
    "ST_MPOINTFROMWKB" "st_mpointfromwkb" MultiPoint,
    "ST_MULTIPOINTFROMWKB" "st_multipointfromwkb" MultiPoint,
    "ST_MLINEFROMWKB" "st_mlinefromwkb" MultiLineString,
    "ST_MULTILINESTRINGFROMWKB" "st_multilinestringfromwkb" MultiLineString,
    "ST_MPOLYFROMWKB" "st_mpolyfromwkb" MultiPolygon,
    "ST_MULTIPOLYGONFROMWKB" "st_multipolygonfromwkb" MultiPolygon,
    "ST_GEOMCOLLFROMWKB" "st_geomcollfromwkb" GeometryCollection,
    "ST_GEOMETRYCOLLECTIONFROMWKB" "st_geometrycollectionfromwkb" GeometryCollection,
};

fn bind(name: &'static str, args: &[ArgInfo], kind: GeometryKind) -> Result<BoundFunction> {
    let coercions = vec![crate::argument::coercion(&args[0]), Coercion::Integer, Coercion::Text];
    Ok(BoundFunction::new(DataType::geometry(), coercions, move |ctx, args| {
        let place = Place::read(ctx, name, &args[1..])?;
        let wkb = kit::bytes(&args[0]);
        let shape = Shape::read_wkb(wkb, WkbRules::Client).map_err(|_| invalid(name))?;
        place.finish(name, shape, kind, "WKB")
    }))
}

/// Reference system and axis order of a text or WKB, from the arguments after it.
pub(crate) struct Place {
    system: KnownSystem,
    order: AxisOrder,
}

impl Place {
    /// Reads the SRID and options that are present.
    ///
    /// # Errors
    /// 1690, 3548, those of the options.
    pub(crate) fn read(ctx: &FunctionContext<'_>, name: &str, args: &[Value]) -> Result<Place> {
        let system = known(ctx, args.first().map_or(Ok(0), |arg| srid(name, arg))?)?;
        let options = args.get(1).map(kit::text).unwrap_or_default();
        Ok(Place { system, order: AxisOrder::read(name, &options)? })
    }

    /// The value of the shape read from a `what`.
    ///
    /// # Errors
    /// 3516 for a shape other than a `kind`, 3616, 3617.
    pub(crate) fn finish(
        &self,
        name: &str,
        mut shape: Shape,
        kind: GeometryKind,
        what: &str,
    ) -> Result<Value> {
        if !kind.holds(shape.kind()) {
            return Err(unexpected(what, shape.kind(), name));
        }
        if self.order.swaps(&self.system) {
            shape.swap_axes();
        }
        check::shape(name, &shape, &self.system, Source::Given)?;
        Ok(value(self.system.srid, shape))
    }
}
