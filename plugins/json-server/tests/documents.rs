//! The document calls over sockets against a server in this process.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use serde_json::{Value as Json, json};
use support::{Client, Machine, encoded};

const PATH: &str = "/1.0/docs/d/c";

fn ids(answer: &Json) -> Vec<&str> {
    let documents = answer["documents"].as_array().unwrap_or_else(|| panic!("{answer}"));
    documents.iter().map(|document| document["_id"].as_str().unwrap()).collect()
}

fn find(client: &mut Client, filter: &Json) -> Vec<String> {
    let answer = client.json("POST", &format!("{PATH}/find"), &json!({ "filter": filter }));
    assert_eq!(answer.status, 200, "{filter}: {}", answer.json());
    ids(&answer.json()).into_iter().map(str::to_owned).collect()
}

/// A collection of five documents.
fn filled(client: &mut Client) {
    client.sql("CREATE DATABASE d");
    let documents = json!([
        { "_id": "a", "n": 5, "s": "x", "t": [1, "two"], "o": { "p": 1 } },
        { "_id": "b", "n": 7.5, "s": "xyz", "t": [2] },
        { "_id": "c", "n": null, "s": "Y", "flag": true },
        { "_id": "d", "n": "5" },
        { "_id": "e", "n": [5], "a.b": 1, "a": { "b": 2 } },
    ]);
    let answer = client.json("POST", PATH, &documents);
    assert_eq!(answer.status, 201, "{}", answer.json());
    assert_eq!(answer.json()["ids"], json!(["a", "b", "c", "d", "e"]));
}

#[test]
fn a_document_is_put_got_patched_and_deleted() {
    let machine = Machine::start();
    let mut client = machine.client();
    client.sql("CREATE DATABASE d");
    let path = format!("{PATH}/k%2F1");
    let put = client.json("PUT", &path, &json!({ "a": { "b": 1, "c": 2 }, "big": u64::MAX }));
    assert_eq!(put.status, 201, "the collection is made on demand: {}", put.json());
    let got = client.get(&path);
    let document = json!({ "_id": "k/1", "a": { "b": 1, "c": 2 }, "big": u64::MAX });
    assert_eq!((got.status, got.json()), (200, document));
    let etag = got.header("etag").unwrap().to_owned();
    assert_eq!(
        client.request("GET", &path, &format!("If-None-Match: {etag}\r\n"), b"").status,
        304
    );
    let patched =
        client.json("PATCH", &path, &json!({ "a": { "b": null, "d": [1] }, "big": null }));
    assert_eq!(patched.json(), json!({ "_id": "k/1", "a": { "c": 2, "d": [1] } }));
    let stale = format!("If-Match: {etag}\r\n");
    assert_eq!(client.request("PUT", &path, &stale, b"{}").status, 412);
    assert_eq!(client.request("PATCH", &path, &stale, b"{}").status, 412);
    assert_eq!(client.request("DELETE", &path, &stale, b"").status, 412);
    let fresh = format!("If-Match: {}\r\n", patched.header("etag").unwrap());
    assert_eq!(client.request("PUT", &path, &fresh, b"{\"x\":1}").status, 200);
    assert_eq!(client.request("PUT", &path, "If-None-Match: *\r\n", b"{}").status, 412);
    let rows = client.sql("SELECT _id, doc FROM d.c");
    assert_eq!(rows["results"][0]["rows"], json!([["ay8x", { "_id": "k/1", "x": 1 }]]));
    assert_eq!(client.request("DELETE", &path, "", b"").status, 204);
    for method in ["GET", "DELETE"] {
        assert_eq!(client.request(method, &path, "", b"").status, 404);
    }
    assert_eq!(client.json("PATCH", &path, &json!({})).status, 404);
}

