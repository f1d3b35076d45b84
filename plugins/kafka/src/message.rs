//! The requests of a producer and their answers, in versions that brokers of Kafka 0.11 and later know.

use crate::protocol::{Malformed, Reader, Writer};
use crate::records::Producer;

/// What a request asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Produce,
    Metadata,
    SaslHandshake,
    Versions,
    InitProducerId,
    SaslAuthenticate,
}

impl Api {
    /// Its number and the version that is spoken.
    pub fn number(self) -> (i16, i16) {
        match self {
            Api::Produce => (0, 3),
            Api::Metadata => (3, 4),
            Api::SaslHandshake => (17, 1),
            Api::Versions => (18, 0),
            Api::InitProducerId => (22, 0),
            Api::SaslAuthenticate => (36, 0),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Api::Produce => "Produce",
            Api::Metadata => "Metadata",
            Api::SaslHandshake => "SaslHandshake",
            Api::Versions => "ApiVersions",
            Api::InitProducerId => "InitProducerId",
            Api::SaslAuthenticate => "SaslAuthenticate",
        }
    }
}

/// A broker's number for what went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub i16);

impl Code {
    pub const NONE: Code = Code(0);
    pub const MESSAGE_TOO_LARGE: Code = Code(10);
    pub const CLUSTER_AUTHORIZATION_FAILED: Code = Code(31);
    pub const OUT_OF_ORDER_SEQUENCE: Code = Code(45);
    pub const DUPLICATE_SEQUENCE: Code = Code(46);
    pub const INVALID_PRODUCER_EPOCH: Code = Code(47);
    pub const UNKNOWN_PRODUCER_ID: Code = Code(59);

    /// The producer has to begin anew.
    pub fn ends_producer(self) -> bool {
        matches!(
            self,
            Code::OUT_OF_ORDER_SEQUENCE | Code::INVALID_PRODUCER_EPOCH | Code::UNKNOWN_PRODUCER_ID
        )
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let meaning = match self.0 {
            -1 => "an unknown error",
            2 => "a corrupt message",
            3 => "unknown topic or partition",
            5 => "the partition has no leader",
            6 => "it does not lead the partition",
            7 => "the request took too long",
            10 => "the record is larger than the topic allows",
            13 => "no connection to the leader",
            17 => "invalid topic",
            18 => "the records are more than a segment holds",
            19 => "too few replicas in sync",
            20 => "too few replicas in sync, after the write",
            29 => "no privilege for the topic",
            31 => "no privilege for the cluster",
            33 => "it does not know this kind of log-in",
            34 => "it does not log in now",
            35 => "a version that it does not speak",
            45 => "records are missing",
            47 => "another producer has the number",
            55 => "an operation of a transaction is under way",
            56 => "the disk failed",
            58 => "the log-in failed",
            59 => "it has forgotten the producer",
            87 => "the topic does not take such records",
            89 => "it has too much to do",
            _ => return write!(f, "error {}", self.0),
        };
        write!(f, "error {}: {meaning}", self.0)
    }
}

/// The partitions of a topic.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// Number, host and port of each broker.
    pub brokers: Vec<(i32, String, u16)>,
    pub topic: Code,
    /// The leader of each partition; -1 for none.
    pub leaders: Vec<i32>,
}

pub(crate) fn metadata(topic: &str) -> Vec<u8> {
    let mut out = Writer::default();
    out.len(1);
    out.text(topic);
    out.bool(true); // The broker may make the topic, if it is set so.
    out.0
}

pub(crate) fn read_metadata(topic: &str, answer: &[u8]) -> Result<Metadata, Malformed> {
    let reader = &mut Reader(answer);
    reader.i32()?; // The time that it was held back.
    let brokers = reader.list(|reader| {
        let id = reader.i32()?;
        let host = reader.text()?.ok_or(Malformed)?;
        let port = u16::try_from(reader.i32()?).map_err(|_| Malformed)?;
        reader.text()?; // The rack.
        Ok((id, host, port))
    })?;
    reader.text()?; // The cluster.
    reader.i32()?; // Its controller.
    let topics = reader.list(|reader| {
        let code = Code(reader.i16()?);
        let name = reader.text()?;
        reader.i8()?; // Whether it is the brokers' own.
        let partitions = reader.list(|reader| {
            reader.i16()?; // That there is no leader says -1.
            let (number, leader) = (reader.i32()?, reader.i32()?);
            reader.list(|reader| reader.i32())?; // Replicas.
            reader.list(|reader| reader.i32())?; // Those in sync.
            Ok((number, leader))
        })?;
        Ok((code, name, partitions))
    })?;
    let (code, _, partitions) =
        topics.into_iter().find(|(_, name, _)| name.as_deref() == Some(topic)).ok_or(Malformed)?;
    let mut leaders = vec![-1; partitions.len()];
    for (number, leader) in partitions {
        let at = usize::try_from(number).map_err(|_| Malformed)?;
        *leaders.get_mut(at).ok_or(Malformed)? = leader;
    }
    Ok(Metadata { brokers, topic: code, leaders })
}

