//! From values to key bytes and ranges of an index.

use std::cmp::Ordering;

use engine_api::{KeyBound, KeyList, KeyRange, successor, united};
use errors::Result;
use rows::convert::{self, KeyFit};
use types::geometry::cells::searched_cells;
use types::key::encode_part;
use types::{DataType, TypeKind, Value};

use crate::expr::Code;
use crate::run::Run;

/// Part of a key.
pub(crate) struct KeySource {
    pub(crate) value: Code,
    pub(crate) from: DataType,
    pub(crate) ty: DataType,
    pub(crate) prefix_length: Option<u32>,
    pub(crate) descending: bool,
    pub(crate) null_safe: bool,
    /// A TIMESTAMP value that is UTC already.
    pub(crate) is_utc: bool,
}

impl KeySource {
    /// Appends the part; false when no row can have it.
    pub(crate) fn append(&self, run: &mut Run<'_>, out: &mut Vec<u8>) -> Result<bool> {
        if let Some(value) = self.value.leaf(run)
            && convert::is_exact_key(value, &self.ty)
        {
            encode_part(value, &self.ty, self.prefix_length, self.descending, out);
            return Ok(true);
        }
        let value = self.value.eval(run)?;
        if value.is_null() {
            if !self.null_safe || !self.ty.nullable {
                return Ok(false);
            }
            encode_part(&Value::Null, &self.ty, self.prefix_length, self.descending, out);
            return Ok(true);
        }
        match convert::to_key(value, &self.from, &self.ty, self.is_utc, &mut run.function)? {
            KeyFit::Exact(value) => {
                encode_part(&value, &self.ty, self.prefix_length, self.descending, out);
                Ok(true)
            }
            KeyFit::Rounded(..) => Ok(false),
        }
    }

    /// The ranges of a spatial index in which all rows are whose box meets that of the geometry.
    fn cells(&self, run: &mut Run<'_>) -> Result<Vec<KeyRange>> {
        let value = self.value.eval(run)?;
        if value.is_null() {
            return Ok(Vec::new());
        }
        // The condition says what is wrong with other values.
        let Value::Bytes(geometry) = value else { return Ok(vec![KeyRange::ALL]) };
        let cells = searched_cells(&geometry, self.ty.spatial);
        let Some(cells) = cells else { return Ok(vec![KeyRange::ALL]) };
        let end = |cell: u64| KeyBound::Included(cell.to_be_bytes().to_vec());
        Ok(cells
            .into_iter()
            .map(|(low, high)| KeyRange { lower: end(low), upper: end(high) })
            .collect())
    }

    /// Appends the part of a range's end, rounded and clamped; `None` for NULL, which no range contains.
    fn append_bound(&self, run: &mut Run<'_>, out: &mut Vec<u8>) -> Result<Option<Nearness>> {
        let value = self.value.eval(run)?;
        if value.is_null() {
            return Ok(None);
        }
        let (value, order) =
            match convert::to_key(value, &self.from, &self.ty, self.is_utc, &mut run.function)? {
                KeyFit::Exact(value) => (value, Some(Ordering::Equal)),
                KeyFit::Rounded(value, order) => (value, order),
            };
        if value.is_null() {
            return Ok(None);
        }
        encode_part(&value, &self.ty, self.prefix_length, self.descending, out);
        Ok(Some(match order {
            Some(order) if self.prefix_length.is_none() => Nearness::Ordered(order),
            _ => Nearness::Vague,
        }))
    }
}

/// How the bytes of a range's end relate to its value.
enum Nearness {
    /// The value compares like this with theirs, and no other key is between them.
    Ordered(Ordering),
    /// They may represent more than one value, so that an exclusive end must include them.
    Vague,
}

/// Which end of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Lower,
    Upper,
}

/// One range: equal parts, then bounds on the next part.
pub(crate) struct RangeNode {
    pub(crate) equal: Vec<KeySource>,
    pub(crate) lower: Option<(KeySource, bool)>,
    pub(crate) upper: Option<(KeySource, bool)>,
}

/// All ranges of a scan.
pub(crate) struct Ranges {
    pub(crate) ranges: Vec<RangeNode>,
}

