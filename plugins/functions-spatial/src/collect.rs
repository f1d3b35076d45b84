//! `ST_Collect`: the geometries of a group as one.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::{
    Accumulator, AggregateBinding, AggregateFunction, AggregateRole, ArgInfo, Arguments, Arity,
    BoundAggregate, FunctionContext, Geometries,
};
use types::geometry::{Position, Shape};
use types::{DataType, Value};

use crate::argument::{coercion, value};
use crate::check;
use crate::transform::oriented;

pub(crate) const AGGREGATES: &[AggregateFunction] = &[AggregateFunction {
    name: "ST_COLLECT",
    aliases: &[],
    arity: Arity::exactly(1),
    role: AggregateRole::StCollect,
    numbers: Arguments::NONE,
    geometries: Geometries::Taken,
    help: "ST_COLLECT([DISTINCT] geometry)\nThe geometries of a group as one; NULL without geometries.",
    binding: AggregateBinding::Code(|_, args, _| Ok(bind(args))),
}];

/// The name in messages.
const NAME: &str = "st_collect";

fn bind(args: &[ArgInfo]) -> BoundAggregate {
    BoundAggregate {
        ty: DataType::geometry(),
        coercions: vec![coercion(&args[0])],
        skip_nulls: true,
        accumulator: Arc::new(|| Box::<Collected>::default()),
    }
}

#[derive(Default)]
struct Collected {
    srid: Option<u32>,
    shapes: Vec<Shape>,
    bytes: usize,
}

impl Accumulator for Collected {
    fn update(&mut self, ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<()> {
        let (geometry, _) = check::argument(ctx, NAME, &args[0])?;
        let srid = *self.srid.get_or_insert(geometry.srid);
        if srid != geometry.srid {
            let code = ErrorCode::DIFFERENT_SRIDS_AGGREGATION;
            return Err(Error::with(code, &[&NAME, &srid, &geometry.srid]));
        }
        let mut positions = 0;
        geometry.shape.visit(&mut |_| positions += 1);
        self.bytes += size_of::<Shape>() + positions * size_of::<Position>();
        self.shapes.push(oriented(geometry.shape));
        Ok(())
    }
    fn result(&mut self, _: &mut FunctionContext<'_>) -> Result<Value> {
        Ok(self.srid.map_or(Value::Null, |srid| value(srid, together(&self.shapes))))
    }
    fn reset(&mut self) {
        *self = Collected::default();
    }
    fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

/// Points, lines or polygons alone become a multi-geometry, other geometries a collection.
fn together(shapes: &[Shape]) -> Shape {
    let all = |shapes: &[Shape]| -> Option<Shape> {
        Some(match shapes.first()? {
            Shape::Point(_) => Shape::MultiPoint(each(shapes, |shape| {
                let Shape::Point(at) = shape else { return None };
                Some(*at)
            })?),
            Shape::LineString(_) => Shape::MultiLineString(each(shapes, |shape| {
                let Shape::LineString(line) = shape else { return None };
                Some(line.clone())
            })?),
            Shape::Polygon(_) => Shape::MultiPolygon(each(shapes, |shape| {
                let Shape::Polygon(rings) = shape else { return None };
                Some(rings.clone())
            })?),
            Shape::MultiPoint(_)
            | Shape::MultiLineString(_)
            | Shape::MultiPolygon(_)
            | Shape::Collection(_) => return None,
        })
    };
    all(shapes).unwrap_or_else(|| Shape::Collection(shapes.to_vec()))
}

/// What `of` takes of each; `None` where it takes nothing of one.
fn each<T>(shapes: &[Shape], of: fn(&Shape) -> Option<T>) -> Option<Vec<T>> {
    shapes.iter().map(of).collect()
}
