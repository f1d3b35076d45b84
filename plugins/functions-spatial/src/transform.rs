//! `ST_Transform`: a geometry in another reference system.
//!
//! The way leads from the plane to latitudes and longitudes of its datum, from them to those of the other datum through WGS 84 by the seven
//! parameters of either, and from there to the other plane.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, scalar};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, ScalarFunction};
use proj4rs::Proj;
use proj4rs::transform::transform;
use sys::sync::Mutex;
use types::geometry::wkt::Node;
use types::geometry::{KnownSystem, Position, ReferenceSystem, Shape, reference_systems};
use types::{DataType, Value};

use crate::argument::{coercion, known, value};
use crate::check;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[scalar(
    "ST_TRANSFORM",
    Arity::exactly(2),
    "ST_TRANSFORM(geometry, srid)\nA geometry in another reference system.",
    bind,
)];

/// The number of the datum that needs no way to itself.
const DATUM_WGS_84: u32 = 6326;

/// How coordinates of a reference system become those of another.
struct Route {
    /// The plane, without a datum; `None` for a geographic system.
    plane: Option<Proj>,
    /// Latitudes and longitudes on the ellipsoid, without a datum.
    ellipsoid: Proj,
    /// The same with the way to WGS 84; `None` where it is not known.
    datum: Option<Proj>,
}

impl Route {
    /// From the definition of a system; `None` for a projection that the library does not have.
    fn of(definition: &str) -> Option<Route> {
        let node = Node::read(definition)?;
        let is_plane = node.keyword == "PROJCS";
        let geographic = if is_plane { node.one("GEOGCS")? } else { &node };
        let datum = geographic.one("DATUM")?;
        let mut axes = datum.one("SPHEROID")?.numbers();
        let (semi_major, flattening) = (axes.next()?, axes.next()?);
        let figure = match flattening {
            0.0 => format!("+a={semi_major} +b={semi_major}"),
            flattening => format!("+a={semi_major} +rf={flattening}"),
        };
        let degrees = |rest: &str| {
            Proj::from_proj_string(&format!("+proj=longlat {figure}{rest} +no_defs")).ok()
        };
        let mut way: Vec<f64> =
            datum.one("TOWGS84").map(|way| way.numbers().collect()).unwrap_or_default();
        if way.is_empty() && datum.code() == Some(DATUM_WGS_84) {
            way = vec![0.0; 7];
        }
        let way = way.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        let datum = match &way[..] {
            "" => None,
            way => Some(degrees(&format!(" +towgs84={way}"))?),
        };
        if is_plane && !is_plain(geographic) {
            return None;
        }
        let plane = match is_plane {
            true => Some(Proj::from_proj_string(&projection(&node, &figure, semi_major)?).ok()?),
            false => None,
        };
        Some(Route { plane, ellipsoid: degrees("")?, datum })
    }
}

/// Whether angles are in degrees from Greenwich to the east and to the north, as the library wants the parameters of a projection.
fn is_plain(geographic: &Node<'_>) -> bool {
    const SLACK: f64 = 1e-12;
    let number = |keyword: &str| geographic.one(keyword).and_then(|part| part.numbers().next());
    let is_degree = |unit: f64| (unit - 1_f64.to_radians()).abs() <= SLACK;
    number("PRIMEM") == Some(0.0) && number("UNIT").is_some_and(is_degree)
}

