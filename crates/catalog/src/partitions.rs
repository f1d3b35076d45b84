//! How a table is partitioned: names and values as they are shown, and the router that finds a row's partition.
//!
//! Invariant: the numbers of RANGE partitions grow with their bounds; a partition keeps its number as long as its rows are not moved.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use engine_api::IndexId;
use errors::Result;
use types::partition::{Deal, NO_PARTITION, Router, Rule, ValueKind, tuple_key};
use types::{DataType, Value};

use crate::codec::{read_pair, read_value, write_pair, write_value};
use crate::fields::{FieldWriter, damaged, nested_fields};
use crate::{Index, IndexPart, Table, never, row_time_type, same_name};

/// Name of the hidden stored column that holds the number of a row's partition. No user's column has it: it is longer than names can be.
pub const PARTITION_COLUMN: &str =
    "!partition number of the row, of the subpartition where there are some!";

/// Of a table without a primary key that is partitioned by SYSTEM_TIME with LIMIT: the index by which the rows of a partition are counted.
pub const NUMBER_INDEX: IndexId = IndexId(1 << 20);

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionKind {
    /// RANGE.
    Range,
    /// LIST.
    List,
    /// HASH.
    Hash,
    /// KEY.
    Key,
    /// SYSTEM_TIME: current rows are in the last partition, old ones in those before it.
    SystemTime,
}

/// How rows are distributed among partitions.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionMethod {
    /// The method.
    pub kind: PartitionKind,
    /// LINEAR, of HASH and KEY.
    pub linear: bool,
    /// `ALGORITHM = 1` of KEY was written.
    pub algorithm_one: bool,
    /// Canonical text of the expression, and whether it is unsigned; without it `columns` are compared.
    pub expression: Option<(Arc<str>, bool)>,
    /// Columns; empty for a KEY by the primary key. Of SYSTEM_TIME the end of the row.
    pub columns: Vec<Arc<str>>,
    /// Of SYSTEM_TIME: when it goes on to the next partition.
    pub rotation: Rotation,
}

/// When partitions by SYSTEM_TIME go on to the next one; without both the first takes all old rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rotation {
    /// INTERVAL.
    pub interval: Option<RotationInterval>,
    /// LIMIT: rows of a partition.
    pub limit: Option<u64>,
}

/// INTERVAL of SYSTEM_TIME.
#[derive(Clone, Debug, PartialEq)]
pub struct RotationInterval {
    /// As it is shown, `1 HOUR`.
    pub text: Arc<str>,
    /// Its months.
    pub months: u64,
    /// Its seconds.
    pub seconds: u64,
    /// When the first interval begins, in seconds since 1970 UTC.
    pub starts: u64,
}

/// A value of VALUES. Of a history partition by INTERVAL: when it ends, in UTC.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionValue {
    /// In the type of the column or the expression; `None` for MAXVALUE.
    pub value: Option<Value>,
    /// As it is shown.
    pub text: Arc<str>,
}

/// A partition.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// Its number; those of its subpartitions are `number * count + place`.
    pub number: u16,
    /// Name.
    pub name: Arc<str>,
    /// RANGE: one tuple; LIST: all of them.
    pub values: Vec<Vec<PartitionValue>>,
    /// COMMENT.
    pub comment: String,
    /// MAX_ROWS and MIN_ROWS as they are shown.
    pub options: Vec<(String, String)>,
    /// Name and comment of each subpartition, if any.
    pub subpartitions: Vec<(Arc<str>, String)>,
}

/// A table's partitioning.
#[derive(Clone, Debug, PartialEq)]
pub struct Partitioning {
    /// The method.
    pub method: PartitionMethod,
    /// SUBPARTITION BY: HASH or KEY.
    pub sub: Option<PartitionMethod>,
    /// In order.
    pub partitions: Vec<Partition>,
    /// Partitions were listed, so they are shown.
    pub listed: bool,
    /// Subpartitions were listed.
    pub sub_listed: bool,
}

impl Partitioning {
    /// Subpartitions of each partition, 1 without subpartitioning.
    pub fn subpartitions(&self) -> u16 {
        self.partitions.first().map_or(1, |first| first.subpartitions.len().max(1) as u16)
    }

