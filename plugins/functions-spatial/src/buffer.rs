//! `ST_Buffer` and `ST_Buffer_Strategy`: what is within a distance of a geometry.
//!
//! A buffer is the union of pieces: a rectangle along each side of a line or a ring, a wedge at each corner, a cap at each end, a circle
//! around each point. A negative distance takes the pieces of the rings away from the areas.

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use errors::{Error, ErrorCode, Result};
use geo::{Coord, LineString, MultiPolygon, Polygon, Validation};
use geographiclib_rs::DirectGeodesic;
use plugin_api::kit::{self, scalar};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, ScalarFunction};
use types::geometry::{Geometry, Position, ReferenceSystem, Shape};
use types::{DataType, SqlBytes, Value};

use crate::argument::{coercion, value};
use crate::check::{self, COMPUTABLE_MAX};
use crate::derived::POINTS_MAX;
use crate::geodesic::Ellipsoid;
use crate::grid::merged;
use crate::overlay::{Operation, areas};
use crate::planar::{Planar, layers, shape};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "ST_BUFFER",
        Arity::between(2, 5),
        "ST_BUFFER(geometry, distance[, strategy, strategy, strategy])\nWhat is within a distance of a geometry.",
        bind_buffer,
    ),
    scalar(
        "ST_BUFFER_STRATEGY",
        Arity::between(1, 2),
        "ST_BUFFER_STRATEGY(strategy[, points_per_circle or miter_limit])\nHow ST_BUFFER shapes points, corners or ends.",
        bind_strategy,
    ),
];

/// Points of a circle without a strategy.
const CIRCLE_POINTS: f64 = 32.0;
/// Least points of a circle around a point.
const POINT_LEAST: f64 = 3.0;
/// Least points of the circle that a corner or an end is part of.
const PART_LEAST: f64 = 4.0;
/// Positions of all pieces of a buffer: more are refused, as they are made and united without a look at KILL.
const POSITIONS_MAX: usize = 1 << 20;
/// Bytes of a strategy: its number, and a double.
const STRATEGY_BYTES: usize = 12;
/// Length of the column that holds one.
const STRATEGY_LENGTH: u32 = 16;

/// Names of strategies, and whether they have a number; a strategy's own number is its place, from 1.
const STRATEGIES: [(&str, Option<Number>); 6] = [
    ("end_round", Some(Number::Points)),
    ("end_flat", None),
    ("join_round", Some(Number::Points)),
    ("join_miter", Some(Number::Limit)),
    ("point_circle", Some(Number::Points)),
    ("point_square", None),
];

/// The meaning of a strategy's number.
#[derive(Clone, Copy, PartialEq)]
enum Number {
    Points,
    Limit,
}

#[derive(Clone, Copy)]
enum End {
    Round(f64),
    Flat,
}

#[derive(Clone, Copy)]
enum Join {
    Round(f64),
    Miter(f64),
}

#[derive(Clone, Copy)]
enum Around {
    Circle(f64),
    Square,
}

/// The strategies of a call, where it has them.
#[derive(Clone, Copy, Default)]
struct Strategies {
    end: Option<End>,
    join: Option<Join>,
    point: Option<Around>,
}

fn wrong(name: &str) -> Error {
    Error::with(ErrorCode::WRONG_ARGUMENTS, &[&name])
}

fn bind_strategy(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = DataType::varbinary(STRATEGY_LENGTH).with_nullable(true);
    let coercions = vec![Coercion::Text, Coercion::Double];
    Ok(BoundFunction::new(ty, coercions, |_, args| {
        let name = "st_buffer_strategy";
        let given = kit::text(&args[0]);
        let known = STRATEGIES.iter().position(|(known, _)| known.eq_ignore_ascii_case(&given));
        let place = known.ok_or_else(|| wrong(name))?;
        let number = match (STRATEGIES[place].1, args.get(1).map(kit::double)) {
            (None, None) => 0.0,
            (Some(of), Some(number)) if number > 0.0 => {
                if of == Number::Points && number > POINTS_MAX as f64 {
                    let code = ErrorCode::GIS_MAX_POINTS_IN_GEOMETRY_OVERFLOWED;
                    return Err(Error::with(code, &[&"points_per_circle", &POINTS_MAX, &name]));
                }
                number
            }
            (None | Some(_), _) => return Err(wrong(name)),
        };
        let mut bytes = (place as u32 + 1).to_le_bytes().to_vec();
        bytes.extend_from_slice(&number.to_le_bytes());
        Ok(Value::Bytes(SqlBytes::from(bytes)))
    }))
}