impl RangeNode {
    /// The range's bytes; `None` when it is empty.
    fn evaluate(&self, run: &mut Run<'_>) -> Result<Option<KeyRange>> {
        let mut prefix = Vec::new();
        for part in &self.equal {
            if !part.append(run, &mut prefix)? {
                return Ok(None);
            }
        }
        let Some(part) = self.lower.as_ref().or(self.upper.as_ref()).map(|(part, _)| part) else {
            return Ok(Some(KeyRange::prefix(prefix)));
        };
        let Ok(lower) = bound(self.lower.as_ref(), End::Lower, &prefix, run)? else {
            return Ok(None);
        };
        let Ok(upper) = bound(self.upper.as_ref(), End::Upper, &prefix, run)? else {
            return Ok(None);
        };
        let mut not_null = prefix;
        append_not_null_start(&part.ty, part.descending, &mut not_null);
        // Without its own end the range ends with the non-NULL keys of the prefix.
        let open =
            if not_null.is_empty() { KeyBound::Unbounded } else { KeyBound::Included(not_null) };
        let lower = lower.unwrap_or_else(|| open.clone());
        let upper = upper.unwrap_or(open);
        Ok(Some(if part.descending {
            KeyRange { lower: upper, upper: lower }
        } else {
            KeyRange { lower, upper }
        }))
    }
}

/// Appends the start that all non-NULL parts of a nullable column share and NULL does not.
fn append_not_null_start(ty: &DataType, descending: bool, out: &mut Vec<u8>) {
    // The tag before a value, see `types::key`.
    const NOT_NULL: u8 = 1;
    if ty.nullable {
        out.push(if descending { !NOT_NULL } else { NOT_NULL });
    }
}

/// An end of a range; the inner error means that nothing matches.
#[allow(clippy::type_complexity)]
fn bound(
    source: Option<&(KeySource, bool)>,
    end: End,
    prefix: &[u8],
    run: &mut Run<'_>,
) -> Result<Result<Option<KeyBound>, ()>> {
    let Some((part, inclusive)) = source else { return Ok(Ok(None)) };
    let mut key = prefix.to_vec();
    Ok(match part.append_bound(run, &mut key)? {
        None => Err(()),
        Some(nearness) => {
            let takes_in = match nearness {
                Nearness::Vague => true,
                Nearness::Ordered(Ordering::Equal) => *inclusive,
                Nearness::Ordered(Ordering::Less) => end == End::Lower,
                Nearness::Ordered(Ordering::Greater) => end == End::Upper,
            };
            Ok(Some(if takes_in { KeyBound::Included(key) } else { KeyBound::Excluded(key) }))
        }
    })
}

impl Ranges {
    /// The ranges in index order, without overlap.
    pub(crate) fn evaluate(&self, backward: bool, run: &mut Run<'_>) -> Result<Vec<KeyRange>> {
        if let [only] = self.ranges.as_slice() {
            return match only.equal.as_slice() {
                [source] if source.ty.kind == TypeKind::Geometry => source.cells(run),
                _ => Ok(only.evaluate(run)?.into_iter().collect()),
            };
        }
        let mut ranges = Vec::with_capacity(self.ranges.len());
        for range in &self.ranges {
            ranges.extend(range.evaluate(run)?);
        }
        let mut ranges = united(ranges);
        if backward {
            ranges.reverse();
        }
        Ok(ranges)
    }
}

/// Replaces `keys` with those that rows can have, and `order` with their places in the order in which a scan reads them, each key once.
pub(crate) fn evaluate_keys(
    sources: &[Vec<KeySource>],
    backward: bool,
    (keys, order): (&mut KeyList, &mut Vec<u32>),
    run: &mut Run<'_>,
) -> Result<()> {
    keys.clear();
    'keys: for parts in sources {
        for part in parts {
            if !part.append(run, keys.begin_key())? {
                keys.abandon_key();
                continue 'keys;
            }
        }
        keys.end_key();
    }
    keys.sort_into(order);
    order.dedup_by(|a, b| keys.key(*a as usize) == keys.key(*b as usize));
    if backward {
        order.reverse();
    }
    Ok(())
}

/// The range of one whole key.
pub(crate) fn key_range(key: &[u8]) -> KeyRange {
    let upper = successor(key).map_or(KeyBound::Unbounded, KeyBound::Excluded);
    KeyRange { lower: KeyBound::Included(key.to_vec()), upper }
}
