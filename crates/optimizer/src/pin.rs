//! The part of an index that predicates pin down: ranges of its keys, and how many rows they are expected to hold.
//!
//! The parts of the key are taken in order. Equal values and lists of values pin a part down and lead on to the next one; a range
//! or a union of ranges is the last part used, and so is a part without a predicate.

use catalog::{Column, Index, IndexPart, Table};
use plan::{Expr, IndexKeySource, RangeBound, RangeSpec};
use types::DataType;

use crate::Planner;
use crate::access::is_known;
use crate::cost::{
    BETWEEN_SHARE, EQUAL_SHARE, HALF_OPEN_SHARE, LOOK_ROWS_MIN, LOOK_SHARE_MIN,
    MEASURED_RANGES_MAX, MEETING_SHARE, UNION_PIECE_SHARE,
};
use crate::sargable::{Ends, IN_LIST_MAX, Sarg, SargKind};

/// The part of an index that predicates pin down.
pub(crate) struct Pinned {
    pub ranges: Vec<RangeSpec>,
    pub consumed: Vec<usize>,
    pub used: Vec<usize>,
    /// Parts pinned to one equal value.
    pub equal: usize,
    /// Share of the table that the ranges hold.
    pub rows: f64,
    pub unique: bool,
    /// Each range is a whole key of a unique index, without NULL.
    pub keys: bool,
    /// The engine was asked how many rows the ranges hold.
    pub measured: bool,
}

impl Pinned {
    /// A predicate is used; an exact one is covered, unless only a prefix is indexed.
    fn note(&mut self, sarg: &Sarg, whole: bool) {
        self.used.push(sarg.predicate);
        if sarg.exact && whole {
            self.consumed.push(sarg.predicate);
        }
    }
}

/// The restrictions of predicates on one part of the key.
enum PartPin {
    /// It has one or several known values; the next part can be pinned down as well.
    Values,
    /// It is in ranges, which hold this share of the rows with the earlier parts' values.
    Ranges { share: f64 },
    /// It is below or above one value: many rows or few.
    Outside,
    /// Nothing.
    Nothing,
}

/// A list of values that pinned down a part.
///
/// The list of the numbers of partitions also pins down a later part, and a list of rows several: values of one place belong together.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ListId {
    predicate: usize,
    values: usize,
}

/// A key whose parts are being pinned down.
struct Pinning<'a> {
    table: &'a Table,
    sargs: &'a [&'a Sarg],
    pinned: Pinned,
    /// Parts that have known values.
    matched: usize,
    /// Combinations of the values of lists.
    combinations: f64,
    /// Each part so far has one value, known as a whole: the next equal one continues [`Pinned::equal`].
    all_single: bool,
    /// A value may be NULL, of which a unique index holds many.
    finds_null: bool,
    /// The list whose values may go on with a later part, and the place in it of each range's value.
    list: Option<(ListId, Vec<usize>)>,
}

