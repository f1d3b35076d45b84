//! Literals that are lifted out of a text, so that texts that differ only in them share a plan.

use syntax::{LiteralKind, LiteralSpan, ParseOptions};
use types::{SqlBytes, Value};

/// The literals of the current text, and a buffer for one text: reused from statement to statement.
#[derive(Default)]
pub struct LiftedLiterals {
    pub spans: Vec<LiteralSpan>,
    /// The emptied buffer for values of literals, from an earlier statement.
    room: Vec<Value>,
    buffer: Vec<u8>,
}

impl LiftedLiterals {
    /// Takes over the literals of a text.
    #[inline]
    pub fn take_over(&mut self, spans: &[LiteralSpan]) {
        self.spans.clear();
        self.spans.extend_from_slice(spans);
    }

    /// An empty list for values, with the buffer that `give_back` got.
    #[inline]
    pub fn room(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.room)
    }

    /// Returns the buffer of values that are no longer used.
    #[inline]
    pub fn give_back(&mut self, mut values: Vec<Value>) {
        values.clear();
        self.room = values;
    }

    /// Values of the lifted literals, and a hash of their types; `None` when a literal cannot be converted.
    pub fn values(
        &mut self,
        text: &[u8],
        options: &ParseOptions<'_>,
        values: &mut Vec<Value>,
    ) -> Option<u64> {
        let mut types = 0_u64;
        for literal in &self.spans {
            let value = match literal.kind {
                LiteralKind::Integer => Value::Int(literal.integer(text)?),
                LiteralKind::String => {
                    self.buffer.clear();
                    let plain = options.no_backslash_escapes;
                    literal.string(text, plain, &mut self.buffer);
                    // The parser reports the error of malformed text.
                    std::str::from_utf8(&self.buffer).ok()?;
                    Value::Bytes(SqlBytes::new(&self.buffer))
                }
            };
            types = types.rotate_left(7) ^ type_class(&value);
            values.push(value);
        }
        Some(types)
    }
}

/// The part of a value's type that affects a plan, in a few bits: texts by the power of two that holds them.
fn type_class(value: &Value) -> u64 {
    match value {
        Value::Bytes(bytes) => 2 + u64::from((bytes.len().max(64) as u32).next_power_of_two()),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lift(text: &str) -> Option<(u64, Vec<Value>)> {
        let options = ParseOptions::default();
        let mut normalizer = syntax::Normalizer::new(1);
        let mut lifted = LiftedLiterals::default();
        lifted.take_over(normalizer.normalize(text.as_bytes(), &options).literals);
        let mut values = lifted.room();
        let types = lifted.values(text.as_bytes(), &options, &mut values)?;
        Some((types, values))
    }

    #[test]
    fn texts_of_about_one_size_have_one_type() {
        let (short, values) =
            lift("SELECT 1 FROM t WHERE a = 'a' AND b = 7").expect("two literals");
        assert_eq!(values, [Value::text("a"), Value::Int(7)]);
        let (other, _) =
            lift("SELECT 1 FROM t WHERE a = 'bcd' AND b = 80000").expect("two literals");
        assert_eq!(short, other);
        let long = format!("SELECT 1 FROM t WHERE a = '{}' AND b = 7", "x".repeat(100));
        assert_ne!(short, lift(&long).expect("two literals").0);
    }

    #[test]
    fn malformed_text_is_left_to_the_parser() {
        let mut lifted = LiftedLiterals::default();
        let (options, text) = (ParseOptions::default(), b"SELECT 1 FROM t WHERE a = '\xff'");
        let mut normalizer = syntax::Normalizer::new(1);
        lifted.take_over(normalizer.normalize(text, &options).literals);
        assert_eq!(lifted.spans.len(), 1);
        assert_eq!(lifted.values(text, &options, &mut Vec::new()), None);
    }

    #[test]
    fn room_for_values_is_used_again() {
        let mut lifted = LiftedLiterals::default();
        let mut values = lifted.room();
        values.extend([Value::Int(1), Value::Int(2)]);
        let capacity = values.capacity();
        lifted.give_back(values);
        let again = lifted.room();
        assert!(again.is_empty() && again.capacity() == capacity);
    }
}
