//! States of aggregate calls, for all groups side by side.

use std::cmp::Ordering;

use rows::key_set::KeySet;
use types::{CollationId, Date, DateTime, Decimal, SqlBytes, Time, Value};

use crate::column::{Column, Data};
use crate::keys::PartWriter;
use crate::{Fit, Unfit};

/// For each row of a batch its group.
#[derive(Clone, Copy)]
pub(crate) enum Groups<'a> {
    /// All rows are of group 0.
    One,
    Each(&'a [u32]),
}

impl Groups<'_> {
    #[inline]
    fn of(&self, row: usize) -> usize {
        match self {
            Groups::One => 0,
            Groups::Each(groups) => groups[row] as usize,
        }
    }
}

/// The kind of state that a call keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    Count,
    /// SUM and AVG of exact numbers.
    Sum,
    /// SUM and AVG of doubles: the order of rows shows in the result.
    SumDouble,
    /// MIN (`Less`) and MAX (`Greater`); texts under the collation.
    Extreme(Ordering, CollationId),
    /// COUNT of different values; texts under the collation.
    CountDistinct(CollationId),
    /// SUM and AVG of different exact numbers.
    SumDistinct,
}

impl StateKind {
    /// Whether the result for no rows is 0 and not NULL.
    pub fn counts(self) -> bool {
        matches!(self, StateKind::Count | StateKind::CountDistinct(_))
    }
}

/// The best values so far; `has` marks the groups that have one.
#[derive(Debug)]
enum Best {
    Unknown,
    Ints(Vec<i64>),
    UInts(Vec<u64>),
    Doubles(Vec<f64>),
    Decimals(Vec<i128>),
    Texts(Vec<Vec<u8>>),
}

/// States of one call.
#[derive(Debug)]
pub enum States {
    Count(Vec<i64>),
    Sum { sums: Vec<i128>, scale: u8, counts: Vec<u64> },
    SumDouble { sums: Vec<f64>, counts: Vec<u64> },
    Extreme { wanted: Ordering, collation: CollationId, best: Extremes, has: Vec<bool> },
    Distinct(Box<Distinct>),
}

/// The state of DISTINCT: each of a group's values is passed to `of` when it first occurs.
#[derive(Debug)]
pub struct Distinct {
    /// The group in four bytes, and the value's part.
    seen: KeySet,
    part: PartWriter,
    key: Vec<u8>,
    /// The values in the order of `seen`, where `of` wants more than their number.
    values: Option<Column>,
    of: States,
}

/// Best values with the kind of their input.
#[derive(Debug)]
pub struct Extremes {
    values: Best,
    kind: Option<Data>,
    /// By group: the position in the scan of the best text. Among equal texts that are not identical, the first one counts.
    at: Vec<u64>,
}

impl States {
    pub(crate) fn new(kind: StateKind) -> States {
        match kind {
            StateKind::Count => States::Count(Vec::new()),
            StateKind::Sum => States::Sum { sums: Vec::new(), scale: 0, counts: Vec::new() },
            StateKind::SumDouble => States::SumDouble { sums: Vec::new(), counts: Vec::new() },
            StateKind::Extreme(wanted, collation) => States::Extreme {
                wanted,
                collation,
                best: Extremes { values: Best::Unknown, kind: None, at: Vec::new() },
                has: Vec::new(),
            },
            StateKind::CountDistinct(collation) => States::distinct(collation, StateKind::Count),
            StateKind::SumDistinct => States::distinct(CollationId::BINARY, StateKind::Sum),
        }
    }

    fn distinct(collation: CollationId, of: StateKind) -> States {
        States::Distinct(Box::new(Distinct {
            seen: KeySet::default(),
            part: PartWriter::new(collation),
            key: Vec::new(),
            values: None,
            of: States::new(of),
        }))
    }

    /// Bytes held, about.
    pub fn heap_bytes(&self) -> usize {
        match self {
            States::Count(counts) => size_of_val(&counts[..]),
            States::Sum { counts, .. } => counts.len() * (size_of::<i128>() + size_of::<u64>()),
            States::SumDouble { counts, .. } => counts.len() * 16,
            States::Extreme { has, .. } => has.len() * 32,
            States::Distinct(distinct) => {
                let values = distinct.values.as_ref().map_or(0, Column::heap_bytes);
                distinct.seen.heap_bytes() + values + distinct.of.heap_bytes()
            }
        }
    }

