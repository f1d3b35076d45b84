//! The OpenAPI document.

use hyper::StatusCode;

use super::{Route, public};
use crate::call::Incoming;
use crate::gateway::Gateway;
use crate::reply::Reply;

pub const ROUTES: &[Route] = &[public("GET", "/openapi.json", document)];

const DOCUMENT: &str = include_str!("../../openapi.json");

fn document(_: &Gateway, _: &Incoming) -> Reply {
    Reply::json(StatusCode::OK, DOCUMENT.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value as Json;

    use super::*;
    use crate::routes::{Handler, ROUTES};

    #[test]
    fn each_route_is_described_and_nothing_else() {
        let document: Json = serde_json::from_str(DOCUMENT).unwrap();
        let mut described = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let is_public = operation.get("security").is_some();
                described.insert((path.clone(), method.to_uppercase(), is_public));
            }
        }
        let of = |route: &Route| {
            let is_public = matches!(route.handler, Handler::Public(_));
            (route.path.to_owned(), route.method.to_owned(), is_public)
        };
        let routes: BTreeSet<_> = ROUTES.iter().copied().flatten().map(of).collect();
        let missing: Vec<_> = routes.difference(&described).collect();
        let extra: Vec<_> = described.difference(&routes).collect();
        assert!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, extra {extra:?}");
    }
}
