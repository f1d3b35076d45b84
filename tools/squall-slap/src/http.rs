//! Statements over HTTP: `POST /1.0/sql` of the JSON server, one connection kept for all.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use client::Failure;
use types::Value;

use crate::options::Options;

/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 1 << 26;

/// A kept connection.
pub struct HttpConnection {
    stream: BufReader<TcpStream>,
    /// The lines of a request before its length.
    head: String,
    schema: String,
    request: Vec<u8>,
    body: Vec<u8>,
    line: String,
}

impl HttpConnection {
    /// Connects. The first request logs in.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn open(options: &Options) -> client::Result<HttpConnection> {
        let tcp = TcpStream::connect((options.host.as_str(), options.port))?;
        tcp.set_nodelay(true)?;
        let login = base64(format!("{}:{}", options.user, options.password).as_bytes());
        let head = format!(
            "POST /1.0/sql HTTP/1.1\r\nHost: {}:{}\r\nAuthorization: Basic {login}\r\n\
             Content-Type: application/json\r\nContent-Length: ",
            options.host, options.port
        );
        let stream = BufReader::new(tcp);
        let schema = options.create_schema.clone();
        let (request, body, line) = (Vec::new(), Vec::new(), String::new());
        Ok(HttpConnection { stream, head, schema, request, body, line })
    }

    /// Runs a statement and reads its answer; returns 0, since no workload over HTTP needs the generated id.
    ///
    /// # Errors
    /// The server answers with an error, or the connection is lost.
    pub fn run(&mut self, sql: &[u8], values: &[Value]) -> client::Result<u64> {
        let body = body(sql, values, &self.schema);
        self.request.clear();
        self.request.extend_from_slice(self.head.as_bytes());
        self.request.extend_from_slice(format!("{}\r\n\r\n", body.len()).as_bytes());
        self.request.extend_from_slice(body.as_bytes());
        self.stream.get_mut().write_all(&self.request)?;
        let status = self.read_answer()?;
        if status != 200 {
            let text = String::from_utf8_lossy(&self.body);
            return Err(Failure::Lost(format!("HTTP status {status}: {text}")));
        }
        Ok(0)
    }

    /// Reads an answer into `body`; returns its status.
    fn read_answer(&mut self) -> client::Result<u16> {
        self.read_line()?;
        let status = self.line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| Failure::Lost("an answer that is not HTTP".into()))?;
        let (mut length, mut chunked) = (0, false);
        loop {
            self.read_line()?;
            let Some((name, value)) = self.line.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap_or(0);
            }
            chunked |= name.eq_ignore_ascii_case("transfer-encoding")
                && value.trim().eq_ignore_ascii_case("chunked");
        }
        self.body.clear();
        if !chunked {
            self.read_bytes(length)?;
            return Ok(status);
        }
        loop {
            self.read_line()?;
            let piece = usize::from_str_radix(self.line.trim(), 16).unwrap_or(0);
            self.read_bytes(piece)?;
            self.read_line()?;
            if piece == 0 {
                return Ok(status);
            }
        }
    }

    fn read_line(&mut self) -> client::Result<()> {
        self.line.clear();
        if self.stream.read_line(&mut self.line)? == 0 {
            return Err(Failure::Lost("the server closed the connection".into()));
        }
        self.line.truncate(self.line.trim_end().len());
        Ok(())
    }

    fn read_bytes(&mut self, count: usize) -> client::Result<()> {
        let start = self.body.len();
        if start + count > ANSWER_BYTES_MAX {
            return Err(Failure::Lost("an answer that is too long".into()));
        }
        self.body.resize(start + count, 0);
        Ok(self.stream.read_exact(&mut self.body[start..])?)
    }
}

/// The JSON of a request. The statements and values of workloads need no escapes.
fn body(sql: &[u8], values: &[Value], schema: &str) -> String {
    let parameter = |value: &Value| match value {
        Value::Int(number) => number.to_string(),
        Value::Bytes(bytes) => format!("\"{}\"", String::from_utf8_lossy(bytes)),
        _ => "null".to_owned(),
    };
    let parameters: Vec<String> = values.iter().map(parameter).collect();
    let sql = String::from_utf8_lossy(sql);
    format!(
        "{{\"sql\":\"{sql}\",\"parameters\":[{}],\"schema\":\"{schema}\"}}",
        parameters.join(",")
    )
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let mut padded = [0; 3];
        padded[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for place in 0..4 {
            let digit = (bits >> (18 - 6 * place)) & 63;
            let is_padding = place > group.len();
            out.push(if is_padding { '=' } else { char::from(ALPHABET[digit as usize]) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_json() {
        let body = body(b"SELECT ?, ?", &[Value::Int(-5), Value::text("1-2")], "s");
        let wanted = r#"{"sql":"SELECT ?, ?","parameters":[-5,"1-2"],"schema":"s"}"#;
        assert_eq!(body, wanted);
    }

    #[test]
    fn a_login_is_base64() {
        assert_eq!(base64(b"root:"), "cm9vdDo=");
        assert_eq!(base64(b"a:bc"), "YTpiYw==");
        assert_eq!(base64(b"a:bcde"), "YTpiY2Rl");
    }
}