    /// Makes room for `groups` groups.
    pub(crate) fn grow(&mut self, groups: usize) {
        match self {
            States::Count(counts) => counts.resize(groups, 0),
            States::Sum { sums, counts, .. } => {
                sums.resize(groups, 0);
                counts.resize(groups, 0);
            }
            States::SumDouble { sums, counts } => {
                sums.resize(groups, 0.0);
                counts.resize(groups, 0);
            }
            States::Extreme { best, has, .. } => {
                has.resize(groups, false);
                best.grow(groups);
            }
            States::Distinct(distinct) => distinct.of.grow(groups),
        }
    }

    /// Adds a batch whose first row is at `position` of the scan; `column` is the argument, `None` for `COUNT(*)`.
    pub(crate) fn update(
        &mut self,
        groups: Groups<'_>,
        column: Option<&Column>,
        rows: usize,
        position: u64,
    ) -> Fit<()> {
        match (self, column) {
            (States::Count(counts), None) => match groups {
                Groups::One => counts[0] += rows as i64,
                Groups::Each(groups) => groups.iter().for_each(|g| counts[*g as usize] += 1),
            },
            (States::Count(counts), Some(column)) => {
                for row in 0..rows {
                    counts[groups.of(row)] += i64::from(!column.is_null(row));
                }
            }
            (States::Sum { sums, scale, counts }, Some(column)) => {
                update_sums(sums, scale, counts, groups, column, rows)?;
            }
            (States::SumDouble { sums, counts }, Some(column)) => {
                let Data::Double(values) = &column.data else { return Err(Unfit) };
                for row in (0..rows).filter(|row| !column.is_null(*row)) {
                    let group = groups.of(row);
                    sums[group] += values[row];
                    counts[group] += 1;
                }
            }
            (States::Extreme { wanted, collation, best, has }, Some(column)) => {
                best.take_kind(&column.data, has.len())?;
                best.update((*wanted, *collation), has, groups, column, rows, position)?;
            }
            (States::Distinct(distinct), Some(column)) => distinct.update(groups, column, rows)?,
            _ => return Err(Unfit),
        }
        Ok(())
    }

    /// Merges other states; `into`: for each of their groups the one here.
    pub(crate) fn take_in(&mut self, other: &States, into: &[u32]) -> Fit<()> {
        self.take_in_ranked(other, into, |from| match other {
            States::Extreme { best, .. } => best.at.get(from).copied().unwrap_or(0),
            _ => 0,
        })
    }

    /// As `take_in`; among equal best values that of the group with the lowest rank stays.
    pub(crate) fn take_in_ranked(
        &mut self,
        other: &States,
        into: &[u32],
        rank: impl Fn(usize) -> u64,
    ) -> Fit<()> {
        if let (States::Distinct(own), States::Distinct(other)) = (&mut *self, other) {
            return own.take_in(other, into);
        }
        for (from, into) in into.iter().enumerate() {
            self.merge(*into as usize, other, from, rank(from))?;
        }
        Ok(())
    }

    /// Merges group `from` of other states, whose best value is from a row at `at`.
    fn merge(&mut self, into: usize, other: &States, from: usize, at: u64) -> Fit<()> {
        match (self, other) {
            (States::Count(counts), States::Count(others)) => counts[into] += others[from],
            (
                States::Sum { sums, scale, counts },
                States::Sum { sums: other_sums, scale: other_scale, counts: others },
            ) => {
                if others[from] > 0 {
                    if counts.iter().all(|count| *count == 0) {
                        *scale = *other_scale;
                    }
                    if scale != other_scale {
                        return Err(Unfit);
                    }
                    sums[into] = sums[into].checked_add(other_sums[from]).ok_or(Unfit)?;
                    counts[into] += others[from];
                }
            }
            (
                States::Extreme { wanted, collation, best, has },
                States::Extreme { best: other, has: others, .. },
            ) => {
                if others[from] {
                    let column = Column::single(&other.value(from)?)?;
                    best.take_kind(&column.data, has.len())?;
                    let group = [into as u32];
                    let groups = Groups::Each(&group);
                    best.update((*wanted, *collation), has, groups, &column, 1, at)?;
                }
            }
            _ => return Err(Unfit),
        }
        Ok(())
    }

