//! Well-known binary: reading with every count checked against the bytes that are left, and writing.

use super::{DEPTH_MAX, GeometryKind, Position, Shape};

/// Bytes of a position.
const POSITION_SIZE: usize = 16;
/// Bytes of byte order, kind and a count: the least size of a nested geometry.
const HEADER_SIZE: usize = 9;

/// The reason why bytes are not a geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeometryError {
    /// A stored value is marked as big-endian.
    BigEndian,
    /// Malformed, too deep, or with too few positions.
    Invalid,
}

/// The source of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WkbRules {
    /// A stored value: little-endian, only collections may be empty.
    Stored,
    /// From a client: either byte order, separately for each geometry; points and polygons may be empty.
    Client,
}

/// Byte order of a geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    /// 0.
    Big,
    /// 1.
    Little,
}

type Result<T> = std::result::Result<T, GeometryError>;

impl Shape {
    /// Reads WKB that fills `bytes`.
    ///
    /// # Errors
    /// `GeometryError` for bytes that are not a geometry.
    pub fn read_wkb(bytes: &[u8], rules: WkbRules) -> Result<Shape> {
        let mut reader = WkbReader { rest: bytes, rules };
        let shape = reader.shape(GeometryKind::Geometry, 0)?;
        if reader.rest.is_empty() { Ok(shape) } else { Err(GeometryError::Invalid) }
    }

    /// Appends little-endian WKB.
    pub fn write_wkb(&self, out: &mut Vec<u8>) {
        put_header(out, self.kind());
        match self {
            Shape::Point(position) => put_position(out, *position),
            Shape::LineString(line) => put_line(out, line),
            Shape::Polygon(rings) => put_rings(out, rings),
            Shape::MultiPoint(points) => {
                put_count(out, points.len());
                for point in points {
                    put_header(out, GeometryKind::Point);
                    put_position(out, *point);
                }
            }
            Shape::MultiLineString(lines) => {
                put_count(out, lines.len());
                for line in lines {
                    put_header(out, GeometryKind::LineString);
                    put_line(out, line);
                }
            }
            Shape::MultiPolygon(polygons) => {
                put_count(out, polygons.len());
                for rings in polygons {
                    put_header(out, GeometryKind::Polygon);
                    put_rings(out, rings);
                }
            }
            Shape::Collection(shapes) => {
                put_count(out, shapes.len());
                shapes.iter().for_each(|shape| shape.write_wkb(out));
            }
        }
    }
}

fn put_header(out: &mut Vec<u8>, kind: GeometryKind) {
    out.push(1);
    out.extend_from_slice(&kind.number().to_le_bytes());
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    // A geometry with more than this would be 64 GiB.
    out.extend_from_slice(&(count as u32).to_le_bytes());
}

fn put_position(out: &mut Vec<u8>, position: Position) {
    out.extend_from_slice(&position.x.to_le_bytes());
    out.extend_from_slice(&position.y.to_le_bytes());
}

fn put_line(out: &mut Vec<u8>, line: &[Position]) {
    put_count(out, line.len());
    line.iter().for_each(|position| put_position(out, *position));
}

fn put_rings(out: &mut Vec<u8>, rings: &[Vec<Position>]) {
    put_count(out, rings.len());
    rings.iter().for_each(|ring| put_line(out, ring));
}

struct WkbReader<'a> {
    rest: &'a [u8],
    rules: WkbRules,
}

