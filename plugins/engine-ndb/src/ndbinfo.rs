//! The schema `ndbinfo`: the base tables of the cluster's own information as `ndb$NAME`, and views over some of them under the names that people know.

use engine_api::CancelToken;
use errors::Result;
use plugin_api::{
    InfoColumn, InfoFilter, InformationContext, InformationTable, Registrar, SystemView,
};
use sys::blocking::blocking;
use sys::sync::Arc;
use types::{CollationId, DataType, TypeKind, Value};

use crate::engine::Shared;
use crate::error::NdbError;

const SCHEMA: &str = "ndbinfo";
/// A line for each table: `NAME: COLUMN TYPE, ..`.
const TABLES: &str = include_str!("ndbinfo.txt");
/// Longest text.
const TEXT_LENGTH: u32 = 512;

/// Views: names and queries.
const VIEWS: &[(&str, &str)] = &[
    (
        "nodes",
        "SELECT node_id, uptime, CASE status WHEN 0 THEN 'NOTHING' WHEN 1 THEN 'CMVMI' WHEN 2 THEN 'STARTING' WHEN 3 THEN 'STARTED' \
         WHEN 4 THEN 'SINGLEUSER' WHEN 5 THEN 'STOPPING_1' WHEN 6 THEN 'STOPPING_2' WHEN 7 THEN 'STOPPING_3' WHEN 8 THEN 'STOPPING_4' \
         ELSE '<unknown>' END AS status, start_phase, config_generation FROM ndbinfo.`ndb$nodes`",
    ),
    (
        "memoryusage",
        "SELECT node_id, pool_name AS memory_type, SUM(used * entry_size) AS used, SUM(used) AS used_pages, \
         SUM(total * entry_size) AS total, SUM(total) AS total_pages FROM ndbinfo.`ndb$pools` \
         WHERE block_number IN (248, 254) AND pool_name IN ('Data memory', 'Index memory', 'Long message buffer') \
         GROUP BY node_id, memory_type",
    ),
    (
        "config_values",
        "SELECT node_id, config_param, config_value FROM ndbinfo.`ndb$config_values`",
    ),
    ("threadstat", "SELECT * FROM ndbinfo.`ndb$threadstat`"),
];

/// How a value comes from the cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Number,
}

/// A base table.
struct BaseTable {
    shared: Arc<Shared>,
    /// With `ndb$`.
    name: &'static str,
    base: &'static str,
    columns: Vec<InfoColumn>,
    forms: Vec<Form>,
}

fn column(name: &'static str, form: &str) -> (InfoColumn, Form) {
    let (kind, length, form) = match form {
        "int" => (TypeKind::Int, 10, Form::Number),
        "long" => (TypeKind::BigInt, 20, Form::Number),
        _ => (TypeKind::VarChar, TEXT_LENGTH, Form::Text),
    };
    let mut ty = DataType::new(kind, length, 0);
    ty.unsigned = form == Form::Number;
    ty.collation = match form {
        Form::Text => CollationId::UTF8MB4_0900_AI_CI,
        Form::Number => CollationId::BINARY,
    };
    (InfoColumn { name, ty }, form)
}

/// Registers the tables and views.
pub(crate) fn register(shared: &Arc<Shared>, registrar: &mut Registrar<'_>) {
    for line in TABLES.lines() {
        let Some((name, columns)) = line.split_once(": ") else { continue };
        let columns = columns.split(", ").filter_map(|text| text.split_once(' '));
        let (columns, forms) = columns.map(|(name, form)| column(name, form)).unzip();
        let base = name.strip_prefix("ndb$").unwrap_or(name);
        let shared = shared.clone();
        registrar.information_table(Arc::new(BaseTable { shared, name, base, columns, forms }));
    }
    for (name, query) in VIEWS {
        let (name, query) = ((*name).into(), (*query).into());
        registrar.system_view(SystemView { schema: SCHEMA, name, query });
    }
}

fn value(bytes: Option<&[u8]>, form: Form) -> Value {
    let Some(bytes) = bytes else { return Value::Null };
    match (form, bytes.len()) {
        (Form::Text, _) => {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            Value::text(&String::from_utf8_lossy(&bytes[..end]))
        }
        (Form::Number, 1..=8) => {
            // In this machine's order.
            let big_first = |number, byte: &u8| number << 8 | u64::from(*byte);
            Value::UInt(match cfg!(target_endian = "big") {
                true => bytes.iter().fold(0, big_first),
                false => bytes.iter().rev().fold(0, big_first),
            })
        }
        (Form::Number, _) => Value::Null,
    }
}

impl InformationTable for BaseTable {
    fn schema(&self) -> &'static str {
        SCHEMA
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.columns
    }

    fn rows(
        &self,
        ctx: &dyn InformationContext,
        _: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        let failed = |error: engine_api::EngineError| error.into_error(&CancelToken::new());
        let link = self.shared.links.get().map_err(failed)?;
        let names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        let mut outcome = Ok(());
        let read = blocking(|| {
            link.connection.info_rows(self.base, &names, |values| {
                let row: Vec<Value> = values
                    .iter()
                    .zip(&self.forms)
                    .map(|(bytes, form)| value(*bytes, *form))
                    .collect();
                outcome = ctx.check_cancelled().and_then(|()| emit(&row));
                outcome.is_ok()
            })
        });
        outcome?;
        read.map_err(NdbError::into_engine).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_table() {
        let mut count = 0;
        for line in TABLES.lines() {
            let (name, columns) = line.split_once(": ").expect("a name and columns");
            assert!(!name.is_empty() && !columns.is_empty());
            for text in columns.split(", ") {
                let (_, form) = text.split_once(' ').expect("a name and a type");
                assert!(matches!(form, "int" | "long" | "text"), "{line}");
                count += 1;
            }
        }
        assert!(count > 500, "{count} columns");
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn values_have_the_form_of_their_column() {
        assert_eq!(value(Some(&7u32.to_le_bytes()), Form::Number), Value::UInt(7));
        assert_eq!(value(Some(&(1u64 << 40).to_le_bytes()), Form::Number), Value::UInt(1 << 40));
        assert_eq!(value(Some(b"tc\0"), Form::Text), Value::text("tc"));
        assert_eq!(value(None, Form::Number), Value::Null);
    }
}