    /// A group's sum, count and best value, as far as the call keeps them.
    pub fn result(&self, group: usize) -> Fit<StateResult> {
        Ok(match self {
            States::Count(counts) => StateResult::Count(counts[group]),
            States::Sum { sums, scale, counts } => StateResult::Sum(
                Value::Decimal(Decimal::from_i128(sums[group], *scale)),
                counts[group],
            ),
            States::SumDouble { sums, counts } => {
                StateResult::Sum(Value::Double(sums[group]), counts[group])
            }
            States::Distinct(distinct) => return distinct.of.result(group),
            States::Extreme { best, has, .. } => StateResult::Best(match has[group] {
                true => Some(best.value(group)?),
                false => None,
            }),
        })
    }
}

impl Distinct {
    fn update(&mut self, groups: Groups<'_>, column: &Column, rows: usize) -> Fit<()> {
        self.part.admit(column)?;
        let (mut new_rows, mut new_groups) = (Vec::new(), Vec::new());
        for row in (0..rows).filter(|row| !column.is_null(*row)) {
            let group = groups.of(row) as u32;
            self.key.clear();
            self.key.extend_from_slice(&group.to_le_bytes());
            self.part.append(column, row, &mut self.key);
            if self.seen.insert(&self.key).1 {
                new_rows.push(row as u32);
                new_groups.push(group);
            }
        }
        self.take_new(column, &new_rows, &new_groups)
    }

    /// Adds rows whose keys are in `seen` for the first time.
    fn take_new(&mut self, column: &Column, rows: &[u32], groups: &[u32]) -> Fit<()> {
        if let States::Count(counts) = &mut self.of {
            groups.iter().for_each(|group| counts[*group as usize] += 1);
            return Ok(());
        }
        let new = column.gather(rows)?;
        self.of.update(Groups::Each(groups), Some(&new), rows.len(), 0)?;
        let values = self.values.get_or_insert_with(|| Column::new(column.data.empty_like()));
        values.append_rows(column, rows)
    }

    fn take_in(&mut self, other: &Distinct, into: &[u32]) -> Fit<()> {
        self.part.admit_parts(&other.part)?;
        let (mut rows, mut groups) = (Vec::new(), Vec::new());
        for (row, key) in (0..).zip(other.seen.iter()) {
            let (group, part) = key.split_first_chunk().ok_or(Unfit)?;
            let group = into[u32::from_le_bytes(*group) as usize];
            self.key.clear();
            self.key.extend_from_slice(&group.to_le_bytes());
            self.key.extend_from_slice(part);
            if self.seen.insert(&self.key).1 {
                rows.push(row);
                groups.push(group);
            }
        }
        let none = Column::new(Data::Int(Vec::new()));
        self.take_new(other.values.as_ref().unwrap_or(&none), &rows, &groups)
    }
}

/// The result of one group.
pub enum StateResult {
    Count(i64),
    Sum(Value, u64),
    Best(Option<Value>),
}

fn update_sums(
    sums: &mut [i128],
    scale: &mut u8,
    counts: &mut [u64],
    groups: Groups<'_>,
    column: &Column,
    rows: usize,
) -> Fit<()> {
    macro_rules! add {
        ($values:ident) => {
            match (&column.nulls, groups) {
                (None, Groups::One) => {
                    // At most 1,024 rows a batch or so: 64 bits each cannot overflow 128.
                    let sum: i128 = $values[..rows].iter().map(|value| i128::from(*value)).sum();
                    sums[0] = sums[0].checked_add(sum).ok_or(Unfit)?;
                    counts[0] += rows as u64;
                }
                _ => {
                    for row in (0..rows).filter(|row| !column.is_null(*row)) {
                        let group = groups.of(row);
                        let value = i128::from($values[row]);
                        sums[group] = sums[group].checked_add(value).ok_or(Unfit)?;
                        counts[group] += 1;
                    }
                }
            }
        };
    }
    match &column.data {
        Data::Int(values) => add!(values),
        Data::UInt(values) => add!(values),
        Data::Decimal(values, own) => {
            if scale != own {
                if counts.iter().any(|count| *count > 0) {
                    return Err(Unfit);
                }
                *scale = *own;
            }
            for row in (0..rows).filter(|row| !column.is_null(*row)) {
                let group = groups.of(row);
                sums[group] = sums[group].checked_add(values[row]).ok_or(Unfit)?;
                counts[group] += 1;
            }
        }
        // Nothing but NULLs.
        _ if (0..rows).all(|row| column.is_null(row)) => {}
        _ => return Err(Unfit),
    }
    Ok(())
}

