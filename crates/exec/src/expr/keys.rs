//! Keys of what expressions give: for hash tables of joins, IN and subqueries.

use errors::Result;
use types::Value;

use super::Code;
use crate::convert;
use crate::run::Run;
use crate::value_key::{Domain, Side, append_kind_key};

impl Domain {
    /// Appends the key of a left or right value; false for NULL.
    pub(crate) fn append(
        &self,
        value: &Value,
        side: Side,
        run: &mut Run<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        if self.is_direct() {
            return Ok(self.append_direct(value, out));
        }
        let mut ctx = convert::context(&mut run.function);
        let value = match side {
            Side::Left => self.comparator().left(value, &mut ctx)?,
            Side::Right => self.comparator().right(value, &mut ctx)?,
        };
        Ok(append_kind_key(self.comparator().kind(), &value, out))
    }

    /// Appends the key of an expression's value; false for NULL.
    pub(crate) fn append_code(
        &self,
        code: &Code,
        side: Side,
        run: &mut Run<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        if self.is_direct()
            && let Some(value) = code.leaf(run)
        {
            return Ok(self.append_direct(value, out));
        }
        let value = code.eval(run)?;
        self.append(&value, side, run, out)
    }
}