    /// Number of partitions that hold rows: the subpartitions, if any.
    pub fn leaves(&self) -> usize {
        self.partitions.len() * usize::from(self.subpartitions())
    }

    /// Numbers of the partitions that a name denotes: a partition with all its subpartitions, or one subpartition.
    pub fn named(&self, name: &str) -> Option<Vec<u16>> {
        let count = self.subpartitions();
        for partition in &self.partitions {
            let first = partition.number * count;
            if same_name(&partition.name, name) {
                return Some((first..first + count).collect());
            }
            let mut subs = partition.subpartitions.iter();
            if let Some(place) = subs.position(|(known, _)| same_name(known, name)) {
                return Some(vec![first + place as u16]);
            }
        }
        None
    }

    /// Name of the leaf with a number, as EXPLAIN shows it.
    pub fn leaf_name(&self, number: u16) -> Option<String> {
        let count = self.subpartitions();
        let found = self.partitions.iter().find(|own| own.number == number / count)?;
        Some(match found.subpartitions.get(usize::from(number % count)) {
            Some((sub, _)) => format!("{}_{sub}", found.name),
            None => found.name.to_string(),
        })
    }

    /// Numbers of all leaves in order.
    pub fn numbers(&self) -> Vec<u16> {
        (0..self.partitions.len()).flat_map(|at| self.numbers_of(at)).collect()
    }

    /// Numbers of the partition at a position: its subpartitions', or its own.
    pub fn numbers_of(&self, at: usize) -> std::ops::Range<u16> {
        let (count, number) = (self.subpartitions(), self.partitions[at].number);
        number * count..(number + 1) * count
    }

