-- What the server uses: files, memory, locks, waits, counters.

-- view version
SELECT '2.1.3' AS sys_version, VERSION() AS mysql_version

-- views innodb_buffer_stats_by_schema
SELECT IF(LOCATE('.', table_name) = 0, 'InnoDB System', REPLACE(SUBSTRING_INDEX(table_name, '.', 1), '`', '')) AS object_schema,
    BYTES{SUM(CAST(IF(compressed_size = 0, 16384, compressed_size) AS DECIMAL(22, 0)))} AS allocated, BYTES{SUM(data_size)} AS data,
    COUNT(page_number) AS pages, COUNT(IF(is_hashed = 'YES', 1, NULL)) AS pages_hashed,
    COUNT(IF(is_old = 'YES', 1, NULL)) AS pages_old,
    ROUND(EITHER{SUM(number_records) / COUNT(DISTINCT index_name)|IFNULL(SUM(number_records) / COUNT(DISTINCT index_name), 0)}) AS rows_cached
FROM information_schema.innodb_buffer_page
WHERE table_name IS NOT NULL
GROUP BY object_schema
ORDER BY SUM(IF(compressed_size = 0, 16384, compressed_size)) DESC

-- views innodb_buffer_stats_by_table
SELECT IF(LOCATE('.', table_name) = 0, 'InnoDB System', REPLACE(SUBSTRING_INDEX(table_name, '.', 1), '`', '')) AS object_schema,
    REPLACE(SUBSTRING_INDEX(table_name, '.', -1), '`', '') AS object_name,
    BYTES{SUM(CAST(IF(compressed_size = 0, 16384, compressed_size) AS DECIMAL(22, 0)))} AS allocated, BYTES{SUM(data_size)} AS data,
    COUNT(page_number) AS pages, COUNT(IF(is_hashed = 'YES', 1, NULL)) AS pages_hashed,
    COUNT(IF(is_old = 'YES', 1, NULL)) AS pages_old,
    ROUND(EITHER{SUM(number_records) / COUNT(DISTINCT index_name)|IFNULL(SUM(number_records) / COUNT(DISTINCT index_name), 0)}) AS rows_cached
FROM information_schema.innodb_buffer_page
WHERE table_name IS NOT NULL
GROUP BY object_schema, object_name
ORDER BY SUM(IF(compressed_size = 0, 16384, compressed_size)) DESC

-- views innodb_lock_waits
SELECT r.trx_wait_started AS wait_started,
    TIMEDIFF(NOW(), r.trx_wait_started) AS wait_age,
    TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()) AS wait_age_secs,
    CONCAT(sys.quote_identifier(l.object_schema), '.', sys.quote_identifier(l.object_name)) AS locked_table,
    l.object_schema AS locked_table_schema, l.object_name AS locked_table_name,
    l.partition_name AS locked_table_partition, l.subpartition_name AS locked_table_subpartition,
    l.index_name AS locked_index, l.lock_type AS locked_type,
    r.trx_id AS waiting_trx_id, r.trx_started AS waiting_trx_started, TIMEDIFF(NOW(), r.trx_started) AS waiting_trx_age,
    r.trx_rows_locked AS waiting_trx_rows_locked, r.trx_rows_modified AS waiting_trx_rows_modified,
    r.trx_mysql_thread_id AS waiting_pid, TEXT{r.trx_query} AS waiting_query,
    l.engine_lock_id AS waiting_lock_id, l.lock_mode AS waiting_lock_mode,
    b.trx_id AS blocking_trx_id, b.trx_mysql_thread_id AS blocking_pid, TEXT{b.trx_query} AS blocking_query,
    h.engine_lock_id AS blocking_lock_id, h.lock_mode AS blocking_lock_mode,
    b.trx_started AS blocking_trx_started, TIMEDIFF(NOW(), b.trx_started) AS blocking_trx_age,
    b.trx_rows_locked AS blocking_trx_rows_locked, b.trx_rows_modified AS blocking_trx_rows_modified,
    IFNULL(CONCAT('KILL QUERY ', b.trx_mysql_thread_id), '') AS sql_kill_blocking_query,
    IFNULL(CONCAT('KILL ', b.trx_mysql_thread_id), '') AS sql_kill_blocking_connection
