//! GROUP_CONCAT. The caller handles order and DISTINCT.

use std::sync::Arc;

use errors::{ErrorCode, Result};
use plugin_api::{
    Accumulator, AggregateBinding, AggregateFunction, AggregateRole, ArgInfo, Arguments, Arity,
    BindContext, BoundAggregate, Coercion, FunctionContext, Geometries, kit,
};
use types::{CollationId, SqlBytes, TypeKind, Value};

/// Characters that the reference announces for each byte of `group_concat_max_len`.
const CHARACTERS_PER_BYTE: u64 = 16;

pub(crate) const FUNCTIONS: &[AggregateFunction] = &[AggregateFunction {
    name: "GROUP_CONCAT",
    aliases: &[],
    arity: Arity::at_least(1),
    role: AggregateRole::GroupConcat,
    numbers: Arguments::NONE,
    geometries: Geometries::Taken,
    help: "GROUP_CONCAT([DISTINCT] expr, ... [ORDER BY ...] [SEPARATOR str])\nThe values of a group joined with a separator.",
    binding: AggregateBinding::Code(bind),
}];

struct Concatenation {
    separator: Arc<[u8]>,
    length_max: usize,
    collation: CollationId,
    out: Option<Vec<u8>>,
    rows: u64,
    cut: bool,
}

fn bind(ctx: &BindContext, args: &[ArgInfo], separator: Option<&[u8]>) -> Result<BoundAggregate> {
    let collation = kit::result_collation(ctx, args);
    let length_max = ctx.group_concat_max_len.min(ctx.max_allowed_packet);
    let binary = collation == CollationId::BINARY;
    let announced =
        if binary { length_max } else { length_max.saturating_mul(CHARACTERS_PER_BYTE) };
    let mut ty = kit::text_type(announced, collation);
    ty.kind = if binary { TypeKind::LongBlob } else { TypeKind::LongText };
    let separator: Arc<[u8]> = separator.unwrap_or(b",").into();
    let length_max = usize::try_from(length_max).unwrap_or(usize::MAX);
    Ok(BoundAggregate {
        ty,
        coercions: vec![Coercion::Text],
        skip_nulls: true,
        accumulator: Arc::new(move || {
            let separator = separator.clone();
            Box::new(Concatenation {
                separator,
                length_max,
                collation,
                out: None,
                rows: 0,
                cut: false,
            })
        }),
    })
}

impl Accumulator for Concatenation {
    fn update(&mut self, ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<()> {
        if self.cut {
            return Ok(());
        }
        self.rows += 1;
        let separator = if self.out.is_some() { &self.separator[..] } else { &[] };
        let out = self.out.get_or_insert_default();
        let parts = std::iter::once(separator).chain(args.iter().map(kit::bytes));
        for part in parts {
            let room = self.length_max.saturating_sub(out.len());
            if part.len() <= room {
                out.extend_from_slice(part);
                continue;
            }
            let mut end = room;
            let binary = self.collation == CollationId::BINARY;
            while !binary && end > 0 && part[end] & 0xC0 == 0x80 {
                end -= 1;
            }
            out.extend_from_slice(&part[..end]);
            self.cut = true;
            ctx.diagnostics.warn(ErrorCode::CUT_VALUE_GROUP_CONCAT, &[&self.rows]);
            break;
        }
        Ok(())
    }
    fn result(&mut self, _: &mut FunctionContext<'_>) -> Result<Value> {
        Ok(self.out.as_deref().map_or(Value::Null, |out| Value::Bytes(SqlBytes::new(out))))
    }
    fn reset(&mut self) {
        (self.out, self.rows, self.cut) = (None, 0, false);
    }
    fn memory_bytes(&self) -> usize {
        self.out.as_ref().map_or(0, Vec::capacity)
    }
}
