//! The answer of ANALYZE, CHECK, OPTIMIZE and REPAIR TABLE.

use plugin_api::ColumnMeta;
use syntax::ast::MaintenanceKind;
use types::{CollationId, DataType};

/// The name in the column `Op`.
pub fn operation_of(kind: MaintenanceKind) -> &'static str {
    match kind {
        MaintenanceKind::Analyze => "analyze",
        MaintenanceKind::Check => "check",
        MaintenanceKind::Optimize => "optimize",
        MaintenanceKind::Repair => "repair",
        MaintenanceKind::Checksum => "checksum",
    }
}

/// The columns of the answer.
pub fn outcome_columns() -> [ColumnMeta; 4] {
    let text = |length| DataType::varchar(length, CollationId::UTF8MB4_0900_AI_CI);
    [
        ColumnMeta::computed("Table", text(128)),
        ColumnMeta::computed("Op", text(10)),
        ColumnMeta::computed("Msg_type", text(10)),
        ColumnMeta::computed("Msg_text", text(1024)),
    ]
}