impl Strategies {
    /// # Errors
    /// 1210 for what `ST_Buffer_Strategy` does not make, and two of a kind.
    fn read(name: &str, args: &[Value]) -> Result<Strategies> {
        let mut read = Strategies::default();
        for arg in args {
            let bytes = kit::bytes(arg);
            let (Some(number), Some(value)) =
                (bytes.first_chunk(), bytes.get(4..STRATEGY_BYTES).and_then(<[u8]>::first_chunk))
            else {
                return Err(wrong(name));
            };
            let number = u32::from_le_bytes(*number);
            let value = f64::from_le_bytes(*value);
            let points = |least: f64| value.trunc().clamp(least, POINTS_MAX as f64);
            let again = match number {
                1 => read.end.replace(End::Round(points(PART_LEAST))).is_some(),
                2 => read.end.replace(End::Flat).is_some(),
                3 => read.join.replace(Join::Round(points(PART_LEAST))).is_some(),
                4 => read.join.replace(Join::Miter(value.max(1.0))).is_some(),
                5 => read.point.replace(Around::Circle(points(POINT_LEAST))).is_some(),
                6 => read.point.replace(Around::Square).is_some(),
                _ => true,
            };
            if again || value.is_nan() {
                return Err(wrong(name));
            }
        }
        Ok(read)
    }

    /// Whether each has an effect on geometries of this kind.
    fn are_for(&self, shape: &Shape) -> bool {
        let (end, join, point) = (self.end.is_some(), self.join.is_some(), self.point.is_some());
        match shape {
            Shape::Point(_) | Shape::MultiPoint(_) => !end && !join,
            Shape::LineString(_) | Shape::MultiLineString(_) => !point,
            Shape::Polygon(_) | Shape::MultiPolygon(_) => !end && !point,
            Shape::Collection(_) => true,
        }
    }
}

fn bind_buffer(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let coercions = vec![coercion(&args[0]), Coercion::Double, Coercion::Text];
    Ok(BoundFunction::new(DataType::geometry(), coercions, |ctx, args| {
        let name = "st_buffer";
        let (geometry, system) = check::operand(ctx, name, &args[0])?;
        let distance = kit::double(&args[1]);
        if distance.abs() > COMPUTABLE_MAX {
            return Err(Error::with(ErrorCode::GIS_UNKNOWN_ERROR, &[&name]));
        }
        let strategies = Strategies::read(name, &args[2..])?;
        if distance == 0.0 {
            return Ok(value(geometry.srid, geometry.shape));
        }
        if let Some(ellipsoid) = Ellipsoid::of(&system) {
            return on_ellipsoid(name, &geometry, &system, ellipsoid, distance, args.len() > 2);
        }
        if !strategies.are_for(&geometry.shape) {
            return Err(wrong(name));
        }
        Ok(value(geometry.srid, on_plane(name, &geometry.shape, distance, strategies)?))
    }))
}

/// The circle around a point.
///
/// # Errors
/// 3618 for other geometries, 1210 for strategies and negative distances.
fn on_ellipsoid(
    name: &str,
    geometry: &Geometry,
    system: &ReferenceSystem,
    ellipsoid: Ellipsoid,
    distance: f64,
    has_strategies: bool,
) -> Result<Value> {
    let Shape::Point(middle) = geometry.shape else {
        return Err(crate::argument::plane_only(name, geometry, system)
            .err()
            .unwrap_or(wrong(name)));
    };
    if has_strategies || distance < 0.0 {
        return Err(wrong(name));
    }
    let geodesic = ellipsoid.geodesic();
    let count = CIRCLE_POINTS as usize;
    let at = |step: usize| {
        let azimuth = 180.0 - step as f64 * 360.0 / CIRCLE_POINTS;
        let (y, x): (f64, f64) = geodesic.direct(middle.y, middle.x, azimuth, distance);
        Position { x, y }
    };
    let mut ring: Vec<_> = (0..count).map(at).collect();
    ring.push(ring[0]);
    Ok(value(geometry.srid, Shape::Polygon(vec![ring])))
}

