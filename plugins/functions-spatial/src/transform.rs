//! `ST_Transform`: a geometry in another reference system.
//!
//! The way leads from the plane to latitudes and longitudes of its datum, from them to those of the other datum through WGS 84 by the seven
//! parameters of either, and from there to the other plane.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, OnceLock};

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, scalar};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, ScalarFunction};
use proj4rs::Proj;
use proj4rs::transform::transform;
use sys::sync::Mutex;
use types::geometry::wkt::{Item, Node};
use types::geometry::{
    KnownSystem, Position, ReferenceSystem, Shape, reference_system, reference_system_numbers,
};
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
    /// Radians from Greenwich to the meridian from which longitudes count.
    meridian: f64,
    directions: Directions,
}

/// How coordinates on the plane are those of the library, which count to the east and to the north.
#[derive(Clone, Copy)]
struct Directions {
    /// -1 where the one that goes east or west counts to the west.
    east: f64,
    /// -1 where the other counts to the south.
    north: f64,
    /// Whether the other comes first.
    is_north_first: bool,
}

impl Directions {
    const PLAIN: Directions = Directions { east: 1.0, north: 1.0, is_north_first: false };

    /// The library's coordinates.
    fn read(self, at: Position) -> (f64, f64) {
        let (east, north) = if self.is_north_first { (at.y, at.x) } else { (at.x, at.y) };
        (east * self.east, north * self.north)
    }

    /// The system's coordinates.
    fn write(self, east: f64, north: f64) -> (f64, f64) {
        let (east, north) = (east * self.east, north * self.north);
        if self.is_north_first { (north, east) } else { (east, north) }
    }
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
        let number = |keyword: &str| geographic.one(keyword)?.numbers().next();
        let (meridian, radians) = (number("PRIMEM")?, number("UNIT")?);
        let to_west_or_south = |axis: &Node<'_>| {
            let direction = |word: &str| matches!(axis.items.last(), Some(Item::Word(own)) if own.eq_ignore_ascii_case(word));
            direction("WEST") || direction("SOUTH")
        };
        if geographic.all("AXIS").any(to_west_or_south) {
            return None;
        }
        let (plane, directions) = match is_plane {
            true => {
                let projection = Projection::of(&node, radians, semi_major, flattening)?;
                (Some(Proj::from_proj_string(&projection.text).ok()?), projection.directions)
            }
            false => (None, Directions::PLAIN),
        };
        Some(Route {
            plane,
            ellipsoid: degrees("")?,
            datum,
            meridian: meridian * radians,
            directions,
        })
    }
}

/// A projection as the library takes it.
struct Projection {
    /// Its name and parameters.
    text: String,
    directions: Directions,
}

