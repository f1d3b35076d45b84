//! A batch as a request, on a thread of its own, so that a stop need not wait for the receiver.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use engine_api::CancelToken;
use plugin_api::{SinkBatch, SinkConnection, SinkFailure};
use sys::sync::{Condvar, Mutex};
use ureq::http::header::RETRY_AFTER;
use ureq::http::{HeaderValue, Request};
use ureq::tls::{TlsConfig, TlsProvider};
use ureq::{Agent, Body};

use crate::settings::Settings;

/// How often is looked whether the stream was stopped.
const POLL: Duration = Duration::from_millis(20);
/// Bytes of a refusal's text that are shown.
const SHOWN_MAX: u64 = 200;
/// The version of the events and of these headers.
const VERSION: &str = "1";

type Outcome = Result<(), SinkFailure>;

/// Sends batches to a URL.
pub(crate) struct Delivery {
    settings: Settings,
    cancel: CancelToken,
    agent: Agent,
}

#[derive(Default)]
struct Shared {
    outcome: Mutex<Option<Outcome>>,
    done: Condvar,
}

impl Delivery {
    pub fn new(settings: Settings, cancel: CancelToken) -> Delivery {
        let agent = agent(&settings);
        Delivery { settings, cancel, agent }
    }

    fn request(&self, batch: &SinkBatch<'_>) -> Result<Request<Vec<u8>>, SinkFailure> {
        let mut body = Vec::with_capacity(batch.events.iter().map(|e| e.json.len() + 1).sum());
        for event in batch.events {
            body.extend_from_slice(&event.json);
            body.push(b'\n');
        }
        let at = sys::clock::wall().as_secs().to_string();
        let mut builder = Request::post(self.settings.url.clone())
            .header("content-type", "application/x-ndjson")
            .header("x-squall-version", VERSION)
            .header("x-squall-timestamp", &at);
        for (name, value) in &self.settings.headers {
            builder = builder.header(name, value);
        }
        // A stream may have any name: bytes that headers cannot hold are escaped as in URLs.
        builder = builder.header("x-squall-stream", escaped(batch.stream));
        if let Some(position) = batch.position {
            builder = builder.header("x-squall-position", position);
        }
        if let Some(secret) = &self.settings.secret {
            let signature = signature(secret.0.as_bytes(), &at, &body);
            let mut value = HeaderValue::from_str(&signature).map_err(SinkFailure::new)?;
            value.set_sensitive(true);
            builder = builder.header("x-squall-signature", value);
        }
        builder.body(body).map_err(SinkFailure::new)
    }
}

impl SinkConnection for Delivery {
    fn deliver(&mut self, batch: &SinkBatch<'_>) -> Outcome {
        let request = self.request(batch)?;
        let shared = Arc::new(Shared::default());
        let (there, agent) = (shared.clone(), self.agent.clone());
        sys::threads::spawn("webhook", move || {
            let outcome = send(&agent, request);
            *there.outcome.lock() = Some(outcome);
            there.done.notify_all();
        })
        .map_err(SinkFailure::new)?;
        let mut outcome = shared.outcome.lock();
        loop {
            if let Some(outcome) = outcome.take() {
                return outcome;
            }
            if self.cancel.is_cancelled() {
                self.agent.clone().shutdown();
                return Err(SinkFailure::new("the stream was stopped"));
            }
            outcome = shared.done.wait_for(outcome, POLL);
        }
    }
}

fn agent(settings: &Settings) -> Agent {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(settings.authorities.clone())
        .unversioned_rustls_crypto_provider(provider)
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        // The proxy of the server's environment would connect where it likes.
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .user_agent("Squall")
        .timeout_global(Some(settings.timeout));
    config.build().new_agent()
}

/// Only a status of success means that the receiver keeps the batch.
fn send(agent: &Agent, request: Request<Vec<u8>>) -> Outcome {
    let mut answer = agent.run(request).map_err(SinkFailure::new)?;
    let status = answer.status();
    if status.is_success() {
        // The connection is used again once its answer was read.
        let _ = answer.body_mut().with_config().limit(SHOWN_MAX).read_to_vec();
        return Ok(());
    }
    let seconds = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = seconds.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    let message = format!("the receiver answers {status}{}", shown(answer.body_mut()));
    Err(SinkFailure { message, retry_after })
}

/// The beginning of a refusal, in a line.
fn shown(body: &mut Body) -> String {
    let text = body.with_config().limit(SHOWN_MAX).read_to_string().unwrap_or_default();
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.trim() {
        "" => String::new(),
        line => format!(": {line}"),
    }
}

/// `sha256=` and the HMAC of the time, a dot and the body.
fn signature(secret: &[u8], at: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let mut context = hmac::Context::with_key(&key);
    for part in [at.as_bytes(), b".", body] {
        context.update(part);
    }
    let hex = context.sign().as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("sha256={hex}")
}

fn escaped(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_signed() {
        // RFC 4231, test case 2, with the message in parts.
        let signed = signature(b"Jefe", "what do ya want for nothing?", b"");
        assert_ne!(signed, signature(b"Jefe", "what do ya want for nothing", b"?"));
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"Jefe");
        let tag = hmac::sign(&key, b"what do ya want for nothing?.");
        let hex = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(signed, format!("sha256={hex}"));
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("a b\u{e9}"), "a%20b%C3%A9");
    }
}
