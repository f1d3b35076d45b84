//! What takes the rows of tables.

use errors::Result;
use types::Value;

/// Takes rows.
pub(crate) type Emit<'a> = dyn FnMut(&[Value]) -> Result<()> + 'a;
