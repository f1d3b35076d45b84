//! A result as an Arrow IPC stream: batches of rows, sent while rows come.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, Date32Builder, Decimal128Builder, DurationMicrosecondBuilder,
    Float32Builder, Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
    UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType as ArrowType, Field, Schema, TimeUnit};
use errors::{Error, Result, bail};
use hyper::StatusCode;
use plugin_api::{ColumnMeta, LocalFile, OkInfo, ResultSink, RowSource, SessionState};
use types::temporal::{UNIX_EPOCH_DAY, to_days};
use types::{DataType, ResultCell, TypeKind, Value};

use crate::call::Incoming;
use crate::json::{Form, form_of};
use crate::pipe::Pipe;
use crate::reply::Reply;

/// The media type.
pub const MEDIA_TYPE: &str = "application/vnd.apache.arrow.stream";
/// Rows of a batch.
const BATCH_ROWS: usize = 4096;
/// Bytes of texts in a batch, roughly.
const BATCH_BYTES: usize = 1 << 20;
/// Digits of a decimal that fit 128 bits; longer ones are sent as text.
const DECIMAL_DIGITS_MAX: u8 = 38;

/// Writes the only result of a request.
pub struct ArrowSink<'a> {
    pipe: Pipe<'a>,
    rows_max: u64,
    rows: u64,
    open: Option<Open>,
    has_result: bool,
    error: Option<Error>,
}

struct Open {
    writer: StreamWriter<Vec<u8>>,
    schema: Arc<Schema>,
    columns: Vec<Column>,
    rows: usize,
    text_bytes: usize,
}

/// A column's cells of the current batch.
struct Column {
    ty: DataType,
    cells: Cells,
    scratch: Vec<u8>,
}

enum Cells {
    Signed(Int64Builder),
    Unsigned(UInt64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder, ArrowType),
    Date(Date32Builder),
    DateTime(TimestampMicrosecondBuilder),
    Time(DurationMicrosecondBuilder),
    Bytes(BinaryBuilder),
    Text(StringBuilder),
}

impl Cells {
    fn of(ty: &DataType) -> Cells {
        use TypeKind::*;
        match ty.kind {
            Year => Cells::Unsigned(UInt64Builder::new()),
            TinyInt | SmallInt | MediumInt | Int | BigInt => match ty.unsigned {
                true => Cells::Unsigned(UInt64Builder::new()),
                false => Cells::Signed(Int64Builder::new()),
            },
            Float => Cells::Float(Float32Builder::new()),
            Double => Cells::Double(Float64Builder::new()),
            Decimal => match u8::try_from(ty.length) {
                Ok(digits) if digits <= DECIMAL_DIGITS_MAX => {
                    let builder = Decimal128Builder::new();
                    let arrow_type = ArrowType::Decimal128(digits, ty.decimals as i8);
                    Cells::Decimal(builder.with_data_type(arrow_type.clone()), arrow_type)
                }
                _ => Cells::Text(StringBuilder::new()),
            },
            Date => Cells::Date(Date32Builder::new()),
            DateTime | Timestamp => Cells::DateTime(TimestampMicrosecondBuilder::new()),
            Time => Cells::Time(DurationMicrosecondBuilder::new()),
            Null | Bit | Char | VarChar | Binary | VarBinary | TinyText | Text | MediumText
            | LongText | TinyBlob | Blob | MediumBlob | LongBlob | Enum | Set | Json | Vector
            | Geometry | Fixed(_) => match form_of(ty) {
                Form::Bytes => Cells::Bytes(BinaryBuilder::new()),
                Form::Integer | Form::Float | Form::Document | Form::Text | Form::Everything => {
                    Cells::Text(StringBuilder::new())
                }
            },
        }
    }

