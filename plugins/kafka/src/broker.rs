//! A connection to one broker: requests and their answers, one after the other.

use std::io::{Read, Write};
use std::time::Duration;

use engine_api::CancelToken;
use plugin_api::SinkFailure;

use crate::message::{
    self, Api, Code, read_api_versions, read_sasl_authenticate, read_sasl_handshake,
};
use crate::protocol::{Malformed, Reader, Writer};
use crate::scram::Scram;
use crate::settings::{Account, Mechanism, Settings};
use crate::socket::Socket;

/// Most bytes of an answer: those of a topic with tens of thousands of partitions.
const ANSWER_MAX: usize = 8 << 20;
/// How long a connection may rest.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// What the broker's log calls us.
const CLIENT: &str = "squall";

/// A broker that we are logged in to.
pub(crate) struct Broker {
    /// Where it is, for messages.
    address: String,
    socket: Socket,
    used_at: Duration,
    /// Requests sent.
    count: i32,
    /// It can tell producers apart.
    pub knows_producers: bool,
}

impl Broker {
    /// Connects and logs in.
    ///
    /// # Errors
    /// It cannot be reached, speaks other versions, or refuses the log-in.
    pub fn connect(
        (host, port): (&str, u16),
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<Broker, SinkFailure> {
        let address = format!("{host}:{port}");
        let socket = Socket::connect(host, port, settings.tls.as_ref(), settings.timeout, cancel)
            .map_err(|error| SinkFailure::new(format_args!("{address}: {error}")))?;
        let used_at = sys::clock::monotonic();
        let mut broker = Broker { address, socket, used_at, count: 0, knows_producers: false };
        broker.negotiate(settings)?;
        if let Some(account) = &settings.account {
            broker.log_in(account, settings)?;
        }
        Ok(broker)
    }

    /// Sees to it that the broker knows the versions that are spoken here.
    fn negotiate(&mut self, settings: &Settings) -> Result<(), SinkFailure> {
        let answer = self.ask(Api::Versions, &[], settings)?;
        let (code, known) = self.read(read_api_versions(&answer))?;
        self.expect(Api::Versions, code)?;
        let speaks = |api: Api| {
            let (number, version) = api.number();
            known
                .iter()
                .any(|(key, least, most)| *key == number && (*least..=*most).contains(&version))
        };
        for api in [Api::Produce, Api::Metadata] {
            if !speaks(api) {
                return Err(self.failure(format_args!("it does not speak {}", api.name())));
            }
        }
        self.knows_producers = speaks(Api::InitProducerId);
        Ok(())
    }

    fn log_in(&mut self, account: &Account, settings: &Settings) -> Result<(), SinkFailure> {
        let Account { user, password, mechanism } = account;
        let body = message::sasl_handshake(mechanism.name());
        let answer = self.ask(Api::SaslHandshake, &body, settings)?;
        let code = self.read(read_sasl_handshake(&answer))?;
        self.expect(Api::SaslHandshake, code)?;
        let hash = match mechanism {
            Mechanism::Plain => {
                // RFC 4616.
                return self.say(&format!("\0{user}\0{password}"), settings).map(drop);
            }
            Mechanism::Scram(hash) => *hash,
        };
        let failed = |broker: &Broker, why: String| broker.failure(format_args!("log-in: {why}"));
        let scram = Scram::new(hash, user).map_err(|why| failed(self, why))?;
        let challenge = self.say(&scram.first(), settings)?;
        let answered = scram.answer(password, &challenge);
        let (answer, expected) = answered.map_err(|why| failed(self, why))?;
        let last = self.say(&answer, settings)?;
        match last == expected.as_bytes() {
            true => Ok(()),
            // One who does not know the password poses as the broker.
            false => Err(failed(self, "the broker does not know the password".to_owned())),
        }
    }

    /// Sends a message of the log-in. Returns what the broker says.
    fn say(&mut self, message: &str, settings: &Settings) -> Result<Vec<u8>, SinkFailure> {
        let body = message::sasl_authenticate(message);
        let answer = self.ask(Api::SaslAuthenticate, &body, settings)?;
        match self.read(read_sasl_authenticate(&answer))? {
            (Code::NONE, _, said) => Ok(said),
            (code, None, _) => self.expect(Api::SaslAuthenticate, code).map(|()| Vec::new()),
            (code, Some(message), _) => {
                Err(self.failure(format_args!("log-in: {code}: {message}")))
            }
        }
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// The connection broke, or no answer came in time: the broker may have done what was asked.
    pub fn ask(
        &mut self,
        api: Api,
        body: &[u8],
        settings: &Settings,
    ) -> Result<Vec<u8>, SinkFailure> {
        self.socket.limit(settings.timeout);
        self.used_at = sys::clock::monotonic();
        self.exchange(api, body)
            .map_err(|error| self.failure(format_args!("{}: {error}", api.name())))
    }

    fn exchange(&mut self, api: Api, body: &[u8]) -> std::io::Result<Vec<u8>> {
        self.count = self.count.wrapping_add(1);
        let (number, version) = api.number();
        let mut head = Writer::default();
        head.i16(number);
        head.i16(version);
        head.i32(self.count);
        head.text(CLIENT);
        let mut request = Writer::default();
        request.len(head.0.len() + body.len());
        request.0.extend_from_slice(&head.0);
        request.0.extend_from_slice(body);
        self.socket.write_all(&request.0)?;
        self.socket.flush()?;
        let mut len = [0; 4];
        self.socket.read_exact(&mut len)?;
        let len = usize::try_from(i32::from_be_bytes(len)).unwrap_or(usize::MAX);
        if len > ANSWER_MAX {
            return Err(std::io::Error::other("the answer is too large"));
        }
        let mut answer = vec![0; len];
        self.socket.read_exact(&mut answer)?;
        if Reader(&answer).i32() != Ok(self.count) {
            return Err(std::io::Error::other("the answer is that of another request"));
        }
        answer.drain(..4);
        Ok(answer)
    }

    /// It was not used for so long that the broker may have closed it.
    pub fn is_idle(&self) -> bool {
        sys::clock::monotonic().saturating_sub(self.used_at) > IDLE_MAX
    }

    /// What was read of an answer.
    ///
    /// # Errors
    /// It is malformed.
    pub fn read<T>(&self, read: Result<T, Malformed>) -> Result<T, SinkFailure> {
        read.map_err(|Malformed| self.failure("a malformed answer"))
    }

    /// # Errors
    /// The broker answered with an error.
    pub fn expect(&self, api: Api, code: Code) -> Result<(), SinkFailure> {
        match code {
            Code::NONE => Ok(()),
            code => Err(self.failure(format_args!("{}: {code}", api.name()))),
        }
    }

    /// A failure of this broker.
    pub fn failure(&self, why: impl std::fmt::Display) -> SinkFailure {
        SinkFailure::new(format_args!("{}: {why}", self.address))
    }
}