    /// Columns named by COLUMNS and KEY, of the partitions and of the subpartitions.
    pub fn column_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.method.columns.iter().chain(self.sub.iter().flat_map(|sub| &sub.columns))
    }

    /// Gives partitions numbers from 0. The one of current rows has the largest number that there is, so that others can be added before it.
    pub fn renumber(&mut self) {
        for (number, partition) in self.partitions.iter_mut().enumerate() {
            partition.number = number as u16;
        }
        let largest = NO_PARTITION / self.subpartitions() - 1;
        if self.by_system_time()
            && let Some(current) = self.partitions.last_mut()
        {
            current.number = largest;
        }
    }

    /// PARTITION BY SYSTEM_TIME.
    pub fn by_system_time(&self) -> bool {
        self.method.kind == PartitionKind::SystemTime
    }

    /// The partitions of old rows, of SYSTEM_TIME.
    pub fn history(&self) -> &[Partition] {
        self.partitions.split_last().map_or(&[], |(_, history)| history)
    }

    /// Whether partitions have bounds that grow with their numbers.
    pub fn has_bounds(&self) -> bool {
        self.method.kind == PartitionKind::Range
            || self.by_system_time() && self.method.rotation.interval.is_some()
    }

    /// SYSTEM_TIME as a rule over the end of the row: what is never over is current. By INTERVAL the last history partition takes all that is over
    /// later too; else old rows go to the first one here, and by LIMIT those who write rows know better.
    fn system_time_rule(&self, key: &dyn Fn(&Value) -> Vec<u8>) -> Rule {
        let history = self.history();
        let by_interval = self.method.rotation.interval.is_some();
        let taken = if by_interval { history } else { &history[..history.len().min(1)] };
        let never = || Some(key(&never()));
        let mut bounds: Vec<(Option<Vec<u8>>, u16)> = Vec::with_capacity(taken.len() + 1);
        for (at, own) in taken.iter().enumerate() {
            let end = own.values.first().and_then(|tuple| tuple.first()?.value.as_ref());
            let end = end.filter(|_| at + 1 < taken.len()).map(key);
            bounds.push((end.or_else(never), own.number));
        }
        bounds.extend(self.partitions.last().map(|current| (None, current.number)));
        Rule::Range(bounds)
    }

    /// Whether the rows of a table partitioned as `old` keep their numbers, as far as this has a partition for them.
    pub fn keeps_numbers(&self, old: &Partitioning) -> bool {
        let by_time = self.by_system_time();
        let by_value =
            by_time || matches!(self.method.kind, PartitionKind::Range | PartitionKind::List);
        let known = |own: &Partition| old.partitions.iter().find(|was| was.number == own.number);
        let before = if by_time { old.history() } else { &old.partitions[..] };
        let last = before.iter().map(|own| own.number).max();
        // A new partition must not take rows that another has.
        let is_new = |own: &Partition| by_value && Some(own.number) > last;
        // Partitions that are dropped move the beginning of the first interval.
        let mut method = old.method.clone();
        let starts = self.method.rotation.interval.as_ref().map(|interval| interval.starts);
        if let (Some(interval), Some(starts)) = (&mut method.rotation.interval, starts) {
            interval.starts = starts;
        }
        self.method == method
            && self.sub == old.sub
            && self.subpartitions() == old.subpartitions()
            && (by_value || self.partitions.len() == old.partitions.len())
            && self.partitions.iter().all(|own| match known(own) {
                Some(was) => was.values == own.values,
                None => is_new(own),
            })
    }

    /// The router. `type_of` knows the types of columns, `key` are the columns of a KEY without a list.
    ///
    /// # Errors
    /// A column does not exist.
    pub fn router(&self, type_of: &dyn Fn(&str) -> Option<DataType>) -> Result<Router> {
        let (method, count) = (&self.method, self.partitions.len() as u16);
        let types: Vec<DataType> = match &method.expression {
            Some((_, unsigned)) => vec![integer_type(*unsigned)],
            None => {
                let types = method.columns.iter().map(|name| type_of(name));
                let types: Option<Vec<DataType>> = types.collect();
                let types = types.ok_or_else(damaged)?;
                types.iter().map(|ty| ValueKind::of(ty).key_type(ty)).collect()
            }
        };
        let key = |tuple: &[PartitionValue]| -> Option<Vec<u8>> {
            // A tuple with MAXVALUE ends there: all rows with the same beginning are below it.
            let mut key = Vec::new();
            for (at, (bound, ty)) in tuple.iter().zip(&types).enumerate() {
                match &bound.value {
                    Some(value) => key.extend(tuple_key([(value, ty)])),
                    None if at == 0 => return None,
                    None => {
                        key.extend([0xFF; 8]);
                        break;
                    }
                }
            }
            Some(key)
        };
        let deal = |linear: bool, count: u16| Deal { count, linear };
        let rule = match method.kind {
            PartitionKind::Range => Rule::Range(
                self.partitions
                    .iter()
                    .map(|own| (own.values.first().and_then(|tuple| key(tuple)), own.number))
                    .collect(),
            ),
            PartitionKind::List => {
                let all = self.partitions.iter().flat_map(|own| {
                    own.values.iter().map(|tuple| (key(tuple).unwrap_or_default(), own.number))
                });
                Rule::List(all.collect::<BTreeMap<_, _>>())
            }
            PartitionKind::Hash => Rule::Hash(deal(method.linear, count)),
            PartitionKind::Key => Rule::Key(deal(method.linear, count)),
            PartitionKind::SystemTime => {
                let ty = types.first().cloned().unwrap_or_else(row_time_type);
                self.system_time_rule(&|value| tuple_key([(value, &ty)]))
            }
        };
        let sub = self.sub.as_ref().map(|sub| {
            let deal = deal(sub.linear, self.subpartitions());
            if sub.kind == PartitionKind::Hash { Rule::Hash(deal) } else { Rule::Key(deal) }
        });
        let mut kinds = Vec::new();
        for method in [Some(method), self.sub.as_ref()].into_iter().flatten() {
            if let Some((_, unsigned)) = &method.expression {
                kinds.push(ValueKind::of(&integer_type(*unsigned)));
            }
            for column in &method.columns {
                kinds.push(ValueKind::of(&type_of(column).ok_or_else(damaged)?));
            }
        }
        let expression = method.expression.is_some();
        let values = if expression { 1 } else { method.columns.len() };
        Ok(Router { rule, values, expression, kinds, sub })
    }
}