impl<'a> Pinning<'a> {
    fn new(table: &'a Table, sargs: &'a [&'a Sarg], total: f64) -> Pinning<'a> {
        let pinned = Pinned {
            ranges: vec![RangeSpec::default()],
            consumed: Vec::new(),
            used: Vec::new(),
            equal: 0,
            rows: total,
            unique: false,
            keys: false,
            measured: false,
        };
        Pinning {
            table,
            sargs,
            pinned,
            matched: 0,
            combinations: 1.0,
            all_single: true,
            finds_null: false,
            list: None,
        }
    }

    /// Pins down the next part, by the most restrictive predicate on it.
    fn take(&mut self, part: &IndexPart, may_be_outside: bool) -> PartPin {
        if self.take_equal(part) || self.take_list(part) {
            return PartPin::Values;
        }
        if let Some(share) = self.take_union(part).or_else(|| self.take_range(part)) {
            return PartPin::Ranges { share };
        }
        let is_outside = may_be_outside && self.take_outside(part);
        if is_outside { PartPin::Outside } else { PartPin::Nothing }
    }

    fn sargs_of(&self, part: &IndexPart) -> impl Iterator<Item = &'a Sarg> + use<'a> {
        let column = part.column;
        self.sargs.iter().copied().filter(move |sarg| sarg.column == column)
    }

    /// `part = value`
    fn take_equal(&mut self, part: &IndexPart) -> bool {
        let equal = self.sargs_of(part).find_map(|sarg| match &sarg.kind {
            SargKind::Equal { value, null_safe } => Some((sarg, value, *null_safe)),
            SargKind::In(_)
            | SargKind::Ranges(_)
            | SargKind::Range { .. }
            | SargKind::Outside(_)
            | SargKind::Meets(_) => None,
        });
        let Some((sarg, value, null_safe)) = equal else { return false };
        let source = source(self.table, part, value, null_safe);
        for range in &mut self.pinned.ranges {
            range.equal.push(source.clone());
        }
        self.finds_null |= null_safe;
        let whole = is_whole(part);
        self.pinned.note(sarg, whole);
        self.matched += 1;
        if self.all_single {
            self.pinned.equal += 1;
        }
        self.all_single &= whole;
        true
    }

    /// `part IN (values)`
    fn take_list(&mut self, part: &IndexPart) -> bool {
        let ranges = self.pinned.ranges.len();
        let list = self.sargs_of(part).find_map(|sarg| match &sarg.kind {
            SargKind::In(values) if values.len() * ranges <= IN_LIST_MAX => Some((sarg, values)),
            SargKind::In(_)
            | SargKind::Equal { .. }
            | SargKind::Ranges(_)
            | SargKind::Range { .. }
            | SargKind::Outside(_)
            | SargKind::Meets(_) => None,
        });
        let Some((sarg, values)) = list else { return false };
        let id = ListId { predicate: sarg.predicate, values: values.len() };
        match self.list.take() {
            Some((known, places)) if known == id => {
                for (range, place) in self.pinned.ranges.iter_mut().zip(&places) {
                    range.equal.push(source(self.table, part, &values[*place], false));
                }
                self.list = Some((known, places));
            }
            Some((known, places)) => {
                self.combine(part, values);
                // Each range became one for each value.
                let each = |place| std::iter::repeat_n(place, values.len());
                self.list = Some((known, places.into_iter().flat_map(each).collect()));
            }
            None => {
                self.combine(part, values);
                self.list =
                    Some((id, (0..values.len()).cycle().take(ranges * values.len()).collect()));
            }
        }
        self.pinned.note(sarg, is_whole(part));
        self.matched += 1;
        true
    }

    /// Makes one range of each existing range and value.
    fn combine(&mut self, part: &IndexPart, values: &[Expr]) {
        let before = std::mem::take(&mut self.pinned.ranges);
        for range in before {
            for value in values {
                let mut next = range.clone();
                next.equal.push(source(self.table, part, value, false));
                self.pinned.ranges.push(next);
            }
        }
        self.combinations *= values.len() as f64;
        self.all_single = false;
    }

    /// Ranges of which one holds the part: the share of the rows in them.
    fn take_union(&mut self, part: &IndexPart) -> Option<f64> {
        let ranges = self.pinned.ranges.len();
        let (sarg, union) = self.sargs_of(part).find_map(|sarg| match &sarg.kind {
            SargKind::Ranges(ends) if ends.len() * ranges <= IN_LIST_MAX => Some((sarg, ends)),
            SargKind::Ranges(_)
            | SargKind::Equal { .. }
            | SargKind::In(_)
            | SargKind::Range { .. }
            | SargKind::Outside(_)
            | SargKind::Meets(_) => None,
        })?;
        let before = std::mem::take(&mut self.pinned.ranges);
        for range in before {
            for (lower, upper) in union {
                let next = RangeSpec {
                    lower: lower.as_ref().map(|end| self.bound(part, end)),
                    upper: upper.as_ref().map(|end| self.bound(part, end)),
                    ..range.clone()
                };
                self.pinned.ranges.push(next);
            }
        }
        self.pinned.note(sarg, is_whole(part));
        Some(union.iter().map(piece_share).sum::<f64>().min(1.0))
    }

    /// `part <> value`
    fn take_outside(&mut self, part: &IndexPart) -> bool {
        let found = self.sargs_of(part).find_map(|sarg| match &sarg.kind {
            SargKind::Outside(value) => Some((sarg, (value.clone(), false))),
            SargKind::Equal { .. }
            | SargKind::In(_)
            | SargKind::Range { .. }
            | SargKind::Ranges(_)
            | SargKind::Meets(_) => None,
        });
        let Some((sarg, end)) = found.filter(|_| is_whole(part)) else { return false };
        let end = self.bound(part, &end);
        let before = std::mem::take(&mut self.pinned.ranges);
        for range in before {
            let below = RangeSpec { upper: Some(end.clone()), ..range.clone() };
            let above = RangeSpec { lower: Some(end.clone()), ..range };
            let in_order = if part.descending { [above, below] } else { [below, above] };
            self.pinned.ranges.extend(in_order);
        }
        self.pinned.note(sarg, true);
        true
    }

    /// A range that holds the part, from all predicates that bound it: the share of the rows in it.
    fn take_range(&mut self, part: &IndexPart) -> Option<f64> {
        let mut is_bounded = false;
        for sarg in self.sargs_of(part) {
            let SargKind::Range { lower, upper } = &sarg.kind else { continue };
            let is_free = |bound: &Option<RangeBound>, wanted: &Option<(Expr, bool)>| {
                wanted.is_none() || bound.is_none()
            };
            let first = self.pinned.ranges.first();
            if !first.is_none_or(|r| is_free(&r.lower, lower) && is_free(&r.upper, upper)) {
                continue;
            }
            let lower = lower.as_ref().map(|end| self.bound(part, end));
            let upper = upper.as_ref().map(|end| self.bound(part, end));
            for range in &mut self.pinned.ranges {
                range.lower = lower.clone().or(range.lower.take());
                range.upper = upper.clone().or(range.upper.take());
            }
            is_bounded = true;
            self.pinned.note(sarg, is_whole(part));
        }
        let has_both = |range: &RangeSpec| range.lower.is_some() && range.upper.is_some();
        let both = self.pinned.ranges.first().is_some_and(has_both);
        is_bounded.then_some(if both { BETWEEN_SHARE } else { HALF_OPEN_SHARE })
    }

    fn bound(&self, part: &IndexPart, (value, inclusive): &(Expr, bool)) -> RangeBound {
        let inclusive = *inclusive || !is_whole(part);
        RangeBound { key: source(self.table, part, value, false), inclusive }
    }
}

impl Planner<'_> {
    /// The parts of an index that predicates pin down; `None` when they pin down none.
    pub(crate) fn pin(
        &self,
        table: &Table,
        index: &Index,
        sargs: &[&Sarg],
        total: f64,
    ) -> Option<Pinned> {
        if let Some(column) = table.spatial_column(index) {
            return pin_cells(&table.columns[column], column, sargs, total);
        }
        let parts = table.key_parts(index);
        let mut pinning = Pinning::new(table, sargs, total);
        for part in parts.iter() {
            let is_outside = |sarg: &Sarg| matches!(sarg.kind, SargKind::Outside(_));
            let may_be_outside = pinning.sargs_of(part).any(is_outside)
                && self.has_few_values(table, index, pinning.matched + 1, total);
            let pin = pinning.take(part, may_be_outside);
            match pin {
                PartPin::Values => {}
                PartPin::Ranges { .. } | PartPin::Outside => {
                    // Beside one value only the engine knows how many rows there are.
                    let (share, rivals) = match pin {
                        PartPin::Ranges { share } => (share, Some(sargs)),
                        PartPin::Values | PartPin::Outside | PartPin::Nothing => {
                            (1.0 - EQUAL_SHARE, None)
                        }
                    };
                    let Pinning { matched, combinations, mut pinned, .. } = pinning;
                    if !holds_rows(table, index, matched) {
                        return None;
                    }
                    let measured = self.measure(table, index, rivals, &pinned, total);
                    pinned.measured = measured.is_some();
                    let guess =
                        || self.prefix_rows(table, index, matched, combinations, total) * share;
                    pinned.rows = measured.unwrap_or_else(guess).max(1.0);
                    return Some(pinned);
                }
                PartPin::Nothing => break,
            }
        }
        let Pinning { matched, combinations, finds_null, mut pinned, .. } = pinning;
        if matched == 0 || !holds_rows(table, index, matched) {
            return None;
        }
        let is_full_key = matched == parts.len() && parts.iter().all(is_whole);
        let is_key = is_full_key && index.unique && !finds_null;
        pinned.keys = is_key;
        pinned.unique = is_key && combinations == 1.0 && pinned.ranges.len() == 1;
        pinned.rows = if pinned.ranges.is_empty() {
            0.0
        } else if is_key {
            combinations.min(total)
        } else {
            let guess = self.prefix_rows(table, index, matched, combinations, total);
            // Of an index with few values one may be rare.
            let measured = match guess > total * LOOK_SHARE_MIN {
                true => self.measure(table, index, None, &pinned, total),
                false => None,
            };
            pinned.measured = measured.is_some();
            measured.unwrap_or(guess).max(1.0)
        };
        Some(pinned)
    }

    /// Whether one value of a part may have most of the rows.
    fn has_few_values(&self, table: &Table, index: &Index, parts: usize, total: f64) -> bool {
        /// Rows of each value, on average.
        const ROWS_MIN: f64 = 4.0;
        let distinct = self.input.statistics.distinct(table.id.0, index.id.0, parts);
        distinct.is_some_and(|distinct| distinct as f64 * ROWS_MIN <= total)
    }

    /// Rows of ranges, where another plan might be better for few or for many: in a join, and beside other indexes, which are those that
    /// `sargs` restrict.
    fn measure(
        &self,
        table: &Table,
        index: &Index,
        sargs: Option<&[&Sarg]>,
        pinned: &Pinned,
        total: f64,
    ) -> Option<f64> {
        let has_rival = |sargs: &[&Sarg]| {
            let begins = |other: &&Index| {
                let first = other.parts.first();
                first.is_some_and(|part| sargs.iter().any(|sarg| sarg.column == part.column))
            };
            table.indexes.iter().filter(begins).take(2).count() == 2
        };
        let is_worth_it = self.instances.len() > 1 || sargs.is_none_or(has_rival);
        let is_small = total < LOOK_ROWS_MIN || pinned.ranges.len() > MEASURED_RANGES_MAX;
        if !is_worth_it || is_small || !pinned.ranges.iter().all(is_known) {
            return None;
        }
        let (table, index, ranges) = (table.id.0, index.id.0, &pinned.ranges);
        let known = self.measured.borrow().iter().find_map(|(of, by, known, rows)| {
            (*of == table && *by == index && known == ranges).then_some(*rows)
        });
        let rows = known.unwrap_or_else(|| {
            let rows = self.input.statistics.measured(table, index, ranges);
            self.measured.borrow_mut().push((table, index, ranges.clone(), rows));
            rows
        });
        debug_assert!(rows.is_none_or(|rows| rows >= 0.0));
        rows.map(|rows| rows.min(total))
    }

    /// Rows with given values of the first `parts` parts.
    fn prefix_rows(
        &self,
        table: &Table,
        index: &Index,
        parts: usize,
        combinations: f64,
        total: f64,
    ) -> f64 {
        if parts == 0 {
            return total;
        }
        let distinct = self.input.statistics.distinct(table.id.0, index.id.0, parts);
        let each = match distinct {
            Some(distinct) if distinct > 0 => total / distinct as f64,
            _ if index.unique && parts == table.key_parts(index).len() => 1.0,
            _ => (total * EQUAL_SHARE.powi(parts as i32)).max(1.0),
        };
        (each * combinations).min(total).max(1.0)
    }
}

fn source(table: &Table, part: &IndexPart, value: &Expr, null_safe: bool) -> IndexKeySource {
    IndexKeySource {
        value: value.clone(),
        ty: key_type(&table.columns[part.column]).clone(),
        prefix_length: part.prefix_length,
        descending: part.descending,
        null_safe,
    }
}

/// The cells of a spatial index that a geometry of the statement or of another table meets. Which they are is known when it is.
fn pin_cells(column: &Column, at: usize, sargs: &[&Sarg], total: f64) -> Option<Pinned> {
    let (sarg, value) = sargs.iter().filter(|sarg| sarg.column == at).find_map(|sarg| {
        let SargKind::Meets(value) = &sarg.kind else { return None };
        Some((sarg, value))
    })?;
    let source = IndexKeySource {
        value: value.clone(),
        ty: column.ty.clone(),
        prefix_length: None,
        descending: false,
        null_safe: false,
    };
    Some(Pinned {
        ranges: vec![RangeSpec { equal: vec![source], ..RangeSpec::default() }],
        consumed: Vec::new(),
        used: vec![sarg.predicate],
        equal: 0,
        rows: (total * MEETING_SHARE).max(1.0),
        unique: false,
        keys: false,
        measured: false,
    })
}

/// Whether the entries with values of the first `matched` parts lead to every row with them, and once: those of a multi-valued
/// index only with the value of an element.
fn holds_rows(table: &Table, index: &Index, matched: usize) -> bool {
    table.elements_part(index).is_none_or(|at| at < matched)
}

/// The type of a column's values in keys.
pub(crate) fn key_type(column: &Column) -> &DataType {
    column.elements().unwrap_or(&column.ty)
}

fn is_whole(part: &IndexPart) -> bool {
    part.prefix_length.is_none()
}

fn piece_share((lower, upper): &Ends) -> f64 {
    if lower.is_some() && upper.is_some() { UNION_PIECE_SHARE } else { HALF_OPEN_SHARE }
}
