//! Partitions as information tables see them.

use catalog::Table;
use engine_api::{Engine, KeyRange};
use plugin_api::PartitionView;
use types::{Value, ZoneRules};

use definitions::{method_expression, method_name, values_text};

/// The partitions of a table, or its subpartitions if any.
pub(crate) fn views(table: &Table, zone: &dyn ZoneRules) -> Vec<PartitionView> {
    let Some(partitioning) = &table.partitioning else { return Vec::new() };
    let mut views = Vec::with_capacity(partitioning.leaves());
    let sub = partitioning.sub.as_ref();
    for (at, own) in partitioning.partitions.iter().enumerate() {
        let view = PartitionView {
            name: own.name.to_string(),
            position: at as u64 + 1,
            method: method_name(&partitioning.method),
            sub_method: sub.map(method_name),
            expression: method_expression(&partitioning.method),
            sub_expression: sub.and_then(method_expression),
            description: (!own.values.is_empty())
                .then(|| values_text(&partitioning.method, own, zone)),
            comment: own.comment.clone(),
            ..PartitionView::default()
        };
        if own.subpartitions.is_empty() {
            views.push(view);
            continue;
        }
        for (place, (name, comment)) in own.subpartitions.iter().enumerate() {
            views.push(PartitionView {
                sub_name: Some(name.to_string()),
                sub_position: Some(place as u64 + 1),
                comment: if comment.is_empty() { own.comment.clone() } else { comment.clone() },
                ..view.clone()
            });
        }
    }
    views
}

/// Gives each leaf its part of the table's rows: the engine counts those of the whole.
pub(crate) fn share_rows(views: &mut [PartitionView], rows: u64) {
    let count = views.len() as u64;
    for (at, view) in views.iter_mut().enumerate() {
        view.rows = rows / count + u64::from((at as u64) < rows % count);
    }
}

/// Of partitions by SYSTEM_TIME the engine estimates the rows of each, where an index leads to them: it shows which one is full.
pub(crate) fn count_rows(views: &mut [PartitionView], table: &Table, engine: &dyn Engine) {
    let Some(partitioning) = table.partitioning.as_ref().filter(|own| own.by_system_time()) else {
        return;
    };
    let index = table.number_index();
    let Some(column) = table.partition_column().filter(|_| table.definition.index(index).is_some())
    else {
        return;
    };
    for (view, number) in views.iter_mut().zip(partitioning.numbers()) {
        let mut key = Vec::new();
        let number = Value::UInt(number.into());
        types::key::encode_part(&number, &table.columns[column].ty, None, false, &mut key);
        let rows = engine.estimate_range(table.id, index, &KeyRange::prefix(key));
        view.rows = rows.map_or(view.rows, |estimate| estimate.rows);
    }
}
