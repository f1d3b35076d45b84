//! Calls to files as information tables show them.

use plugin_api::{FileOperations, FileUseView, IoBucket, TimedCounts};
use sys::io_times::{FileCalls, FileStats, FileUse, IoBucket as Counted, IoTimes};

/// Calls by their duration.
pub fn buckets(times: &IoTimes) -> Vec<IoBucket> {
    let view = |Counted { call, below_micros, count, total_micros }| IoBucket {
        call,
        below_micros,
        count,
        total_micros,
    };
    times.buckets().into_iter().map(view).collect()
}

/// Operations by class of file.
pub fn operations(times: &IoTimes) -> Vec<FileOperations> {
    let view = |stats: FileStats| FileOperations {
        class: stats.class.name(),
        operation: stats.operation.name(),
        requests: stats.requests,
        bytes: stats.bytes,
        errors: stats.errors,
        aligned: stats.aligned,
        total_micros: stats.total_micros,
        p50_micros: stats.p50_micros,
        p95_micros: stats.p95_micros,
        p99_micros: stats.p99_micros,
        extent: stats.extent,
    };
    times.files().into_iter().map(view).collect()
}

/// The files that were opened and are still there.
pub fn uses(times: &IoTimes) -> Vec<FileUseView> {
    let counts = |calls: FileCalls| TimedCounts {
        count: calls.count,
        bytes: calls.bytes,
        nanos: calls.nanos,
        extent: calls.extent,
    };
    let view = |file: FileUse| {
        let [read, write, sync] = file.calls.map(counts);
        let (path, class) = (file.path.display().to_string(), file.class.name());
        FileUseView { path, class, open_count: file.open_count, read, write, sync }
    };
    times.uses().into_iter().map(view).collect()
}