#[test]
fn merge_patches_follow_the_examples_of_rfc_7396() {
    let machine = Machine::start();
    let mut client = machine.client();
    client.sql("CREATE DATABASE d");
    let cases = [
        (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
        (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
        (json!({"a":"b"}), json!({"a":null}), json!({})),
        (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
        (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
        (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
        (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
        (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
        (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
        (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
    ];
    for (before, patch, mut after) in cases {
        client.json("PUT", &format!("{PATH}/x"), &before);
        let patched = client.json("PATCH", &format!("{PATH}/x"), &patch).json();
        after["_id"] = "x".into();
        assert_eq!(patched, after, "{before} {patch}");
    }
}

#[test]
fn documents_are_found_by_example() {
    let machine = Machine::start();
    let mut client = machine.client();
    filled(&mut client);
    let cases = [
        (json!({}), "abcde"),
        (json!({"n": 5}), "a"),
        (json!({"n": 5.0}), "a"),
        (json!({"n": "5"}), "d"),
        (json!({"n": null}), "c"),
        (json!({"zz": null}), "abcde"),
        (json!({"n": {"$ne": 5}}), "bcde"),
        (json!({"n": {"$gt": 5}}), "b"),
        (json!({"n": {"$gte": 5, "$lt": 7.5}}), "a"),
        (json!({"s": {"$lte": "x"}}), "ac"),
        (json!({"flag": true}), "c"),
        (json!({"n": {"$in": [5, "5", 7.5]}}), "abd"),
        (json!({"n": {"$in": []}}), ""),
        (json!({"n": {"$in": [null, 5]}}), "ac"),
        (json!({"n": {"$nin": [5, 7.5]}}), "cde"),
        (json!({"n": {"$exists": true}}), "abcde"),
        (json!({"o": {"$exists": false}}), "bcde"),
        (json!({"o.p": 1}), "a"),
        (json!({"o": {"p": 1}}), "a"),
        (json!({"a.b": 2}), "e"),
        (json!({"t.0": 2}), "b"),
        (json!({"t": {"$contains": "two"}}), "a"),
        (json!({"n": {"$contains": 5}}), "e"),
        (json!({"s": {"$like": "x%"}}), "ab"),
        (json!({"s": {"$regex": "^[xY]$"}}), "ac"),
        (json!({"$or": [{"n": 5}, {"s": "Y"}]}), "ac"),
        (json!({"$and": [{"n": {"$exists": true}}, {"$not": {"s": {"$exists": true}}}]}), "de"),
        (json!({"$nor": [{"n": 5}, {"n": "5"}]}), "bce"),
        (json!({"n": {"$not": {"$gt": 5}}}), "acde"),
        (json!({"_id": {"$gt": "b", "$in": ["a", "c", "d"]}}), "cd"),
        (json!({"_id": 5}), ""),
    ];
    for (filter, expected) in &cases {
        assert_eq!(find(&mut client, filter).concat(), *expected, "{filter}");
    }
    // Unchanged by indexes.
    for index in
        [json!({"path": "$.s", "type": "varchar(20)"}), json!({"path": "$.o.p", "type": "bigint"})]
    {
        let made = client.json("POST", &format!("{PATH}/indexes"), &index);
        assert_eq!(made.status, 201, "{}", made.json());
    }
    for (filter, expected) in &cases {
        assert_eq!(find(&mut client, filter).concat(), *expected, "with indexes: {filter}");
    }
}

#[test]
fn answers_have_pages_an_order_and_parts() {
    let machine = Machine::start();
    let mut client = machine.client();
    filled(&mut client);
    let mut seen = String::new();
    let mut path = format!("{PATH}?limit=2");
    loop {
        let page = client.get(&path).json();
        seen.push_str(&ids(&page).concat());
        assert_eq!(page["more"], page["next"].is_string());
        let Some(next) = page["next"].as_str() else { break };
        path = format!("{PATH}?limit=2&after={next}");
    }
    assert_eq!(seen, "abcde");
    let sorted =
        client.get(&format!("{PATH}?sort=-s&filter={}", encoded(r#"{"s":{"$exists":true}}"#)));
    assert_eq!(ids(&sorted.json()), ["b", "a", "c"]);
    let parts = client.get(&format!("{PATH}?fields=o.p,s&limit=1")).json();
    assert_eq!(parts["documents"], json!([{ "_id": "a", "s": "x", "o": { "p": 1 } }]));
    let generated = client.json("POST", PATH, &json!({ "v": 1 })).json();
    let id = generated["ids"][0].as_str().unwrap();
    assert_eq!(client.get(&format!("{PATH}/{id}")).json()["v"], 1);
}

#[test]
fn many_documents_change_by_example() {
    let machine = Machine::start();
    let mut client = machine.client();
    filled(&mut client);
    let body = json!({ "filter": { "s": { "$exists": true } }, "patch": { "s": null, "m": 1 } });
    assert_eq!(client.json("PATCH", PATH, &body).json()["affected_rows"], 3);
    assert_eq!(find(&mut client, &json!({ "m": 1 })).concat(), "abc");
    let one = format!("{PATH}?filter={}", encoded(r#"{"m":1,"_id":{"$ne":"b"}}"#));
    assert_eq!(client.request("DELETE", &one, "", b"").json()["affected_rows"], 2);
    assert_eq!(client.request("DELETE", PATH, "", b"").status, 400, "nothing says what to delete");
    assert_eq!(find(&mut client, &json!({})).concat(), "bde");
    // All or none.
    let twice = client.json("POST", PATH, &json!([{ "_id": "f" }, { "_id": "b" }]));
    assert_eq!((twice.status, twice.json()["error"]["code"].clone()), (409, json!(1062)));
    assert_eq!(find(&mut client, &json!({})).concat(), "bde");
    assert_eq!(client.get("/1.0/docs/d").json(), json!({ "collections": [{ "name": "c" }] }));
    assert_eq!(client.request("DELETE", &format!("{PATH}?drop=true"), "", b"").status, 204);
    assert_eq!(client.get(PATH).status, 404);
}

#[test]
fn an_index_is_used_and_refuses_what_does_not_fit() {
    let machine = Machine::start();
    let mut client = machine.client();
    client.sql("CREATE DATABASE d");
    let documents: Vec<Json> = (0..200)
        .map(|n| json!({ "_id": format!("{n:03}"), "n": n, "f": f64::from(n) / 4.0 }))
        .collect();
    assert_eq!(client.json("POST", PATH, &Json::from(documents)).status, 201);
    let indexes = format!("{PATH}/indexes");
    for body in [
        json!({ "path": "$.n", "type": "bigint", "unique": true }),
        json!({ "path": "$.f", "type": "double", "name": "by_f" }),
        json!({ "path": "$.at", "type": "datetime" }),
    ] {
        let made = client.json("POST", &indexes, &body);
        assert_eq!(made.status, 201, "{}", made.json());
    }
    let listed = client.get(&indexes).json();
    assert_eq!(
        listed["indexes"][1],
        json!({ "name": "by_f", "path": "$.f", "type": "double", "unique": false })
    );
    assert_eq!(find(&mut client, &json!({ "n": { "$gte": 198 } })), ["198", "199"]);
    assert_eq!(find(&mut client, &json!({ "f": 1.25 })), ["005"]);
    client.sql("SELECT COUNT(*) FROM d.c");
    let plan = client.sql(
        "EXPLAIN FORMAT=TREE SELECT doc FROM d.c WHERE (JSON_EXTRACT(doc, '$.n') = CAST('5' AS JSON) AND _ix_n = 5)",
    );
    assert!(plan.to_string().contains("lookup on c using n"), "{plan}");
    assert_eq!(client.json("PUT", &format!("{PATH}/x"), &json!({ "n": "five" })).status, 400);
    assert_eq!(client.json("PUT", &format!("{PATH}/x"), &json!({ "n": 5 })).status, 409);
    let at = json!({ "_id": "x", "at": "2026-01-02T03:04:05" });
    assert_eq!(client.json("POST", PATH, &at).status, 201);
    assert_eq!(find(&mut client, &json!({ "at": "2026-01-02T03:04:05" })), ["x"]);
    assert_eq!(
        client.json("POST", &indexes, &json!({ "path": "$.n", "type": "double" })).status,
        409
    );
    assert_eq!(client.request("DELETE", &format!("{indexes}/n"), "", b"").status, 204);
    assert_eq!(client.request("DELETE", &format!("{indexes}/n"), "", b"").status, 404);
    assert_eq!(client.json("PUT", &format!("{PATH}/x"), &json!({ "n": "five" })).status, 200);
}

#[test]
fn hostile_requests_are_refused_and_change_nothing() {
    let machine = Machine::start();
    let mut client = machine.client();
    filled(&mut client);
    client.sql("CREATE TABLE d.plain (id INT PRIMARY KEY)");
    let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    let deep_document = format!("{{\"a\":{deep}}}");
    let evil = encoded("c`; DROP TABLE d.c; -- x");
    let refused: [(&str, String, &[u8], u16); 23] = [
        ("GET", format!("/1.0/docs/d/{evil}/a"), b"", 404),
        ("GET", "/1.0/docs/d/c%00/a".into(), b"", 400),
        ("GET", "/1.0/docs/d/c/%ff".into(), b"", 404),
        ("GET", "/1.0/docs/d/c/%".into(), b"", 404),
        ("GET", "/1.0/docs/d/c/%2e%2e%2f".into(), b"", 404),
        ("GET", format!("{PATH}?filter=%ff"), b"", 400),
        ("GET", format!("{PATH}?limit=1&limitt=2"), b"", 400),
        ("GET", "/1.0/docs/d/plain".into(), b"", 404),
        ("GET", "/1.0/docs/nowhere".into(), b"", 404),
        ("GET", "/1.0/docs/nowhere/c".into(), b"", 404),
        ("PUT", "/1.0/docs/nowhere/c/a".into(), b"{}", 404),
        ("PUT", "/1.0/docs/d/plain/a".into(), b"{}", 404),
        ("PUT", format!("{PATH}/{}", "x".repeat(33)), b"{}", 400),
        ("PUT", format!("{PATH}/a"), b"[]", 400),
        ("PUT", format!("{PATH}/a"), b"{\"_id\":\"b\"}", 400),
        ("PUT", format!("{PATH}/a"), b"{\"a\":\"\xff\"}", 400),
        ("PUT", format!("{PATH}/a"), b"", 400),
        ("PUT", format!("{PATH}/a"), deep_document.as_bytes(), 400),
        ("PATCH", format!("{PATH}/a"), b"{\"_id\":null}", 400),
        ("POST", format!("{PATH}/find"), br#"{"filter":{"s":{"$regex":"("}}}"#, 400),
        ("POST", format!("{PATH}/find"), br#"{"filter":{"a..b":1}}"#, 400),
        ("POST", format!("{PATH}/find"), br#"{"filter":{"$":1}}"#, 400),
        ("DELETE", format!("{PATH}?filter=%7b%7d&filter=%7b%7d"), b"", 400),
    ];
    for (method, path, body, status) in refused {
        let answer = client.request(method, &path, "Content-Type: application/json\r\n", body);
        assert_eq!(answer.status, status, "{method} {path}");
        assert!(answer.json()["error"]["message"].is_string(), "{method} {path}");
    }
    let names = ["x') OR 1=1 -- ", "\\' OR 1 -- ", "\u{0}", "a\"]b", "*", "**", "%s", "é\u{202e}"];
    for name in names {
        assert_eq!(find(&mut client, &json!({ name: name })), Vec::<String>::new(), "{name:?}");
        let body = json!({ "_id": "evil", name: name });
        client.json("PUT", &format!("{PATH}/evil"), &body);
        assert_eq!(client.get(&format!("{PATH}/evil")).json(), body);
        assert_eq!(find(&mut client, &json!({ name: name })), ["evil"], "{name:?}");
        client.request("DELETE", &format!("{PATH}/evil"), "", b"");
    }
    // The last of two members with one name counts, as in SQL; a number that no double holds is refused.
    client.request("PUT", &format!("{PATH}/x"), "", br#"{"v":1,"v":2}"#);
    assert_eq!(client.get(&format!("{PATH}/x")).json()["v"], 2);
    assert_eq!(client.request("PUT", &format!("{PATH}/x"), "", b"{\"v\":1e999}").status, 400);
    assert_eq!(client.request("DELETE", &format!("{PATH}/x"), "", b"").status, 204);
    assert_eq!(find(&mut client, &json!({})).concat(), "abcde");
}

#[test]
fn privileges_are_those_of_sql() {
    let machine = Machine::start();
    let mut client = machine.client();
    filled(&mut client);
    client.sql("CREATE USER r IDENTIFIED BY 'p'; GRANT SELECT ON d.c TO r");
    let mut reader = machine.client();
    reader.login = support::basic("r", "p");
    assert_eq!(reader.get(&format!("{PATH}/a")).status, 200);
    for (method, path) in [("PUT", "a"), ("PUT", "z"), ("PATCH", "a"), ("DELETE", "a")] {
        assert_eq!(
            reader.json(method, &format!("{PATH}/{path}"), &json!({})).status,
            403,
            "{method} {path}"
        );
    }
    assert_eq!(reader.json("POST", "/1.0/docs/d", &json!({ "name": "mine" })).status, 403);
    assert_eq!(reader.json("PUT", "/1.0/docs/d/mine/a", &json!({})).status, 403);
    reader.login = String::new();
    assert_eq!(reader.get(&format!("{PATH}/a")).status, 401);
}

#[test]
fn documents_rows_and_sql_share_a_transaction() {
    let machine = Machine::start();
    let mut client = machine.client();
    filled(&mut client);
    let begin = |client: &mut Client| {
        let begun = client.json("POST", "/1.0/transactions", &json!({})).json();
        begun["id"].as_str().unwrap().to_owned()
    };
    let id = begin(&mut client);
    let inside = format!("Content-Type: application/json\r\nX-Squall-Transaction: {id}\r\n");
    let one = format!("{PATH}/new");
    assert_eq!(client.request("PUT", &one, &inside, b"{\"v\":1}").status, 201);
    assert_eq!(client.request("PATCH", &one, &inside, b"{\"v\":2}").status, 200);
    let sql = json!({ "sql": "SELECT doc->'$.v' FROM d.c WHERE _id = 'new'" });
    let seen = client.json("POST", &format!("/1.0/transactions/{id}/sql"), &sql).json();
    assert_eq!(seen["results"][0]["rows"], json!([[2]]));
    let row = client.request("GET", "/1.0/tables/d/c/bmV3", &inside, b"");
    assert_eq!(row.json()["doc"]["v"], 2);
    assert_eq!(client.get(&one).status, 404, "not visible outside");
    let definitions: [(&str, &str, &[u8]); 3] = [
        ("POST", "/1.0/docs/d", b"{\"name\":\"x\"}"),
        ("POST", "/1.0/docs/d/c/indexes", b"{\"path\":\"$.v\",\"type\":\"bigint\"}"),
        ("DELETE", "/1.0/docs/d/c?drop=true", b""),
    ];
    for (method, path, body) in definitions {
        assert_eq!(client.request(method, path, &inside, body).status, 409, "{path} would commit");
    }
    assert_eq!(client.request("PUT", "/1.0/docs/d/other/x", &inside, b"{}").status, 404);
    let ended = client.request("POST", &format!("/1.0/transactions/{id}/rollback"), "", b"");
    assert_eq!(ended.status, 204);
    assert_eq!(client.get(&one).status, 404);
    assert_eq!(
        client.request("PUT", &one, &inside, b"{}").status,
        404,
        "the transaction has ended"
    );

    let id = begin(&mut client);
    let inside = format!("X-Squall-Transaction: {id}\r\n");
    assert_eq!(client.request("DELETE", &format!("{PATH}/a"), &inside, b"").status, 204);
    assert_eq!(
        client.request("POST", &format!("/1.0/transactions/{id}/commit"), "", b"").status,
        204
    );
    assert_eq!(client.get(&format!("{PATH}/a")).status, 404);
}

#[test]
fn an_idle_transaction_ends_when_its_limit_says_so() {
    let machine = Machine::start();
    let mut client = machine.client();
    client.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY)");
    client.sql("SET GLOBAL idle_write_transaction_timeout = 1");
    let begin = |client: &mut Client, sql: &str| {
        let begun = client.json("POST", "/1.0/transactions", &json!({})).json();
        let path = format!("/1.0/transactions/{}/sql", begun["id"].as_str().unwrap());
        assert_eq!(client.json("POST", &path, &json!({ "sql": sql })).status, 200);
        path
    };
    let written = begin(&mut client, "INSERT INTO d.t VALUES (1)");
    let read = begin(&mut client, "SELECT * FROM d.t");
    // Waits for the lock of the row.
    let answer = client.sql("SET innodb_lock_wait_timeout = 10; INSERT INTO d.t VALUES (1)");
    assert!(answer.get("error").is_none(), "{answer}");
    let one = json!({ "sql": "SELECT 1" });
    assert_eq!(client.json("POST", &written, &one).status, 404);
    assert_eq!(client.json("POST", &read, &one).status, 200);
}

#[test]
fn concurrent_puts_all_succeed() {
    let machine = Machine::start();
    let mut client = machine.client();
    client.sql("CREATE DATABASE d");
    assert_eq!(client.json("POST", "/1.0/docs/d", &json!({ "name": "c" })).status, 201);
    let put = |client: &mut Client, id: String| {
        let answer = client.json("PUT", &format!("{PATH}/{id}"), &json!({ "v": 1 }));
        assert!([200, 201].contains(&answer.status), "{}", answer.json());
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let mut client = machine.client();
            scope.spawn(move || {
                for number in 0..20 {
                    put(&mut client, format!("own-{thread}-{number}"));
                    put(&mut client, format!("shared-{number}"));
                }
            });
        }
    });
    let all = client.get(&format!("{PATH}?limit=1000")).json();
    assert_eq!(all["count"], 100);
}
