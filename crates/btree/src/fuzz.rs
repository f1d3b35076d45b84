//! Decoders on any bytes: `cargo xtask fuzz` lets coverage guide them. `__fuzz__` keeps what they start from.

use page::{apply_ops, private_page};

use crate::redo::RedoBody;

/// Bodies of records, applied to the pages that they name.
#[test]
fn redo_bodies() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let Some(body) = RedoBody::parse(bytes) else { return };
        assert_eq!(&bytes[body.ops_start..][..body.ops.len()], body.ops);
        let Some(touches) = body.touches() else { return };
        for touch in touches.take(8) {
            let words = private_page(512);
            let _ = apply_ops(&words, body.ops, touch.place);
        }
    });
}