/// The library's name of a projection and of its parameters.
fn projection(node: &Node<'_>, figure: &str, semi_major: f64) -> Option<String> {
    let sphere = format!("+a={semi_major} +b={semi_major}");
    // Parameters of polar projections have the pole of their parallel.
    let number = |code: u32| {
        let parameter = node.all("PARAMETER").find(|parameter| parameter.code() == Some(code));
        parameter.and_then(|parameter| parameter.numbers().next())
    };
    let pole = number(8832).unwrap_or(0.0).signum();
    let (name, figure) = match node.one("PROJECTION")?.code()? {
        1024 => ("merc", sphere.as_str()),
        9802 => ("lcc", figure),
        9804 => ("merc", figure),
        9807 => ("tmerc", figure),
        9809 => ("sterea", figure),
        // Straight along a parallel: the library's Swiss projection.
        9815 if number(8813) == Some(90.0) && number(8814) == Some(90.0) => ("somerc", figure),
        9820 => ("laea", figure),
        9822 => ("aea", figure),
        9829 => ("stere", figure),
        _ => return None,
    };
    // Lengths are in the unit of the system; the library takes those of parameters in metres.
    let metres = node.one("UNIT")?.numbers().next()?;
    let mut text = format!("+proj={name} {figure} +no_defs");
    if metres != 1.0 {
        let _ = write!(text, " +to_meter={metres}");
    }
    if name == "stere" {
        let _ = write!(text, " +lat_0={}", 90.0 * pole);
    }
    for parameter in node.all("PARAMETER") {
        let name = match parameter.code()? {
            8813 | 8814 => continue,
            8801 | 8811 | 8821 => "lat_0",
            8802 | 8812 | 8822 | 8833 => "lon_0",
            8805 | 8815 => "k_0",
            8806 | 8816 | 8826 => "x_0",
            8807 | 8817 | 8827 => "y_0",
            8823 => "lat_1",
            8824 => "lat_2",
            8832 => "lat_ts",
            _ => return None,
        };
        let value = parameter.numbers().next()?;
        let value = if matches!(name, "x_0" | "y_0") { value * metres } else { value };
        let _ = write!(text, " +{name}={value}");
    }
    Some(text)
}

/// The routes of all known systems but 0.
fn route(srid: u32) -> Option<&'static Route> {
    static ROUTES: LazyLock<HashMap<u32, Route>> = LazyLock::new(|| {
        let systems = reference_systems().iter();
        systems.filter_map(|system| Some((system.srid, Route::of(&system.definition)?))).collect()
    });
    ROUTES.get(&srid)
}

/// Routes of systems that users made which a function keeps at most.
const MADE_MAX: usize = 8;

/// The routes of systems that users made, as a function has met them: making one takes longer than to use it.
#[derive(Default)]
struct MadeRoutes(Mutex<Vec<(Arc<ReferenceSystem>, Arc<Route>)>>);

/// A route in use.
enum UsedRoute {
    BuiltIn(&'static Route),
    Made(Arc<Route>),
}

impl Deref for UsedRoute {
    type Target = Route;

