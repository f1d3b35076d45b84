//! The table calls over sockets against a server in this process.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use serde_json::json;
use support::{Client, Machine, encoded};

const PATH: &str = "/1.0/tables/d/t";

fn filled(client: &mut Client) {
    let answer = client.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) NOT NULL DEFAULT 'none', \
         price DECIMAL(10,2), at DATETIME, j JSON, b VARBINARY(10), twice DECIMAL(12,2) AS (price * 2)); \
         CREATE TABLE d.pair (a VARCHAR(10), b INT, v INT DEFAULT 7, PRIMARY KEY (a, b)); CREATE TABLE d.heap (v INT)",
    );
    assert!(answer.get("error").is_none(), "{answer}");
    let rows = json!([
        { "id": 1, "name": "one", "price": "1.50", "j": { "x": [1] }, "b": "/wA=" },
        { "id": 2, "name": "two", "price": 2, "at": "2026-01-02 03:04:05" },
        { "id": "9007199254740993" },
    ]);
    let answer = client.json("POST", PATH, &rows);
    assert_eq!(
        (answer.status, answer.json()["affected_rows"].clone()),
        (201, json!(3)),
        "{}",
        answer.json()
    );
}

fn names(client: &mut Client, query: &str) -> String {
    let answer = client.get(&format!("{PATH}?select=name&{query}"));
    assert_eq!(answer.status, 200, "{query}: {}", answer.json());
    let rows = answer.json()["rows"].as_array().unwrap().clone();
    rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(",")
}

#[test]
fn rows_are_read_with_types() {
    let machine = Machine::start();
    let mut client = machine.client();
    filled(&mut client);
    let answer = client.get(PATH).json();
    assert_eq!(answer["primary_key"], json!(["id"]));
    assert_eq!(answer["columns"][2]["type"], "decimal");
    let one = json!({ "id": 1, "name": "one", "price": "1.50", "at": null, "j": { "x": [1] }, "b": "/wA=", "twice": "3.00" });
    assert_eq!(answer["rows"][0], one);
    assert_eq!(answer["rows"][2]["id"], "9007199254740993");
    assert_eq!(client.get(&format!("{PATH}/1")).json(), one);
    assert_eq!(client.get(&format!("{PATH}/9007199254740993")).json()["name"], "none");
    assert_eq!(client.get(&format!("{PATH}/3")).status, 404);
    let tables = client.get("/1.0/tables/d").json();
    assert_eq!(tables["tables"][2], json!({ "name": "t", "type": "base table" }));
}

#[test]
fn rows_are_chosen_by_columns() {
    let machine = Machine::start();
    let mut client = machine.client();
    filled(&mut client);
    let cases = [
        ("id=eq.2", "two"),
        ("id=gt.1", "two,none"),
        ("id=gte.1&id=lt.3", "one,two"),
        ("id=lte.1", "one"),
        ("price=eq.1.5", "one"),
        ("price=ne.1.5", "two,none"),
        ("at=eq.2026-01-02+03:04:05", "two"),
        ("name=in.(one,none)", "one,none"),
        ("name=like.%25o%25", "one,two,none"),
        ("price=is.null", "none"),
        ("b=eq./wA=", "one"),
        ("order=-price,name", "two,one,none"),
        ("order=name&limit=1&offset=1", "one"),
    ];
    for (query, expected) in cases {
        assert_eq!(names(&mut client, query), expected, "{query}");
    }
    let filters = [
        (json!({ "id": { "$in": [1, "2"] } }), "one,two"),
        (json!({ "$or": [{ "name": "one" }, { "price": null }] }), "one,none"),
        (json!({ "price": { "$not": { "$gt": 1.5 } } }), "one,none"),
        (json!({ "j": { "x": [1] } }), "one"),
        (json!({ "j": { "$exists": false } }), "two,none"),
        (json!({ "name": { "$regex": "^t" } }), "two"),
    ];
    for (filter, expected) in filters {
        assert_eq!(
            names(&mut client, &format!("filter={}", encoded(&filter.to_string()))),
            expected,
            "{filter}"
        );
    }
}

#[test]
fn pages_follow_composite_keys() {
    let machine = Machine::start();
    let mut client = machine.client();
    filled(&mut client);
    let path = "/1.0/tables/d/pair";
    let rows: Vec<_> =
        ["x,", "y/"].iter().flat_map(|a| (0..3).map(move |b| json!({ "a": a, "b": b }))).collect();
    assert_eq!(client.json("POST", path, &json!(rows)).status, 201);
    let mut seen = Vec::new();
    let mut next = format!("{path}?limit=2");
    loop {
        let page = client.get(&next).json();
        seen.extend(page["rows"].as_array().unwrap().clone());
        let Some(key) = page["next"].as_str() else { break };
        assert_eq!(client.get(&format!("{path}/{key}")).json(), *seen.last().unwrap());
        next = format!("{path}?limit=2&after={}", encoded(key));
    }
    assert_eq!(seen.len(), 6);
    assert_eq!(seen[4], json!({ "a": "y/", "b": 1, "v": 7 }));
}

