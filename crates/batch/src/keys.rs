//! Values of columns as parts of keys: equal values of one column have equal parts, and no part is the beginning of another.

use charset::{Collation, PadAttribute};
use hashbrown::HashMap;
use types::CollationId;

use crate::column::{Column, Data};
use crate::{Fit, Unfit};

/// Texts whose weights are remembered.
const KNOWN_MAX: usize = 1024;

/// Writes the parts of one column.
#[derive(Debug)]
pub(crate) struct PartWriter {
    collation: &'static Collation,
    /// An empty column of the values' kind.
    kind: Option<Data>,
    /// Weights of the texts seen, where they are expensive.
    known: HashMap<Box<[u8]>, Box<[u8]>, foldhash::fast::FixedState>,
}

impl PartWriter {
    pub(crate) fn new(collation: CollationId) -> PartWriter {
        PartWriter {
            collation: charset::collation_or_binary(collation),
            kind: None,
            known: HashMap::default(),
        }
    }

    /// Called before a batch: parts are for values of one kind, and decimals of one scale.
    pub(crate) fn admit(&mut self, column: &Column) -> Fit<()> {
        let kind = self.kind.get_or_insert_with(|| column.data.empty_like());
        match kind.is_like(&column.data) {
            true => Ok(()),
            false => Err(Unfit),
        }
    }

    /// Called before the parts of another writer are merged.
    pub(crate) fn admit_parts(&mut self, other: &PartWriter) -> Fit<()> {
        other.kind.iter().try_for_each(|kind| self.admit(&Column::new(kind.empty_like())))
    }

    /// Appends the part of a row.
    #[inline]
    pub(crate) fn append(&mut self, column: &Column, row: usize, out: &mut Vec<u8>) {
        if column.is_null(row) {
            return out.push(0);
        }
        out.push(1);
        match &column.data {
            Data::Int(values) | Data::Time(values) => {
                out.extend_from_slice(&values[row].to_le_bytes());
            }
            Data::UInt(values) | Data::DateTime(values) => {
                out.extend_from_slice(&values[row].to_le_bytes());
            }
            Data::Double(values) => {
                out.extend_from_slice(&(values[row] + 0.0).to_bits().to_le_bytes());
            }
            Data::Decimal(values, _) => out.extend_from_slice(&values[row].to_le_bytes()),
            Data::Date(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Data::Texts(texts) => self.append_text(texts.get(row), out),
        }
    }

    fn append_text(&mut self, text: &[u8], out: &mut Vec<u8>) {
        if self.collation.is_binary() {
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
            return out.extend_from_slice(text);
        }
        if self.collation.pad == PadAttribute::NoPad && text.is_ascii() {
            // Eight characters at a time: cheaper than to look the text up.
            return self.collation.write_key(text, out);
        }
        if let Some(weights) = self.known.get(text) {
            return out.extend_from_slice(weights);
        }
        let start = out.len();
        self.collation.write_key(text, out);
        if self.known.len() < KNOWN_MAX {
            self.known.insert(text.into(), out[start..].into());
        }
    }
}