impl Table {
    /// The parts of an index's keys: those of the clustered index begin with the number of the partition, and unique ones of a table that keeps
    /// history end with the end of the row.
    pub fn key_parts<'t>(&self, index: &'t Index) -> Cow<'t, [IndexPart]> {
        let number = self.partition_column().filter(|_| index.id == IndexId::CLUSTERED);
        let number =
            number.map(|column| IndexPart { column, prefix_length: None, descending: false });
        match (number, self.end_part(index)) {
            (None, None) => Cow::Borrowed(&index.parts),
            (number, end) => Cow::Owned(
                number.into_iter().chain(index.parts.iter().cloned()).chain(end).collect(),
            ),
        }
    }

    /// PARTITION BY SYSTEM_TIME.
    pub fn by_system_time(&self) -> bool {
        self.partitioning.as_ref().is_some_and(|own| own.by_system_time())
    }

    /// The engine's index whose keys begin with the number of a row's partition: the clustered one, or one that the definition does not show.
    pub fn number_index(&self) -> IndexId {
        if self.primary().is_some() { IndexId::CLUSTERED } else { NUMBER_INDEX }
    }

    /// Position of the hidden column with the number of a row's partition.
    pub fn partition_column(&self) -> Option<usize> {
        self.partitioning.as_ref()?;
        self.columns.iter().position(|column| &*column.name == PARTITION_COLUMN)
    }
}

/// The type in which values of an expression are compared.
pub fn integer_type(unsigned: bool) -> DataType {
    if unsigned { DataType::bigint_unsigned() } else { DataType::bigint() }
}

/// Numbers of the methods.
const KINDS: [(PartitionKind, u64); 5] = [
    (PartitionKind::Range, 1),
    (PartitionKind::List, 2),
    (PartitionKind::Hash, 3),
    (PartitionKind::Key, 4),
    (PartitionKind::SystemTime, 5),
];

/// A method: kind 1, linear 2, algorithm one 3, expression 4, unsigned 5, column 6, INTERVAL 7 (text 1, months 2, seconds 3, starts 4), LIMIT 8.
fn method_writer(method: &PartitionMethod) -> FieldWriter {
    let mut out = FieldWriter::nested();
    let kind = KINDS.iter().find(|(kind, _)| *kind == method.kind);
    out.number(1, kind.map_or(0, |(_, number)| *number));
    out.flag(2, method.linear);
    out.flag(3, method.algorithm_one);
    if let Some((text, unsigned)) = &method.expression {
        out.text(4, text);
        out.flag(5, *unsigned);
    }
    for column in &method.columns {
        out.bytes(6, column.as_bytes());
    }
    if let Some(interval) = &method.rotation.interval {
        let mut nested = FieldWriter::nested();
        nested.text(1, &interval.text);
        nested.number(2, interval.months);
        nested.number(3, interval.seconds);
        nested.number(4, interval.starts);
        out.nest(7, nested);
    }
    if let Some(limit) = method.rotation.limit {
        out.number(8, limit);
    }
    out
}

fn read_interval(bytes: &[u8]) -> Result<RotationInterval> {
    let mut interval = RotationInterval { text: Arc::from(""), months: 0, seconds: 0, starts: 0 };
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => interval.text = field.text()?.into(),
            2 => interval.months = field.number()?,
            3 => interval.seconds = field.number()?,
            4 => interval.starts = field.number()?,
            _ => {}
        }
    }
    Ok(interval)
}

fn read_method(bytes: &[u8]) -> Result<PartitionMethod> {
    let mut method = PartitionMethod {
        kind: PartitionKind::Hash,
        linear: false,
        algorithm_one: false,
        expression: None,
        columns: Vec::new(),
        rotation: Rotation::default(),
    };
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => {
                let number = field.number()?;
                let known = KINDS.iter().find(|(_, known)| *known == number).ok_or_else(damaged)?;
                method.kind = known.0;
            }
            2 => method.linear = field.flag()?,
            3 => method.algorithm_one = field.flag()?,
            4 => method.expression = Some((field.text()?.into(), false)),
            5 => {
                if let Some((_, unsigned)) = &mut method.expression {
                    *unsigned = field.flag()?;
                }
            }
            6 => method.columns.push(field.text()?.into()),
            7 => method.rotation.interval = Some(read_interval(field.bytes)?),
            8 => method.rotation.limit = Some(field.number()?),
            _ => {}
        }
    }
    Ok(method)
}

