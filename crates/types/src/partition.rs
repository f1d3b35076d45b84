//! From the values of partition columns to the number of a partition. Numbers of a table's RANGE partitions grow with their bounds,
//! so that a range of values is a range of numbers. Described in docs/format/partition.md; independent of names and SQL.

use std::collections::BTreeMap;

use stdx::bytes::{Reader, put_blob, put_u16, put_u32};

use crate::key::encode_part;
use crate::{DataType, TypeKind, Value};

/// Not the number of any partition: the result of a probe with a value that no partition takes.
pub const NO_PARTITION: u16 = u16::MAX;

/// Number of the form in which a router is written.
const FORMAT: u8 = 1;

/// How the partition of a row is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Keys of the upper bounds, ascending; `None` is above all. The first bound above the row's key is its partition's.
    Range(Vec<(Option<Vec<u8>>, u16)>),
    /// Keys that are listed.
    List(BTreeMap<Vec<u8>, u16>),
    /// The remainder of an integer; of powers of two where it is linear.
    Hash(Deal),
    /// The same of a hash of the columns' keys.
    Key(Deal),
}

/// Distribution by a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deal {
    /// Partitions.
    pub count: u16,
    /// LINEAR.
    pub linear: bool,
}

impl Deal {
    fn of(self, number: i64) -> u16 {
        let count = i64::from(self.count.max(1));
        let dealt = if self.linear {
            let mask = i64::from(u32::from(self.count.max(1)).next_power_of_two()) - 1;
            let low = number & mask;
            if low < count { low } else { number & (mask >> 1) }
        } else {
            (number % count).abs()
        };
        dealt as u16
    }
}

/// Whether rows with exactly the end's values belong to the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// They do.
    Included,
    /// Only smaller ones.
    Excluded,
}

/// The kind as which a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// As a signed BIGINT, whatever its width.
    Signed,
    /// As an unsigned one.
    Unsigned,
    /// As its own type.
    Own,
}

impl ValueKind {
    /// The kind of values of a type.
    pub fn of(ty: &DataType) -> ValueKind {
        let is_whole = ty.is_integer() || matches!(ty.kind, TypeKind::Year | TypeKind::Bit);
        match (is_whole, ty.unsigned || !ty.is_integer()) {
            (true, true) => ValueKind::Unsigned,
            (true, false) => ValueKind::Signed,
            (false, _) => ValueKind::Own,
        }
    }

    /// The type under which keys are formed.
    pub fn key_type(self, ty: &DataType) -> DataType {
        match self {
            ValueKind::Signed => DataType::bigint(),
            ValueKind::Unsigned => DataType::bigint_unsigned(),
            ValueKind::Own => ty.clone(),
        }
    }

    /// The value converted to the kind; a value out of range becomes the nearest one in range.
    fn value(self, value: &Value) -> Value {
        match (self, value) {
            (ValueKind::Signed, Value::UInt(number)) => {
                Value::Int(i64::try_from(*number).unwrap_or(i64::MAX))
            }
            (ValueKind::Unsigned, Value::Int(number)) => Value::UInt((*number).max(0) as u64),
            _ => value.clone(),
        }
    }
}

/// Finds the numbers of partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Router {
    /// The rule of partitions.
    pub rule: Rule,
    /// Number of values that it reads: those after them belong to subpartitions.
    pub values: usize,
    /// The rule reads an expression and not columns.
    pub expression: bool,
    /// Of each value, those of subpartitions included.
    pub kinds: Vec<ValueKind>,
    /// HASH or KEY of subpartitions.
    pub sub: Option<Rule>,
}

/// Values and their types.
pub type Typed<'v> = (&'v Value, &'v DataType);

/// The key of values under their types; a longer tuple sorts after its prefix.
pub fn tuple_key<'v>(values: impl IntoIterator<Item = Typed<'v>>) -> Vec<u8> {
    let mut key = Vec::new();
    for (value, ty) in values {
        // The same form of key whether the column may be NULL or not.
        encode_part(value, &ty.clone().with_nullable(true), None, false, &mut key);
    }
    key
}

/// FNV-1a over the bytes, mixed so that its low bits depend on all.
fn hash(bytes: &[u8]) -> i64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 32;
    (hash & i64::MAX as u64) as i64
}

fn integer(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        Value::UInt(number) => *number as i64,
        _ => 0,
    }
}

impl Rule {
    fn find(&self, values: &[Value], types: &[DataType]) -> Option<u16> {
        let key = || tuple_key(values.iter().zip(types));
        match self {
            Rule::Range(bounds) => {
                let key = key();
                let at =
                    bounds.partition_point(|(bound, _)| bound.as_ref().is_some_and(|b| *b <= key));
                bounds.get(at).map(|(_, number)| *number)
            }
            Rule::List(listed) => listed.get(&key()).copied(),
            Rule::Hash(deal) => Some(deal.of(values.first().map_or(0, integer))),
            Rule::Key(deal) => Some(deal.of(hash(&key()))),
        }
    }

