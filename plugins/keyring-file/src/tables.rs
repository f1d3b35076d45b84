//! `performance_schema.keyring_keys` and `keyring_component_status`.

use std::sync::Arc;

use charset::CollationId;
use errors::Result;
use plugin_api::{InfoColumn, InfoFilter, InformationContext, InformationTable, Keyring};
use types::{DataType, TypeKind, Value};

use crate::FileKeyring;

enum Kind {
    Keys,
    Status,
}

/// One of the two.
pub(crate) struct KeyringTable {
    kind: Kind,
    name: &'static str,
    columns: Vec<InfoColumn>,
    keyring: Option<Arc<FileKeyring>>,
}

/// Both tables, empty without a keyring.
pub(crate) fn all(keyring: Option<Arc<FileKeyring>>) -> [KeyringTable; 2] {
    let column = |name, length, nullable, collation| {
        let mut ty = DataType::new(TypeKind::VarChar, length, 0);
        ty.collation = collation;
        ty.nullable = nullable;
        InfoColumn { name, ty }
    };
    let id = |name, nullable| column(name, 255, nullable, CollationId::UTF8MB4_BIN);
    let text = |name, length| column(name, length, false, CollationId::UTF8MB4_0900_AI_CI);
    let keys = vec![id("KEY_ID", false), id("KEY_OWNER", true), id("BACKEND_KEY_ID", true)];
    let status = vec![text("STATUS_KEY", 256), text("STATUS_VALUE", 1024)];
    [
        KeyringTable {
            kind: Kind::Keys,
            name: "keyring_keys",
            columns: keys,
            keyring: keyring.clone(),
        },
        KeyringTable {
            kind: Kind::Status,
            name: "keyring_component_status",
            columns: status,
            keyring,
        },
    ]
}

impl InformationTable for KeyringTable {
    fn schema(&self) -> &'static str {
        "performance_schema"
    }

    fn name(&self) -> &'static str {
        self.name
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
        let Some(keyring) = &self.keyring else { return Ok(()) };
        match self.kind {
            Kind::Keys => {
                for id in sys::blocking::blocking(|| keyring.ids())? {
                    emit(&[Value::text(&id), Value::text(""), Value::text("")])?;
                }
            }
            Kind::Status => {
                for (name, value) in keyring.status() {
                    emit(&[Value::text(name), Value::text(&value)])?;
                }
            }
        }
        Ok(())
    }
}
