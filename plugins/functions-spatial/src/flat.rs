//! Geometries of latitudes and longitudes on a plane where geodesics are straight lines: the gnomonic projection from a position in their
//! midst.
//!
//! On an ellipsoid the lines are straight within some millimetres over 100 kilometres and some metres over 1000. A vertex of one geometry
//! that is on a side of the other becomes a vertex of that side too, so that what touches on the ellipsoid touches on the plane. What
//! spans nearly half of the Earth has no such plane.

use std::collections::HashMap;

use geographiclib_rs::{DirectGeodesic, Geodesic, InverseGeodesic};
use types::geometry::{Position, Shape};

use crate::geodesic::Ellipsoid;
use crate::transform::mapped;

/// The least scale of a geodesic from the middle: the cosine of some 80 degrees.
const SCALE_LEAST: f64 = 0.17;
/// Part of a side's length, and metres, by which a position on it is off its straight line at most.
const OFF_LINE: (f64, f64) = (2e-3, 1e-3);
/// How much longer a distance may be on a sphere than on the ellipsoid, and the metres by which a geodesic may be off the circle of a
/// sphere between its ends.
const SPHERE_OFF: f64 = 1.01;
const SIDE_NEAR: f64 = 30_000.0;
/// Most steps to the position that is projected to a place.
const STEPS_MAX: usize = 12;
/// Metres within which a step is the last.
const STEP_LEAST: f64 = 1e-9;

/// A position as a key.
fn key(at: Position) -> [u64; 2] {
    // Both zeros are one.
    [at.x + 0.0, at.y + 0.0].map(f64::to_bits)
}