    /// The number of partitions that it yields.
    fn count(&self) -> u16 {
        match self {
            Rule::Hash(deal) | Rule::Key(deal) => deal.count,
            Rule::Range(bounds) => bounds.len() as u16,
            Rule::List(listed) => listed.len() as u16,
        }
    }

    /// One more than its largest number.
    fn end(&self) -> u32 {
        let largest = match self {
            Rule::Range(bounds) => bounds.iter().map(|(_, number)| *number).max(),
            Rule::List(listed) => listed.values().copied().max(),
            Rule::Hash(deal) | Rule::Key(deal) => return deal.count.into(),
        };
        largest.map_or(0, |number| u32::from(number) + 1)
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Rule::Range(bounds) => {
                out.push(1);
                put_u32(out, bounds.len() as u32);
                for (bound, number) in bounds {
                    out.push(u8::from(bound.is_some()));
                    put_blob(out, bound.as_deref().unwrap_or_default());
                    put_u16(out, *number);
                }
            }
            Rule::List(listed) => {
                out.push(2);
                put_u32(out, listed.len() as u32);
                for (key, number) in listed {
                    put_blob(out, key);
                    put_u16(out, *number);
                }
            }
            Rule::Hash(deal) | Rule::Key(deal) => {
                out.push(if matches!(self, Rule::Hash(_)) { 3 } else { 4 });
                put_u16(out, deal.count);
                out.push(u8::from(deal.linear));
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Rule> {
        let kind = reader.u8()?;
        Some(match kind {
            1 => {
                let mut bounds = Vec::new();
                for _ in 0..reader.u32()? {
                    let bounded = reader.u8()? != 0;
                    let key = reader.blob()?.to_vec();
                    bounds.push((bounded.then_some(key), reader.u16()?));
                }
                Rule::Range(bounds)
            }
            2 => {
                let mut listed = BTreeMap::new();
                for _ in 0..reader.u32()? {
                    let key = reader.blob()?.to_vec();
                    listed.insert(key, reader.u16()?);
                }
                Rule::List(listed)
            }
            3 | 4 => {
                let deal = Deal { count: reader.u16()?, linear: reader.u8()? != 0 };
                if kind == 3 { Rule::Hash(deal) } else { Rule::Key(deal) }
            }
            _ => return None,
        })
    }
}

impl Router {
    /// Subpartitions of each partition, 1 without subpartitions.
    pub fn subpartitions(&self) -> u16 {
        self.sub.as_ref().map_or(1, Rule::count).max(1)
    }

    /// Values and types as keys are formed of them.
    fn compared(&self, values: &[Value], types: &[DataType]) -> (Vec<Value>, Vec<DataType>) {
        let kind = |at: usize| self.kinds.get(at).copied().unwrap_or(ValueKind::Own);
        let values = values.iter().enumerate().map(|(at, value)| kind(at).value(value));
        let types = types.iter().enumerate().map(|(at, ty)| kind(at).key_type(ty));
        (values.collect(), types.collect())
    }

    /// The number of the partition, or of the subpartition, for a row; `None` when no partition accepts it.
    pub fn leaf(&self, values: &[Value], types: &[DataType]) -> Option<u16> {
        let (values, types) = self.compared(values, types);
        let at = self.values.min(values.len());
        let partition = self.rule.find(&values[..at], &types[..at])?;
        let sub = match &self.sub {
            Some(rule) => rule.find(&values[at..], &types[at..])?,
            None => 0,
        };
        Some(partition * self.subpartitions() + sub)
    }

    /// First and last number of the partition that takes these values, with all its subpartitions. Fewer values than the rule reads
    /// are the beginning of a tuple: from the first partition that may hold such a tuple, to the last. `below`: the last one that
    /// may hold a smaller tuple.
    pub fn span(&self, values: &[Value], types: &[DataType], below: Below) -> Option<(u16, u16)> {
        let count = self.subpartitions();
        let leaves = |first: u16, last: u16| (first * count, last * count + (count - 1));
        let at = self.values.min(values.len());
        let (values, types) = self.compared(&values[..at], &types[..at]);
        let Rule::Range(bounds) = &self.rule else {
            let number = (at == self.values).then(|| self.rule.find(&values, &types))??;
            return Some(leaves(number, number));
        };
        let key = tuple_key(values.iter().zip(&types));
        let number = |at: usize| bounds.get(at).map(|(_, number)| *number);
        let place = |is_before: &dyn Fn(&[u8]) -> bool| {
            bounds.partition_point(|(bound, _)| bound.as_ref().is_some_and(|own| is_before(own)))
        };
        let first = place(&|bound| *bound <= *key);
        let last = match below {
            Below::Excluded => place(&|bound| *bound < *key),
            Below::Included if at < self.values => {
                place(&|bound| *bound <= *key || bound.starts_with(&key))
            }
            Below::Included => first,
        };
        // No partition lies above all bounds, but smaller values may be in any partition.
        let last = last.min(bounds.len().checked_sub(1)?);
        Some(leaves(number(first).unwrap_or(NO_PARTITION / count), number(last)?))
    }

    /// The written form.
    pub fn write(&self) -> Vec<u8> {
        let mut out = vec![FORMAT, self.values as u8, u8::from(self.expression)];
        out.push(self.kinds.len() as u8);
        out.extend(self.kinds.iter().map(|kind| match kind {
            ValueKind::Own => 0,
            ValueKind::Signed => 1,
            ValueKind::Unsigned => 2,
        }));
        self.rule.write(&mut out);
        if let Some(sub) = &self.sub {
            sub.write(&mut out);
        }
        out
    }

    /// Reads the written form; `None` for anything else.
    pub fn read(bytes: &[u8]) -> Option<Router> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return None;
        }
        let values = usize::from(reader.u8()?);
        let expression = reader.u8()? != 0;
        let count = usize::from(reader.u8()?);
        let kinds = reader.take(count)?.iter().map(|kind| match kind {
            1 => ValueKind::Signed,
            2 => ValueKind::Unsigned,
            _ => ValueKind::Own,
        });
        let kinds = kinds.collect();
        let rule = Rule::read(&mut reader)?;
        let sub = if reader.is_empty() { None } else { Some(Rule::read(&mut reader)?) };
        let router = Router { rule, values, expression, kinds, sub };
        // Every partition number fits; the largest one is reserved.
        let end = router.rule.end() * u32::from(router.subpartitions());
        (end <= u32::from(NO_PARTITION)).then_some(router)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int() -> DataType {
        DataType::bigint()
    }

    fn key(number: i64) -> Vec<u8> {
        tuple_key([(&Value::Int(number), &int())])
    }

    #[test]
    fn ranges_are_found_and_null_is_below_all() {
        let bounds = vec![(Some(key(10)), 3), (Some(key(20)), 5), (None, 9)];
        let router = Router {
            rule: Rule::Range(bounds),
            values: 1,
            expression: true,
            kinds: vec![ValueKind::Signed; 2],
            sub: Some(Rule::Hash(Deal { count: 2, linear: false })),
        };
        assert_eq!(Router::read(&router.write()).as_ref(), Some(&router));
        let leaf = |a: Value, b: i64| router.leaf(&[a, Value::Int(b)], &[int(), int()]);
        assert_eq!(leaf(Value::Null, 1), Some(7));
        assert_eq!(leaf(Value::Int(9), -4), Some(6));
        assert_eq!(leaf(Value::Int(10), 0), Some(10));
        assert_eq!(leaf(Value::Int(20), 0), Some(18));
        let before = |a: i64| router.span(&[Value::Int(a)], &[int()], Below::Excluded);
        assert_eq!((before(10).map(|s| s.1), before(11).map(|s| s.1)), (Some(7), Some(11)));
        assert_eq!(router.span(&[Value::UInt(12)], &[int()], Below::Included), Some((10, 11)));
    }

    #[test]
    fn the_beginning_of_a_tuple_spans_all_that_may_hold_it() {
        let pair =
            |a: i64, b: i64| Some(tuple_key([(&Value::Int(a), &int()), (&Value::Int(b), &int())]));
        let bounds = vec![(pair(1, 5), 0), (pair(2, 1), 1), (pair(2, 7), 2), (pair(9, 0), 3)];
        let router = Router {
            rule: Rule::Range(bounds),
            values: 2,
            expression: false,
            kinds: vec![ValueKind::Signed; 2],
            sub: None,
        };
        let span = |a: i64| router.span(&[Value::Int(a)], &[int()], Below::Included);
        assert_eq!(span(0), Some((0, 0)));
        assert_eq!(span(1), Some((0, 1)));
        assert_eq!(span(2), Some((1, 3)));
        assert_eq!(span(9), Some((3, 3)));
        assert_eq!(span(10), Some((NO_PARTITION, 3)));
    }

    #[test]
    fn numbers_without_room_are_refused() {
        let sub = Some(Rule::Hash(Deal { count: 300, linear: false }));
        let router = |number| Router {
            rule: Rule::Range(vec![(None, number)]),
            values: 1,
            expression: true,
            kinds: vec![ValueKind::Signed; 2],
            sub: sub.clone(),
        };
        assert!(Router::read(&router(217).write()).is_some());
        assert!(Router::read(&router(218).write()).is_none());
    }

    #[test]
    fn linear_dealing_uses_powers_of_two() {
        let deal = Deal { count: 6, linear: true };
        let dealt: Vec<u16> = (0..9).map(|number| deal.of(number)).collect();
        assert_eq!(dealt, [0, 1, 2, 3, 4, 5, 2, 3, 0]);
        assert_eq!(Deal { count: 4, linear: false }.of(-7), 3);
    }
}
