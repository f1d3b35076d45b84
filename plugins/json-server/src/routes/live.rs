//! Counters of the server: now, and in the last hour.

use hyper::StatusCode;

use super::{Names, Route, login};
use crate::call::Call;
use crate::live;
use crate::reply::Reply;

pub const ROUTES: &[Route] =
    &[login("GET", "/1.0/live", now), login("GET", "/1.0/live/history", history)];

/// Seconds of an answer when the request names no number, and at most.
const SECONDS_DEFAULT: u64 = 600;
const SECONDS_MAX: u64 = 3600;

fn now(call: &Call<'_>, _: &Names) -> Reply {
    Reply::document(&live::now(call.gateway.sessions.as_ref())).with("cache-control", "no-store")
}

fn history(call: &Call<'_>, _: &Names) -> Reply {
    let seconds = match call.request.parameter("seconds").map(str::parse) {
        None => SECONDS_DEFAULT,
        Some(Ok(seconds @ 1..=SECONDS_MAX)) => seconds,
        Some(_) => {
            let message = format!("seconds is a number from 1 to {SECONDS_MAX}");
            return Reply::failure(StatusCode::BAD_REQUEST, &message);
        }
    };
    Reply::document(&call.gateway.live.history(seconds)).with("cache-control", "no-store")
}
