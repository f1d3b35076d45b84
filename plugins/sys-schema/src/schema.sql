-- Schemas, tables and indexes.

-- view schema_auto_increment_columns
SELECT c.table_schema AS table_schema, c.table_name AS table_name, c.column_name AS column_name,
    c.data_type AS data_type, c.column_type AS column_type,
    LOCATE('unsigned', c.column_type) = 0 AS is_signed, LOCATE('unsigned', c.column_type) > 0 AS is_unsigned,
    CASE c.data_type WHEN 'tinyint' THEN 255 WHEN 'smallint' THEN 65535 WHEN 'mediumint' THEN 16777215
        WHEN 'int' THEN 4294967295 WHEN 'bigint' THEN 18446744073709551615 END
        >> IF(LOCATE('unsigned', c.column_type) > 0, 0, 1) AS max_value,
    t.auto_increment AS auto_increment,
    t.auto_increment / (CASE c.data_type WHEN 'tinyint' THEN 255 WHEN 'smallint' THEN 65535 WHEN 'mediumint' THEN 16777215
        WHEN 'int' THEN 4294967295 WHEN 'bigint' THEN 18446744073709551615 END
        >> IF(LOCATE('unsigned', c.column_type) > 0, 0, 1)) AS auto_increment_ratio
FROM information_schema.columns AS c
    JOIN information_schema.tables AS t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE c.table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')
    AND t.table_type = 'BASE TABLE' AND c.extra = 'auto_increment'
ORDER BY auto_increment_ratio DESC, max_value

-- views schema_index_statistics
SELECT object_schema AS table_schema, object_name AS table_name, index_name AS index_name, count_fetch AS rows_selected,
    TIME{sum_timer_fetch} AS select_latency, count_insert AS rows_inserted, TIME{sum_timer_insert} AS insert_latency,
    count_update AS rows_updated, TIME{sum_timer_update} AS update_latency,
    count_delete AS rows_deleted, TIME{sum_timer_delete} AS delete_latency
FROM performance_schema.table_io_waits_summary_by_index_usage
WHERE index_name IS NOT NULL
ORDER BY sum_timer_wait DESC

-- view schema_object_overview
SELECT table_schema AS db, table_type AS object_type, COUNT(*) AS count
FROM information_schema.tables GROUP BY table_schema, table_type
UNION ALL
SELECT routine_schema, routine_type, COUNT(*) FROM information_schema.routines GROUP BY routine_schema, routine_type
UNION ALL
SELECT trigger_schema, 'TRIGGER', COUNT(*) FROM information_schema.triggers GROUP BY trigger_schema
UNION ALL
SELECT event_schema, 'EVENT', COUNT(*) FROM information_schema.events GROUP BY event_schema
UNION ALL
SELECT table_schema, CONCAT('INDEX (', index_type, ')'), COUNT(*)
FROM information_schema.statistics GROUP BY table_schema, index_type
ORDER BY db, object_type

-- view x$schema_flattened_keys
SELECT table_schema AS table_schema, table_name AS table_name, index_name AS index_name, MAX(non_unique) AS non_unique,
    MAX(IF(sub_part IS NULL, 0, 1)) AS subpart_exists,
    GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR ',') AS index_columns
FROM information_schema.statistics
WHERE index_type = 'BTREE' AND table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')
GROUP BY table_schema, table_name, index_name

-- view schema_redundant_indexes
SELECT r.table_schema AS table_schema, r.table_name AS table_name,
    r.index_name AS redundant_index_name, r.index_columns AS redundant_index_columns, r.non_unique AS redundant_index_non_unique,
    d.index_name AS dominant_index_name, d.index_columns AS dominant_index_columns, d.non_unique AS dominant_index_non_unique,
    IF(r.subpart_exists OR d.subpart_exists, 1, 0) AS subpart_exists,
    CONCAT('ALTER TABLE `', r.table_schema, '`.`', r.table_name, '` DROP INDEX `', r.index_name, '`') AS sql_drop_index
