//! Brings a batch to its topic. What partitions have already got is known from one attempt to the next, so that no attempt sends it again.

use std::collections::{BTreeMap, VecDeque};

use engine_api::CancelToken;
use plugin_api::{SinkBatch, SinkConnection, SinkEvent, SinkFailure};

use crate::broker::Broker;
use crate::message::{
    self, Api, Code, Metadata, read_init_producer_id, read_metadata, read_produce,
};
use crate::records::{self, Producer};
use crate::route::{Chunk, chunks, next_sequence};
use crate::settings::Settings;

/// Bytes of a request, unless a single chunk has more.
const REQUEST_BYTES: usize = 1 << 20;
/// Most partitions of a topic.
const PARTITIONS_MAX: usize = 100_000;

/// Sends batches to a topic.
pub(crate) struct Delivery {
    settings: Settings,
    cancel: CancelToken,
    /// Brokers with a connection, by their number.
    brokers: BTreeMap<i32, Broker>,
    /// The topic's partitions; none when they have to be asked for.
    metadata: Option<Metadata>,
    producer: Option<Producer>,
    /// The number of the next record of each partition.
    sequences: Vec<i32>,
    /// What the batch that is being delivered still needs.
    pending: Option<Pending>,
}

struct Pending {
    at_ms: i64,
    /// Chunks by partition.
    chunks: Vec<VecDeque<Chunk>>,
}

impl Delivery {
    pub fn new(settings: Settings, cancel: CancelToken) -> Delivery {
        Delivery {
            settings,
            cancel,
            brokers: BTreeMap::new(),
            metadata: None,
            producer: None,
            sequences: Vec::new(),
            pending: None,
        }
    }

    /// The leader of each partition.
    fn leaders(&mut self) -> Result<Vec<i32>, SinkFailure> {
        if let Some(metadata) = &self.metadata {
            return Ok(metadata.leaders.clone());
        }
        let metadata = self.first_of_brokers(|broker, settings| {
            let body = message::metadata(&settings.topic);
            let answer = broker.ask(Api::Metadata, &body, settings)?;
            let metadata = broker.read(read_metadata(&settings.topic, &answer))?;
            broker.expect(Api::Metadata, metadata.topic)?;
            if !(1..=PARTITIONS_MAX).contains(&metadata.leaders.len()) {
                return Err(broker.failure("a topic with no partitions, or with too many"));
            }
            Ok(metadata)
        })?;
        let leaders = metadata.leaders.clone();
        // A broker may have gone elsewhere under its number.
        self.brokers.clear();
        self.metadata = Some(metadata);
        Ok(leaders)
    }

