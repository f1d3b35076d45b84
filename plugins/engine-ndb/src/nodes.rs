//! `data_dictionary.NDB_NODES`: the nodes of the cluster as its management server sees them.

use engine_api::CancelToken;
use errors::Result;
use plugin_api::{InfoColumn, InfoFilter, InformationContext, InformationTable};
use sys::sync::Arc;
use types::{CollationId, DataType, TypeKind, Value};

use crate::engine::Shared;

/// The words of `kind` of a node.
const KINDS: [&str; 3] = ["DATA", "CLIENT", "MANAGEMENT"];
/// The words of a node's status, as the management server counts them.
const STATUS: [&str; 10] = [
    "UNKNOWN",
    "NO CONTACT",
    "NOT STARTED",
    "STARTING",
    "STARTED",
    "SHUTTING DOWN",
    "RESTARTING",
    "SINGLE USER MODE",
    "RESUME",
    "CONNECTED",
];

pub(crate) struct NodeTable {
    shared: Arc<Shared>,
    columns: Vec<InfoColumn>,
}

impl NodeTable {
    pub(crate) fn new(shared: Arc<Shared>) -> NodeTable {
        let text = |name, length| {
            let mut ty = DataType::new(TypeKind::VarChar, length, 0);
            ty.collation = CollationId::UTF8MB4_0900_AI_CI;
            ty.nullable = false;
            InfoColumn { name, ty }
        };
        let number = |name| InfoColumn { name, ty: DataType::new(TypeKind::Int, 11, 0) };
        let columns = vec![
            number("NODE_ID"),
            text("TYPE", 16),
            text("STATUS", 32),
            number("NODE_GROUP"),
            number("START_PHASE"),
            text("VERSION", 16),
            text("ADDRESS", 64),
        ];
        NodeTable { shared, columns }
    }
}

fn word(words: &'static [&'static str], at: i32) -> &'static str {
    usize::try_from(at).ok().and_then(|at| words.get(at)).copied().unwrap_or("UNKNOWN")
}

impl InformationTable for NodeTable {
    fn schema(&self) -> &'static str {
        "data_dictionary"
    }

    fn name(&self) -> &'static str {
        "NDB_NODES"
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.columns
    }

    fn rows(
        &self,
        _: &dyn InformationContext,
        _: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        let nodes = self.shared.links.nodes();
        for node in nodes.map_err(|error| error.into_error(&CancelToken::new()))? {
            let only_data = |value: i32| match node.kind {
                0 => Value::Int(i64::from(value)),
                _ => Value::Null,
            };
            let version = node.version;
            let version = match version {
                0 => String::new(),
                _ => format!("{}.{}.{}", version >> 16, version >> 8 & 0xff, version & 0xff),
            };
            emit(&[
                Value::Int(i64::from(node.id)),
                Value::text(word(&KINDS, node.kind)),
                Value::text(word(&STATUS, node.status)),
                only_data(node.group),
                only_data(node.start_phase),
                Value::text(&version),
                Value::text(&node.address),
            ])?;
        }
        Ok(())
    }
}