    fn deref(&self) -> &Route {
        match self {
            UsedRoute::BuiltIn(route) => route,
            UsedRoute::Made(route) => route,
        }
    }
}

impl MadeRoutes {
    /// The route of a system; `None` for a projection that the library does not have.
    fn of(&self, system: &KnownSystem) -> Option<UsedRoute> {
        let system = match system {
            KnownSystem::BuiltIn(system) => return route(system.srid).map(UsedRoute::BuiltIn),
            KnownSystem::Made(system) => system,
        };
        let mut met = self.0.lock();
        if let Some((_, route)) = met.iter().find(|(known, _)| Arc::ptr_eq(known, system)) {
            return Some(UsedRoute::Made(route.clone()));
        }
        let route = Arc::new(Route::of(&system.definition)?);
        if met.len() == MADE_MAX {
            met.clear();
        }
        met.push((system.clone(), route.clone()));
        Some(UsedRoute::Made(route))
    }
}

fn bind(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let coercions = vec![coercion(&args[0]), Coercion::Integer];
    let routes = MadeRoutes::default();
    Ok(BoundFunction::new(DataType::geometry(), coercions, move |ctx, args| {
        let name = "st_transform";
        let (geometry, from) = check::argument(ctx, name, &args[0])?;
        // The reference takes the low half of a longer number.
        let to = kit::integer(&args[1]) as u32;
        if geometry.srid == to {
            return Ok(value(to, geometry.shape));
        }
        if geometry.srid == 0 {
            return Err(Error::with(ErrorCode::TRANSFORM_SOURCE_SRS_NOT_SUPPORTED, &[&0]));
        }
        let target = known(ctx, to)?;
        if to == 0 {
            return Err(Error::with(ErrorCode::TRANSFORM_TARGET_SRS_NOT_SUPPORTED, &[&0]));
        }
        let unbuilt = |srid: u32| Error::not_supported(format!("ST_TRANSFORM with SRID {srid}"));
        let from_route = routes.of(&from).ok_or_else(|| unbuilt(geometry.srid))?;
        let to_route = routes.of(&target).ok_or_else(|| unbuilt(to))?;
        let Some(from_datum) = &from_route.datum else {
            let code = ErrorCode::TRANSFORM_SOURCE_SRS_MISSING_TOWGS84;
            return Err(Error::with(code, &[&geometry.srid]));
        };
        let Some(to_datum) = &to_route.datum else {
            return Err(Error::with(ErrorCode::TRANSFORM_TARGET_SRS_MISSING_TOWGS84, &[&to]));
        };
        let mut all = true;
        let shape = mapped(&oriented(geometry.shape), &mut |at| {
            let moved = moved(at, &from_route, from_datum, &to_route, to_datum);
            all &= moved.is_some();
            moved.unwrap_or(at)
        });
        Ok(if all { value(to, shape) } else { Value::Null })
    }))
}

/// A position in the other system; `None` where that has none for it.
fn moved(
    at: Position,
    from: &Route,
    from_datum: &Proj,
    to: &Route,
    to_datum: &Proj,
) -> Option<Position> {
    let mut point = match &from.plane {
        None => (at.x.to_radians(), at.y.to_radians(), 0.0),
        Some(plane) => {
            let mut point = (at.x, at.y, 0.0);
            transform(plane, &from.ellipsoid, &mut point).ok()?;
            point
        }
    };
    transform(from_datum, to_datum, &mut point).ok()?;
    if let Some(plane) = &to.plane {
        // Heights end with the datum.
        point.2 = 0.0;
        transform(&to.ellipsoid, plane, &mut point).ok()?;
    } else {
        point = (point.0.to_degrees(), point.1.to_degrees(), 0.0);
    }
    (point.0.is_finite() && point.1.is_finite()).then_some(Position { x: point.0, y: point.1 })
}

/// The shape with its exterior rings counterclockwise and its holes clockwise, as the reference writes what it has read.
pub(crate) fn oriented(mut shape: Shape) -> Shape {
    orient(&mut shape);
    shape
}

fn orient(shape: &mut Shape) {
    match shape {
        Shape::Polygon(rings) => orient_rings(rings),
        Shape::MultiPolygon(polygons) => polygons.iter_mut().for_each(|rings| orient_rings(rings)),
        Shape::Collection(shapes) => shapes.iter_mut().for_each(orient),
        Shape::Point(_)
        | Shape::MultiPoint(_)
        | Shape::LineString(_)
        | Shape::MultiLineString(_) => {}
    }
}

fn orient_rings(rings: &mut [Vec<Position>]) {
    for (place, ring) in rings.iter_mut().enumerate() {
        // From the first position, so that large coordinates lose nothing.
        let from = ring[0];
        let twice: f64 = ring
            .windows(2)
            .map(|side| {
                (side[0].x - from.x) * (side[1].y - from.y)
                    - (side[1].x - from.x) * (side[0].y - from.y)
            })
            .sum();
        if (twice < 0.0) == (place == 0) && twice != 0.0 {
            ring.reverse();
        }
    }
}

/// The shape with each position mapped.
pub(crate) fn mapped(shape: &Shape, map: &mut dyn FnMut(Position) -> Position) -> Shape {
    let mut line = |line: &Vec<Position>| line.iter().map(|at| map(*at)).collect::<Vec<Position>>();
    match shape {
        Shape::Point(at) => Shape::Point(map(*at)),
        Shape::LineString(positions) => Shape::LineString(line(positions)),
        Shape::MultiPoint(positions) => Shape::MultiPoint(line(positions)),
        Shape::Polygon(rings) => Shape::Polygon(rings.iter().map(line).collect()),
        Shape::MultiLineString(lines) => Shape::MultiLineString(lines.iter().map(line).collect()),
        Shape::MultiPolygon(polygons) => Shape::MultiPolygon(
            polygons.iter().map(|rings| rings.iter().map(&mut line).collect()).collect(),
        ),
        Shape::Collection(shapes) => {
            Shape::Collection(shapes.iter().map(|shape| mapped(shape, map)).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_known_systems_have_a_route() {
        for system in types::geometry::reference_systems().iter().skip(1) {
            assert!(super::route(system.srid).is_some(), "{}", system.srid);
        }
    }
}