    /// The answer of the first broker that gives one, of those of the URL and those heard of.
    fn first_of_brokers<T>(
        &self,
        ask: impl Fn(&mut Broker, &Settings) -> Result<T, SinkFailure>,
    ) -> Result<T, SinkFailure> {
        let known = self.metadata.iter().flat_map(|metadata| &metadata.brokers);
        let heard = known.map(|(_, host, port)| (host.as_str(), *port));
        let given = self.settings.brokers.iter().map(|(host, port)| (host.as_str(), *port));
        let mut failure = None;
        for address in given.chain(heard) {
            let outcome = Broker::connect(address, &self.settings, &self.cancel)
                .and_then(|mut broker| ask(&mut broker, &self.settings));
            match outcome {
                Ok(found) => return Ok(found),
                Err(error) if self.cancel.is_cancelled() => return Err(error),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        Err(failure.unwrap_or_else(|| SinkFailure::new("no broker is known")))
    }

    /// Our number as a producer, if the brokers give one.
    fn producer(&mut self) -> Result<Producer, SinkFailure> {
        if let Some(producer) = self.producer {
            return Ok(producer);
        }
        let producer = self.first_of_brokers(|broker, settings| {
            if !broker.knows_producers {
                return Ok(Producer::NONE);
            }
            let answer = broker.ask(Api::InitProducerId, &message::init_producer_id(), settings)?;
            match broker.read(read_init_producer_id(&answer))? {
                // Without the privilege, what comes twice is stored twice.
                (Code::CLUSTER_AUTHORIZATION_FAILED, _) => Ok(Producer::NONE),
                (code, producer) => broker.expect(Api::InitProducerId, code).map(|()| producer),
            }
        })?;
        self.producer = Some(producer);
        self.sequences.clear();
        Ok(producer)
    }

    /// The broker with this number.
    fn broker(&mut self, id: i32) -> Result<Broker, SinkFailure> {
        if let Some(broker) = self.brokers.remove(&id).filter(|broker| !broker.is_idle()) {
            return Ok(broker);
        }
        let mut brokers = self.metadata.iter().flat_map(|metadata| &metadata.brokers);
        let Some((_, host, port)) = brokers.find(|(number, ..)| *number == id) else {
            return Err(SinkFailure::new(Code(5)));
        };
        Broker::connect((host, *port), &self.settings, &self.cancel)
    }

    /// Sends one request to a leader: a chunk for each of its partitions that waits, as many as fit.
    fn send(
        &mut self,
        leader: i32,
        partitions: &[usize],
        producer: Producer,
        pending: &mut Pending,
        events: &[SinkEvent],
    ) -> Result<(), SinkFailure> {
        let mut broker = self.broker(leader)?;
        let (mut batches, mut bytes) = (Vec::new(), 0);
        for partition in partitions {
            let next = pending.chunks.get_mut(*partition).and_then(VecDeque::front_mut);
            let Some(chunk) = next else { continue };
            if !batches.is_empty() && bytes + chunk.bytes > REQUEST_BYTES {
                break;
            }
            bytes += chunk.bytes;
            let sequence = *chunk.sequence.get_or_insert(self.sequences[*partition]);
            batches.push((*partition, encode(chunk, events, producer, sequence, pending.at_ms)));
        }
        let timeout = i32::try_from(self.settings.timeout.as_millis()).unwrap_or(i32::MAX);
        let request = message::produce(&self.settings.topic, timeout, &batches);
        let answer = broker.ask(Api::Produce, &request, &self.settings)?;
        let outcomes = broker.read(read_produce(&answer))?;
        let mut failure = None;
        for (partition, _) in &batches {
            let code = outcomes.iter().find(|(of, _)| of == partition).map(|(_, code)| *code);
            let outcome = match code {
                Some(code) => self.settle(*partition, code, pending),
                None => Err("no answer".to_owned()),
            };
            if let Err(why) = outcome {
                failure =
                    failure.or(Some(broker.failure(format_args!("partition {partition}: {why}"))));
            }
        }
        self.brokers.insert(leader, broker);
        failure.map_or(Ok(()), Err)
    }

    /// What a broker said of a partition's first chunk.
    fn settle(
        &mut self,
        partition: usize,
        code: Code,
        pending: &mut Pending,
    ) -> Result<(), String> {
        let Some(waiting) = pending.chunks.get_mut(partition) else { return Ok(()) };
        match code {
            // It got them before, and its answer was lost.
            Code::NONE | Code::DUPLICATE_SEQUENCE => {
                if let Some(Chunk { records, sequence: Some(sequence), .. }) = waiting.pop_front() {
                    self.sequences[partition] = next_sequence(sequence, records.len());
                }
                Ok(())
            }
            Code::MESSAGE_TOO_LARGE => {
                let halves = waiting.front().and_then(Chunk::halves).ok_or(code.to_string())?;
                waiting.pop_front();
                halves.into_iter().rev().for_each(|half| waiting.push_front(half));
                Ok(())
            }
            code => {
                if code.ends_producer() {
                    self.producer = None;
                }
                Err(code.to_string())
            }
        }
    }

    /// Sends what waits until nothing does.
    fn drain(&mut self, pending: &mut Pending, events: &[SinkEvent]) -> Result<(), SinkFailure> {
        let leaders = self.leaders()?;
        if leaders.len() < pending.chunks.len() {
            return Err(SinkFailure::new("the topic has fewer partitions than before"));
        }
        let had_producer = self.producer.is_some();
        let producer = self.producer()?;
        self.sequences.resize(leaders.len(), 0);
        if !had_producer {
            pending.chunks.iter_mut().flatten().for_each(|chunk| chunk.sequence = None);
        }
        loop {
            let mut of_leaders: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
            for (partition, waiting) in pending.chunks.iter().enumerate() {
                if !waiting.is_empty() {
                    of_leaders.entry(leaders[partition]).or_default().push(partition);
                }
            }
            if of_leaders.is_empty() {
                return Ok(());
            }
            for (leader, partitions) in of_leaders {
                self.send(leader, &partitions, producer, pending, events)?;
            }
        }
    }
}

fn encode(
    chunk: &Chunk,
    events: &[SinkEvent],
    producer: Producer,
    sequence: i32,
    at_ms: i64,
) -> Vec<u8> {
    let keys: Vec<Vec<u8>> = chunk.records.iter().map(|record| record.key(events)).collect();
    let values = chunk
        .records
        .iter()
        .map(|record| events.get(record.event).map_or(&[][..], |event| event.json.as_slice()));
    let records: Vec<(&[u8], &[u8])> = keys.iter().map(Vec::as_slice).zip(values).collect();
    records::batch(producer, sequence, at_ms, records.into_iter())
}

impl SinkConnection for Delivery {
    fn deliver(&mut self, batch: &SinkBatch<'_>) -> Result<(), SinkFailure> {
        let mut pending = match self.pending.take() {
            Some(pending) => pending,
            None => {
                let partitions = self.leaders()?.len();
                let chunks = chunks(batch.events, partitions).into_iter().map(VecDeque::from);
                let at_ms = i64::try_from(sys::clock::wall().as_millis()).unwrap_or(i64::MAX);
                Pending { at_ms, chunks: chunks.collect() }
            }
        };
        let outcome = self.drain(&mut pending, batch.events);
        if outcome.is_err() {
            // Leaders may be others now; a connection may have an answer under way.
            self.metadata = None;
            self.brokers.clear();
            self.pending = Some(pending);
        }
        outcome
    }
}
