//! The connection phase: greeting, TLS, capabilities, the exchange of an authentication method; COM_CHANGE_USER.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use errors::{Error, Result, err};
use plugin_api::{
    AccountSecret, AuthChannel, AuthContext, AuthRequest, AuthStep, Authenticator, ConnectInfo,
    ConnectionKind, Exchange, OkInfo,
};
use sys::blocking::blocking;
use sys::clock::monotonic;
use wire::{
    AuthSwitchRequest, Capabilities, ChangeUser, CompressionKind, FirstReply, Greeting,
    HandshakeResponse, StatusFlags, begin_packet, decode_first_reply, finish_packet,
    put_auth_more_data, zstd_level_clamped,
};

use crate::connection::{Connection, Phase, Scratch};
use crate::sink::put_ok;

const NATIVE: &[u8] = b"mysql_native_password";
/// Capabilities that the server always offers.
const OFFERED: Capabilities = Capabilities(
    Capabilities::LONG_PASSWORD.0
        | Capabilities::FOUND_ROWS.0
        | Capabilities::LONG_FLAG.0
        | Capabilities::CONNECT_WITH_DB.0
        | Capabilities::NO_SCHEMA.0
        | Capabilities::COMPRESS.0
        | Capabilities::ODBC.0
        | Capabilities::LOCAL_FILES.0
        | Capabilities::IGNORE_SPACE.0
        | Capabilities::PROTOCOL_41.0
        | Capabilities::INTERACTIVE.0
        | Capabilities::IGNORE_SIGPIPE.0
        | Capabilities::TRANSACTIONS.0
        | Capabilities::RESERVED.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::MULTI_STATEMENTS.0
        | Capabilities::MULTI_RESULTS.0
        | Capabilities::PS_MULTI_RESULTS.0
        | Capabilities::PLUGIN_AUTH.0
        | Capabilities::CONNECT_ATTRS.0
        | Capabilities::PLUGIN_AUTH_LENENC.0
        | Capabilities::CAN_HANDLE_EXPIRED_PASSWORDS.0
        | Capabilities::SESSION_TRACK.0
        | Capabilities::DEPRECATE_EOF.0
        | Capabilities::OPTIONAL_RESULTSET_METADATA.0
        | Capabilities::ZSTD_COMPRESSION.0
        | Capabilities::QUERY_ATTRIBUTES.0,
);

/// The result of an accepted exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// A new session.
    Connect,
    /// The same session under another account.
    ChangeUser,
}

/// A log-in under way.
pub(crate) struct Login {
    request: AuthRequest,
    purpose: Purpose,
    exchange: Option<Box<dyn Exchange>>,
    password_given: bool,
    compression: Option<CompressionKind>,
    /// The answer that is held back: whether the method accepted the client, and until when.
    held_answer: Option<(bool, Duration)>,
}

/// The next step of a log-in after a packet.
enum Progress {
    /// Output was written; another packet follows.
    Continue,
    /// Logged in, with the session's first OK.
    Done(Box<OkInfo>),
}

impl Connection {
    fn offered(&self) -> Capabilities {
        OFFERED.with_if(Capabilities::SSL, self.server.tls.load().is_some())
    }

    /// Sends the first packet.
    pub(crate) fn send_greeting(&mut self, scratch: &mut Scratch) {
        if let Err(error) = self.draw_nonce() {
            scratch.output.clear();
            self.put_error(&error, &mut scratch.output);
            self.send_output(scratch);
            self.phase = Phase::Closed;
            return;
        }
        let sessions = &self.server.sessions;
        sessions.count_status("Connections", 1);
        let greeting = Greeting {
            server_version: self.server.version.clone().into_bytes(),
            connection_id: self.id as u32,
            nonce: self.nonce,
            capabilities: self.offered(),
            collation: sessions.server_collation(),
            status: StatusFlags::AUTOCOMMIT,
            auth_plugin: sessions.default_authentication().into_bytes(),
        };
        scratch.output.clear();
        let start = begin_packet(&mut scratch.output);
        greeting.encode(&mut scratch.output);
        finish_packet(&mut scratch.output, start, &mut self.sequence);
        self.phase = Phase::Login;
        self.transport.drained = false;
        self.send_output(scratch);
    }

    /// Random bytes between 1 and 127: no client may get a NUL or half a character.
    fn draw_nonce(&mut self) -> Result<()> {
        sys::entropy::fill(&mut self.nonce).map_err(Error::internal)?;
        for byte in &mut self.nonce {
            *byte = (*byte & 0x7f).max(1);
            if *byte == b'$' {
                *byte += 1;
            }
        }
        Ok(())
    }

