//! Finds the group of each row, and puts the groups of several threads together.

use hashbrown::HashMap;
use types::CollationId;

use super::column::{Column, Data};
use super::states::{Groups, StateKind, States};
use super::{Fit, Unfit};
use crate::value_key::append_hash_key;

type Table<K> = HashMap<K, u32, foldhash::fast::FixedState>;

/// Numbers for texts that are equal under a collation. Most texts come again as the same bytes, which saves their weights.
#[derive(Default)]
struct Classes {
    by_bytes: Table<Box<[u8]>>,
    by_weights: Table<Box<[u8]>>,
    weights: Vec<u8>,
    bytes: usize,
}

impl Classes {
    fn of(&mut self, text: &[u8], collation: CollationId) -> u32 {
        if let Some(class) = self.by_bytes.get(text) {
            return *class;
        }
        self.weights.clear();
        charset::collation_or_binary(collation).write_key(text, &mut self.weights);
        let next = self.by_weights.len() as u32;
        let class = match self.by_weights.get(self.weights.as_slice()) {
            Some(class) => *class,
            None => {
                self.bytes += self.weights.len() + ENTRY_BYTES;
                self.by_weights.insert(self.weights.as_slice().into(), next);
                next
            }
        };
        self.bytes += text.len() + ENTRY_BYTES;
        self.by_bytes.insert(text.into(), class);
        class
    }
}

/// Bytes of a table's entry besides the key.
const ENTRY_BYTES: usize = 48;

/// Groups with their keys, first rows and states.
pub(crate) struct Grouped {
    collations: Vec<CollationId>,
    classes: Vec<Classes>,
    by_number: Table<u64>,
    by_key: Table<Box<[u8]>>,
    null_group: Option<u32>,
    /// By group: where in the scan its first row was.
    pub(crate) first: Vec<u64>,
    /// By group: the key columns and the carried columns of its first row.
    pub(crate) kept: Vec<Column>,
    pub(crate) states: Vec<States>,
    /// Groups of the present batch's rows.
    rows: Vec<u32>,
    key: Vec<u8>,
    key_bytes: usize,
    has_keys: bool,
}

impl Grouped {
    pub(crate) fn new(
        collations: Vec<CollationId>,
        kinds: &[StateKind],
        has_keys: bool,
    ) -> Grouped {
        Grouped {
            classes: collations.iter().map(|_| Classes::default()).collect(),
            collations,
            by_number: Table::default(),
            by_key: Table::default(),
            null_group: None,
            first: Vec::new(),
            kept: Vec::new(),
            states: kinds.iter().map(|kind| States::new(*kind)).collect(),
            rows: Vec::new(),
            key: Vec::new(),
            key_bytes: 0,
            has_keys,
        }
    }

