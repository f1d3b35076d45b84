//! The calls: which function answers which method and path.

mod cursors;
mod description;
mod legacy;
mod live;
mod login;
mod many;
mod pages;
mod sql;
mod transactions;

use hyper::{Method, StatusCode};

use crate::assets;
use crate::call::{Call, Incoming};
use crate::finish::{self, Origin};
use crate::gateway::Gateway;
use crate::reply::Reply;
pub use crate::route::{Handler, Names, Route, decoded, login, public};
use crate::{changes, documents, mounted, tables};

pub use sql::{PATH as SQL_PATH, run_short};

/// The routes of all modules.
pub const ROUTES: [&[Route]; 11] = [
    sql::ROUTES,
    login::ROUTES,
    transactions::ROUTES,
    cursors::ROUTES,
    live::ROUTES,
    description::ROUTES,
    pages::ROUTES,
    documents::ROUTES,
    tables::ROUTES,
    changes::ROUTES,
    legacy::ROUTES,
];

/// Answers a request.
pub fn answer(gateway: &Gateway, request: &Incoming) -> Reply {
    let mut reply = route(gateway, request);
    // A browser that sees this header opens its own log-in window in front of the console, which has one.
    if request.headers.contains_key("x-squall") {
        reply.headers.retain(|(name, _)| *name != "www-authenticate");
    }
    reply
}

fn route(gateway: &Gateway, request: &Incoming) -> Reply {
    let mut others = Vec::new();
    let allowed = gateway.settings.allowed_origins.text();
    let origin = finish::origin(&request.headers, &allowed);
    if request.method == Method::OPTIONS && matches!(origin, Origin::Allowed(_)) {
        return preflight();
    }
    for route in ROUTES.iter().copied().flatten() {
        let Some(names) = matches(route.path, &request.path) else { continue };
        if !is_method(route.method, &request.method) {
            others.push(route.method);
            continue;
        }
        if origin == Origin::Foreign {
            return foreign();
        }
        return match route.handler {
            Handler::Public(handler) => handler(gateway, request),
            Handler::Login(handler) => match Call::identify(gateway, request) {
                Ok(call) => handler(&call, &names),
                Err(refusal) => refusal,
            },
        };
    }
    match mounted::find(gateway, request, matches, |known| is_method(known, &request.method)) {
        Ok(_) if origin == Origin::Foreign => return foreign(),
        Ok(found) => return mounted::answer(gateway, request, &found),
        Err(more) => others.extend(more),
    }
    if !others.is_empty() {
        let message = "the method is not allowed for this path";
        return Reply::failure(StatusCode::METHOD_NOT_ALLOWED, message)
            .with("allow", others.join(", "));
    }
    let file = || assets::file(request).or_else(|| mounted::file(gateway, request));
    let file = is_method("GET", &request.method).then(file).flatten();
    file.unwrap_or_else(|| Reply::failure(StatusCode::NOT_FOUND, "no such path"))
}

fn foreign() -> Reply {
    let message = "json_server_allowed_origins does not name the page's origin";
    Reply::failure(StatusCode::FORBIDDEN, message)
}

fn is_method(known: &str, given: &Method) -> bool {
    known == given.as_str() || (known == "GET" && *given == Method::HEAD)
}

/// The answer to a browser that asks whether a page of an allowed origin may send a request.
fn preflight() -> Reply {
    Reply::empty()
        .with("access-control-allow-methods", "GET, POST, PUT, PATCH, DELETE")
        .with(
            "access-control-allow-headers",
            "authorization, content-type, content-encoding, if-none-match, x-squall",
        )
        .with("access-control-max-age", "600")
}

/// The parts that vary, when `path` fits `pattern`.
fn matches(pattern: &str, path: &str) -> Option<Names> {
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    let mut names = Vec::new();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(names),
            (Some(part), Some(text)) if part.starts_with('{') => {
                let text = decoded(text)?;
                if text.is_empty() {
                    return None;
                }
                names.push(text);
            }
            (Some(part), Some(text)) if part == text => {}
            (Some(_), _) | (None, Some(_)) => return None,
        }
    }
}

/// The pairs of a query string; `None` when one cannot be decoded: a condition that is left out would change what a call does.
pub fn query(text: &str) -> Option<Vec<(String, String)>> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let decode = |part: &str| decoded(&part.replace('+', " "));
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_names() {
        assert_eq!(matches("/1.0/me", "/1.0/me"), Some(vec![]));
        assert_eq!(matches("/a/{x}/b", "/a/q%20r/b"), Some(vec!["q r".to_owned()]));
        assert_eq!(matches("/a/{x}", "/a/"), None);
        assert_eq!(matches("/a/{x}", "/a/b/c"), None);
        assert_eq!(matches("/a/{x}", "/a/%ff"), None);
        assert_eq!(matches("/a/{x}", "/a/..%2F"), Some(vec!["../".to_owned()]));
    }

    #[test]
    fn queries_are_decoded() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let pairs = [pair("a", "1"), pair("b", "x y!"), pair("c", "")];
        assert_eq!(query("a=1&b=x+y%21&c"), Some(pairs.to_vec()));
        assert_eq!(query("a=1&d=%"), None);
        assert_eq!(query("a=%ff"), None);
        assert_eq!(decoded("%+1"), None);
    }

    #[test]
    fn no_route_hides_another() {
        let all: Vec<_> = ROUTES.iter().copied().flatten().collect();
        for (index, route) in all.iter().enumerate() {
            let same = |other: &&&Route| (other.method, other.path) == (route.method, route.path);
            assert!(
                !all[..index].iter().any(|other| same(&other)),
                "{} {}",
                route.method,
                route.path
            );
        }
    }
}
