//! Encoded column definitions, cached by the worker thread: statements that run again send the same ones.
//!
//! Knows nothing of how they are encoded.

use std::sync::Arc;

use plugin_api::ColumnMeta;

/// Statements whose columns a thread remembers.
const SLOTS: usize = 16;
/// Longer ones are encoded again.
const BYTES_MAX: usize = 2048;

/// The settings that the bytes depend on in addition to the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetadataForm {
    pub(crate) collation: u16,
    pub(crate) optional: bool,
}

/// The packets of one statement's columns, numbered from the first of a reply.
pub(crate) struct Packets {
    /// Held, so that its address identifies it.
    columns: Arc<[ColumnMeta]>,
    form: MetadataForm,
    pub(crate) bytes: Box<[u8]>,
    pub(crate) next_sequence: u8,
}

/// Packets by the address of their columns.
#[derive(Default)]
pub(crate) struct MetadataCache {
    slots: [Option<Packets>; SLOTS],
}

fn slot(columns: &Arc<[ColumnMeta]>) -> usize {
    let address = columns.as_ptr().addr();
    // Allocations are aligned, so the lowest bits vary little.
    (address >> 4 ^ address >> 10) % SLOTS
}

impl MetadataCache {
    #[inline]
    pub(crate) fn find(&self, columns: &Arc<[ColumnMeta]>, form: MetadataForm) -> Option<&Packets> {
        let known = self.slots[slot(columns)].as_ref()?;
        (Arc::ptr_eq(&known.columns, columns) && known.form == form).then_some(known)
    }

    pub(crate) fn keep(
        &mut self,
        columns: &Arc<[ColumnMeta]>,
        form: MetadataForm,
        bytes: &[u8],
        next_sequence: u8,
    ) {
        if bytes.len() <= BYTES_MAX {
            let (columns, bytes) = (columns.clone(), bytes.into());
            let place = &mut self.slots[slot(&columns)];
            *place = Some(Packets { columns, form, bytes, next_sequence });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::DataType;

    #[test]
    fn columns_are_known_by_identity_and_form() {
        let columns =
            || -> Arc<[ColumnMeta]> { vec![ColumnMeta::computed("a", DataType::bigint())].into() };
        let (one, equal) = (columns(), columns());
        let form = MetadataForm { collation: 255, optional: false };
        let mut cache = MetadataCache::default();
        cache.keep(&one, form, b"packets", 3);
        let found = cache.find(&one, form).expect("just kept");
        assert_eq!((&*found.bytes, found.next_sequence), (&b"packets"[..], 3));
        assert!(cache.find(&equal, form).is_none());
        assert!(cache.find(&one, MetadataForm { collation: 63, optional: false }).is_none());
        cache.keep(&equal, form, &[0; BYTES_MAX + 1], 3);
        assert!(cache.find(&equal, form).is_none());
    }
}
