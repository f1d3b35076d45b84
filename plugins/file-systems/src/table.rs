//! `data_dictionary.FILE_SYSTEMS`.

use std::path::Path;

use charset::CollationId;
use errors::Result;
use plugin_api::{InfoColumn, InfoFilter, InformationContext, InformationTable};
use types::{DataType, TypeKind, Value};

use crate::{Fill, PLACES};

pub(crate) struct FileSystemTable {
    columns: Vec<InfoColumn>,
}

impl Default for FileSystemTable {
    fn default() -> FileSystemTable {
        let text = |name, length| {
            let mut ty = DataType::new(TypeKind::VarChar, length, 0);
            ty.collation = CollationId::UTF8MB4_0900_AI_CI;
            ty.nullable = false;
            InfoColumn { name, ty }
        };
        let bytes = |name| {
            let mut ty = DataType::new(TypeKind::BigInt, 20, 0);
            ty.unsigned = true;
            InfoColumn { name, ty }
        };
        let columns = vec![
            text("USED_FOR", 32),
            text("PATH", 4096),
            bytes("TOTAL_BYTES"),
            bytes("FREE_BYTES"),
            bytes("RESERVE_BYTES"),
            bytes("RESERVE_THERE_BYTES"),
            text("STATE", 16),
        ];
        FileSystemTable { columns }
    }
}

impl InformationTable for FileSystemTable {
    fn schema(&self) -> &'static str {
        "data_dictionary"
    }

    fn name(&self) -> &'static str {
        "FILE_SYSTEMS"
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
        let variables = ctx.variables();
        let stats = ctx.engine_stats();
        // Of the engine that keeps a reserve.
        let reserve = |wanted: &str| {
            let found = stats.iter().find(|stat| stat.group == "space" && stat.name == wanted);
            found.and_then(|stat| stat.value.parse::<u64>().ok())
        };
        for (used_for, variable) in PLACES {
            let found = variables.iter().find(|known| known.name == *variable);
            let path = found.and_then(|known| known.global.clone()).unwrap_or_default();
            if path.is_empty() {
                continue;
            }
            let space = sys::files::space(Path::new(&path));
            let mut fill = space.map_or(Fill::Ample, |(free, total)| Fill::of(free, total));
            let mut reserves = [Value::Null, Value::Null];
            if *variable == "datadir"
                && let (Some(wanted), Some(there)) =
                    (reserve("reserve_bytes"), reserve("reserve_there_bytes"))
            {
                if reserve("is_short") == Some(1) {
                    fill = Fill::Full;
                }
                reserves = [Value::UInt(wanted), Value::UInt(there)];
            }
            let [wanted, there] = reserves;
            let number = |value: Option<u64>| value.map_or(Value::Null, Value::UInt);
            emit(&[
                Value::text(used_for),
                Value::text(&path),
                number(space.map(|(_, total)| total)),
                number(space.map(|(free, _)| free)),
                wanted,
                there,
                Value::text(fill.name()),
            ])?;
        }
        Ok(())
    }
}
