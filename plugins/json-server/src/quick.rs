//! Short statements on the thread that read their request: no other thread has to wake up for them.
//!
//! A statement is expected to be short when it was so each time lately. When one has to wait all the same, `sys::blocking` tells the runtime, which
//! has another thread go on with the sockets. Some threads are always left to read and write; one of them looks at the sockets again when a watch
//! sees that a statement takes longer than it should.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hyper::{Method, StatusCode};

use crate::call::{Call, Incoming};
use crate::finish::{self, Origin};
use crate::gateway::Gateway;
use crate::reply::Reply;
use crate::routes;

/// Larger bodies are read on another thread.
const BODY_BYTES_MAX: usize = 8 << 10;

/// Answers a request by a statement that is expected to be short, when everything for it is at hand.
pub fn answer(gateway: &Arc<Gateway>, request: &Incoming) -> Option<Reply> {
    if request.method != Method::POST
        || request.path != routes::SQL_PATH
        || request.body.len() > BODY_BYTES_MAX
        || finish::origin(&request.headers, "") != Origin::Own
    {
        return None;
    }
    let _room = gateway.quick.enter()?;
    let call = Call::identify_at_hand(gateway, request)?;
    let around = |body: &mut dyn FnMut()| tokio::task::block_in_place(body);
    let run = || sys::blocking::released_by(around, || routes::run_short(&call));
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Some(fault()))
}

/// The answer when a handler panicked.
pub fn fault() -> Reply {
    Reply::failure(StatusCode::INTERNAL_SERVER_ERROR, "the request ended by a fault of the server")
}
