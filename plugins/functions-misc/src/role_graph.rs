//! `ROLES_GRAPHML()`: who has which role, in the XML of drawing programs.

use std::fmt::Write;

use errors::Result;
use plugin_api::kit::{self, scalar, text_type};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, ScalarFunction};
use types::{CollationId, Value};

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

/// What comes before the nodes.
const OPEN: &str = r#"
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
  <key id="key0" for="edge" attr.name="color" attr.type="int" />
  <key id="key1" for="node" attr.name="name" attr.type="string" />
  <graph id="G" edgedefault="directed" parse.nodeids="canonical" parse.edgeids="canonical" parse.order="nodesfirst">
"#;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[scalar(
    "ROLES_GRAPHML",
    Arity::exactly(0),
    "ROLES_GRAPHML()\nThe grants of roles as a GraphML document, for accounts with ROLE_ADMIN.",
    bind,
)
.stable()];

fn bind(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = text_type(kit::UNBOUNDED_CHARACTERS, CollationId::UTF8MB3_GENERAL_CI);
    Ok(BoundFunction::new(ty, vec![], |ctx, _| {
        if !ctx.session.has_privilege("ROLE_ADMIN") {
            return Ok(Value::text(&format!("{HEAD}<graphml />")));
        }
        Ok(Value::text(&document(&ctx.session.role_grants())))
    }))
}

/// A node for each account that has or is a role, an edge from each account to each of its roles.
fn document(grants: &[(String, String, bool)]) -> String {
    let mut nodes: Vec<&str> = Vec::new();
    for name in grants.iter().flat_map(|(account, role, _)| [account, role]) {
        if !nodes.contains(&name.as_str()) {
            nodes.push(name);
        }
    }
    let place = |name: &str| nodes.iter().position(|node| *node == name).unwrap_or_default();
    let mut out = String::from(HEAD) + OPEN;
    // Writing to a text never fails.
    for (number, name) in nodes.iter().enumerate() {
        let _ = writeln!(out, "    <node id=\"n{number}\">");
        let _ = writeln!(out, "      <data key=\"key1\">{}</data>", escaped(name));
        out.push_str("    </node>\n");
    }
    for (number, (account, role, admin)) in grants.iter().enumerate() {
        let (from, to) = (place(account), place(role));
        let _ = writeln!(out, "    <edge id=\"e{number}\" source=\"n{from}\" target=\"n{to}\">");
        let _ = writeln!(out, "      <data key=\"key0\">{}</data>", u8::from(*admin));
        out.push_str("    </edge>\n");
    }
    out + "  </graph>\n</graphml>\n"
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            other => out.push(other),
        }
    }
    out
}