/// A partition: number 1, name 2, tuple 3 (value: its value 1, absent for MAXVALUE, text 2; each value is a field 1 of the tuple),
/// comment 4, option 5 (name 1, value 2), subpartition 6 (name 1, comment 2).
fn partition_writer(partition: &Partition) -> FieldWriter {
    let mut out = FieldWriter::nested();
    out.number(1, u64::from(partition.number));
    out.text(2, &partition.name);
    for tuple in &partition.values {
        let mut values = FieldWriter::nested();
        for bound in tuple {
            let mut nested = FieldWriter::nested();
            if let Some(value) = &bound.value {
                nested.bytes(1, &write_value(value));
            }
            nested.text(2, &bound.text);
            values.nest(1, nested);
        }
        out.nest(3, values);
    }
    out.text(4, &partition.comment);
    for (name, value) in &partition.options {
        out.nest(5, write_pair(name, value));
    }
    for (name, comment) in &partition.subpartitions {
        out.nest(6, write_pair(name, comment));
    }
    out
}

fn read_tuple(bytes: &[u8]) -> Result<Vec<PartitionValue>> {
    let mut tuple = Vec::new();
    for field in nested_fields(bytes)?.iter().filter(|field| field.tag == 1) {
        let mut bound = PartitionValue { value: None, text: Arc::from("") };
        for field in nested_fields(field.bytes)? {
            match field.tag {
                1 => bound.value = Some(read_value(field.bytes)?),
                2 => bound.text = field.text()?.into(),
                _ => {}
            }
        }
        tuple.push(bound);
    }
    Ok(tuple)
}

fn read_partition(bytes: &[u8]) -> Result<Partition> {
    let mut partition = Partition {
        number: 0,
        name: Arc::from(""),
        values: Vec::new(),
        comment: String::new(),
        options: Vec::new(),
        subpartitions: Vec::new(),
    };
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => partition.number = field.narrow()?,
            2 => partition.name = field.text()?.into(),
            3 => partition.values.push(read_tuple(field.bytes)?),
            4 => partition.comment = field.text()?.into(),
            5 => partition.options.push(read_pair(field.bytes)?),
            6 => {
                let (name, comment) = read_pair(field.bytes)?;
                partition.subpartitions.push((name.into(), comment));
            }
            _ => {}
        }
    }
    Ok(partition)
}

/// A partitioning: method 1, method of subpartitions 2, partition 3, listed 4, subpartitions listed 5.
pub(crate) fn partitioning_writer(partitioning: &Partitioning) -> FieldWriter {
    let mut out = FieldWriter::nested();
    out.nest(1, method_writer(&partitioning.method));
    if let Some(sub) = &partitioning.sub {
        out.nest(2, method_writer(sub));
    }
    for partition in &partitioning.partitions {
        out.nest(3, partition_writer(partition));
    }
    out.flag(4, partitioning.listed);
    out.flag(5, partitioning.sub_listed);
    out
}

pub(crate) fn read_partitioning(bytes: &[u8]) -> Result<Partitioning> {
    let fields = nested_fields(bytes)?;
    let method = fields.iter().find(|field| field.tag == 1).ok_or_else(damaged)?;
    let mut partitioning = Partitioning {
        method: read_method(method.bytes)?,
        sub: None,
        partitions: Vec::new(),
        listed: false,
        sub_listed: false,
    };
    for field in fields {
        match field.tag {
            2 => partitioning.sub = Some(read_method(field.bytes)?),
            3 => partitioning.partitions.push(read_partition(field.bytes)?),
            4 => partitioning.listed = field.flag()?,
            5 => partitioning.sub_listed = field.flag()?,
            _ => {}
        }
    }
    Ok(partitioning)
}