FROM sys.x$schema_flattened_keys AS r
    JOIN sys.x$schema_flattened_keys AS d ON d.table_schema = r.table_schema AND d.table_name = r.table_name
WHERE r.index_name <> d.index_name
    AND IF(r.index_columns = d.index_columns,
        r.non_unique > d.non_unique
            OR (r.non_unique = d.non_unique
                AND IF(r.index_name = 'PRIMARY', '', r.index_name) > IF(d.index_name = 'PRIMARY', '', d.index_name)),
        (r.non_unique = 1 AND LOCATE(CONCAT(r.index_columns, ','), d.index_columns) = 1)
            OR (d.non_unique = 0 AND LOCATE(CONCAT(d.index_columns, ','), r.index_columns) = 1))

-- views schema_table_lock_waits
SELECT w.object_schema AS object_schema, w.object_name AS object_name,
    tw.thread_id AS waiting_thread_id, tw.processlist_id AS waiting_pid,
    CAST(CONCAT(tw.processlist_user, '@', tw.processlist_host) AS CHAR(1024)) AS waiting_account,
    w.lock_type AS waiting_lock_type, w.lock_duration AS waiting_lock_duration,
    TEXT{tw.processlist_info} AS waiting_query, tw.processlist_time AS waiting_query_secs,
    sw.rows_affected AS waiting_query_rows_affected, sw.rows_examined AS waiting_query_rows_examined,
    th.thread_id AS blocking_thread_id, th.processlist_id AS blocking_pid,
    CAST(CONCAT(th.processlist_user, '@', th.processlist_host) AS CHAR(1024)) AS blocking_account,
    h.lock_type AS blocking_lock_type, h.lock_duration AS blocking_lock_duration,
    CONCAT('KILL QUERY ', th.processlist_id) AS sql_kill_blocking_query,
    CONCAT('KILL ', th.processlist_id) AS sql_kill_blocking_connection
FROM performance_schema.metadata_locks AS w
    JOIN performance_schema.metadata_locks AS h ON h.object_type = w.object_type
        AND h.object_schema = w.object_schema AND h.object_name = w.object_name
    JOIN performance_schema.threads AS tw ON tw.thread_id = w.owner_thread_id
    JOIN performance_schema.threads AS th ON th.thread_id = h.owner_thread_id
    LEFT JOIN performance_schema.events_statements_current AS sw ON sw.thread_id = w.owner_thread_id
WHERE w.object_type = 'TABLE' AND w.lock_status = 'PENDING' AND h.lock_status = 'GRANTED'
    AND w.owner_thread_id <> h.owner_thread_id

-- view x$ps_schema_table_statistics_io
SELECT sys.extract_schema_from_file_name(file_name) AS table_schema, sys.extract_table_from_file_name(file_name) AS table_name,
    SUM(count_read) AS count_read, SUM(sum_number_of_bytes_read) AS sum_number_of_bytes_read, SUM(sum_timer_read) AS sum_timer_read,
    SUM(count_write) AS count_write, SUM(sum_number_of_bytes_write) AS sum_number_of_bytes_write, SUM(sum_timer_write) AS sum_timer_write,
    SUM(count_misc) AS count_misc, SUM(sum_timer_misc) AS sum_timer_misc
FROM performance_schema.file_summary_by_instance
GROUP BY table_schema, table_name

-- views schema_table_statistics
SELECT t.object_schema AS table_schema, t.object_name AS table_name, TIME{t.sum_timer_wait} AS total_latency,
    t.count_fetch AS rows_fetched, TIME{t.sum_timer_fetch} AS fetch_latency,
    t.count_insert AS rows_inserted, TIME{t.sum_timer_insert} AS insert_latency,
    t.count_update AS rows_updated, TIME{t.sum_timer_update} AS update_latency,
    t.count_delete AS rows_deleted, TIME{t.sum_timer_delete} AS delete_latency,
    f.count_read AS io_read_requests, BYTES{f.sum_number_of_bytes_read} AS io_read, TIME{f.sum_timer_read} AS io_read_latency,
    f.count_write AS io_write_requests, BYTES{f.sum_number_of_bytes_write} AS io_write, TIME{f.sum_timer_write} AS io_write_latency,
    f.count_misc AS io_misc_requests, TIME{f.sum_timer_misc} AS io_misc_latency