FROM performance_schema.data_lock_waits AS w
    JOIN information_schema.innodb_trx AS b ON b.trx_id = w.blocking_engine_transaction_id
    JOIN information_schema.innodb_trx AS r ON r.trx_id = w.requesting_engine_transaction_id
    JOIN performance_schema.data_locks AS l ON l.engine_lock_id = w.requesting_engine_lock_id
    JOIN performance_schema.data_locks AS h ON h.engine_lock_id = w.blocking_engine_lock_id
ORDER BY r.trx_wait_started

-- views io_global_by_file_by_bytes
SELECT PATH{file_name} AS file, count_read AS count_read, BYTES{sum_number_of_bytes_read} AS total_read,
    BYTES{IFNULL(sum_number_of_bytes_read / NULLIF(count_read, 0), 0)} AS avg_read,
    count_write AS count_write, BYTES{sum_number_of_bytes_write} AS total_written,
    BYTES{IFNULL(sum_number_of_bytes_write / NULLIF(count_write, 0), 0)} AS avg_write,
    BYTES{sum_number_of_bytes_read + sum_number_of_bytes_write} AS total,
    IFNULL(ROUND(100 - ((sum_number_of_bytes_read / NULLIF(sum_number_of_bytes_read + sum_number_of_bytes_write, 0)) * 100), 2), 0.00) AS write_pct
FROM performance_schema.file_summary_by_instance
ORDER BY sum_number_of_bytes_read + sum_number_of_bytes_write DESC

-- views io_global_by_file_by_latency
SELECT PATH{file_name} AS file, count_star AS total, TIME{sum_timer_wait} AS total_latency,
    count_read AS count_read, TIME{sum_timer_read} AS read_latency, count_write AS count_write, TIME{sum_timer_write} AS write_latency,
    count_misc AS count_misc, TIME{sum_timer_misc} AS misc_latency
FROM performance_schema.file_summary_by_instance
ORDER BY sum_timer_wait DESC

-- views io_global_by_wait_by_bytes
SELECT SUBSTRING_INDEX(event_name, '/', -2) AS event_name, count_star AS total, TIME{sum_timer_wait} AS total_latency,
    TIME{min_timer_wait} AS min_latency, TIME{avg_timer_wait} AS avg_latency, TIME{max_timer_wait} AS max_latency,
    count_read AS count_read, BYTES{sum_number_of_bytes_read} AS total_read,
    BYTES{IFNULL(sum_number_of_bytes_read / NULLIF(count_read, 0), 0)} AS avg_read,
    count_write AS count_write, BYTES{sum_number_of_bytes_write} AS total_written,
    BYTES{IFNULL(sum_number_of_bytes_write / NULLIF(count_write, 0), 0)} AS avg_written,
    BYTES{sum_number_of_bytes_write + sum_number_of_bytes_read} AS total_requested
FROM performance_schema.file_summary_by_event_name
WHERE event_name LIKE 'wait/io/file/%' AND count_star > 0
ORDER BY sum_number_of_bytes_write + sum_number_of_bytes_read DESC

-- views io_global_by_wait_by_latency
SELECT SUBSTRING_INDEX(event_name, '/', -2) AS event_name, count_star AS total, TIME{sum_timer_wait} AS total_latency,
    TIME{avg_timer_wait} AS avg_latency, TIME{max_timer_wait} AS max_latency,
    TIME{sum_timer_read} AS read_latency, TIME{sum_timer_write} AS write_latency, TIME{sum_timer_misc} AS misc_latency,
    count_read AS count_read, BYTES{sum_number_of_bytes_read} AS total_read,
    BYTES{IFNULL(sum_number_of_bytes_read / NULLIF(count_read, 0), 0)} AS avg_read,
    count_write AS count_write, BYTES{sum_number_of_bytes_write} AS total_written,
    BYTES{IFNULL(sum_number_of_bytes_write / NULLIF(count_write, 0), 0)} AS avg_written
