//! `data_dictionary.SYS_CONFIG`: the settings that the functions and views start from. `sys.sys_config` is a view of it, so that programs that dump all schemas find no
//! rows in `sys` that could not be loaded.

use errors::Result;
use plugin_api::{InfoColumn, InfoFilter, InformationContext, InformationTable};
use types::{CollationId, DataType, TypeKind, Value};

/// Characters of a name or value.
const TEXT_LENGTH: u32 = 128;
/// Characters of a date and time.
const TIME_LENGTH: u32 = 19;

/// The settings. A session sets others as user variables: `@sys.statement_truncate_len`.
const SETTINGS: [(&str, Option<&str>); 6] = [
    ("diagnostics.allow_i_s_tables", Some("OFF")),
    ("diagnostics.include_raw", Some("OFF")),
    ("ps_thread_trx_info.max_length", Some("65535")),
    ("statement_performance_analyzer.limit", Some("100")),
    ("statement_performance_analyzer.view", None),
    ("statement_truncate_len", Some("64")),
];

/// The table.
#[derive(Debug)]
pub(crate) struct Settings {
    columns: Vec<InfoColumn>,
}

impl Settings {
    pub(crate) fn new() -> Settings {
        let text = || DataType::varchar(TEXT_LENGTH, CollationId::UTF8MB4_0900_AI_CI);
        let time = DataType::new(TypeKind::Timestamp, TIME_LENGTH, 0);
        let columns = vec![
            InfoColumn { name: "variable", ty: text().with_nullable(false) },
            InfoColumn { name: "value", ty: text() },
            InfoColumn { name: "set_time", ty: time.with_nullable(true) },
            InfoColumn { name: "set_by", ty: text() },
        ];
        Settings { columns }
    }
}

impl InformationTable for Settings {
    fn schema(&self) -> &'static str {
        "data_dictionary"
    }

    fn name(&self) -> &'static str {
        "SYS_CONFIG"
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
        SETTINGS.iter().try_for_each(|(variable, value)| {
            let value = value.map_or(Value::Null, Value::text);
            emit(&[Value::text(variable), value, Value::Null, Value::Null])
        })
    }
}
