//! Batches of records, version 2: what topics are made of since Kafka 0.11.

use crc_fast::CrcAlgorithm;

use crate::protocol::Writer;

/// Version of the format.
const MAGIC: i8 = 2;
/// Bytes from a batch's beginning to where its length starts to count.
const LEN_END: usize = 12;
/// Where its checksum is; what follows that is summed.
const CRC_AT: usize = 17;

/// Who writes, so that the broker knows a batch that comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Producer {
    pub id: i64,
    pub epoch: i16,
}

impl Producer {
    /// A producer without a name: batches may come twice.
    pub const NONE: Producer = Producer { id: -1, epoch: -1 };
}

/// A batch of records (key and value), uncompressed. `sequence` numbers its first.
pub(crate) fn batch<'a>(
    producer: Producer,
    sequence: i32,
    at_ms: i64,
    records: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])>,
) -> Vec<u8> {
    let count = records.len() as i32;
    let mut out = Writer::default();
    out.i64(0); // The first offset: the broker's.
    out.i32(0); // The length: below.
    out.i32(-1); // The epoch of the partition's leader: the broker's.
    out.i8(MAGIC);
    out.i32(0); // The checksum: below.
    out.i16(0); // No compression, times of creation, no transaction.
    out.i32(count - 1);
    out.i64(at_ms);
    out.i64(at_ms);
    out.i64(producer.id);
    out.i16(producer.epoch);
    out.i32(if producer == Producer::NONE { -1 } else { sequence });
    out.i32(count);
    let mut record = Writer::default();
    for (at, (key, value)) in records.enumerate() {
        record.0.clear();
        record.i8(0); // Attributes: none exist.
        record.varint(0); // Milliseconds after the batch's time.
        record.varint(at as i64);
        record.varbytes(key);
        record.varbytes(value);
        record.varint(0); // No headers.
        out.varbytes(&record.0);
    }
    let mut bytes = out.0;
    let len = (bytes.len() - LEN_END) as i32;
    bytes[LEN_END - 4..LEN_END].copy_from_slice(&len.to_be_bytes());
    let crc = crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, &bytes[CRC_AT + 4..]) as u32;
    bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_its_lengths_and_its_checksum() {
        let records: [(&[u8], &[u8]); 2] = [(b"k", b"value"), (b"l", b"")];
        let bytes = batch(Producer { id: 7, epoch: 1 }, 40, 1_000, records.into_iter());
        let number = |at: usize| i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four"));
        assert_eq!(number(8) as usize, bytes.len() - 12);
        assert_eq!((bytes[16], number(23), number(53), number(57)), (2, 1, 40, 2));
        // The first record: 12 bytes after its length; no attributes, the batch's time, the first offset, key, value, no headers.
        assert_eq!(&bytes[61..74], b"\x18\0\0\0\x02k\x0avalue\0");
        assert_eq!(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, b"123456789"), 0xe306_9283);
        assert_eq!(
            number(17) as u32,
            crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, &bytes[21..]) as u32
        );
        let anonymous = batch(Producer::NONE, 40, 1_000, records.into_iter());
        assert_eq!(&anonymous[43..57], &[0xff; 14]);
    }
}