impl Projection {
    /// From the definition of a system whose angles have this many radians; `None` for a projection that the library does not have.
    fn of(node: &Node<'_>, radians: f64, semi_major: f64, flattening: f64) -> Option<Projection> {
        let number = |code: u32| {
            let parameter = node.all("PARAMETER").find(|parameter| parameter.code() == Some(code));
            parameter.and_then(|parameter| parameter.numbers().next())
        };
        let method = node.one("PROJECTION")?.code()?;
        let is_sphere = matches!(method, 1024 | 1027 | 1029 | 9834) || flattening == 0.0;
        // One family gives the ellipsoid another size.
        let semi_major = semi_major * number(1038).unwrap_or(1.0);
        let figure = match is_sphere {
            true => format!("+a={semi_major} +b={semi_major}"),
            false => format!("+a={semi_major} +rf={flattening}"),
        };
        // A line along a parallel is the library's Swiss projection.
        let is_swiss = number(8813) == Some(90.0) && number(8814) == Some(90.0);
        let name = match method {
            1024 | 9804 | 9805 => "merc",
            1027 | 9820 => "laea",
            1028 | 1029 => "eqc",
            1051 | 9801 | 9802 | 9826 => "lcc",
            1078 => "eqearth",
            9806 => "cass",
            9807 | 9808 => "tmerc",
            9809 => "sterea",
            9810 | 9829 => "stere",
            9812 => "omerc",
            9815 if is_swiss => "somerc",
            9815 => "omerc",
            9818 => "poly",
            // The library has two of its parameters built in.
            1041 | 9819 if is_czech(number(1036)? * radians, number(8818)? * radians) => "krovak",
            9822 => "aea",
            9834 | 9835 => "cea",
            _ => return None,
        };
        let directions = match method {
            9808 => Directions { east: -1.0, north: -1.0, ..Directions::PLAIN },
            9819 => Directions { east: -1.0, north: -1.0, is_north_first: true },
            9826 => Directions { east: -1.0, ..Directions::PLAIN },
            _ => Directions::PLAIN,
        };
        // Lengths are in the unit of the system; the library takes those of parameters in metres.
        let metres = node.one("UNIT")?.numbers().next()?;
        let mut text = format!("+proj={name} {figure} +no_defs");
        if metres != 1.0 {
            let _ = write!(text, " +to_meter={metres}");
        }
        match method {
            // Parameters of polar projections have the pole of their parallel.
            9829 => {
                let _ = write!(text, " +lat_0={}", 90.0 * number(8832)?.signum());
            }
            9801 | 9826 => {
                let _ = write!(text, " +lat_1={}", (number(8801)? * radians).to_degrees());
            }
            9812 => text.push_str(" +no_uoff"),
            _ => {}
        }
        for parameter in node.all("PARAMETER") {
            let code = parameter.code()?;
            let is_oblique = name == "omerc";
            let name = match code {
                1036 | 1038 | 8818 => continue,
                8813 | 8814 if name == "somerc" => continue,
                8801 | 8811 | 8821 => "lat_0",
                8812 if is_oblique => "lonc",
                8802 | 8812 | 8822 | 8833 => "lon_0",
                8805 | 8815 | 8819 => "k_0",
                8806 | 8816 | 8826 => "x_0",
                8807 | 8817 | 8827 => "y_0",
                8813 => "alpha",
                8814 => "gamma",
                8823 if matches!(method, 1028 | 1029 | 9805 | 9834 | 9835) => "lat_ts",
                8823 => "lat_1",
                8824 => "lat_2",
                8832 => "lat_ts",
                _ => return None,
            };
            let value = parameter.numbers().next()?;
            let value = match name {
                "x_0" => value * metres * directions.east,
                "y_0" => value * metres * directions.north,
                "k_0" => value,
                _ => (value * radians).to_degrees(),
            };
            let _ = write!(text, " +{name}={value}");
        }
        Some(Projection { text, directions })
    }
}

/// Whether the axis of the cone and the parallel of Krovak's projection are those of Czechoslovakia, in radians.
fn is_czech(co_latitude: f64, parallel: f64) -> bool {
    const SLACK: f64 = 1e-9;
    let is = |angle: f64, degrees: f64| (angle - degrees.to_radians()).abs() < SLACK;
    is(co_latitude, 30.2881397527778) && is(parallel, 78.5)
}

/// The route of a built-in system but 0, made when it is first asked for.
fn route(srid: u32) -> Option<&'static Route> {
    static ROUTES: LazyLock<HashMap<u32, OnceLock<Option<Box<Route>>>>> =
        LazyLock::new(|| reference_system_numbers().map(|srid| (srid, OnceLock::new())).collect());
    let made = || reference_system(srid).and_then(|system| Route::of(&system.definition));
    ROUTES.get(&srid)?.get_or_init(|| made().map(Box::new)).as_deref()
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
            let (east, north) = from.directions.read(at);
            let mut point = (east, north, 0.0);
            transform(plane, &from.ellipsoid, &mut point).ok()?;
            point
        }
    };
    point.0 += from.meridian;
    transform(from_datum, to_datum, &mut point).ok()?;
    point.0 -= to.meridian;
    if let Some(plane) = &to.plane {
        // Heights end with the datum.
        point.2 = 0.0;
        transform(&to.ellipsoid, plane, &mut point).ok()?;
        let (x, y) = to.directions.write(point.0, point.1);
        point = (x, y, 0.0);
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
    /// Systems whose projections the library does not have.
    const WITHOUT: &[u32] = &[
        2963, 2985, 2986, 3139, 3295, 3993, 5017, 5224, 5225, 5515, 5516, 6244, 6245, 6246, 6247,
        6248, 6249, 6250, 6251, 6252, 6253, 6254, 6255, 6256, 6257, 6258, 6259, 6260, 6261, 6262,
        6263, 6264, 6265, 6266, 6267, 6268, 6269, 6270, 6271, 6272, 6273, 6274, 6275, 7082, 8441,
        22300, 22700, 27200, 29701, 31300, 32600, 32700,
    ];

    #[test]
    fn known_systems_have_a_route() {
        let without = |srid: &u32| super::route(*srid).is_none();
        let missing: Vec<u32> =
            types::geometry::reference_system_numbers().filter(without).collect();
        assert_eq!(missing, WITHOUT);
    }
}
