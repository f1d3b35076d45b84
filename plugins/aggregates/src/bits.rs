//! BIT_AND, BIT_OR, BIT_XOR: on 64-bit numbers, and on binary strings of one length.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::{
    Accumulator, AggregateBinding, AggregateFunction, AggregateRole, ArgInfo, Arguments, Arity,
    BoundAggregate, Coercion, FunctionContext, Geometries, kit,
};
use types::{DataType, SqlBytes, Value};

/// Longest binary string that these functions accept.
const LENGTH_MAX: u32 = 511;

pub(crate) const FUNCTIONS: &[AggregateFunction] = &[
    AggregateFunction {
        name: "BIT_AND",
        aliases: &[],
        arity: Arity::exactly(1),
        role: AggregateRole::BitAnd,
        numbers: Arguments::NONE,
        geometries: Geometries::Refused,
        help: "BIT_AND(expr)\nThe bits that are set in all values; all ones without rows.",
        binding: AggregateBinding::Code(|_, args, _| {
            bind(args, Operation { neutral: 0xFF, apply: |a, b| a & b })
        }),
    },
    AggregateFunction {
        name: "BIT_OR",
        aliases: &[],
        arity: Arity::exactly(1),
        role: AggregateRole::BitOr,
        numbers: Arguments::NONE,
        geometries: Geometries::Refused,
        help: "BIT_OR(expr)\nThe bits that are set in any value.",
        binding: AggregateBinding::Code(|_, args, _| {
            bind(args, Operation { neutral: 0, apply: |a, b| a | b })
        }),
    },
    AggregateFunction {
        name: "BIT_XOR",
        aliases: &[],
        arity: Arity::exactly(1),
        role: AggregateRole::BitXor,
        numbers: Arguments::NONE,
        geometries: Geometries::Refused,
        help: "BIT_XOR(expr)\nThe bits that are set in an odd number of values.",
        binding: AggregateBinding::Code(|_, args, _| {
            bind(args, Operation { neutral: 0, apply: |a, b| a ^ b })
        }),
    },
];

#[derive(Clone, Copy)]
struct Operation {
    /// Each byte of the result for an empty group.
    neutral: u8,
    apply: fn(u64, u64) -> u64,
}

fn bind(args: &[ArgInfo], operation: Operation) -> Result<BoundAggregate> {
    let arg = &args[0].ty;
    if !arg.is_binary() {
        let start = u64::from_le_bytes([operation.neutral; 8]);
        let ty = DataType::bigint_unsigned().with_nullable(false);
        return Ok(BoundAggregate {
            ty,
            coercions: vec![Coercion::Integer],
            skip_nulls: true,
            accumulator: Arc::new(move || Box::new(Numbers { operation, start, bits: start })),
        });
    }
    if arg.length > LENGTH_MAX {
        return Err(Error::with(ErrorCode(3514), &[]));
    }
    let length = arg.length as usize;
    Ok(BoundAggregate {
        ty: DataType::varbinary(arg.length).with_nullable(false),
        coercions: vec![Coercion::AsIs],
        skip_nulls: true,
        accumulator: Arc::new(move || Box::new(Strings { operation, length, bytes: None })),
    })
}

struct Numbers {
    operation: Operation,
    start: u64,
    bits: u64,
}

impl Accumulator for Numbers {
    fn update(&mut self, _: &mut FunctionContext<'_>, args: &[Value]) -> Result<()> {
        self.bits = (self.operation.apply)(self.bits, kit::integer(&args[0]) as u64);
        Ok(())
    }
    fn result(&mut self, _: &mut FunctionContext<'_>) -> Result<Value> {
        Ok(Value::UInt(self.bits))
    }
    fn reset(&mut self) {
        self.bits = self.start;
    }
}

struct Strings {
    operation: Operation,
    length: usize,
    bytes: Option<Vec<u8>>,
}

impl Accumulator for Strings {
    fn update(&mut self, _: &mut FunctionContext<'_>, args: &[Value]) -> Result<()> {
        let value = kit::bytes(&args[0]);
        match &mut self.bytes {
            None => self.bytes = Some(value.to_vec()),
            Some(bytes) if bytes.len() == value.len() => {
                for (byte, other) in bytes.iter_mut().zip(value) {
                    *byte = (self.operation.apply)((*byte).into(), (*other).into()) as u8;
                }
            }
            // Binary operands of bitwise operators must be of equal length.
            Some(_) => return Err(Error::with(ErrorCode(3513), &[])),
        }
        Ok(())
    }
    fn result(&mut self, _: &mut FunctionContext<'_>) -> Result<Value> {
        Ok(Value::Bytes(match &self.bytes {
            Some(bytes) => SqlBytes::new(bytes),
            None => SqlBytes::from(vec![self.operation.neutral; self.length]),
        }))
    }
    fn reset(&mut self) {
        self.bytes = None;
    }
    fn memory_bytes(&self) -> usize {
        self.bytes.as_ref().map_or(0, Vec::capacity)
    }
}
