//! Keys from the values of expressions: for hash tables of joins, IN and subqueries.

use errors::Result;
use rows::value_key::{Domain, Side};

use super::Code;
use crate::run::Run;

impl Code {
    /// Appends the key of its value as one side of `domain`; false for NULL.
    pub(crate) fn append_key(
        &self,
        domain: &Domain,
        side: Side,
        run: &mut Run<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        if domain.is_direct()
            && let Some(value) = self.leaf(run)
        {
            return Ok(domain.append_direct(value, out));
        }
        let value = self.eval(run)?;
        domain.append(&value, side, &mut run.function, out)
    }
}
