//! Definitions that all servers of the cluster share: how a server reads them.
//!
//! `kept` has what is kept; `fence` says who may change it.

use engine_api::{EngineResult, SharedDefinitions, SharedTable, TableId};
use errors::Error;
use sys::blocking::blocking;

use crate::engine::NdbEngine;
use crate::error::NdbError;
use crate::kept::{Stamp, ids_key, number, version_key};
use crate::shim::{Hold, NdbTransaction, Operation};

impl SharedDefinitions for NdbEngine {
    fn new_table_id(&self) -> EngineResult<TableId> {
        let link = self.0.links.get()?;
        let draw = |old: Option<&[u8]>| {
            let id = number(old).max(u128::from(TableId::FIRST_SHARED.0));
            (Some((id + 1).to_le_bytes().to_vec()), id)
        };
        let drawn = blocking(|| link.change_row(&link.counters, &ids_key(), draw));
        let drawn = drawn.map_err(NdbError::into_engine)?;
        let id = u64::try_from(drawn).map_err(|_| Error::internal("no ids are left in NDB"))?;
        Ok(TableId(id))
    }

    fn version(&self) -> EngineResult<u64> {
        let link = self.0.links.look()?;
        let read = || {
            let mut transaction = NdbTransaction::begin(&link.connection, None)?;
            let mut read = [Operation::read(&link.counters, &version_key(), Hold::Nothing)];
            transaction.execute(&mut read)?;
            let [read] = read;
            Ok(if read.code == 0 { number(Some(&read.row)) as u64 } else { 0 })
        };
        blocking(read).map_err(|error: NdbError| {
            self.0.look_at(&link, &error.clone().into_engine());
            error.into_engine()
        })
    }

    fn stamps(&self) -> EngineResult<Vec<(TableId, u64)>> {
        let link = self.0.links.get()?;
        let mut stamps = Vec::new();
        let take = |key: &[u8], row: &[u8]| {
            let id = <[u8; 8]>::try_from(key).ok().map(|key| TableId(u64::from_be_bytes(key)));
            if let (Some(id), Some(stamp)) = (id, Stamp::from_row(row)) {
                stamps.push((id, stamp.stamp));
            }
        };
        let read = blocking(|| link.scan_rows(&link.stamps, &[], None, take));
        read.map_err(NdbError::into_engine)?;
        Ok(stamps)
    }

    fn read(&self, table: TableId) -> EngineResult<Option<SharedTable>> {
        let link = self.0.links.get()?;
        let kept = blocking(|| link.kept(table))?;
        Ok(kept.map(|kept| SharedTable { stamp: kept.stamp, entry: kept.entry }))
    }

    fn follow(&self, table: TableId, stamp: Option<u64>) {
        self.0.links.followed.set(table, stamp);
        let link = self.0.links.present();
        let known = link.and_then(|link| link.known(table));
        // What this server has changed itself needs no new look.
        if stamp.is_none() || known.map(|known| known.stamp) != stamp {
            self.0.links.forget(table);
            self.0.statistics.forget(table);
            self.0.forget_counters(table);
        }
    }

    fn followed(&self, table: TableId) -> Option<u64> {
        self.0.links.followed.stamp(table)
    }
}
