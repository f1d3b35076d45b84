//! EXPLAIN of ALTER CLUSTER.

use plugin_api::{ClusterStep, ColumnMeta};
use types::{CollationId, DataType, Value};

/// The columns of the answer.
pub fn cluster_columns() -> Vec<ColumnMeta> {
    let text = |name, length| {
        ColumnMeta::computed(name, DataType::varchar(length, CollationId::UTF8MB4_0900_AI_CI))
    };
    vec![
        ColumnMeta::computed("step", DataType::bigint_unsigned()),
        text("node", 64),
        text("action", 1024),
        text("online", 3),
        ColumnMeta::computed("estimated_seconds", DataType::double()),
    ]
}

/// The rows: each step, and the total.
pub fn cluster_rows(steps: &[ClusterStep]) -> Vec<Vec<Value>> {
    let yes_no = |yes| Value::text(if yes { "YES" } else { "NO" });
    let rounded = |seconds: f64| Value::Double((seconds * 10.0).round() / 10.0);
    let row = |(step, number): (&ClusterStep, u64)| {
        let node = step.node.as_deref().map_or(Value::Null, Value::text);
        let (online, seconds) = (yes_no(step.is_online), rounded(step.seconds));
        vec![Value::UInt(number), node, Value::text(&step.action), online, seconds]
    };
    let mut rows: Vec<Vec<Value>> = steps.iter().zip(1..).map(row).collect();
    rows.push(vec![
        Value::Null,
        Value::Null,
        Value::text("total"),
        yes_no(steps.iter().all(|step| step.is_online)),
        rounded(steps.iter().map(|step| step.seconds).sum()),
    ]);
    rows
}