FROM performance_schema.file_summary_by_event_name
WHERE event_name LIKE 'wait/io/file/%' AND count_star > 0
ORDER BY sum_timer_wait DESC

-- views memory_by_host_by_current_bytes
SELECT IF(host IS NULL, 'background', host) AS host, SUM(current_count_used) AS current_count_used,
    BYTES{SUM(current_number_of_bytes_used)} AS current_allocated,
    BYTES{IFNULL(SUM(current_number_of_bytes_used) / NULLIF(SUM(current_count_used), 0), 0)} AS current_avg_alloc,
    BYTES{MAX(current_number_of_bytes_used)} AS current_max_alloc,
    BYTES{SUM(sum_number_of_bytes_alloc)} AS total_allocated
FROM performance_schema.memory_summary_by_host_by_event_name
GROUP BY IF(host IS NULL, 'background', host)
ORDER BY SUM(current_number_of_bytes_used) DESC

-- views memory_by_thread_by_current_bytes
SELECT t.thread_id AS thread_id,
    IF(t.type = 'FOREGROUND', CONCAT(t.processlist_user, '@', t.processlist_host), SUBSTRING_INDEX(t.name, 'thread/', -1)) AS user,
    SUM(m.current_count_used) AS current_count_used,
    BYTES{SUM(m.current_number_of_bytes_used)} AS current_allocated,
    BYTES{IFNULL(SUM(m.current_number_of_bytes_used) / NULLIF(SUM(m.current_count_used), 0), 0)} AS current_avg_alloc,
    BYTES{MAX(m.current_number_of_bytes_used)} AS current_max_alloc,
    BYTES{SUM(m.sum_number_of_bytes_alloc)} AS total_allocated
FROM performance_schema.memory_summary_by_thread_by_event_name AS m
    JOIN performance_schema.threads AS t ON t.thread_id = m.thread_id
GROUP BY t.thread_id, user
ORDER BY SUM(m.current_number_of_bytes_used) DESC

-- views memory_by_user_by_current_bytes
SELECT IF(user IS NULL, 'background', user) AS user, SUM(current_count_used) AS current_count_used,
    BYTES{SUM(current_number_of_bytes_used)} AS current_allocated,
    BYTES{IFNULL(SUM(current_number_of_bytes_used) / NULLIF(SUM(current_count_used), 0), 0)} AS current_avg_alloc,
    BYTES{MAX(current_number_of_bytes_used)} AS current_max_alloc,
    BYTES{SUM(sum_number_of_bytes_alloc)} AS total_allocated
FROM performance_schema.memory_summary_by_user_by_event_name
GROUP BY IF(user IS NULL, 'background', user)
ORDER BY SUM(current_number_of_bytes_used) DESC

-- views memory_global_by_current_bytes
SELECT event_name AS event_name, current_count_used AS current_count, BYTES{current_number_of_bytes_used} AS current_alloc,
    BYTES{IFNULL(current_number_of_bytes_used / NULLIF(current_count_used, 0), 0)} AS current_avg_alloc,
    high_count_used AS high_count, BYTES{high_number_of_bytes_used} AS high_alloc,
    BYTES{IFNULL(high_number_of_bytes_used / NULLIF(high_count_used, 0), 0)} AS high_avg_alloc
FROM performance_schema.memory_summary_global_by_event_name
WHERE current_number_of_bytes_used > 0
ORDER BY current_number_of_bytes_used DESC

-- views memory_global_total
SELECT BYTES{SUM(current_number_of_bytes_used)} AS total_allocated
FROM performance_schema.memory_summary_global_by_event_name

-- view metrics
SELECT IFNULL(LOWER(variable_name), '') AS Variable_name, variable_value AS Variable_value, 'Global Status' AS Type, 'YES' AS Enabled
FROM performance_schema.global_status
UNION ALL
SELECT name, count, IFNULL(CONCAT('InnoDB Metrics - ', subsystem), ''), IF(status = 'enabled', 'YES', 'NO')
FROM information_schema.innodb_metrics
UNION ALL
SELECT 'memory_current_allocated', SUM(current_number_of_bytes_used), 'Performance Schema',
    IF(COUNT(*) = 0, 'NO', IF(COUNT(*) = SUM(sum_number_of_bytes_alloc > 0), 'YES', 'PARTIAL'))