#[test]
fn rows_are_put_patched_and_deleted() {
    let machine = Machine::start();
    let mut client = machine.client();
    filled(&mut client);
    let path = "/1.0/tables/d/pair/k%2Cx,5";
    let put = client.json("PUT", path, &json!({ "v": 1 }));
    assert_eq!((put.status, put.json()), (201, json!({ "a": "k,x", "b": 5, "v": 1 })));
    let put = client.json("PUT", path, &json!({ "a": "k,x" }));
    assert_eq!(
        (put.status, put.json()["v"].clone()),
        (200, json!(7)),
        "what is not named gets its default"
    );
    assert_eq!(client.json("PUT", path, &json!({ "b": 6 })).status, 400);
    assert_eq!(client.json("PATCH", path, &json!({ "v": null })).json()["v"], json!(null));
    assert_eq!(client.json("PATCH", path, &json!({})).status, 200);
    assert_eq!(client.request("DELETE", path, "", b"").status, 204);
    assert_eq!(client.request("DELETE", path, "", b"").status, 404);
    assert_eq!(client.json("PATCH", path, &json!({ "v": 1 })).status, 404);
    let patched = client.json("PATCH", &format!("{PATH}?id=lt.3"), &json!({ "price": "9.99" }));
    assert_eq!(patched.json()["affected_rows"], 2, "{}", patched.json());
    for query in ["", "?limit=1", "?filter=%7b%7d&limit=1", "?order=id"] {
        assert_eq!(
            client.request("DELETE", &format!("{PATH}{query}"), "", b"").status,
            400,
            "{query}"
        );
        assert_eq!(
            client.json("PATCH", &format!("{PATH}{query}"), &json!({ "price": 1 })).status,
            400
        );
    }
    let deleted = client.request("DELETE", &format!("{PATH}?price=eq.9.99"), "", b"");
    assert_eq!(deleted.json()["affected_rows"], 2);
    assert_eq!(
        client.request("DELETE", &format!("{PATH}?filter=%7b%7d"), "", b"").json()["affected_rows"],
        1
    );
    let inserted = client.json("POST", PATH, &json!({ "name": "new" })).json();
    assert_eq!(client.get(&format!("{PATH}/{}", inserted["last_insert_id"])).json()["name"], "new");
}

#[test]
fn hostile_requests_are_refused_and_change_nothing() {
    let machine = Machine::start();
    let mut client = machine.client();
    filled(&mut client);
    let evil = encoded("id` = 1 OR 1=1; DROP TABLE d.t -- ");
    let refused: [(&str, String, &[u8], u16); 19] = [
        ("GET", "/1.0/tables/d/nothing".into(), b"", 404),
        ("GET", format!("/1.0/tables/d/{}", encoded("t`; DROP TABLE d.t; -- x")), b"", 404),
        ("GET", "/1.0/tables/d/t%00".into(), b"", 400),
        ("GET", "/1.0/tables/nowhere".into(), b"", 404),
        ("GET", format!("{PATH}?{evil}=eq.1"), b"", 400),
        ("GET", format!("{PATH}?select={evil}"), b"", 400),
        ("GET", format!("{PATH}?order={evil}"), b"", 400),
        ("GET", format!("{PATH}?id=eq.1%20OR%201=1"), b"", 400),
        ("GET", format!("{PATH}?id=eq.abc"), b"", 400),
        ("GET", format!("{PATH}?id=sounds.1"), b"", 400),
        ("GET", format!("{PATH}?at=gt.nonsense"), b"", 400),
        ("GET", format!("{PATH}/1%20OR%201=1"), b"", 400),
        ("GET", format!("{PATH}/1,2"), b"", 400),
        ("GET", "/1.0/tables/d/heap/1".into(), b"", 404),
        ("DELETE", format!("{PATH}?id=eq.1&name=eq.%ff"), b"", 400),
        ("POST", PATH.into(), b"[{\"id\":5},{\"id\":1}]", 409),
        ("POST", PATH.into(), b"{\"twice\":1}", 400),
        ("POST", PATH.into(), b"{\"id\":99999999999999999999}", 400),
        ("POST", PATH.into(), b"{\"name\":\"aaaaaaaaaaaaaaaaaaaaaaaaa\"}", 400),
    ];
    for (method, path, body, status) in refused {
        let answer = client.request(method, &path, "Content-Type: application/json\r\n", body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.json());
        assert!(answer.json()["error"]["message"].is_string(), "{method} {path}");
    }
    assert_eq!(names(&mut client, ""), "one,two,none");
    for text in ["'; DROP TABLE t; --", "\\", "\u{0}", "%", "é"] {
        let row = client.json("PATCH", &format!("{PATH}/1"), &json!({ "name": text })).json();
        assert_eq!(row["name"], text);
        assert_eq!(names(&mut client, &format!("name=eq.{}", encoded(text))), text);
    }
}