fn on_plane(name: &str, of: &Shape, distance: f64, strategies: Strategies) -> Result<Shape> {
    let layers = layers(of);
    let has_areas = |layer: &Planar| matches!(layer, Planar::Polygon(_) | Planar::MultiPolygon(_));
    if distance < 0.0 && !layers.iter().all(has_areas) {
        return Err(wrong(name));
    }
    let (size, made) = (distance.abs(), Vec::new());
    let mut pieces = Pieces { distance: size, strategies, made, positions: 0 };
    let mut own = MultiPolygon(Vec::new());
    for layer in layers {
        match layer {
            Planar::Point(point) => pieces.around(point.0),
            Planar::MultiPoint(points) => points.iter().for_each(|point| pieces.around(point.0)),
            Planar::LineString(line) => pieces.along(&line),
            Planar::MultiLineString(lines) => lines.iter().for_each(|line| pieces.along(line)),
            Planar::Polygon(polygon) => own = MultiPolygon(vec![polygon]),
            Planar::MultiPolygon(polygons) => own = polygons,
            Planar::Line(_)
            | Planar::Rect(_)
            | Planar::Triangle(_)
            | Planar::GeometryCollection(_) => {}
        }
    }
    if !own.iter().all(Validation::is_valid) {
        return Err(Error::with(ErrorCode::GIS_UNKNOWN_ERROR, &[&name]));
    }
    // Several may overlap.
    let own = merged(own.0);
    for polygon in &own {
        pieces.ring(polygon.exterior());
        polygon.interiors().iter().for_each(|ring| pieces.ring(ring));
    }
    if pieces.is_full() {
        let code = ErrorCode::GIS_MAX_POINTS_IN_GEOMETRY_OVERFLOWED;
        return Err(Error::with(code, &[&"distance", &POSITIONS_MAX, &name]));
    }
    let made = if distance < 0.0 {
        areas(name, &own, &merged(pieces.made), Operation::Difference)?
    } else {
        pieces.made.extend(own);
        merged(pieces.made)
    };
    Ok(shape(Planar::MultiPolygon(made)))
}

/// A length in two directions.
type Vector = Coord<f64>;

/// A vector turned right by a right angle.
fn right(of: Vector) -> Vector {
    Coord { x: of.y, y: -of.x }
}

/// The vector of length 1 from one position to another.
fn direction(from: Coord<f64>, to: Coord<f64>) -> Vector {
    let step = to - from;
    step / step.x.hypot(step.y)
}

/// The areas that make a buffer.
struct Pieces {
    distance: f64,
    strategies: Strategies,
    made: Vec<Polygon<f64>>,
    /// Positions of the pieces, with those of the first that was one too many.
    positions: usize,
}

impl Pieces {
    fn is_full(&self) -> bool {
        self.positions > POSITIONS_MAX
    }

    fn add(&mut self, mut ring: Vec<Coord<f64>>) {
        self.positions += ring.len();
        if self.is_full() {
            return;
        }
        ring.push(ring[0]);
        self.made.push(Polygon::new(LineString::new(ring), Vec::new()));
    }

    fn around(&mut self, middle: Coord<f64>) {
        if self.is_full() {
            return;
        }
        let distance = self.distance;
        let ring = match self.strategies.point.unwrap_or(Around::Circle(CIRCLE_POINTS)) {
            Around::Square => {
                let corner = |x: f64, y: f64| middle + Coord { x, y } * distance;
                vec![corner(-1.0, -1.0), corner(1.0, -1.0), corner(1.0, 1.0), corner(-1.0, 1.0)]
            }
            Around::Circle(points) => {
                // Clockwise, as the reference rounds, and then the other way.
                let mut angle = 0.0;
                let mut ring = Vec::with_capacity(points as usize);
                for _ in 0..points as usize {
                    ring.push(self.at(middle, angle));
                    angle -= TAU / points;
                }
                ring[1..].reverse();
                ring
            }
        };
        self.add(ring);
    }

