//! Columns of values of one kind, with their NULLs.

use types::{Date, DateTime, Decimal, SqlBytes, Time, Value};

use crate::{Fit, Unfit};

/// Texts side by side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    #[inline]
    pub(crate) fn get(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start..self.ends[row]]
    }

    #[inline]
    pub(crate) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }
}

/// Values of one kind; the value in a NULL's place has no meaning.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    Int(Vec<i64>),
    UInt(Vec<u64>),
    Double(Vec<f64>),
    /// Numbers times ten to the power of the scale.
    Decimal(Vec<i128>, u8),
    Texts(Texts),
    /// Packed.
    Date(Vec<u32>),
    /// Microseconds.
    Time(Vec<i64>),
    /// Packed.
    DateTime(Vec<u64>),
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    pub(crate) data: Data,
    /// `None`: no value is NULL.
    pub(crate) nulls: Option<Vec<bool>>,
}

macro_rules! each {
    ($data:expr, $values:ident => $do:expr, $texts:ident => $texts_do:expr) => {
        match $data {
            Data::Int($values) => $do,
            Data::UInt($values) => $do,
            Data::Double($values) => $do,
            Data::Decimal($values, _) => $do,
            Data::Date($values) => $do,
            Data::Time($values) => $do,
            Data::DateTime($values) => $do,
            Data::Texts($texts) => $texts_do,
        }
    };
}

impl Data {
    pub(crate) fn len(&self) -> usize {
        each!(self, values => values.len(), texts => texts.ends.len())
    }

    /// An empty column that can hold `value`; a NULL fits any column.
    fn like(value: &Value) -> Data {
        match value {
            Value::Null | Value::Int(_) => Data::Int(Vec::new()),
            Value::UInt(_) => Data::UInt(Vec::new()),
            Value::Double(_) => Data::Double(Vec::new()),
            Value::Decimal(number) => Data::Decimal(Vec::new(), number.scale()),
            Value::Bytes(_) | Value::Json(_) => Data::Texts(Texts::default()),
            Value::Date(_) => Data::Date(Vec::new()),
            Value::Time(_) => Data::Time(Vec::new()),
            Value::DateTime(_) => Data::DateTime(Vec::new()),
        }
    }

    /// An empty column of the same kind.
    pub(crate) fn empty_like(&self) -> Data {
        match self {
            Data::Int(_) => Data::Int(Vec::new()),
            Data::UInt(_) => Data::UInt(Vec::new()),
            Data::Double(_) => Data::Double(Vec::new()),
            Data::Decimal(_, scale) => Data::Decimal(Vec::new(), *scale),
            Data::Texts(_) => Data::Texts(Texts::default()),
            Data::Date(_) => Data::Date(Vec::new()),
            Data::Time(_) => Data::Time(Vec::new()),
            Data::DateTime(_) => Data::DateTime(Vec::new()),
        }
    }

    /// Whether both hold values of one kind.
    pub(crate) fn is_like(&self, other: &Data) -> bool {
        match (self, other) {
            (Data::Decimal(_, scale), Data::Decimal(_, other)) => scale == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Appends something in a NULL's place.
    pub(crate) fn push_nothing(&mut self) {
        each!(self, values => values.push(Default::default()), texts => texts.push(&[]))
    }

    /// Appends a value that is not NULL.
    pub(crate) fn push(&mut self, value: &Value) -> Fit<()> {
        match (self, value) {
            (Data::Int(values), Value::Int(number)) => values.push(*number),
            (Data::UInt(values), Value::UInt(number)) => values.push(*number),
            (Data::Double(values), Value::Double(number)) => values.push(*number),
            (Data::Decimal(values, scale), Value::Decimal(number)) => match number.as_i128() {
                Some((number, own)) if own == *scale => values.push(number),
                _ => return Err(Unfit),
            },
            (Data::Texts(texts), Value::Bytes(text)) => texts.push(text),
            (Data::Date(values), Value::Date(date)) => values.push(date.packed()),
            (Data::Time(values), Value::Time(time)) => values.push(time.micros()),
            (Data::DateTime(values), Value::DateTime(time)) => values.push(time.packed()),
            _ => return Err(Unfit),
        }
        Ok(())
    }

    fn heap_bytes(&self) -> usize {
        each!(self, values => size_of_val(&values[..]), texts => texts.bytes.len() + texts.ends.len() * 8)
    }
}

impl Column {
    pub(crate) fn new(data: Data) -> Column {
        Column { data, nulls: None }
    }

    /// A column without rows for values of a type.
    pub(crate) fn empty(ty: &types::DataType) -> Fit<Column> {
        crate::decode::empty_data(ty).map(Column::new).ok_or(Unfit)
    }

    /// A column of one value.
    pub fn single(value: &Value) -> Fit<Column> {
        let mut column = Column::new(Data::like(value));
        column.push(value)?;
        Ok(column)
    }

    pub(crate) fn len(&self) -> usize {
        self.data.len()
    }

    #[inline]
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls[row])
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.data.heap_bytes() + self.nulls.as_ref().map_or(0, Vec::len)
    }

