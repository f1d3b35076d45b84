//! Log-ins that last: `/1.0/login` and `/1.0/me`.

use hyper::StatusCode;
use serde_json::{Value as Json, json};

use super::{Names, Route, login, public};
use crate::account::Caller;
use crate::call::{COOKIE, Call, Incoming, refused};
use crate::gateway::Gateway;
use crate::reply::Reply;
use crate::tokens::TOKEN_LIFE;
use changes::text;

pub const ROUTES: &[Route] = &[
    public("POST", "/1.0/login", log_in),
    login("DELETE", "/1.0/login", log_out),
    login("GET", "/1.0/me", me),
];

fn log_in(gateway: &Gateway, request: &Incoming) -> Reply {
    let body = match request.json() {
        Ok(body) => body,
        Err(reply) => return reply,
    };
    let text = |name: &str| body.get(name).and_then(Json::as_str);
    let (Some(user), Some(password)) = (text("user"), text("password")) else {
        return Reply::failure(StatusCode::BAD_REQUEST, "user and password are strings");
    };
    let caller = Caller { user: user.to_owned(), address: request.address };
    if let Err(refusal) = gateway.accounts.check(&caller, password) {
        return refused(refusal);
    }
    // What the account may do is checked where it does it; that it can open a session is checked here.
    let session = gateway.session(&caller, None).map(|lease| lease.give_back());
    let token = session.and_then(|()| {
        let secret = gateway.accounts.secret(&caller)?;
        gateway.tokens.create(user, secret).map_err(errors::Error::internal)
    });
    let token = match token {
        Ok(token) => token,
        Err(error) => return Reply::sql_error(&error),
    };
    let seconds = TOKEN_LIFE.as_secs();
    let cookie = format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}");
    Reply::document(&json!({ "token": token, "expires_in": seconds, "user": user }))
        .with("set-cookie", cookie)
        .with("cache-control", "no-store")
}

fn log_out(call: &Call<'_>, _: &Names) -> Reply {
    if let Some(token) = call.request.token() {
        call.gateway.tokens.remove(token);
    }
    let cookie = format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    Reply::empty().with("set-cookie", cookie)
}

fn me(call: &Call<'_>, _: &Names) -> Reply {
    let answer = call.gateway.session(&call.caller, None).and_then(|mut lease| {
        let answer = lease.values("SELECT CURRENT_USER(), @@version, CURRENT_ROLE()", &[])?;
        lease.give_back();
        Ok(answer)
    });
    match answer {
        Ok(answer) => {
            let row = answer.rows.first();
            let cell = |index: usize| row.and_then(|row| text(row.get(index)?)).unwrap_or_default();
            Reply::document(&json!({
                "user": call.caller.user,
                "account": cell(0),
                "version": cell(1),
                "role": cell(2),
            }))
        }
        Err(error) => Reply::sql_error(&error),
    }
}
