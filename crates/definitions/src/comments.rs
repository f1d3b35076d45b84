//! How long comments may be. Outside of strict mode a longer one is cut, with a warning.

use errors::{Error, ErrorCode, Result};

use crate::context::Context;
use crate::draft::Draft;

/// Maximum lengths in characters.
const TABLE_COMMENT_MAX: usize = 2048;
const COLUMN_COMMENT_MAX: usize = 1024;
const INDEX_COMMENT_MAX: usize = 1024;

impl Draft {
    /// Cuts comments that are too long.
    ///
    /// # Errors
    /// 1628, 1629, 1688 in strict mode.
    pub(crate) fn fit_comments(&mut self, ctx: &mut dyn Context) -> Result<()> {
        let code = ErrorCode::TOO_LONG_TABLE_COMMENT;
        fit(ctx, &mut self.comment, TABLE_COMMENT_MAX, code, &self.name)?;
        for column in self.columns.iter_mut().map(|column| &mut column.column) {
            let code = ErrorCode::TOO_LONG_FIELD_COMMENT;
            fit(ctx, &mut column.comment, COLUMN_COMMENT_MAX, code, &column.name)?;
        }
        for index in &mut self.indexes {
            let code = ErrorCode::TOO_LONG_INDEX_COMMENT;
            let name = index.name.as_deref().unwrap_or_default();
            fit(ctx, &mut index.comment, INDEX_COMMENT_MAX, code, name)?;
        }
        Ok(())
    }
}

fn fit(
    ctx: &mut dyn Context,
    comment: &mut String,
    limit: usize,
    code: ErrorCode,
    name: &str,
) -> Result<()> {
    let Some((end, _)) = comment.char_indices().nth(limit) else { return Ok(()) };
    if ctx.settings().sql_mode.is_strict() {
        return Err(Error::with(code, &[&name, &limit]));
    }
    ctx.conditions().warn(code, &[&name, &limit]);
    comment.truncate(end);
    Ok(())
}
