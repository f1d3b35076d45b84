//! Why a request failed, in words.

use errors::{Error, err};

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(reason: impl Into<String>) -> Failure {
        Failure(reason.into())
    }

    /// The error of the function that made the request.
    pub(crate) fn into_error(self, function: &str) -> Error {
        err!(UDF_ERROR, function, self.0)
    }
}

impl From<ureq::Error> for Failure {
    fn from(error: ureq::Error) -> Failure {
        match error {
            ureq::Error::BodyExceedsLimit(limit) => {
                Failure(format!("the answer is larger than http_max_size ({limit} bytes)"))
            }
            ureq::Error::Timeout(_) => Failure("no answer within http_timeout".to_owned()),
            ureq::Error::HostNotFound => Failure("the host was not found".to_owned()),
            // The library's own words; what it read of the request must not be among them.
            ureq::Error::Io(error) => Failure(error.to_string()),
            error => Failure(error.to_string()),
        }
    }
}