impl Extremes {
    fn grow(&mut self, groups: usize) {
        match &mut self.values {
            Best::Unknown => {}
            Best::Ints(values) => values.resize(groups, 0),
            Best::UInts(values) => values.resize(groups, 0),
            Best::Doubles(values) => values.resize(groups, 0.0),
            Best::Decimals(values) => values.resize(groups, 0),
            Best::Texts(values) => {
                values.resize(groups, Vec::new());
                self.at.resize(groups, 0);
            }
        }
    }

    fn take_kind(&mut self, data: &Data, groups: usize) -> Fit<()> {
        if self.kind.is_none() {
            self.kind = Some(data.empty_like());
            self.values = match data {
                Data::Int(_) | Data::Time(_) => Best::Ints(Vec::new()),
                Data::UInt(_) | Data::Date(_) | Data::DateTime(_) => Best::UInts(Vec::new()),
                Data::Double(_) => Best::Doubles(Vec::new()),
                Data::Decimal(..) => Best::Decimals(Vec::new()),
                Data::Texts(_) => Best::Texts(Vec::new()),
            };
            self.grow(groups);
        }
        Ok(())
    }

    fn update(
        &mut self,
        (wanted, collation): (Ordering, CollationId),
        has: &mut [bool],
        groups: Groups<'_>,
        column: &Column,
        rows: usize,
        position: u64,
    ) -> Fit<()> {
        macro_rules! best {
            ($best:ident, $values:ident, $convert:expr, $compare:expr) => {
                for row in (0..rows).filter(|row| !column.is_null(*row)) {
                    let group = groups.of(row);
                    let value = $convert($values[row]);
                    if !has[group] || $compare(&value, &$best[group]) == wanted {
                        has[group] = true;
                        $best[group] = value;
                    }
                }
            };
        }
        match (&mut self.values, &column.data, &self.kind) {
            (Best::Ints(best), Data::Int(values), Some(Data::Int(_)))
            | (Best::Ints(best), Data::Time(values), Some(Data::Time(_))) => {
                best!(best, values, |v: i64| v, i64::cmp)
            }
            (Best::UInts(best), Data::UInt(values), Some(Data::UInt(_)))
            | (Best::UInts(best), Data::DateTime(values), Some(Data::DateTime(_))) => {
                best!(best, values, |v: u64| v, u64::cmp)
            }
            (Best::UInts(best), Data::Date(values), Some(Data::Date(_))) => {
                best!(best, values, u64::from, u64::cmp)
            }
            (Best::Doubles(best), Data::Double(values), _) => {
                best!(best, values, |v: f64| v, f64::total_cmp)
            }
            (Best::Decimals(best), Data::Decimal(values, a), Some(Data::Decimal(_, b)))
                if a == b =>
            {
                best!(best, values, |v: i128| v, i128::cmp)
            }
            (Best::Texts(best), Data::Texts(texts), _) => {
                let collation = charset::collation_or_binary(collation);
                for row in (0..rows).filter(|row| !column.is_null(*row)) {
                    let (group, text) = (groups.of(row), texts.get(row));
                    let at = position + row as u64;
                    let is_better =
                        |order: Ordering| order == wanted || order.is_eq() && at < self.at[group];
                    if !has[group] || is_better(collation.compare(text, &best[group])) {
                        has[group] = true;
                        self.at[group] = at;
                        best[group].clear();
                        best[group].extend_from_slice(text);
                    }
                }
            }
            _ if (0..rows).all(|row| column.is_null(row)) => {}
            _ => return Err(Unfit),
        }
        Ok(())
    }

    fn value(&self, group: usize) -> Fit<Value> {
        Ok(match (&self.values, self.kind.as_ref().ok_or(Unfit)?) {
            (Best::Ints(values), Data::Time(_)) => {
                Value::Time(Time::from_micros(values[group]).ok_or(Unfit)?)
            }
            (Best::Ints(values), _) => Value::Int(values[group]),
            (Best::UInts(values), Data::Date(_)) => {
                Value::Date(Date::from_packed(values[group] as u32).ok_or(Unfit)?)
            }
            (Best::UInts(values), Data::DateTime(_)) => {
                Value::DateTime(DateTime::from_packed(values[group]).ok_or(Unfit)?)
            }
            (Best::UInts(values), _) => Value::UInt(values[group]),
            (Best::Doubles(values), _) => Value::Double(values[group]),
            (Best::Decimals(values), Data::Decimal(_, scale)) => {
                Value::Decimal(Decimal::from_i128(values[group], *scale))
            }
            (Best::Texts(values), _) => Value::Bytes(SqlBytes::new(&values[group])),
            (Best::Decimals(_) | Best::Unknown, _) => return Err(Unfit),
        })
    }
}
