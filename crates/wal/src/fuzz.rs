//! Decoders on any bytes: `cargo xtask fuzz` lets coverage guide them. `__fuzz__` keeps what they start from.

use crate::batch::{HEADER_BYTES, Header};
use crate::checkpoint::Checkpoint;
use crate::replay::{Chain, Found, Window};

/// Batches: as they are, and with the checksum that they would need.
#[test]
fn batches() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let chain = |header: Header| Chain {
            epoch: header.epoch,
            batch: header.number,
            crc: header.previous_crc,
        };
        if let Some(header) = Header::parse(bytes) {
            let found = chain(header).look(bytes);
            assert!(!matches!(found, Found::Batch(header) if header.length as usize + HEADER_BYTES > bytes.len()));
        }
        let mut batch = vec![0; HEADER_BYTES];
        batch.extend_from_slice(bytes);
        let header = Header {
            epoch: 1,
            number: 7,
            low: 3,
            high: 9,
            length: bytes.len() as u32,
            previous_crc: 5,
            durable: 6,
            crc: 0,
        };
        let crc = header.seal(&mut batch);
        let header = Header { crc, ..header };
        assert_eq!(Header::parse(&batch), Some(header));
        assert!(matches!(chain(header).look(&batch), Found::Batch(found) if found == header));
        let window = Window::of_batch(batch, header);
        let length: usize = window.records().map(|(_, record)| record.body.len()).sum();
        assert!(length <= bytes.len());
    });
}

/// Checkpoints with the checksum that they would need.
#[test]
fn checkpoints() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let mut block = bytes.to_vec();
        let _ = Checkpoint::decode(&block);
        if let Some(content) = block.get(8..) {
            let crc = page::crc(content).to_le_bytes();
            block[..4].copy_from_slice(&crate::checkpoint::MAGIC.to_le_bytes());
            block[4..8].copy_from_slice(&crc);
        }
        let Some(read) = Checkpoint::decode(&block) else { return };
        assert_eq!(Checkpoint::decode(&read.encode()), Some(read));
    });
}
