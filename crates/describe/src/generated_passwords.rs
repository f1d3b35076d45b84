//! The result of a statement that has generated passwords.

use catalog::AccountName;
use plugin_api::ColumnMeta;
use types::{CollationId, DataType, Value};

/// The columns of the result with generated passwords.
pub fn password_columns() -> [ColumnMeta; 4] {
    let text = |name: &str, chars| {
        let ty = DataType::varchar(chars, CollationId::UTF8MB4_0900_AI_CI);
        ColumnMeta::computed(name, ty.with_nullable(false))
    };
    let factor = DataType { length: 13, ..DataType::bigint_unsigned().with_nullable(false) };
    [
        text("user", 4),
        text("host", 4),
        text("generated password", 18),
        ColumnMeta::computed("auth_factor", factor),
    ]
}

/// One of its rows.
pub fn password_row((name, password): &(AccountName, String)) -> Vec<Value> {
    let [user, host, password] = [&*name.user, &*name.host, password.as_str()].map(Value::text);
    vec![user, host, password, Value::UInt(1)]
}
