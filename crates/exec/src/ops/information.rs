//! Rows of information tables: all computed when the operator opens.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::InfoFilter;
use rows::convert;
use types::DataType;

use crate::expr::{Code, Truth};
use crate::kept_rows::Rows;
use crate::operator::Operator;
use crate::run::Run;

/// An information table in a program.
pub(crate) struct InformationNode {
    pub(crate) schema: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) columns: Vec<(usize, usize)>,
    pub(crate) equals: Vec<(Arc<str>, Code, DataType)>,
    pub(crate) filter: Option<Truth>,
}

/// A running scan of one.
pub(crate) struct InformationScan<'r> {
    node: &'r InformationNode,
    registers: Vec<usize>,
    rows: Rows,
    at: usize,
}

impl<'r> InformationScan<'r> {
    pub(crate) fn new(node: &'r InformationNode) -> InformationScan<'r> {
        let registers: Vec<usize> = node.columns.iter().map(|(_, register)| *register).collect();
        InformationScan { node, rows: Rows::new(registers.len()), registers, at: 0 }
    }

    fn look_up_filter(&self, run: &mut Run<'r>) -> Result<Option<InfoFilter>> {
        let reads = self.node.columns.iter().map(|(column, _)| *column).collect();
        let mut filter = InfoFilter { equals: Vec::new(), reads };
        for (column, code, ty) in &self.node.equals {
            let value = code.eval(run)?;
            if value.is_null() {
                return Ok(None);
            }
            let text = convert::text_bytes(&value, ty);
            filter.equals.push((column.to_string(), String::from_utf8_lossy(&text).into_owned()));
        }
        Ok(Some(filter))
    }
}

impl<'r> Operator<'r> for InformationScan<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.rows.clear(run);
        self.at = 0;
        let (schema, name) = (&self.node.schema, &self.node.name);
        let table = run
            .env
            .registry
            .information_table(schema, name)
            .ok_or_else(|| Error::with(ErrorCode::NO_SUCH_TABLE, &[&&**schema, &&**name]))?;
        let Some(filter) = self.look_up_filter(run)? else { return Ok(()) };
        let (information, columns, rows) =
            (run.env.information, &self.node.columns, &mut self.rows);
        let of_session = table.session_rows(&*run.function.session);
        // Tables name the members of ENUM and SET columns.
        let known = table.columns();
        let named = |column: usize| known.get(column).map(|column| &column.ty);
        let named: Vec<Option<&DataType>> = columns
            .iter()
            .map(|(column, _)| named(*column).filter(|ty| ty.has_members()))
            .collect();
        let mut emit = |values: &[types::Value]| {
            let wanted = columns.iter().zip(&named).map(|((column, _), named)| {
                let value = values.get(*column).cloned().unwrap_or(types::Value::Null);
                let Some(ty) = named else { return value };
                let number = ty.member_value(value.clone());
                debug_assert!(
                    number != types::Value::UInt(0) || value == types::Value::text(""),
                    "{name}: {value:?} is no member"
                );
                number
            });
            rows.push_values(wanted, run)
        };
        match of_session {
            Some(found) => found.iter().try_for_each(|row| emit(row)),
            None => table.rows(information, &filter, &mut emit),
        }
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        while self.at < self.rows.len() {
            self.rows.restore(self.at, &self.registers, run);
            self.at += 1;
            run.tick()?;
            match &self.node.filter {
                Some(filter) if !filter.holds(run)? => {}
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.rows.clear(run);
        self.at = 0;
    }
}
