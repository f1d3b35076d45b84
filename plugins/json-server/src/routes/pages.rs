//! The console pages that other plugins bring.

use serde_json::{Value as Json, json};

use super::{Names, Route, login};
use crate::call::Call;
use crate::mounted;
use crate::reply::Reply;

pub const ROUTES: &[Route] = &[login("GET", "/1.0/pages", list)];

fn list(call: &Call<'_>, _: &Names) -> Reply {
    let pages = match mounted::pages(call) {
        Ok(pages) => pages,
        Err(reply) => return reply,
    };
    let path = |page: &str, file: &str| format!("/pages/{page}/{file}");
    let one = |page: &plugin_api::ConsolePage| {
        json!({
            "name": page.name,
            "title": page.title,
            "module": path(page.name, page.module),
            "style": page.style.map(|style| path(page.name, style)),
        })
    };
    let pages: Vec<Json> = pages.iter().map(one).collect();
    Reply::document(&json!({ "pages": pages })).with("cache-control", "no-store")
}
