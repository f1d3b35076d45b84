//! EXPLAIN of ALTER TABLE, CREATE INDEX and DROP INDEX: the steps that the statement would take, whom each keeps waiting, and for how long about. Nothing
//! changes.

use ::accounts::PrivilegeChecks;
use catalog::PrivilegeSet;
use definitions::alter::{algorithm_name, edit, steps};
use errors::{Error, Result, bail};
use exec::TransactionSource;
use plugin_api::{ColumnMeta, ResultSink};
use syntax::Statement;
use syntax::ast::{AlterAction, AlterTable, Explain, PartitionAction};
use types::{CollationId, DataType, Value};

use super::alter::decide;
use super::definer::Definer;
use super::index::{creation, dropping};
use crate::session::Session;
use programs::Running;

/// EXPLAIN of a statement that changes a definition.
pub(crate) fn explain_definition(
    session: &mut Session,
    explain: &Explain,
    statement: &Statement,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let Some((alter, needed)) = as_alter(statement)? else {
        return Err(Error::not_supported("EXPLAIN of this statement"));
    };
    let is_other = |action: &AlterAction| {
        matches!(action, AlterAction::Partition(action)
        if matches!(**action, PartitionAction::Exchange { .. } | PartitionAction::Analyze { .. } | PartitionAction::Check { .. } | PartitionAction::Optimize { .. } | PartitionAction::Repair { .. }))
    };
    if alter.actions.iter().any(is_other) {
        return Err(Error::not_supported(
            "EXPLAIN of EXCHANGE PARTITION and of partition maintenance",
        ));
    }
    if explain.analyze || explain.format.is_some() || explain.into.is_some() {
        return Err(Error::not_supported("EXPLAIN ANALYZE, FORMAT and INTO of a definition"));
    }
    let (schema, name) = session.qualify(&alter.name)?;
    session.require_on_table(&schema, &name, needed)?;
    let table = session.find_table(&schema, &name)?;
    if table.temporary {
        bail!(EXPLAIN_NOT_SUPPORTED);
    }
    let (draft, request) = edit(&mut Definer::new(session, running), &table, &alter)?;
    let (altered, choice) = decide(session, &table, draft, &request, running)?;
    let engine = session.transactions.engine(&table.engine)?;
    let stats = engine.table_stats(table.id);
    let stats = stats.map_err(|error| error.into_error(&session.shared.cancel))?;
    let steps = steps(&table, &altered, &choice, &stats, request.gone.len());
    let rows: Vec<Vec<Value>> = steps
        .iter()
        .enumerate()
        .map(|(at, step)| {
            vec![
                Value::UInt(at as u64 + 1),
                Value::text(&step.action),
                Value::text(if step.blocks.is_online() { "YES" } else { "NO" }),
                Value::text(step.blocks.text()),
                Value::Double((step.seconds * 10.0).ceil() / 10.0),
                Value::UInt(step.bytes),
                Value::text(algorithm_name(&choice)),
            ]
        })
        .collect();
    let state = session.state_info();
    statements::sink::send_rows(sink, &columns(), &rows, &state)
}

/// The statement as an ALTER TABLE, and the privilege that it needs.
fn as_alter(statement: &Statement) -> Result<Option<(AlterTable, PrivilegeSet)>> {
    if let Statement::AlterTable(alter) = statement {
        return Ok(Some((AlterTable::clone(alter), PrivilegeSet::ALTER)));
    }
    if let Statement::CreateIndex(create) = statement {
        return Ok(Some((creation(create)?, PrivilegeSet::INDEX)));
    }
    if let Statement::DropIndex(drop) = statement {
        return Ok(Some((dropping(drop), PrivilegeSet::INDEX)));
    }
    Ok(None)
}

fn columns() -> [ColumnMeta; 7] {
    let text = |length| DataType::varchar(length, CollationId::UTF8MB4_0900_AI_CI);
    [
        ColumnMeta::computed("step", DataType::bigint_unsigned()),
        ColumnMeta::computed("action", text(255)),
        ColumnMeta::computed("online", text(3)),
        ColumnMeta::computed("blocks", text(64)),
        ColumnMeta::computed("estimated_seconds", DataType::double()),
        ColumnMeta::computed("estimated_bytes", DataType::bigint_unsigned()),
        ColumnMeta::computed("algorithm", text(10)),
    ]
}