    /// The position at the distance from the middle in a direction.
    fn at(&self, middle: Coord<f64>, angle: f64) -> Coord<f64> {
        middle + Coord { x: angle.cos(), y: angle.sin() } * self.distance
    }

    /// The pieces of an open line.
    fn along(&mut self, line: &LineString<f64>) {
        let mut positions = line.0.clone();
        positions.dedup();
        let [first, .., last] = positions[..] else {
            // It has no length.
            return self.around(positions[0]);
        };
        self.sides(&positions);
        for corner in positions.windows(3) {
            self.join([corner[0], corner[1], corner[2]]);
        }
        let count = positions.len();
        self.end(last, direction(positions[count - 2], last));
        self.end(first, direction(positions[1], first));
    }

    /// The pieces along a ring.
    fn ring(&mut self, ring: &LineString<f64>) {
        let mut positions = ring.0.clone();
        positions.dedup();
        self.sides(&positions);
        for corner in positions.windows(3) {
            self.join([corner[0], corner[1], corner[2]]);
        }
        if let [first, second, .., before, _] = positions[..] {
            self.join([before, first, second]);
        }
    }

    fn sides(&mut self, positions: &[Coord<f64>]) {
        for side in positions.windows(2) {
            let (from, to) = (side[0], side[1]);
            let across = right(direction(from, to)) * self.distance;
            self.add(vec![from + across, to + across, to - across, from - across]);
        }
    }

    /// The wedge on the outside of a corner.
    fn join(&mut self, [before, corner, after]: [Coord<f64>; 3]) {
        if self.is_full() {
            return;
        }
        let (inward, outward) = (direction(before, corner), direction(corner, after));
        let turn = inward.x * outward.y - inward.y * outward.x;
        let along = inward.x * outward.x + inward.y * outward.y;
        if turn == 0.0 {
            if along < 0.0 {
                self.end(corner, inward);
            }
            return;
        }
        let across = |direction: Vector| right(direction) * (self.distance * turn.signum());
        let (from, to) = (across(inward), across(outward));
        let mut ring = vec![corner, corner + from];
        match self.strategies.join.unwrap_or(Join::Round(CIRCLE_POINTS)) {
            Join::Round(points) => {
                // The angles between the positions, as the reference rounds them: they decide how many parts there are.
                let angle = |across: Vector| {
                    let across = corner + across - corner;
                    across.y.atan2(across.x)
                };
                let start = angle(from);
                let whole = (angle(to) - start) * turn.signum();
                let whole = if whole < 0.0 { whole + TAU } else { whole } * turn.signum();
                let steps = (points * whole.abs() / TAU).ceil().max(1.0);
                for step in 1..steps as usize {
                    ring.push(self.at(corner, start + whole * step as f64 / steps));
                }
            }
            Join::Miter(limit) => {
                // The offset sides meet on the bisector, at the distance divided by the cosine of half of the turn.
                let half = ((1.0 + along) / 2.0).max(0.0).sqrt();
                let tip = if half * limit >= 1.0 {
                    (from + to) / (1.0 + along)
                } else if half > 0.0 {
                    direction(Coord { x: 0.0, y: 0.0 }, from + to) * (self.distance * limit)
                } else {
                    inward * (self.distance * limit)
                };
                ring.push(corner + tip);
            }
        }
        ring.push(corner + to);
        self.add(ring);
    }

    /// The cap at the end of a line that comes in this direction.
    fn end(&mut self, end: Coord<f64>, inward: Vector) {
        let End::Round(points) = self.strategies.end.unwrap_or(End::Round(CIRCLE_POINTS)) else {
            return;
        };
        let across = right(inward) * self.distance;
        // Clockwise from the left.
        let start = inward.y.atan2(inward.x) + FRAC_PI_2;
        let mut ring = vec![end - across];
        let mut turned = TAU / points;
        while turned < PI * (1.0 - f64::EPSILON * points) {
            ring.push(self.at(end, start - turned));
            turned += TAU / points;
        }
        ring.push(end + across);
        ring.reverse();
        self.add(ring);
    }
}