    fn arrow_type(&self) -> ArrowType {
        match self {
            Cells::Signed(_) => ArrowType::Int64,
            Cells::Unsigned(_) => ArrowType::UInt64,
            Cells::Float(_) => ArrowType::Float32,
            Cells::Double(_) => ArrowType::Float64,
            Cells::Decimal(_, ty) => ty.clone(),
            Cells::Date(_) => ArrowType::Date32,
            Cells::DateTime(_) => ArrowType::Timestamp(TimeUnit::Microsecond, None),
            Cells::Time(_) => ArrowType::Duration(TimeUnit::Microsecond),
            Cells::Bytes(_) => ArrowType::Binary,
            Cells::Text(_) => ArrowType::Utf8,
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Cells::Signed(builder) => ArrayBuilder::finish(builder),
            Cells::Unsigned(builder) => ArrayBuilder::finish(builder),
            Cells::Float(builder) => ArrayBuilder::finish(builder),
            Cells::Double(builder) => ArrayBuilder::finish(builder),
            Cells::Decimal(builder, _) => ArrayBuilder::finish(builder),
            Cells::Date(builder) => ArrayBuilder::finish(builder),
            Cells::DateTime(builder) => ArrayBuilder::finish(builder),
            Cells::Time(builder) => ArrayBuilder::finish(builder),
            Cells::Bytes(builder) => ArrayBuilder::finish(builder),
            Cells::Text(builder) => ArrayBuilder::finish(builder),
        }
    }
}

impl Column {
    /// Adds a cell; returns its bytes of text. A date that no calendar has is NULL.
    fn push(&mut self, cell: ResultCell<'_>) -> Result<usize> {
        if matches!(self.cells, Cells::Bytes(_) | Cells::Text(_) | Cells::Decimal(..)) {
            return self.push_text(&cell);
        }
        let value = cell.into_value()?;
        match &mut self.cells {
            Cells::Signed(builder) => builder.append_option(signed(&value)),
            Cells::Unsigned(builder) => builder.append_option(unsigned(&value)),
            Cells::Float(builder) => builder.append_option(double(&value).map(|it| it as f32)),
            Cells::Double(builder) => builder.append_option(double(&value)),
            Cells::Date(builder) => {
                builder.append_option(at(&value).and_then(|at| days(at.date())))
            }
            Cells::DateTime(builder) => builder.append_option(at(&value).and_then(micros)),
            Cells::Time(builder) => builder.append_option(duration(&value)),
            Cells::Decimal(..) | Cells::Bytes(_) | Cells::Text(_) => {}
        }
        Ok(8)
    }

    fn push_text(&mut self, cell: &ResultCell<'_>) -> Result<usize> {
        self.scratch.clear();
        let is_some = cell.write_text(&self.ty, &mut self.scratch)?;
        let bytes = is_some.then_some(self.scratch.as_slice());
        match &mut self.cells {
            Cells::Bytes(builder) => builder.append_option(bytes),
            Cells::Text(builder) => builder.append_option(bytes.map(String::from_utf8_lossy)),
            Cells::Decimal(builder, _) => {
                let scale = self.ty.decimals;
                builder.append_option(bytes.and_then(|bytes| unscaled(bytes, scale)));
            }
            Cells::Signed(_)
            | Cells::Unsigned(_)
            | Cells::Float(_)
            | Cells::Double(_)
            | Cells::Date(_)
            | Cells::DateTime(_)
            | Cells::Time(_) => {}
        }
        Ok(self.scratch.len() + 8)
    }
}

/// The digits of a decimal's text as a whole number with `scale` digits after the point.
fn unscaled(text: &[u8], scale: u8) -> Option<i128> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let scale = usize::from(scale);
    format!("{whole}{fraction:0<scale$}").parse().ok()
}

fn signed(value: &Value) -> Option<i64> {
    if let Value::UInt(number) = value {
        return i64::try_from(*number).ok();
    }
    if let Value::Int(number) = value { Some(*number) } else { None }
}

fn unsigned(value: &Value) -> Option<u64> {
    if let Value::Int(number) = value {
        return u64::try_from(*number).ok();
    }
    if let Value::UInt(number) = value { Some(*number) } else { None }
}

fn double(value: &Value) -> Option<f64> {
    if let Value::Double(number) = value {
        return Some(*number);
    }
    signed(value).map(|number| number as f64)
}

/// A date or a date with a time.
fn at(value: &Value) -> Option<types::DateTime> {
    if let Value::Date(date) = value {
        return Some(date.at_midnight());
    }
    if let Value::DateTime(at) = value { Some(*at) } else { None }
}

fn duration(value: &Value) -> Option<i64> {
    if let Value::Time(time) = value { Some(time.micros()) } else { None }
}

fn days(date: types::Date) -> Option<i32> {
    if date.has_zero_part() {
        return None;
    }
    i32::try_from(to_days(date) - UNIX_EPOCH_DAY).ok()
}

