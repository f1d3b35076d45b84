//! Which records a batch of events becomes: its keys and its partitions.

use plugin_api::SinkEvent;
use serde_json::Value as Json;

/// Bytes of a chunk, so that it stays below what brokers take by default (1 MiB).
const CHUNK_BYTES: usize = 900_000;
/// What a record needs beside its key and value.
const RECORD_BYTES: usize = 32;

/// Records of a partition that are sent together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub records: Vec<RecordOf>,
    /// The number of the first, once it was sent.
    pub sequence: Option<i32>,
    pub bytes: usize,
}

/// A record: the event it is made of, by its place in the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordOf {
    pub event: usize,
    /// It has the key that an update gave its row.
    pub is_moved: bool,
}

impl RecordOf {
    /// The key of the record.
    pub fn key(self, events: &[SinkEvent]) -> Vec<u8> {
        events.get(self.event).map(|event| key_of(event, self.is_moved)).unwrap_or_default()
    }
}

/// A row's table and key; for events without a row their kind, and for rows without a key their table.
fn key_of(event: &SinkEvent, is_moved: bool) -> Vec<u8> {
    let text = |text: &str| Json::from(text).to_string();
    let Some((schema, table)) = event.table.as_ref().filter(|_| is_row(event.op)) else {
        return format!("{{\"op\":{}}}", text(event.op)).into_bytes();
    };
    let named = format!("{{\"schema\":{},\"table\":{},\"key\":", text(schema), text(table));
    let mut key = named.into_bytes();
    let of_row = if is_moved { &event.new_key } else { &event.key };
    key.extend_from_slice(of_row.as_deref().unwrap_or(b"null"));
    key.push(b'}');
    key
}

fn is_row(op: &str) -> bool {
    matches!(op, "read" | "insert" | "update" | "delete")
}

/// The chunks of a batch, by partition. Rows go where their keys say; what begins and ends a transaction goes to the first partition; the rest, which a
/// reader of each partition has to know, to all of them.
pub(crate) fn chunks(events: &[SinkEvent], partitions: usize) -> Vec<Vec<Chunk>> {
    let mut out: Vec<Vec<Chunk>> = vec![Vec::new(); partitions];
    let mut put = |at: usize, record: RecordOf, bytes: usize| {
        let Some(of_partition) = out.get_mut(at) else { return };
        match of_partition.last_mut() {
            Some(chunk) if chunk.bytes + bytes <= CHUNK_BYTES => {
                chunk.records.push(record);
                chunk.bytes += bytes;
            }
            Some(_) | None => {
                of_partition.push(Chunk { records: vec![record], sequence: None, bytes });
            }
        }
    };
    for (at, event) in events.iter().enumerate() {
        let record = RecordOf { event: at, is_moved: false };
        let key = key_of(event, false);
        let bytes = key.len() + event.json.len() + RECORD_BYTES;
        match event.op {
            "begin" | "commit" => put(0, record, bytes),
            op if is_row(op) => {
                let first = partition(&key, partitions);
                put(first, record, bytes);
                // Later changes of the row have the new key: who reads that partition has to see where the row came from.
                if event.new_key.is_some() {
                    let moved = key_of(event, true);
                    let second = partition(&moved, partitions);
                    let record = RecordOf { event: at, is_moved: true };
                    put(second, record, moved.len() + event.json.len() + RECORD_BYTES);
                }
            }
            _ => (0..partitions).for_each(|at| put(at, record, bytes)),
        }
    }
    out
}

impl Chunk {
    /// Two halves, when there are two records.
    pub fn halves(&self) -> Option<[Chunk; 2]> {
        if self.records.len() < 2 {
            return None;
        }
        let (first, second) = self.records.split_at(self.records.len() / 2);
        let sequence = self.sequence;
        let half = |records: &[RecordOf], sequence| Chunk {
            records: records.to_vec(),
            sequence,
            bytes: self.bytes / 2,
        };
        let after = sequence.map(|sequence| next_sequence(sequence, first.len()));
        Some([half(first, sequence), half(second, after)])
    }
}

/// The number after `count` records: they go round at 2^31.
pub(crate) fn next_sequence(sequence: i32, count: usize) -> i32 {
    ((sequence as u32).wrapping_add(count as u32) & i32::MAX as u32) as i32
}

/// The partition that Kafka's own clients would choose for the key.
fn partition(key: &[u8], partitions: usize) -> usize {
    (murmur2(key) & 0x7fff_ffff) as usize % partitions.max(1)
}

/// Austin Appleby's hash (public domain), with the seed that Kafka's clients agree on.
fn murmur2(bytes: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ bytes.len() as u32;
    let mut words = bytes.chunks_exact(4);
    for word in words.by_ref() {
        let mut k = word.iter().rev().fold(0, |k, byte| k << 8 | u32::from(*byte));
        k = k.wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        hash ^= rest.iter().rev().fold(0, |k, byte| k << 8 | u32::from(*byte));
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(op: &'static str, key: Option<&str>, new_key: Option<&str>) -> SinkEvent {
        SinkEvent {
            op,
            table: Some(("d".to_owned(), "t".to_owned())),
            key: key.map(|key| key.as_bytes().to_vec()),
            new_key: new_key.map(|key| key.as_bytes().to_vec()),
            json: b"{}".to_vec(),
        }
    }

    #[test]
    fn keys_hash_as_with_other_clients() {
        // Values that kafka-python computes.
        let known: [(&[u8], u32); 5] = [
            (b"21", -973_932_308_i32 as u32),
            (b"foobar", -790_332_482_i32 as u32),
            (b"a-little-bit-long-string", -985_981_536_i32 as u32),
            (b"a-little-bit-longer-string", -1_486_304_829_i32 as u32),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971_i32 as u32),
        ];
        for (key, hash) in known {
            assert_eq!(murmur2(key), hash, "{key:?}");
        }
    }

    #[test]
    fn rows_have_a_partition_and_the_rest_has_all() {
        let events = [
            event("table", None, None),
            event("begin", None, None),
            event("insert", Some("{\"a\":1}"), None),
            event("update", Some("{\"a\":1}"), Some("{\"a\":2}")),
            event("commit", None, None),
        ];
        let chunks = chunks(&events, 8);
        let of = |at: usize| {
            chunks.iter().flatten().flat_map(|c| &c.records).filter(|r| r.event == at).count()
        };
        assert_eq!([of(0), of(1), of(2), of(3), of(4)], [8, 1, 1, 2, 1]);
        let key = RecordOf { event: 3, is_moved: true }.key(&events);
        assert_eq!(key, br#"{"schema":"d","table":"t","key":{"a":2}}"#);
    }

    #[test]
    fn chunks_are_bounded_and_halved() {
        let large = SinkEvent { json: vec![b'x'; 400_000], ..event("insert", Some("{}"), None) };
        let of_one = &chunks(&[large.clone(), large.clone(), large], 1)[0];
        assert_eq!(of_one.iter().map(|c| c.records.len()).collect::<Vec<_>>(), [2, 1]);
        let chunk = Chunk { sequence: Some(i32::MAX), ..of_one[0].clone() };
        let [first, second] = chunk.halves().expect("two records");
        assert_eq!((first.sequence, second.sequence), (Some(i32::MAX), Some(0)));
        assert!(first.halves().is_none());
    }
}