    /// The first packet of the client, or its repetition inside TLS.
    pub(crate) fn take_login(&mut self, payload: &[u8], scratch: &mut Scratch) {
        let offered = if self.transport.is_encrypted() {
            // A second request for TLS would be read as a log-in cut short.
            self.offered().without(Capabilities::SSL)
        } else {
            self.offered()
        };
        match decode_first_reply(payload, offered) {
            Ok(FirstReply::Ssl(_)) => self.start_tls(),
            Ok(FirstReply::Response(response)) => {
                let result = self.begin_connect(&response, scratch);
                self.conclude(result, scratch);
            }
            Err(_) => self.refuse(&err!(HANDSHAKE_ERROR), scratch),
        }
    }

    fn start_tls(&mut self) {
        let Some(config) = self.server.tls.load_full() else {
            self.phase = Phase::Closed;
            return;
        };
        let received = self.input.split_tail(0);
        self.input = Default::default();
        self.server.tls_status.begin();
        if self.transport.start_tls(config, &received, &mut self.input).is_err() {
            self.phase = Phase::Closed;
        }
    }

    fn begin_connect(
        &mut self,
        response: &HandshakeResponse<'_>,
        scratch: &mut Scratch,
    ) -> Result<Progress> {
        let in_force = response.capabilities & self.offered();
        if self.transport.tls_facts().is_some() {
            self.server.tls_status.finish();
        }
        self.capabilities = in_force;
        let request = self.auth_request(response);
        let compression = if in_force.contains(Capabilities::COMPRESS) {
            Some(CompressionKind::Zlib)
        } else if in_force.contains(Capabilities::ZSTD_COMPRESSION) {
            Some(CompressionKind::Zstd(zstd_level_clamped(response.zstd_level.unwrap_or(3))))
        } else {
            None
        };
        self.login = Some(Box::new(Login {
            request,
            purpose: Purpose::Connect,
            exchange: None,
            password_given: is_password(response.auth_response),
            compression,
            held_answer: None,
        }));
        let plugin = client_plugin(in_force, response.auth_plugin);
        self.begin_exchange(plugin, response.auth_response, scratch)
    }

    fn auth_request(&self, response: &HandshakeResponse<'_>) -> AuthRequest {
        let has = |flag| self.capabilities.contains(flag);
        AuthRequest {
            user: text(response.user),
            database: response.database.map(text),
            collation: response.collation,
            attributes: attributes(&response.attributes),
            found_rows: has(Capabilities::FOUND_ROWS),
            interactive: has(Capabilities::INTERACTIVE),
            multi_statements: has(Capabilities::MULTI_STATEMENTS),
            ignore_space: has(Capabilities::IGNORE_SPACE),
            local_files: has(Capabilities::LOCAL_FILES),
            expired_passwords: has(Capabilities::CAN_HANDLE_EXPIRED_PASSWORDS),
            tls: self.transport.tls_facts(),
            certificate: self.transport.certificate(),
        }
    }

    /// COM_CHANGE_USER without its first byte.
    pub(crate) fn take_change_user(&mut self, payload: &[u8], scratch: &mut Scratch) {
        let Ok(change) = ChangeUser::decode(payload, self.capabilities) else {
            return self.refuse(&err!(MALFORMED_PACKET), scratch);
        };
        let response = HandshakeResponse {
            user: change.user,
            database: change.database,
            collation: change.collation.unwrap_or_else(|| self.server.sessions.server_collation()),
            attributes: change.attributes.clone(),
            ..HandshakeResponse::default()
        };
        self.login = Some(Box::new(Login {
            request: self.auth_request(&response),
            purpose: Purpose::ChangeUser,
            exchange: None,
            password_given: is_password(change.auth_response),
            compression: None,
            held_answer: None,
        }));
        let plugin = client_plugin(self.capabilities, change.auth_plugin);
        let result = self.begin_exchange(plugin, change.auth_response, scratch);
        self.conclude(result, scratch);
    }

    /// Finds the account's method, and starts its exchange with the client's data or asks it to switch.
    fn begin_exchange(
        &mut self,
        client_plugin: &[u8],
        first: &[u8],
        scratch: &mut Scratch,
    ) -> Result<Progress> {
        let (method, secret) = self.find_account()?;
        let exchange = self.start_exchange(method.as_ref(), secret)?;
        if let Some(login) = &mut self.login {
            login.exchange = Some(exchange);
        }
        self.phase = Phase::Exchange;
        let wanted = method.client_plugin().as_bytes();
        if wanted.is_empty() || wanted == client_plugin {
            return self.step(first, scratch);
        }
        if !self.capabilities.contains(Capabilities::PLUGIN_AUTH) {
            return Err(err!(NOT_SUPPORTED_AUTH_MODE));
        }
        let switch = AuthSwitchRequest { plugin: wanted, data: &self.nonce };
        let start = begin_packet(&mut scratch.output);
        switch.encode(&mut scratch.output);
        finish_packet(&mut scratch.output, start, &mut self.sequence);
        Ok(Progress::Continue)
    }