    /// Appends a NULL.
    pub(crate) fn push_null(&mut self) {
        let len = self.len();
        self.nulls.get_or_insert_with(|| vec![false; len]).push(true);
        self.data.push_nothing();
    }

    /// Notes that the value just appended to `data` is not NULL.
    #[inline]
    pub(crate) fn note_value(&mut self) {
        if let Some(nulls) = &mut self.nulls {
            nulls.push(false);
        }
    }

    /// Appends a value; a column that holds only NULLs adopts its kind.
    pub(crate) fn push(&mut self, value: &Value) -> Fit<()> {
        if value.is_null() {
            self.push_null();
            return Ok(());
        }
        if self.data.push(value).is_err() {
            let only_nulls = self.nulls.as_ref().map_or(self.len() == 0, |n| n.iter().all(|n| *n));
            if !only_nulls {
                return Err(Unfit);
            }
            let mut data = Data::like(value);
            (0..self.len()).for_each(|_| data.push_nothing());
            data.push(value)?;
            self.data = data;
        }
        self.note_value();
        Ok(())
    }

    /// The value in a row.
    pub(crate) fn value(&self, row: usize) -> Fit<Value> {
        if self.is_null(row) {
            return Ok(Value::Null);
        }
        Ok(match &self.data {
            Data::Int(values) => Value::Int(values[row]),
            Data::UInt(values) => Value::UInt(values[row]),
            Data::Double(values) => Value::Double(values[row]),
            Data::Decimal(values, scale) => Value::Decimal(Decimal::from_i128(values[row], *scale)),
            Data::Texts(texts) => Value::Bytes(SqlBytes::new(texts.get(row))),
            Data::Date(values) => Value::Date(Date::from_packed(values[row]).ok_or(Unfit)?),
            Data::Time(values) => Value::Time(Time::from_micros(values[row]).ok_or(Unfit)?),
            Data::DateTime(values) => {
                Value::DateTime(DateTime::from_packed(values[row]).ok_or(Unfit)?)
            }
        })
    }

    /// Appends rows of another column of the same kind.
    pub(crate) fn append_rows(&mut self, from: &Column, rows: &[u32]) -> Fit<()> {
        let before = self.len();
        append_data(&mut self.data, &from.data, rows)?;
        match (&mut self.nulls, &from.nulls) {
            (None, None) => {}
            (Some(nulls), None) => nulls.resize(before + rows.len(), false),
            (nulls, Some(from)) => {
                let nulls = nulls.get_or_insert_with(|| vec![false; before]);
                nulls.extend(rows.iter().map(|row| from[*row as usize]));
            }
        }
        Ok(())
    }

    /// Distinguishes its values by 64 bits, when that is possible.
    pub(crate) fn number_of(&self) -> Option<Box<dyn Fn(usize) -> u64 + '_>> {
        Some(match &self.data {
            Data::Int(values) => Box::new(|row| values[row] as u64),
            Data::UInt(values) => Box::new(|row| values[row]),
            Data::Date(values) => Box::new(|row| u64::from(values[row])),
            _ => return None,
        })
    }

    /// The column with only some of its rows.
    pub(crate) fn gather(&self, rows: &[u32]) -> Fit<Column> {
        let mut column = Column::new(self.data.empty_like());
        column.append_rows(self, rows)?;
        Ok(column)
    }
}

fn append_data(to: &mut Data, from: &Data, rows: &[u32]) -> Fit<()> {
    macro_rules! copy {
        ($to:ident, $from:ident) => {
            $to.extend(rows.iter().map(|row| $from[*row as usize]))
        };
    }
    match (to, from) {
        (Data::Int(to), Data::Int(from)) => copy!(to, from),
        (Data::UInt(to), Data::UInt(from)) => copy!(to, from),
        (Data::Double(to), Data::Double(from)) => copy!(to, from),
        (Data::Decimal(to, a), Data::Decimal(from, b)) if a == b => copy!(to, from),
        (Data::Date(to), Data::Date(from)) => copy!(to, from),
        (Data::Time(to), Data::Time(from)) => copy!(to, from),
        (Data::DateTime(to), Data::DateTime(from)) => copy!(to, from),
        (Data::Texts(to), Data::Texts(from)) => {
            rows.iter().for_each(|row| to.push(from.get(*row as usize)));
        }
        _ => return Err(Unfit),
    }
    Ok(())
}