fn micros(at: types::DateTime) -> Option<i64> {
    let days = i64::from(days(at.date())?);
    Some(days * 86_400_000_000 + at.micros_of_day())
}

impl Open {
    fn new(columns: &[ColumnMeta]) -> Result<Open> {
        let cells = columns.iter().map(|column| Cells::of(&column.ty));
        let columns_of: Vec<Column> = columns
            .iter()
            .zip(cells)
            .map(|(column, cells)| Column { ty: column.ty.clone(), cells, scratch: Vec::new() })
            .collect();
        let fields = columns.iter().zip(&columns_of).map(|(column, of)| {
            // A date that no calendar has becomes NULL.
            Field::new(&*column.name, of.cells.arrow_type(), true)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let writer = StreamWriter::try_new(Vec::new(), &schema).map_err(Error::internal)?;
        Ok(Open { writer, schema, columns: columns_of, rows: 0, text_bytes: 0 })
    }

    fn write_batch(&mut self) -> Result<()> {
        let cells = self.columns.iter_mut().map(|column| column.cells.finish()).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), cells).map_err(Error::internal)?;
        (self.rows, self.text_bytes) = (0, 0);
        self.writer.write(&batch).map_err(Error::internal)
    }
}

impl<'a> ArrowSink<'a> {
    /// A sink for the answer to a request; rows beyond `rows_max` are left out.
    pub fn new(request: &'a Incoming, rows_max: u64) -> ArrowSink<'a> {
        let pipe = Pipe::new(request, MEDIA_TYPE);
        ArrowSink { pipe, rows_max, rows: 0, open: None, has_result: false, error: None }
    }

    /// Ends the answer. A statement that fails after rows were sent breaks the connection: the format has no place for an error.
    ///
    /// # Errors
    /// The client is gone.
    pub fn finish(mut self) -> Result<Reply> {
        match self.error.take() {
            Some(error) if self.pipe.has_begun() => Err(error),
            Some(error) => Ok(Reply::sql_error(&error)),
            None => self.pipe.finish(StatusCode::OK),
        }
    }

    fn begin(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        if self.has_result {
            bail!(WRONG_USAGE, "Arrow", "several results");
        }
        self.has_result = true;
        self.open = Some(Open::new(columns)?);
        Ok(())
    }

    /// Moves what was written into the answer.
    fn pass(&mut self) -> Result<()> {
        if let Some(open) = &mut self.open {
            self.pipe.out.append(open.writer.get_mut());
        }
        self.pipe.send_if_full()
    }

    fn complete(&mut self) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        if open.rows > 0 {
            open.write_batch()?;
        }
        open.writer.finish().map_err(Error::internal)?;
        self.pipe.out.append(open.writer.get_mut());
        self.pipe.send_if_full()
    }
}

impl ResultSink for ArrowSink<'_> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.begin(columns)
    }

    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        self.rows += 1;
        if self.rows > self.rows_max {
            return Ok(());
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        for (index, column) in open.columns.iter_mut().enumerate() {
            open.text_bytes += column.push(row.cell(index)?)?;
        }
        open.rows += 1;
        if open.rows == BATCH_ROWS || open.text_bytes >= BATCH_BYTES {
            open.write_batch()?;
            self.pass()?;
        }
        Ok(())
    }

    fn end(&mut self, state: &SessionState) -> Result<()> {
        self.pipe.note_commit(state);
        self.complete()
    }

    /// A statement without rows is a row of its counts.
    fn ok(&mut self, ok: &OkInfo) -> Result<()> {
        self.pipe.note_commit(ok);
        let mut ty = DataType::new(TypeKind::BigInt, 20, 0);
        ty.unsigned = true;
        let names = ["affected_rows", "last_insert_id"];
        self.begin(&names.map(|name| ColumnMeta::computed(name, ty.clone())))?;
        let values = [Value::UInt(ok.affected_rows), Value::UInt(ok.last_insert_id)];
        self.row(&plugin_api::ValueRow(&values))?;
        self.complete()
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        self.error = Some(error.clone());
        Ok(())
    }

    fn local_file(&mut self, _name: &str) -> Result<Box<dyn LocalFile + '_>> {
        bail!(CLIENT_LOCAL_FILES_DISABLED)
    }
}