    fn find_account(&self) -> Result<(Arc<dyn Authenticator>, AccountSecret)> {
        let login = self.login.as_ref().ok_or_else(|| err!(HANDSHAKE_ERROR))?;
        let sessions = &self.server.sessions;
        blocking(|| sessions.find_account(&login.request, &self.kind))
    }

    fn start_exchange(
        &self,
        method: &dyn Authenticator,
        secret: AccountSecret,
    ) -> Result<Box<dyn Exchange>> {
        let user = self.login.as_ref().map(|login| login.request.user.clone());
        let peer = self.transport.stream.peer_credentials();
        let channel = match self.kind {
            ConnectionKind::Local => AuthChannel::Local,
            ConnectionKind::Tcp(_) if self.transport.is_encrypted() => AuthChannel::Encrypted,
            ConnectionKind::Tcp(_) => AuthChannel::Plain,
        };
        let ctx = AuthContext {
            user: user.unwrap_or_default(),
            nonce: self.nonce,
            channel,
            peer_uid: peer.as_ref().map(|peer| peer.uid),
            peer_user: peer.and_then(|peer| peer.user),
        };
        method.start(ctx, secret)
    }

    /// A packet of a running exchange.
    pub(crate) fn take_exchange(&mut self, payload: &[u8], scratch: &mut Scratch) {
        if let Some(login) = &mut self.login {
            login.password_given |= is_password(payload);
        }
        let result = self.step(payload, scratch);
        self.conclude(result, scratch);
    }

    /// Gives the exchange a packet and performs its next step.
    fn step(&mut self, packet: &[u8], scratch: &mut Scratch) -> Result<Progress> {
        let Some(login) = &mut self.login else { return Err(err!(HANDSHAKE_ERROR)) };
        let Some(exchange) = &mut login.exchange else { return Err(err!(HANDSHAKE_ERROR)) };
        // Hashes and RSA are slow on purpose.
        let step = blocking(|| exchange.next(packet))?;
        match step {
            AuthStep::Read => Ok(Progress::Continue),
            AuthStep::Send(data) => {
                self.put_more_data(&data, scratch);
                Ok(Progress::Continue)
            }
            AuthStep::SendAndAccept(data) => {
                self.put_more_data(&data, scratch);
                self.decide(true, scratch)
            }
            AuthStep::Accept => self.decide(true, scratch),
            AuthStep::Refuse => self.decide(false, scratch),
        }
    }

    /// The method has decided: answers at once, or holds the answer back.
    fn decide(&mut self, accepted: bool, scratch: &mut Scratch) -> Result<Progress> {
        let sessions = &self.server.sessions;
        let delay =
            self.login.as_ref().map(|login| sessions.login_delay(&login.request, &self.kind));
        let delay = delay.unwrap_or_default();
        if delay.is_zero() {
            return self.answer_login(accepted, scratch);
        }
        if let Some(login) = &mut self.login {
            login.held_answer = Some((accepted, monotonic().saturating_add(delay)));
        }
        self.phase = Phase::Delayed;
        // A thread of its own waits for commands, not for this.
        self.transport.silent = true;
        Ok(Progress::Continue)
    }

    fn answer_login(&mut self, accepted: bool, scratch: &mut Scratch) -> Result<Progress> {
        if !accepted {
            return Err(self.access_denied());
        }
        let opened = self.open_session();
        if opened.is_err() {
            // The refusal follows a packet of the method; it does not take its place.
            self.send_output(scratch);
        }
        opened.map(|ok| Progress::Done(Box::new(ok)))
    }

    /// Whether it is time for the answer that is held back.
    pub(crate) fn is_answer_due(&self) -> bool {
        let held = self.login.as_ref().and_then(|login| login.held_answer);
        self.phase == Phase::Delayed && held.is_none_or(|(_, until)| monotonic() >= until)
    }