    /// Bytes held, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        let kept: usize = self.kept.iter().map(Column::heap_bytes).sum();
        let classes: usize = self.classes.iter().map(|classes| classes.bytes).sum();
        let per_group = 24 + ENTRY_BYTES + self.states.len() * 32;
        kept + classes + self.key_bytes + self.first.len() * per_group
    }

    /// Takes in a batch whose first row is at `position` of the scan. `kept`: the key columns, then the carried ones.
    pub(crate) fn update(
        &mut self,
        rows: usize,
        position: u64,
        kept: &[&Column],
        args: &[Option<&Column>],
    ) -> Fit<()> {
        if rows == 0 {
            return Ok(());
        }
        if self.kept.len() < kept.len() {
            self.kept = kept.iter().map(|column| Column::new(column.data.empty_like())).collect();
        }
        let before = self.first.len();
        if self.has_keys {
            self.find_groups(rows, position, kept)?;
        } else if before == 0 {
            self.add_group(position, 0, kept)?;
        }
        if self.first.len() > before {
            let groups = self.first.len();
            self.states.iter_mut().for_each(|states| states.grow(groups));
        }
        let groups = if self.has_keys { Groups::Each(&self.rows) } else { Groups::One };
        for (states, column) in self.states.iter_mut().zip(args) {
            states.update(groups, *column, rows)?;
        }
        Ok(())
    }

    fn add_group(&mut self, position: u64, row: usize, kept: &[&Column]) -> Fit<u32> {
        let group = u32::try_from(self.first.len()).map_err(|_| Unfit)?;
        self.first.push(position + row as u64);
        for (column, from) in self.kept.iter_mut().zip(kept) {
            column.append_rows(from, &[row as u32])?;
        }
        Ok(group)
    }

    fn find_groups(&mut self, rows: usize, position: u64, kept: &[&Column]) -> Fit<()> {
        self.rows.clear();
        let key_count = self.collations.len();
        if let ([key], 1) = (&kept[..key_count], key_count)
            && let Some(number) = number_of(key)
        {
            let mut last: Option<(u64, u32)> = None;
            for row in 0..rows {
                let group = match (key.is_null(row), last) {
                    (true, _) => self.null_group,
                    // Where an index is read, equal ones lie together.
                    (false, Some((before, group))) if before == number(row) => Some(group),
                    (false, _) => self.by_number.get(&number(row)).copied(),
                };
                let group = match group {
                    Some(group) => group,
                    None => {
                        let group = self.add_group(position, row, kept)?;
                        match key.is_null(row) {
                            true => self.null_group = Some(group),
                            false => _ = self.by_number.insert(number(row), group),
                        }
                        group
                    }
                };
                if !key.is_null(row) {
                    last = Some((number(row), group));
                }
                self.rows.push(group);
            }
            return Ok(());
        }
        for row in 0..rows {
            self.key.clear();
            for (at, column) in kept[..key_count].iter().enumerate() {
                self.append_part(column, at, row);
            }
            let group = match self.by_key.get(self.key.as_slice()) {
                Some(group) => *group,
                None => {
                    let group = self.add_group(position, row, kept)?;
                    self.key_bytes += self.key.len();
                    self.by_key.insert(self.key.as_slice().into(), group);
                    group
                }
            };
            self.rows.push(group);
        }
        Ok(())
    }

    /// Appends a key column's part: equal values of one column have equal parts in this table.
    fn append_part(&mut self, column: &Column, at: usize, row: usize) {
        if column.is_null(row) {
            return self.key.push(0);
        }
        self.key.push(1);
        match &column.data {
            Data::Int(values) | Data::Time(values) => {
                self.key.extend_from_slice(&values[row].to_le_bytes());
            }
            Data::UInt(values) | Data::DateTime(values) => {
                self.key.extend_from_slice(&values[row].to_le_bytes());
            }
            Data::Double(values) => {
                self.key.extend_from_slice(&(values[row] + 0.0).to_bits().to_le_bytes());
            }
            Data::Decimal(values, _) => self.key.extend_from_slice(&values[row].to_le_bytes()),
            Data::Date(values) => self.key.extend_from_slice(&values[row].to_le_bytes()),
            Data::Texts(texts) => {
                let (text, collation) = (texts.get(row), self.collations[at]);
                if charset::collation_or_binary(collation).is_binary() {
                    self.key.extend_from_slice(&(text.len() as u32).to_le_bytes());
                    self.key.extend_from_slice(text);
                } else {
                    let class = self.classes[at].of(text, collation);
                    self.key.extend_from_slice(&class.to_le_bytes());
                }
            }
        }
    }

    /// The groups of several threads as one thread would have found them.
    pub(crate) fn merged(mut parts: Vec<Grouped>, kinds: &[StateKind]) -> Fit<Grouped> {
        if parts.len() == 1 {
            return parts.pop().ok_or(Unfit);
        }
        let Some(shape) = parts.first() else { return Err(Unfit) };
        let (collations, has_keys) = (shape.collations.clone(), shape.has_keys);
        let mut all: Vec<(u64, u32, u32)> = Vec::new();
        for (part, grouped) in parts.iter().enumerate() {
            let groups = grouped.first.iter().enumerate();
            all.extend(groups.map(|(group, first)| (*first, part as u32, group as u32)));
        }
        all.sort_unstable();
        let mut whole = Grouped::new(collations, kinds, has_keys);
        let numbers: Option<Vec<_>> = match whole.collations.len() {
            1 => parts.iter().map(|part| number_of(part.kept.first()?)).collect(),
            _ => None,
        };
        let mut key = Vec::new();
        for (first, part, group) in all {
            let (from, group) = (&parts[part as usize], group as usize);
            let number = match &numbers {
                Some(numbers) if !from.kept[0].is_null(group) => {
                    Some(numbers[part as usize](group))
                }
                _ => None,
            };
            let known = match number {
                Some(number) => whole.by_number.get(&number),
                None => {
                    key.clear();
                    for (column, collation) in from.kept.iter().zip(&whole.collations) {
                        append_hash_key(&column.value(group)?, *collation, &mut key);
                    }
                    whole.by_key.get(key.as_slice())
                }
            };
            let into = match known {
                Some(into) => *into,
                None => {
                    let into = whole.first.len() as u32;
                    if whole.kept.is_empty() {
                        let empty = |column: &Column| Column::new(column.data.empty_like());
                        whole.kept = from.kept.iter().map(empty).collect();
                    }
                    for (column, from) in whole.kept.iter_mut().zip(&from.kept) {
                        column.append_rows(from, &[group as u32])?;
                    }
                    whole.first.push(first);
                    whole.states.iter_mut().for_each(|states| states.grow(into as usize + 1));
                    match number {
                        Some(number) => _ = whole.by_number.insert(number, into),
                        None => _ = whole.by_key.insert(key.as_slice().into(), into),
                    }
                    into
                }
            };
            for (states, from) in whole.states.iter_mut().zip(&from.states) {
                states.merge(into as usize, from, group)?;
            }
        }
        Ok(whole)
    }
}

/// How the values of a column are told apart by 64 bits, when they are.
fn number_of(column: &Column) -> Option<Box<dyn Fn(usize) -> u64 + '_>> {
    Some(match &column.data {
        Data::Int(values) => Box::new(|row| values[row] as u64),
        Data::UInt(values) => Box::new(|row| values[row]),
        Data::Date(values) => Box::new(|row| u64::from(values[row])),
        _ => return None,
    })
}
