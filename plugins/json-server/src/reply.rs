//! Answers, and the HTTP status of an SQL error.

use errors::{Error, ErrorCode};
use hyper::StatusCode;
use serde_json::{Value as Json, json};

/// A whole answer.
#[derive(Debug)]
pub struct Reply {
    /// Status.
    pub status: StatusCode,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Further headers; the names are in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl Reply {
    /// An answer of JSON.
    pub fn json(status: StatusCode, body: Vec<u8>) -> Reply {
        Reply { status, content_type: "application/json", headers: Vec::new(), body }
    }

    /// Status 200 with a document.
    pub fn document(document: &Json) -> Reply {
        Reply::json(StatusCode::OK, document.to_string().into_bytes())
    }

    /// Status 204.
    pub fn empty() -> Reply {
        Reply::json(StatusCode::NO_CONTENT, Vec::new())
    }

    /// The answer to a statement's failure.
    pub fn sql_error(error: &Error) -> Reply {
        Reply::json(
            status_of(error.code()),
            json!({ "error": error_json(error) }).to_string().into(),
        )
    }

    /// A failure of the request itself, without an SQL error.
    pub fn failure(status: StatusCode, message: &str) -> Reply {
        let body = json!({ "error": { "code": 0, "sqlstate": "HY000", "message": message } });
        Reply::json(status, body.to_string().into_bytes())
    }

    /// The same with one more header.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Reply {
        self.headers.push((name, value.into()));
        self
    }
}

/// `{"code", "sqlstate", "message"}`.
pub fn error_json(error: &Error) -> Json {
    json!({
        "code": error.code().0,
        "sqlstate": error.sqlstate_str(),
        "message": error.message(),
    })
}

/// The HTTP status that says the same as an SQL error.
pub fn status_of(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::ACCESS_DENIED_ERROR => StatusCode::UNAUTHORIZED,
        ErrorCode::DBACCESS_DENIED_ERROR
        | ErrorCode::ACCOUNT_HAS_BEEN_LOCKED
        | ErrorCode::TABLEACCESS_DENIED_ERROR
        | ErrorCode::COLUMNACCESS_DENIED_ERROR
        | ErrorCode::SPECIFIC_ACCESS_DENIED_ERROR
        | ErrorCode::PROCACCESS_DENIED_ERROR => StatusCode::FORBIDDEN,
        ErrorCode::BAD_DB_ERROR
        | ErrorCode::NO_SUCH_TABLE
        | ErrorCode::BAD_TABLE_ERROR
        | ErrorCode::SP_DOES_NOT_EXIST => StatusCode::NOT_FOUND,
        ErrorCode::DUP_ENTRY
        | ErrorCode::LOCK_DEADLOCK
        | ErrorCode::LOCK_WAIT_TIMEOUT
        | ErrorCode::TABLE_EXISTS_ERROR
        | ErrorCode::DB_CREATE_EXISTS => StatusCode::CONFLICT,
        ErrorCode::NET_PACKET_TOO_LARGE => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::USER_LIMIT_REACHED => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::CON_COUNT_ERROR | ErrorCode::SERVER_SHUTDOWN => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    }
}

#[cfg(test)]
mod tests {
    use errors::err;

    use super::*;

    #[test]
    fn an_sql_error_has_a_status() {
        let reply = Reply::sql_error(&err!(NO_SUCH_TABLE, "d", "t"));
        assert_eq!(reply.status, StatusCode::NOT_FOUND);
        let body: Json = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(body["error"]["code"], 1146);
        assert_eq!(body["error"]["sqlstate"], "42S02");
        assert_eq!(status_of(ErrorCode::PARSE_ERROR), StatusCode::BAD_REQUEST);
    }
}