    /// Sends the answer that was held back, when its time has come. A client that does not wait for it has lost it.
    pub(crate) fn end_delay(&mut self, scratch: &mut Scratch) {
        if !self.is_answer_due() {
            let read = self.transport.discard(self.input.space());
            let waits = read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
            if !waits {
                self.phase = Phase::Closed;
            }
            return;
        }
        self.phase = Phase::Exchange;
        let held = self.login.as_mut().and_then(|login| login.held_answer.take());
        let result = self.answer_login(held.is_some_and(|(accepted, _)| accepted), scratch);
        self.conclude(result, scratch);
    }

    fn put_more_data(&mut self, data: &[u8], scratch: &mut Scratch) {
        let start = begin_packet(&mut scratch.output);
        put_auth_more_data(&mut scratch.output, data);
        finish_packet(&mut scratch.output, start, &mut self.sequence);
    }

    fn access_denied(&self) -> Error {
        let login = self.login.as_ref();
        let sessions = &self.server.sessions;
        let told = login.and_then(|login| sessions.refused(&login.request, &self.kind));
        if let Some(error) = told {
            return error;
        }
        let user = login.map(|login| login.request.user.as_str()).unwrap_or_default();
        let given = login.is_some_and(|login| login.password_given);
        err!(ACCESS_DENIED_ERROR, user, self.host(), if given { "YES" } else { "NO" })
    }

    /// The peer as accounts name it.
    fn host(&self) -> String {
        match &self.kind {
            ConnectionKind::Tcp(address) if !address.ip().is_loopback() => {
                address.ip().to_canonical().to_string()
            }
            ConnectionKind::Tcp(_) | ConnectionKind::Local => "localhost".to_owned(),
        }
    }

    fn open_session(&mut self) -> Result<OkInfo> {
        let Some(login) = &self.login else { return Err(err!(HANDSHAKE_ERROR)) };
        match (login.purpose, &mut self.session) {
            (Purpose::ChangeUser, Some(session)) => {
                let ok = blocking(|| session.change_user(&login.request))?;
                self.statements.clear();
                Ok(ok)
            }
            (Purpose::ChangeUser | Purpose::Connect, _) => {
                let info = ConnectInfo {
                    connection_id: self.id,
                    kind: self.kind.clone(),
                    cancel: self.cancel.clone(),
                    traffic: self.transport.traffic.clone(),
                    is_administrative: self.is_administrative,
                };
                let sessions = &self.server.sessions;
                let session = blocking(|| sessions.open(info, &login.request))?;
                let ok = session.state();
                self.session = Some(session);
                Ok(ok)
            }
        }
    }

    /// Sends the remaining output of the log-in's last step.
    fn conclude(&mut self, result: Result<Progress>, scratch: &mut Scratch) {
        match result {
            Ok(Progress::Continue) => self.send_output(scratch),
            Ok(Progress::Done(ok)) => {
                put_ok(&mut scratch.output, &ok, self.capabilities, &mut self.sequence);
                self.enter_command_phase(scratch);
            }
            Err(error) => self.refuse(&error, scratch),
        }
    }

    fn enter_command_phase(&mut self, scratch: &mut Scratch) {
        self.phase = Phase::Ready;
        let login = self.login.take();
        if std::mem::take(&mut self.half_open) {
            // Before the client learns of it: its next action must find it counted as logged in.
            self.server.half_open.fetch_sub(1, Ordering::Relaxed);
        }
        self.send_output(scratch);
        if login.as_ref().is_some_and(|login| login.purpose == Purpose::Connect) {
            let max = self.session.as_ref().map_or(0, |s| s.integer_variable("max_allowed_packet"));
            self.max_packet = usize::try_from(max).unwrap_or(usize::MAX).max(1024);
            self.refresh_timeouts();
        }
        if let Some(kind) = login.and_then(|login| login.compression) {
            self.transport.start_compression(kind, &mut self.input);
            self.transport.drained = false;
        }
    }

    /// Sends an error and closes.
    fn refuse(&mut self, error: &Error, scratch: &mut Scratch) {
        scratch.output.clear();
        self.put_error(error, &mut scratch.output);
        self.send_output(scratch);
        if self.session.is_none() {
            self.server.sessions.count_status("Aborted_connects", 1);
        }
        self.login = None;
        self.phase = Phase::Closed;
    }
}

/// Without a password, clients send nothing or a single NUL.
fn is_password(response: &[u8]) -> bool {
    !response.is_empty() && response != [0]
}

/// The method that the client's first data was made for.
fn client_plugin(in_force: Capabilities, named: Option<&[u8]>) -> &[u8] {
    match named {
        Some(name) if in_force.contains(Capabilities::PLUGIN_AUTH) => name,
        Some(_) | None => NATIVE,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn attributes(pairs: &[(&[u8], &[u8])]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| (text(name), text(value))).collect()
}