/// A vector of length 1 from the middle of the Earth.
fn unit(at: Position) -> [f64; 3] {
    let (longitude, latitude) = (at.x.to_radians(), at.y.to_radians());
    [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// The vector in the midst of positions; `None` where they are all around.
fn middle(shapes: &[&Shape]) -> Option<[f64; 3]> {
    let mut sum = [0.0; 3];
    let mut count = 0.0;
    for shape in shapes {
        shape.visit(&mut |at| {
            let of = unit(at);
            (0..3).for_each(|axis| sum[axis] += of[axis]);
            count += 1.0;
        });
    }
    let length = dot(sum, sum).sqrt();
    (length > count * 1e-3).then(|| sum.map(|part| part / length))
}

/// Whether the circles around two shapes have nothing in common; sides are within a circle that is less than half of the Earth.
pub(crate) fn are_apart(first: &Shape, second: &Shape) -> bool {
    let circle = |shape: &Shape| {
        let middle = middle(&[shape])?;
        let mut radius: f64 = 0.0;
        shape.visit(&mut |at| radius = radius.max(dot(middle, unit(at)).clamp(-1.0, 1.0).acos()));
        // Latitudes are taken for those of a sphere.
        let radius = radius + 0.01;
        (radius < 1.5).then_some((middle, radius))
    };
    let (Some((first, first_radius)), Some((second, second_radius))) =
        (circle(first), circle(second))
    else {
        return false;
    };
    dot(first, second).clamp(-1.0, 1.0).acos() > first_radius + second_radius
}

/// A plane that touches the ellipsoid.
pub(crate) struct Flat {
    geodesic: Geodesic,
    middle: Position,
    /// Positions by their places on the plane.
    known: HashMap<[u64; 2], Position>,
}

impl Flat {
    /// A shape on the plane.
    pub(crate) fn one(ellipsoid: Ellipsoid, shape: &Shape) -> Option<Shape> {
        Flat::over(ellipsoid, &[shape])?.shape(shape)
    }

    /// Two shapes on one plane.
    pub(crate) fn pair(
        ellipsoid: Ellipsoid,
        first: &Shape,
        second: &Shape,
    ) -> Option<(Flat, Shape, Shape)> {
        let mut flat = Flat::over(ellipsoid, &[first, second])?;
        let with_first = flat.with_vertices(ellipsoid, first, second)?;
        let with_second = flat.with_vertices(ellipsoid, second, first)?;
        let (first, second) = (flat.shape(&with_first)?, flat.shape(&with_second)?);
        Some((flat, first, second))
    }

    fn over(ellipsoid: Ellipsoid, shapes: &[&Shape]) -> Option<Flat> {
        let [x, y, z] = middle(shapes)?;
        let middle = Position { x: y.atan2(x).to_degrees(), y: z.asin().to_degrees() };
        Some(Flat { geodesic: ellipsoid.geodesic(), middle, known: HashMap::new() })
    }

    fn place(&self, at: Position) -> Option<Position> {
        let (_, azimuth, _, reduced, scale, _, _): (f64, f64, f64, f64, f64, f64, f64) =
            self.geodesic.inverse(self.middle.y, self.middle.x, at.y, at.x);
        let (east, north) = azimuth.to_radians().sin_cos();
        let far = reduced / scale;
        (scale > SCALE_LEAST).then_some(Position { x: far * east, y: far * north })
    }

    fn shape(&mut self, of: &Shape) -> Option<Shape> {
        let mut all = true;
        let shape = mapped(of, &mut |at| match self.place(at) {
            Some(place) => {
                self.known.insert(key(place), at);
                place
            }
            None => {
                all = false;
                at
            }
        });
        all.then_some(shape)
    }

    /// The first shape with the vertices of the second that are on its sides.
    fn with_vertices(&self, ellipsoid: Ellipsoid, of: &Shape, other: &Shape) -> Option<Shape> {
        let mut vertices = Vec::new();
        let mut all = true;
        other.visit(&mut |at| match self.place(at) {
            Some(place) => vertices.push((place, at)),
            None => all = false,
        });
        if !all {
            return None;
        }
        vertices.sort_by(|a, b| a.0.x.total_cmp(&b.0.x));
        let line = |line: &Vec<Position>| -> Option<Vec<Position>> {
            let mut with = Vec::with_capacity(line.len());
            for side in line.windows(2) {
                with.push(side[0]);
                with.extend(self.on_side(ellipsoid, side, &vertices)?);
            }
            with.extend(line.last());
            Some(with)
        };
        let lines = |lines: &Vec<Vec<Position>>| lines.iter().map(line).collect::<Option<Vec<_>>>();
        Some(match of {
            Shape::Point(_) | Shape::MultiPoint(_) => of.clone(),
            Shape::LineString(positions) => Shape::LineString(line(positions)?),
            Shape::Polygon(rings) => Shape::Polygon(lines(rings)?),
            Shape::MultiLineString(parts) => Shape::MultiLineString(lines(parts)?),
            Shape::MultiPolygon(polygons) => {
                Shape::MultiPolygon(polygons.iter().map(lines).collect::<Option<_>>()?)
            }
            Shape::Collection(shapes) => {
                let with = shapes.iter().map(|shape| self.with_vertices(ellipsoid, shape, other));
                Shape::Collection(with.collect::<Option<_>>()?)
            }
        })
    }

    /// The vertices on a side, without its ends, from its beginning. They are in the order of their places from left to right.
    fn on_side(
        &self,
        ellipsoid: Ellipsoid,
        side: &[Position],
        vertices: &[(Position, Position)],
    ) -> Option<Vec<Position>> {
        let (from, to) = (self.place(side[0])?, self.place(side[1])?);
        let (dx, dy) = (to.x - from.x, to.y - from.y);
        let length = dx.hypot(dy);
        if length == 0.0 {
            return Some(Vec::new());
        }
        let off = length * OFF_LINE.0 + OFF_LINE.1;
        let (low, high) = (from.x.min(to.x) - off, from.x.max(to.x) + off);
        let start = vertices.partition_point(|(place, _)| place.x < low);
        let near = vertices[start..].iter().take_while(|(place, _)| place.x <= high);
        let mut found: Vec<(f64, Position)> = near
            .filter_map(|(place, at)| {
                let (x, y) = (place.x - from.x, place.y - from.y);
                let along = (x * dx + y * dy) / length;
                let across = (x * dy - y * dx).abs() / length;
                let near = along > 0.0 && along < length && across <= off;
                let inner = near && *at != side[0] && *at != side[1];
                (inner && ellipsoid.is_on(*at, side)).then_some((along, *at))
            })
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found.dedup();
        Some(found.into_iter().map(|(_, at)| at).collect())
    }

    /// A shape of the plane in latitudes and longitudes.
    pub(crate) fn back(&self, shape: &Shape) -> Shape {
        mapped(shape, &mut |place| self.position(place))
    }

    fn position(&self, place: Position) -> Position {
        if let Some(known) = self.known.get(&key(place)) {
            return *known;
        }
        let azimuth = place.x.atan2(place.y).to_degrees();
        let far = place.x.hypot(place.y);
        let mut length = far;
        for _ in 0..STEPS_MAX {
            let (_, _, _, reduced, scale, _): (f64, f64, f64, f64, f64, f64) =
                self.geodesic.direct(self.middle.y, self.middle.x, azimuth, length);
            let step = (far - reduced / scale) * scale * scale;
            // Far from the middle a step would lead over the horizon.
            length = if scale > SCALE_LEAST { length + step } else { length / 2.0 };
            if step.abs() < STEP_LEAST {
                break;
            }
        }
        let (y, x): (f64, f64) =
            self.geodesic.direct(self.middle.y, self.middle.x, azimuth, length);
        Position { x, y }
    }
}

impl Ellipsoid {
    /// The lesser of a known distance and that from a position to a geodesic between two others.
    pub(crate) fn to_side(self, known: f64, at: Position, from: Position, to: Position) -> f64 {
        let ends = known.min(self.distance(at, from)).min(self.distance(at, to));
        let Some((part, angle)) = foot(at, from, to) else { return ends };
        if angle * self.mean_radius() > ends * SPHERE_OFF + SIDE_NEAR {
            return ends;
        }
        let geodesic = self.geodesic();
        let (length, azimuth, _, _): (f64, f64, f64, f64) =
            geodesic.inverse(from.y, from.x, to.y, to.x);
        let distance = |part: f64| {
            let (y, x): (f64, f64) = geodesic.direct(from.y, from.x, azimuth, part * length);
            self.distance(at, Position { x, y })
        };
        // The foot on a sphere is near; the squares of the distances around it are nearly a parabola.
        let (mut part, mut least) = (part, ends);
        for width in [0.02, 0.001] {
            let near = distance(part);
            let (before, after) = (distance(part - width).powi(2), distance(part + width).powi(2));
            let bend = before + after - 2.0 * near * near;
            least = least.min(near);
            if bend <= 0.0 {
                break;
            }
            part = (part + width * (before - after) / (2.0 * bend)).clamp(0.0, 1.0);
        }
        least.min(distance(part))
    }
}

/// The part of the way between two positions on a sphere at which it is nearest to a third one, and the angle between both; `None` where
/// that is an end.
fn foot(at: Position, from: Position, to: Position) -> Option<(f64, f64)> {
    let [at, from, to] = [at, from, to].map(unit);
    let normal = cross(from, to);
    let square = dot(normal, normal);
    if square == 0.0 {
        return None;
    }
    let above = dot(at, normal) / square;
    let foot = [0, 1, 2].map(|axis| at[axis] - above * normal[axis]);
    let (before, after) = (dot(cross(from, foot), normal), dot(cross(foot, to), normal));
    if before <= 0.0 || after <= 0.0 {
        return None;
    }
    let angle = |a: [f64; 3], b: [f64; 3]| {
        let sine = cross(a, b);
        dot(sine, sine).sqrt().atan2(dot(a, b))
    };
    Some((angle(from, foot) / angle(from, to), angle(at, foot)))
}
