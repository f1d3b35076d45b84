//! What every whole answer goes through: `ETag` of a GET, compression, and the origins that may read it.

use std::io::{Read as _, Write as _};

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use hyper::{HeaderMap, Method, StatusCode, header};

use crate::call::Incoming;
use crate::reply::Reply;

/// Shorter bodies are sent as they are.
const COMPRESS_FROM: usize = 1024;

/// Whether the client takes gzip.
pub fn accepts_gzip(request: &Incoming) -> bool {
    let given = request.header(header::ACCEPT_ENCODING).unwrap_or("");
    given.split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

/// Completes an answer.
pub fn finish(request: &Incoming, mut reply: Reply) -> Reply {
    let is_read = matches!(request.method, Method::GET | Method::HEAD);
    let may_be_kept = !reply.headers.iter().any(|(name, value)| {
        *name == "etag" || (*name == "cache-control" && value.contains("no-store"))
    });
    if is_read && reply.status == StatusCode::OK && may_be_kept {
        // Weak: both codings of the body have it.
        let hash = digest(&SHA256, &reply.body);
        let tag = format!("W/\"{}\"", URL_SAFE_NO_PAD.encode(&hash.as_ref()[..12]));
        if request.header(header::IF_NONE_MATCH).is_some_and(|known| is_listed(known, &tag)) {
            reply.status = StatusCode::NOT_MODIFIED;
            reply.body.clear();
        }
        reply = reply.with("etag", tag);
        if !reply.headers.iter().any(|(name, _)| *name == "cache-control") {
            reply = reply.with("cache-control", "private, no-cache");
        }
    }
    compress(request, reply)
}

fn is_listed(known: &str, tag: &str) -> bool {
    let plain = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    known.trim() == "*" || known.split(',').any(|other| plain(other) == plain(tag))
}

fn compress(request: &Incoming, mut reply: Reply) -> Reply {
    let is_text = reply.content_type.starts_with("text/")
        || reply.content_type.contains("json")
        || reply.content_type.starts_with("image/svg");
    if reply.body.len() < COMPRESS_FROM || !is_text {
        return reply;
    }
    if accepts_gzip(request) {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let written = encoder.write_all(&reply.body).and_then(|()| encoder.finish());
        // Writing to memory does not fail; if it did, the body would stay as it is.
        if let Ok(body) = written {
            reply.body = body;
            reply = reply.with("content-encoding", "gzip");
        }
    }
    reply.with("vary", "accept-encoding")
}

/// The body as its client wrote it, decompressed up to `bytes_max`.
///
/// # Errors
/// Status 415 for another coding, 413 beyond the limit, 400 for damaged data.
pub fn decoded_body(
    headers: &HeaderMap,
    body: Vec<u8>,
    bytes_max: usize,
) -> std::result::Result<Vec<u8>, Reply> {
    let coding = headers.get(header::CONTENT_ENCODING).map(|value| value.as_bytes());
    match coding.unwrap_or(b"identity") {
        b"identity" => return Ok(body),
        b"gzip" => {}
        _ => {
            let message = "the body is not compressed, or with gzip";
            return Err(Reply::failure(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
    }
    let mut plain = Vec::new();
    let mut decoder = MultiGzDecoder::new(body.as_slice()).take(bytes_max as u64 + 1);
    if decoder.read_to_end(&mut plain).is_err() {
        return Err(Reply::failure(StatusCode::BAD_REQUEST, "the body is not gzip"));
    }
    if plain.len() > bytes_max {
        let message = "the body is larger than 16 MiB";
        return Err(Reply::failure(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    Ok(plain)
}

/// The origin of a request that a browser sends for a page of elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<'a> {
    /// The console's own, or no browser.
    Own,
    /// One that the setting allows.
    Allowed(&'a str),
    /// Another.
    Foreign,
}

/// Where a request comes from; `allowed` are origins with commas between them.
///
/// A browser sends stored passwords with requests of any page: without this check, any page could run statements.
pub fn origin<'a>(headers: &'a HeaderMap, allowed: &str) -> Origin<'a> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let Some(origin) = text(header::ORIGIN) else {
        let site = headers.get("sec-fetch-site").map(|value| value.as_bytes());
        let is_navigation =
            headers.get("sec-fetch-mode").is_some_and(|mode| mode.as_bytes() == b"navigate");
        return match site {
            Some(b"cross-site" | b"same-site") if !is_navigation => Origin::Foreign,
            _ => Origin::Own,
        };
    };
    let host = text(header::HOST).unwrap_or("");
    let own = origin.split_once("://").map(|(_, own)| own);
    if own == Some(host) {
        return Origin::Own;
    }
    let is_allowed = allowed.split(',').any(|known| known.trim() == origin);
    if is_allowed { Origin::Allowed(origin) } else { Origin::Foreign }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn pages_of_elsewhere_are_foreign() {
        let of =
            |pairs: &[(&'static str, &str)]| match origin(&headers(pairs), "http://a, https://b") {
                Origin::Own => "own",
                Origin::Allowed(_) => "allowed",
                Origin::Foreign => "foreign",
            };
        assert_eq!(of(&[("host", "x:1")]), "own");
        assert_eq!(of(&[("host", "x:1"), ("origin", "http://x:1")]), "own");
        assert_eq!(of(&[("host", "x:1"), ("origin", "http://y")]), "foreign");
        assert_eq!(of(&[("host", "x:1"), ("origin", "null")]), "foreign");
        assert_eq!(of(&[("host", "x:1"), ("origin", "https://b")]), "allowed");
        assert_eq!(of(&[("host", "x:1"), ("sec-fetch-site", "cross-site")]), "foreign");
        assert_eq!(of(&[("sec-fetch-site", "same-origin")]), "own");
    }

    #[test]
    fn a_small_body_cannot_become_a_large_one() {
        let gzip = headers(&[("content-encoding", "gzip")]);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
        let bomb = encoder.finish().unwrap();
        assert!(bomb.len() < 10_000);
        let status = |body: &[u8], most| match decoded_body(&gzip, body.to_vec(), most) {
            Ok(body) => Ok(body.len()),
            Err(reply) => Err(reply.status.as_u16()),
        };
        assert_eq!(status(&bomb, 1 << 20), Ok(1 << 20));
        assert_eq!(status(&bomb, (1 << 20) - 1), Err(413));
        assert_eq!(status(&bomb[..100], 1 << 20), Err(400));
        assert_eq!(status(b"x", 10), Err(400));
        let other = headers(&[("content-encoding", "br")]);
        assert_eq!(decoded_body(&other, vec![1], 9).unwrap_err().status.as_u16(), 415);
    }

    #[test]
    fn tags_are_compared_in_lists() {
        assert!(is_listed("W/\"a\", \"b\"", "W/\"b\"") && is_listed("*", "W/\"b\""));
        assert!(!is_listed("\"c\"", "W/\"b\""));
    }
}
