//! Decoders on any bytes: `cargo xtask fuzz` lets coverage guide them. `__fuzz__` keeps what they start from.

use crate::{
    PersistedVariable, PluginChoice, SharedEntry, account_codec, codec, event, foreign_server,
    histogram, reference_system, resource_group, routine, trigger,
};

/// What is read and written is read again, however damaged it was.
macro_rules! survives {
    ($bytes:expr, $read:path, $write:expr) => {{
        if let Ok(object) = $read($bytes) {
            let stored = $write(&object);
            let _ = $read(&stored).expect("a written object");
        }
    }};
}

fn write_variable((name, kept): &(Box<str>, PersistedVariable)) -> Vec<u8> {
    codec::write_variable(name, kept)
}

fn write_plugin((name, choice): &(Box<str>, PluginChoice)) -> Vec<u8> {
    codec::write_plugin(name, choice)
}

/// Objects after a byte that says the kind.
#[test]
fn objects() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let Some((&kind, bytes)) = bytes.split_first() else { return };
        match kind % 15 {
            0 => survives!(bytes, codec::read_table, codec::write_table),
            1 => survives!(bytes, codec::read_schema, codec::write_schema),
            2 => survives!(bytes, codec::read_view, codec::write_view),
            3 => survives!(bytes, routine::read_routine, routine::write_routine),
            4 => survives!(bytes, trigger::read_trigger, trigger::write_trigger),
            5 => survives!(bytes, event::read_event, event::write_event),
            6 => survives!(bytes, account_codec::read_account, account_codec::write_account),
            7 => survives!(bytes, resource_group::read_group, resource_group::write_group),
            8 => survives!(bytes, codec::read_variable, write_variable),
            9 => survives!(bytes, codec::read_plugin, write_plugin),
            10 => survives!(bytes, codec::read_value, codec::write_value),
            11 => {
                let _ = histogram::Histogram::read(bytes);
                let _ = codec::read_type(bytes);
            }
            12 => survives!(bytes, foreign_server::read_server, foreign_server::write_server),
            13 => survives!(bytes, reference_system::read_system, reference_system::write_system),
            _ => {
                let _ = SharedEntry::read(bytes);
                let _ = codec::read_counter(bytes);
            }
        }
    });
}
