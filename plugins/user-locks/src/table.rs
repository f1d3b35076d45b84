//! `data_dictionary.USER_DEFINED_BARRIERS`.

use std::sync::Arc;

use errors::Result;
use plugin_api::{InfoColumn, InfoFilter, InformationContext, InformationTable};
use types::{CollationId, DataType, TypeKind, Value};

use crate::barriers::Barriers;

/// The table.
#[derive(Debug)]
pub(crate) struct BarrierTable {
    barriers: Arc<Barriers>,
    columns: Vec<InfoColumn>,
}

impl BarrierTable {
    pub(crate) fn new(barriers: Arc<Barriers>) -> BarrierTable {
        let text = |name| {
            let ty = DataType::varchar(64, CollationId::UTF8MB4_0900_AI_CI);
            InfoColumn { name, ty: DataType { nullable: false, ..ty } }
        };
        let number = |name| {
            let ty = DataType::new(TypeKind::BigInt, 20, 0);
            InfoColumn { name, ty: DataType { nullable: false, unsigned: true, ..ty } }
        };
        let columns = vec![
            text("USER_BARRIER_NAME"),
            number("SESSION_ID"),
            text("USER_NAME"),
            number("WAITER_LIMIT"),
            number("GENERATION"),
            number("WAITERS"),
            number("OBSERVERS"),
        ];
        BarrierTable { barriers, columns }
    }
}

impl InformationTable for BarrierTable {
    fn schema(&self) -> &'static str {
        "data_dictionary"
    }

    fn name(&self) -> &'static str {
        "USER_DEFINED_BARRIERS"
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
        self.barriers.all().iter().try_for_each(|(name, barrier)| {
            emit(&[
                Value::text(name),
                Value::UInt(barrier.owner),
                Value::text(&barrier.user),
                Value::UInt(barrier.limit),
                Value::UInt(barrier.generation),
                Value::UInt(barrier.waiters),
                Value::UInt(barrier.observers),
            ])
        })
    }
}