pub(crate) fn init_producer_id() -> Vec<u8> {
    let mut out = Writer::default();
    out.null_text(); // No transactions.
    out.i32(i32::MAX);
    out.0
}

pub(crate) fn read_init_producer_id(answer: &[u8]) -> Result<(Code, Producer), Malformed> {
    let reader = &mut Reader(answer);
    reader.i32()?; // The time that it was held back.
    let code = Code(reader.i16()?);
    Ok((code, Producer { id: reader.i64()?, epoch: reader.i16()? }))
}

/// Batches by partition; the answer comes when all replicas in sync have them.
pub(crate) fn produce(topic: &str, timeout_ms: i32, batches: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let mut out = Writer::default();
    out.null_text(); // No transaction.
    out.i16(-1); // All replicas in sync.
    out.i32(timeout_ms);
    out.len(1);
    out.text(topic);
    out.len(batches.len());
    for (partition, batch) in batches {
        out.len(*partition);
        out.bytes(batch);
    }
    out.0
}

/// What became of the batch of each partition.
pub(crate) fn read_produce(answer: &[u8]) -> Result<Vec<(usize, Code)>, Malformed> {
    let reader = &mut Reader(answer);
    let topics = reader.list(|reader| {
        reader.text()?;
        reader.list(|reader| {
            let partition = usize::try_from(reader.i32()?).map_err(|_| Malformed)?;
            let code = Code(reader.i16()?);
            reader.i64()?; // The first offset.
            reader.i64()?; // The time that the broker gave it.
            Ok((partition, code))
        })
    })?;
    Ok(topics.into_iter().flatten().collect())
}

pub(crate) fn sasl_handshake(mechanism: &str) -> Vec<u8> {
    let mut out = Writer::default();
    out.text(mechanism);
    out.0
}

pub(crate) fn read_sasl_handshake(answer: &[u8]) -> Result<Code, Malformed> {
    Reader(answer).i16().map(Code)
}

/// A message of the log-in.
pub(crate) fn sasl_authenticate(message: &str) -> Vec<u8> {
    let mut out = Writer::default();
    out.bytes(message.as_bytes());
    out.0
}

/// The error with its text, and the broker's message.
pub(crate) fn read_sasl_authenticate(
    answer: &[u8],
) -> Result<(Code, Option<String>, Vec<u8>), Malformed> {
    let reader = &mut Reader(answer);
    let code = Code(reader.i16()?);
    let message = reader.text()?;
    let said = reader.bytes()?.unwrap_or_default().to_vec();
    Ok((code, message, said))
}

/// The error, and the least and greatest version of each request that the broker knows.
pub(crate) fn read_api_versions(answer: &[u8]) -> Result<(Code, Vec<(i16, i16, i16)>), Malformed> {
    let reader = &mut Reader(answer);
    let code = Code(reader.i16()?);
    let known = reader.list(|reader| Ok((reader.i16()?, reader.i16()?, reader.i16()?)))?;
    Ok((code, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer of two brokers that lead a partition each.
    fn answer(second: i32) -> Vec<u8> {
        let mut out = Writer::default();
        out.i32(0);
        out.len(2);
        for id in [1, 2] {
            out.i32(id);
            out.text("host");
            out.i32(9092);
            out.null_text();
        }
        out.null_text();
        out.i32(1);
        out.len(1);
        out.i16(0);
        out.text("t");
        out.bool(false);
        out.len(2);
        for (number, leader) in [(second, 2), (0, 1)] {
            out.i16(0);
            out.i32(number);
            out.i32(leader);
            out.len(1);
            out.i32(leader);
            out.len(0);
        }
        out.0
    }

    #[test]
    fn answers_are_read_or_refused() {
        let metadata = read_metadata("t", &answer(1)).expect("well formed");
        assert_eq!((metadata.leaders, metadata.brokers.len()), (vec![1, 2], 2));
        assert_eq!(read_metadata("t", &answer(2)), Err(Malformed));
        assert_eq!(read_metadata("u", &answer(1)), Err(Malformed));
        let whole = answer(1);
        for end in 0..whole.len() {
            assert_eq!(read_metadata("t", &whole[..end]), Err(Malformed), "{end}");
        }
    }
}