FROM performance_schema.table_io_waits_summary_by_table AS t
    LEFT JOIN sys.x$ps_schema_table_statistics_io AS f ON f.table_schema = t.object_schema AND f.table_name = t.object_name
ORDER BY t.sum_timer_wait DESC

-- views schema_table_statistics_with_buffer
SELECT t.object_schema AS table_schema, t.object_name AS table_name,
    t.count_fetch AS rows_fetched, TIME{t.sum_timer_fetch} AS fetch_latency,
    t.count_insert AS rows_inserted, TIME{t.sum_timer_insert} AS insert_latency,
    t.count_update AS rows_updated, TIME{t.sum_timer_update} AS update_latency,
    t.count_delete AS rows_deleted, TIME{t.sum_timer_delete} AS delete_latency,
    f.count_read AS io_read_requests, BYTES{f.sum_number_of_bytes_read} AS io_read, TIME{f.sum_timer_read} AS io_read_latency,
    f.count_write AS io_write_requests, BYTES{f.sum_number_of_bytes_write} AS io_write, TIME{f.sum_timer_write} AS io_write_latency,
    f.count_misc AS io_misc_requests, TIME{f.sum_timer_misc} AS io_misc_latency,
    BYTES{b.allocated} AS innodb_buffer_allocated, BYTES{b.data} AS innodb_buffer_data,
    BYTES{b.allocated - b.data} AS innodb_buffer_free, b.pages AS innodb_buffer_pages,
    b.pages_hashed AS innodb_buffer_pages_hashed, b.pages_old AS innodb_buffer_pages_old,
    b.rows_cached AS innodb_buffer_rows_cached
FROM performance_schema.table_io_waits_summary_by_table AS t
    LEFT JOIN sys.x$ps_schema_table_statistics_io AS f ON f.table_schema = t.object_schema AND f.table_name = t.object_name
    LEFT JOIN sys.x$innodb_buffer_stats_by_table AS b ON b.object_schema = t.object_schema AND b.object_name = t.object_name
ORDER BY t.sum_timer_wait DESC

-- views schema_tables_with_full_table_scans
SELECT object_schema AS object_schema, object_name AS object_name, count_read AS rows_full_scanned, TIME{sum_timer_wait} AS latency
FROM performance_schema.table_io_waits_summary_by_index_usage
WHERE index_name IS NULL AND count_read > 0
ORDER BY count_read DESC

-- view schema_unused_indexes
SELECT u.object_schema AS object_schema, u.object_name AS object_name, u.index_name AS index_name
FROM performance_schema.table_io_waits_summary_by_index_usage AS u
    JOIN information_schema.statistics AS s
        ON s.table_schema = u.object_schema AND s.table_name = u.object_name AND s.index_name = u.index_name
WHERE u.index_name IS NOT NULL AND u.index_name <> 'PRIMARY' AND u.count_star = 0 AND u.object_schema <> 'mysql'
    AND s.non_unique = 1 AND s.seq_in_index = 1
ORDER BY u.object_schema, u.object_name

-- view sys_config
SELECT CAST('diagnostics.allow_i_s_tables' AS CHAR(128)) AS variable, CAST('OFF' AS CHAR(128)) AS value, (SELECT created FROM information_schema.routines WHERE FALSE) AS set_time, CAST(NULL AS CHAR(128)) AS set_by
UNION ALL SELECT 'diagnostics.include_raw', 'OFF', NULL, NULL
UNION ALL SELECT 'ps_thread_trx_info.max_length', '65535', NULL, NULL
UNION ALL SELECT 'statement_performance_analyzer.limit', '100', NULL, NULL
UNION ALL SELECT 'statement_performance_analyzer.view', NULL, NULL, NULL
UNION ALL SELECT 'statement_truncate_len', '64', NULL, NULL
