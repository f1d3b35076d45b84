//! The web console's files and the documentation below `/docs/`, which the program contains.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::{StatusCode, header};

use crate::call::Incoming;
use crate::reply::Reply;

include!(concat!(env!("OUT_DIR"), "/console.rs"));

/// Nothing from elsewhere, nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The file at a path, or the answer that there is none.
pub fn file(request: &Incoming) -> Option<Reply> {
    if let Some(path) = request.path.strip_prefix("/docs/") {
        let file = book::file(path)?;
        return Some(reply(request, file.path, file.bytes));
    }
    let path = if request.path == "/" { "/index.html" } else { request.path.as_str() };
    let (_, bytes) = FILES.iter().find(|(name, _)| *name == path)?;
    Some(reply(request, path, bytes))
}

/// A file with its type, its tag and the policy of the console's pages.
pub fn reply(request: &Incoming, path: &str, bytes: &[u8]) -> Reply {
    let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(&digest(&SHA256, bytes).as_ref()[..12]));
    let is_known = request.header(header::IF_NONE_MATCH).is_some_and(|known| known == tag);
    let (status, body) = match is_known {
        true => (StatusCode::NOT_MODIFIED, Vec::new()),
        false => (StatusCode::OK, bytes.to_vec()),
    };
    let reply = Reply { status, content_type: content_type(path), headers: Vec::new(), body };
    reply
        .with("etag", tag)
        .with("cache-control", "no-cache")
        .with("content-security-policy", POLICY)
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("webp") => "image/webp",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}
