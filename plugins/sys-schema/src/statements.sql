-- Statements by digest.

-- views statement_analysis
SELECT TEXT{digest_text} AS query, schema_name AS db,
    IF(sum_no_good_index_used > 0 OR sum_no_index_used > 0, '*', '') AS full_scan,
    count_star AS exec_count,EITHER{| count_secondary AS exec_secondary_count,} sum_errors AS err_count, sum_warnings AS warn_count,
    TIME{sum_timer_wait} AS total_latency, TIME{max_timer_wait} AS max_latency, TIME{avg_timer_wait} AS avg_latency,
    TIME{sum_lock_time} AS lock_latency, TIME{sum_cpu_time} AS cpu_latency,
    sum_rows_sent AS rows_sent, ROUND(IFNULL(sum_rows_sent / NULLIF(count_star, 0), 0)) AS rows_sent_avg,
    sum_rows_examined AS rows_examined, ROUND(IFNULL(sum_rows_examined / NULLIF(count_star, 0), 0)) AS rows_examined_avg,
    sum_rows_affected AS rows_affected, ROUND(IFNULL(sum_rows_affected / NULLIF(count_star, 0), 0)) AS rows_affected_avg,
    sum_created_tmp_tables AS tmp_tables, sum_created_tmp_disk_tables AS tmp_disk_tables,
    sum_sort_rows AS rows_sorted, sum_sort_merge_passes AS sort_merge_passes,
    BYTES{max_controlled_memory} AS max_controlled_memory, BYTES{max_total_memory} AS max_total_memory,
    digest AS digest, first_seen AS first_seen, last_seen AS last_seen
FROM performance_schema.events_statements_summary_by_digest
ORDER BY sum_timer_wait DESC

-- views statements_with_errors_or_warnings
SELECT TEXT{digest_text} AS query, schema_name AS db, count_star AS exec_count, sum_errors AS errors,
    IFNULL(sum_errors / NULLIF(count_star, 0), 0) * 100 AS error_pct, sum_warnings AS warnings,
    IFNULL(sum_warnings / NULLIF(count_star, 0), 0) * 100 AS warning_pct, first_seen AS first_seen, last_seen AS last_seen, digest AS digest
FROM performance_schema.events_statements_summary_by_digest
WHERE sum_errors > 0 OR sum_warnings > 0
ORDER BY sum_errors DESC, sum_warnings DESC

-- views statements_with_full_table_scans
SELECT TEXT{digest_text} AS query, schema_name AS db, count_star AS exec_count, TIME{sum_timer_wait} AS total_latency,
    sum_no_index_used AS no_index_used_count, sum_no_good_index_used AS no_good_index_used_count,
    ROUND(IFNULL(sum_no_index_used / NULLIF(count_star, 0), 0) * 100) AS no_index_used_pct,
    sum_rows_sent AS rows_sent, sum_rows_examined AS rows_examined,
    ROUND(sum_rows_sent / count_star) AS rows_sent_avg, ROUND(sum_rows_examined / count_star) AS rows_examined_avg,
    first_seen AS first_seen, last_seen AS last_seen, digest AS digest
FROM performance_schema.events_statements_summary_by_digest
WHERE (sum_no_index_used > 0 OR sum_no_good_index_used > 0) AND digest_text NOT LIKE 'SHOW%'
ORDER BY no_index_used_pct DESC, sum_timer_wait DESC

-- view x$ps_digest_avg_latency_distribution
SELECT COUNT(*) AS cnt, ROUND(avg_timer_wait / 1000000) AS avg_us
FROM performance_schema.events_statements_summary_by_digest
GROUP BY avg_us

-- view x$ps_digest_95th_percentile_by_avg_us
SELECT b.avg_us AS avg_us,
    IFNULL(SUM(a.cnt) / NULLIF((SELECT COUNT(*) FROM performance_schema.events_statements_summary_by_digest), 0), 0) AS percentile
FROM sys.x$ps_digest_avg_latency_distribution AS a
    JOIN sys.x$ps_digest_avg_latency_distribution AS b ON a.avg_us <= b.avg_us
GROUP BY b.avg_us
HAVING percentile > 0.95
ORDER BY percentile
LIMIT 1

-- views statements_with_runtimes_in_95th_percentile
SELECT TEXT{d.digest_text} AS query, d.schema_name AS db,
    IF(d.sum_no_good_index_used > 0 OR d.sum_no_index_used > 0, '*', '') AS full_scan,
    d.count_star AS exec_count, d.sum_errors AS err_count, d.sum_warnings AS warn_count,
    TIME{d.sum_timer_wait} AS total_latency, TIME{d.max_timer_wait} AS max_latency, TIME{d.avg_timer_wait} AS avg_latency,
    d.sum_rows_sent AS rows_sent, ROUND(IFNULL(d.sum_rows_sent / NULLIF(d.count_star, 0), 0)) AS rows_sent_avg,
    d.sum_rows_examined AS rows_examined, ROUND(IFNULL(d.sum_rows_examined / NULLIF(d.count_star, 0), 0)) AS rows_examined_avg,
    d.first_seen AS first_seen, d.last_seen AS last_seen, d.digest AS digest
FROM performance_schema.events_statements_summary_by_digest AS d
    JOIN sys.x$ps_digest_95th_percentile_by_avg_us AS p ON ROUND(d.avg_timer_wait / 1000000) >= p.avg_us
ORDER BY d.avg_timer_wait DESC

-- views statements_with_sorting
SELECT TEXT{digest_text} AS query, schema_name AS db, count_star AS exec_count, TIME{sum_timer_wait} AS total_latency,
    sum_sort_merge_passes AS sort_merge_passes, ROUND(IFNULL(sum_sort_merge_passes / NULLIF(count_star, 0), 0)) AS avg_sort_merges,
    sum_sort_scan AS sorts_using_scans, sum_sort_range AS sort_using_range, sum_sort_rows AS rows_sorted,
    ROUND(IFNULL(sum_sort_rows / NULLIF(count_star, 0), 0)) AS avg_rows_sorted, first_seen AS first_seen, last_seen AS last_seen, digest AS digest
FROM performance_schema.events_statements_summary_by_digest
WHERE sum_sort_rows > 0
ORDER BY sum_timer_wait DESC

-- views statements_with_temp_tables
SELECT TEXT{digest_text} AS query, schema_name AS db, count_star AS exec_count, TIME{sum_timer_wait} AS total_latency,
    sum_created_tmp_tables AS memory_tmp_tables, sum_created_tmp_disk_tables AS disk_tmp_tables,
    ROUND(IFNULL(sum_created_tmp_tables / NULLIF(count_star, 0), 0)) AS avg_tmp_tables_per_query,
    ROUND(IFNULL(sum_created_tmp_disk_tables / NULLIF(sum_created_tmp_tables, 0), 0) * 100) AS tmp_tables_to_disk_pct,
    first_seen AS first_seen, last_seen AS last_seen, digest AS digest
FROM performance_schema.events_statements_summary_by_digest
WHERE sum_created_tmp_tables > 0
ORDER BY sum_created_tmp_disk_tables DESC, sum_created_tmp_tables DESC
