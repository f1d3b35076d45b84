//! Conversion of shapes to those of the library that computes on the plane.

use geo::{Coord, LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon};
use types::geometry::{Position, Shape};

use crate::grid::merged;

/// A shape of the library.
pub(crate) type Planar = geo::Geometry<f64>;

/// A position of the library.
pub(crate) fn coord(at: Position) -> Coord<f64> {
    Coord { x: at.x, y: at.y }
}

fn position(at: Coord<f64>) -> Position {
    Position { x: at.x, y: at.y }
}

/// A line of the library.
pub(crate) fn line(line: &[Position]) -> LineString<f64> {
    LineString::new(line.iter().map(|at| coord(*at)).collect())
}

fn positions(line: LineString<f64>) -> Vec<Position> {
    line.0.into_iter().map(position).collect()
}

/// A polygon of the library.
pub(crate) fn polygon(rings: &[Vec<Position>]) -> Polygon<f64> {
    let mut rings = rings.iter().map(|ring| line(ring));
    let exterior = rings.next().unwrap_or_else(|| LineString::new(Vec::new()));
    Polygon::new(exterior, rings.collect())
}

fn rings(polygon: Polygon<f64>) -> Vec<Vec<Position>> {
    let (exterior, interiors) = polygon.into_inner();
    std::iter::once(exterior).chain(interiors).map(positions).collect()
}

/// Converts a shape to the library's type; empty members of collections are left out.
pub(crate) fn planar(shape: &Shape) -> Planar {
    match shape {
        Shape::Point(at) => Planar::Point(Point(coord(*at))),
        Shape::LineString(points) => Planar::LineString(line(points)),
        Shape::Polygon(rings) => Planar::Polygon(polygon(rings)),
        Shape::MultiPoint(points) => {
            Planar::MultiPoint(MultiPoint(points.iter().map(|at| Point(coord(*at))).collect()))
        }
        Shape::MultiLineString(lines) => Planar::MultiLineString(MultiLineString(
            lines.iter().map(|points| line(points)).collect(),
        )),
        Shape::MultiPolygon(polygons) => Planar::MultiPolygon(MultiPolygon(
            polygons.iter().map(|rings| polygon(rings)).collect(),
        )),
        Shape::Collection(shapes) => {
            let shapes = shapes.iter().filter(|shape| !shape.is_empty()).map(planar);
            Planar::GeometryCollection(shapes.collect())
        }
    }
}

/// Converts from the library's type: a multi-geometry of one becomes its member, an empty one the empty collection.
pub(crate) fn shape(planar: Planar) -> Shape {
    match planar {
        Planar::Point(point) => Shape::Point(position(point.0)),
        Planar::Line(line) => Shape::LineString(vec![position(line.start), position(line.end)]),
        Planar::LineString(line) => Shape::LineString(positions(line)),
        Planar::Polygon(polygon) => Shape::Polygon(rings(polygon)),
        Planar::Rect(rect) => Shape::Polygon(rings(rect.to_polygon())),
        Planar::Triangle(triangle) => Shape::Polygon(rings(triangle.to_polygon())),
        Planar::MultiPoint(points) => one_or(
            points.0.into_iter().map(|point| position(point.0)).collect(),
            Shape::Point,
            Shape::MultiPoint,
        ),
        Planar::MultiLineString(lines) => one_or(
            lines.0.into_iter().map(positions).collect(),
            Shape::LineString,
            Shape::MultiLineString,
        ),
        Planar::MultiPolygon(polygons) => {
            one_or(polygons.0.into_iter().map(rings).collect(), Shape::Polygon, Shape::MultiPolygon)
        }
        Planar::GeometryCollection(shapes) => {
            Shape::Collection(shapes.into_iter().map(shape).collect())
        }
    }
}

/// The points, the lines and the areas of a shape, each as one geometry, where there are some. Areas of a collection may overlap: they become one.
pub(crate) fn layers(of: &Shape) -> Vec<Planar> {
    let Shape::Collection(_) = of else { return vec![planar(of)] };
    let (mut points, mut lines, mut areas) = (Vec::new(), Vec::new(), Vec::new());
    part(of, &mut points, &mut lines, &mut areas);
    let mut layers = Vec::new();
    if !points.is_empty() {
        layers.push(Planar::MultiPoint(MultiPoint(points)));
    }
    if !lines.is_empty() {
        layers.push(Planar::MultiLineString(MultiLineString(lines)));
    }
    if !areas.is_empty() {
        layers.push(Planar::MultiPolygon(merged(areas)));
    }
    layers
}

fn part(
    of: &Shape,
    points: &mut Vec<Point<f64>>,
    lines: &mut Vec<LineString<f64>>,
    areas: &mut Vec<Polygon<f64>>,
) {
    match of {
        Shape::Point(at) => points.push(Point(coord(*at))),
        Shape::MultiPoint(all) => points.extend(all.iter().map(|at| Point(coord(*at)))),
        Shape::LineString(positions) => lines.push(line(positions)),
        Shape::MultiLineString(all) => lines.extend(all.iter().map(|positions| line(positions))),
        Shape::Polygon(rings) => areas.push(polygon(rings)),
        Shape::MultiPolygon(all) => areas.extend(all.iter().map(|rings| polygon(rings))),
        Shape::Collection(shapes) => {
            shapes.iter().for_each(|shape| part(shape, points, lines, areas));
        }
    }
}

/// The shape of several parts of a kind.
pub(crate) fn one_or<T>(
    mut parts: Vec<T>,
    one: fn(T) -> Shape,
    several: fn(Vec<T>) -> Shape,
) -> Shape {
    match parts.len() {
        0 => Shape::Collection(Vec::new()),
        1 => one(parts.remove(0)),
        _ => several(parts),
    }
}