FROM performance_schema.memory_summary_global_by_event_name
UNION ALL
SELECT 'memory_total_allocated', SUM(sum_number_of_bytes_alloc), 'Performance Schema', IF(COUNT(*) = 0, 'NO', IF(COUNT(*) = SUM(sum_number_of_bytes_alloc > 0), 'YES', 'PARTIAL'))
FROM performance_schema.memory_summary_global_by_event_name
UNION ALL
SELECT 'NOW()', NOW(3), 'System Time', 'YES'
UNION ALL
SELECT 'UNIX_TIMESTAMP()', ROUND(UNIX_TIMESTAMP(NOW(3)), 3), 'System Time', 'YES'
ORDER BY Type, Variable_name

-- view ps_check_lost_instrumentation
SELECT variable_name AS variable_name, variable_value AS variable_value FROM performance_schema.global_status
WHERE variable_name LIKE 'perf%lost' AND variable_value > 0

-- views wait_classes_global_by_avg_latency
SELECT SUBSTRING_INDEX(event_name, '/', 3) AS event_class, SUM(count_star) AS total,
    TIME{SUM(sum_timer_wait)} AS total_latency, TIME{MIN(min_timer_wait)} AS min_latency,
    TIME{IFNULL(SUM(sum_timer_wait) / NULLIF(SUM(count_star), 0), 0)} AS avg_latency, TIME{MAX(max_timer_wait)} AS max_latency
FROM performance_schema.events_waits_summary_global_by_event_name
WHERE sum_timer_wait > 0 AND event_name <> 'idle'
GROUP BY event_class
ORDER BY IFNULL(SUM(sum_timer_wait) / NULLIF(SUM(count_star), 0), 0) DESC

-- views wait_classes_global_by_latency
SELECT SUBSTRING_INDEX(event_name, '/', 3) AS event_class, SUM(count_star) AS total,
    TIME{SUM(sum_timer_wait)} AS total_latency, TIME{MIN(min_timer_wait)} AS min_latency,
    TIME{IFNULL(SUM(sum_timer_wait) / NULLIF(SUM(count_star), 0), 0)} AS avg_latency, TIME{MAX(max_timer_wait)} AS max_latency
FROM performance_schema.events_waits_summary_global_by_event_name
WHERE sum_timer_wait > 0 AND event_name <> 'idle'
GROUP BY event_class
ORDER BY SUM(sum_timer_wait) DESC

-- views waits_by_host_by_latency
SELECT IF(host IS NULL, 'background', host) AS host, event_name AS event, count_star AS total,
    TIME{sum_timer_wait} AS total_latency, TIME{avg_timer_wait} AS avg_latency, TIME{max_timer_wait} AS max_latency
FROM performance_schema.events_waits_summary_by_host_by_event_name
WHERE event_name <> 'idle' AND sum_timer_wait > 0
ORDER BY IFNULL(host, 'background'), sum_timer_wait DESC

-- views waits_by_user_by_latency
SELECT IF(user IS NULL, 'background', user) AS user, event_name AS event, count_star AS total,
    TIME{sum_timer_wait} AS total_latency, TIME{avg_timer_wait} AS avg_latency, TIME{max_timer_wait} AS max_latency
FROM performance_schema.events_waits_summary_by_user_by_event_name
WHERE event_name <> 'idle' AND user IS NOT NULL AND sum_timer_wait > 0
ORDER BY IFNULL(user, 'background'), sum_timer_wait DESC

-- views waits_global_by_latency
SELECT event_name AS events, count_star AS total,
    TIME{sum_timer_wait} AS total_latency, TIME{avg_timer_wait} AS avg_latency, TIME{max_timer_wait} AS max_latency
FROM performance_schema.events_waits_summary_global_by_event_name
WHERE event_name <> 'idle' AND sum_timer_wait > 0
ORDER BY sum_timer_wait DESC