impl WkbReader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(GeometryError::Invalid)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn u32(&mut self, order: ByteOrder) -> Result<u32> {
        let bytes = self.take()?;
        Ok(match order {
            ByteOrder::Big => u32::from_be_bytes(bytes),
            ByteOrder::Little => u32::from_le_bytes(bytes),
        })
    }

    fn f64(&mut self, order: ByteOrder) -> Result<f64> {
        let bytes = self.take()?;
        Ok(match order {
            ByteOrder::Big => f64::from_be_bytes(bytes),
            ByteOrder::Little => f64::from_le_bytes(bytes),
        })
    }

    /// A count of items of at least `size` bytes, which must be present.
    fn count(&mut self, order: ByteOrder, size: usize, least: usize) -> Result<usize> {
        let count = self.u32(order)? as usize;
        if count < least || count > self.rest.len() / size {
            return Err(GeometryError::Invalid);
        }
        Ok(count)
    }

    fn position(&mut self, order: ByteOrder) -> Result<Position> {
        Ok(Position { x: self.f64(order)?, y: self.f64(order)? })
    }

    fn line(&mut self, order: ByteOrder, least: usize) -> Result<Vec<Position>> {
        let count = self.count(order, POSITION_SIZE, least)?;
        (0..count).map(|_| self.position(order)).collect()
    }

    fn rings(&mut self, order: ByteOrder) -> Result<Vec<Vec<Position>>> {
        /// A ring's count and its positions.
        const RING_SIZE: usize = 4 + RING_LEAST * POSITION_SIZE;
        let count = self.count(order, RING_SIZE, 1)?;
        (0..count).map(|_| self.ring(order)).collect()
    }

    fn ring(&mut self, order: ByteOrder) -> Result<Vec<Position>> {
        let ring = self.line(order, RING_LEAST)?;
        if is_closed(&ring) { Ok(ring) } else { Err(GeometryError::Invalid) }
    }

    /// Byte order and kind.
    fn header(&mut self, expected: GeometryKind) -> Result<(ByteOrder, GeometryKind)> {
        let order = match (self.take()?, self.rules) {
            ([1], _) => ByteOrder::Little,
            ([0], WkbRules::Client) => ByteOrder::Big,
            ([_], WkbRules::Stored) => return Err(GeometryError::BigEndian),
            _ => return Err(GeometryError::Invalid),
        };
        let kind = GeometryKind::from_number(self.u32(order)?);
        let kind = kind.filter(|kind| *kind != GeometryKind::Geometry);
        let kind = kind.filter(|kind| expected == GeometryKind::Geometry || *kind == expected);
        Ok((order, kind.ok_or(GeometryError::Invalid)?))
    }

    /// The members of a geometry that has `least` or more of them.
    fn members<T>(
        &mut self,
        order: ByteOrder,
        least: usize,
        member: impl Fn(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let count = self.count(order, HEADER_SIZE, least)?;
        (0..count).map(|_| member(self)).collect()
    }

    fn shape(&mut self, expected: GeometryKind, depth: usize) -> Result<Shape> {
        let (order, kind) = self.header(expected)?;
        let least = usize::from(self.rules == WkbRules::Stored);
        Ok(match kind {
            GeometryKind::Geometry => return Err(GeometryError::Invalid),
            GeometryKind::Point => Shape::Point(self.position(order)?),
            GeometryKind::LineString => Shape::LineString(self.line(order, LINE_LEAST)?),
            GeometryKind::Polygon => Shape::Polygon(self.rings(order)?),
            GeometryKind::MultiPoint => {
                Shape::MultiPoint(self.members(order, least, |reader| {
                    let (order, _) = reader.header(GeometryKind::Point)?;
                    reader.position(order)
                })?)
            }
            GeometryKind::MultiLineString => {
                Shape::MultiLineString(self.members(order, 1, |reader| {
                    let (order, _) = reader.header(GeometryKind::LineString)?;
                    reader.line(order, LINE_LEAST)
                })?)
            }
            GeometryKind::MultiPolygon => {
                Shape::MultiPolygon(self.members(order, least, |reader| {
                    let (order, _) = reader.header(GeometryKind::Polygon)?;
                    reader.rings(order)
                })?)
            }
            GeometryKind::GeometryCollection if depth == DEPTH_MAX => {
                return Err(GeometryError::Invalid);
            }
            GeometryKind::GeometryCollection => Shape::Collection(self.members(
                order,
                0,
                |reader| reader.shape(GeometryKind::Geometry, depth + 1),
            )?),
        })
    }
}

/// Fewest positions of a line.
pub const LINE_LEAST: usize = 2;
/// Fewest positions of a ring.
pub const RING_LEAST: usize = 4;

/// Whether a line ends where it begins.
pub fn is_closed(line: &[Position]) -> bool {
    line.first() == line.last()
}
