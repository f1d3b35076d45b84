-- Who does what: by host, by user, by connection.

-- views host_summary
SELECT IF(c.host IS NULL, 'background', c.host) AS host,
    IFNULL(SUM(s.total), 0) AS statements,
    TIME{IFNULL(SUM(s.total_latency), 0)} AS statement_latency,
    TIME{IFNULL(SUM(s.total_latency) / SUM(s.total), 0)} AS statement_avg_latency,
    IFNULL(SUM(s.full_scans), 0) AS table_scans,
    IFNULL(SUM(f.ios), 0) AS file_ios,
    TIME{IFNULL(SUM(f.io_latency), 0)} AS file_io_latency,
    MAX(c.current_connections) AS current_connections,
    MAX(c.total_connections) AS total_connections,
    IFNULL(MAX(c.users), 0) AS unique_users,
    BYTES{IFNULL(SUM(m.current_allocated), 0)} AS current_memory,
    BYTES{IFNULL(SUM(m.total_allocated), 0)} AS total_memory_allocated
FROM (SELECT host, SUM(current_connections) AS current_connections, SUM(total_connections) AS total_connections,
        COUNT(DISTINCT user) AS users FROM performance_schema.accounts GROUP BY host) AS c
    LEFT JOIN sys.x$host_summary_by_statement_latency AS s ON s.host = IFNULL(c.host, 'background')
    LEFT JOIN sys.x$host_summary_by_file_io AS f ON f.host = s.host
    LEFT JOIN sys.x$memory_by_host_by_current_bytes AS m ON m.host = s.host
GROUP BY IF(c.host IS NULL, 'background', c.host)

-- views host_summary_by_file_io
SELECT IF(host IS NULL, 'background', host) AS host, SUM(count_star) AS ios, TIME{SUM(sum_timer_wait)} AS io_latency
FROM performance_schema.events_waits_summary_by_host_by_event_name
WHERE event_name LIKE 'wait/io/file/%'
GROUP BY IF(host IS NULL, 'background', host)
ORDER BY SUM(sum_timer_wait) DESC

-- views host_summary_by_file_io_type
SELECT IF(host IS NULL, 'background', host) AS host, event_name AS event_name, count_star AS total,
    TIME{sum_timer_wait} AS total_latency, TIME{max_timer_wait} AS max_latency
FROM performance_schema.events_waits_summary_by_host_by_event_name
WHERE event_name LIKE 'wait/io/file/%' AND count_star > 0
ORDER BY IFNULL(host, 'background'), sum_timer_wait DESC

-- views host_summary_by_stages
SELECT IF(host IS NULL, 'background', host) AS host, event_name AS event_name, count_star AS total,
    TIME{sum_timer_wait} AS total_latency, TIME{avg_timer_wait} AS avg_latency
FROM performance_schema.events_stages_summary_by_host_by_event_name
WHERE sum_timer_wait <> 0
ORDER BY IFNULL(host, 'background'), sum_timer_wait DESC

-- views host_summary_by_statement_latency
SELECT IF(host IS NULL, 'background', host) AS host, SUM(count_star) AS total,
    TIME{SUM(sum_timer_wait)} AS total_latency, TIME{MAX(max_timer_wait)} AS max_latency,
    TIME{SUM(sum_lock_time)} AS lock_latency, TIME{SUM(sum_cpu_time)} AS cpu_latency,
    SUM(sum_rows_sent) AS rows_sent, SUM(sum_rows_examined) AS rows_examined, SUM(sum_rows_affected) AS rows_affected,
    SUM(sum_no_index_used) + SUM(sum_no_good_index_used) AS full_scans
FROM performance_schema.events_statements_summary_by_host_by_event_name
GROUP BY IF(host IS NULL, 'background', host)
ORDER BY SUM(sum_timer_wait) DESC

-- views host_summary_by_statement_type
SELECT IF(host IS NULL, 'background', host) AS host, SUBSTRING_INDEX(event_name, '/', -1) AS statement, count_star AS total,
    TIME{sum_timer_wait} AS total_latency, TIME{max_timer_wait} AS max_latency,
    TIME{sum_lock_time} AS lock_latency, TIME{sum_cpu_time} AS cpu_latency,
    sum_rows_sent AS rows_sent, sum_rows_examined AS rows_examined, sum_rows_affected AS rows_affected,
    sum_no_index_used + sum_no_good_index_used AS full_scans
FROM performance_schema.events_statements_summary_by_host_by_event_name
WHERE sum_timer_wait <> 0
ORDER BY IFNULL(host, 'background'), sum_timer_wait DESC

-- views user_summary
SELECT IF(c.user IS NULL, 'background', c.user) AS user,
    IFNULL(SUM(s.total), 0) AS statements,
    TIME{IFNULL(SUM(s.total_latency), 0)} AS statement_latency,
    TIME{IFNULL(SUM(s.total_latency) / SUM(s.total), 0)} AS statement_avg_latency,
    IFNULL(SUM(s.full_scans), 0) AS table_scans,
    IFNULL(SUM(f.ios), 0) AS file_ios,
    TIME{IFNULL(SUM(f.io_latency), 0)} AS file_io_latency,
    MAX(c.current_connections) AS current_connections,
    MAX(c.total_connections) AS total_connections,
    IFNULL(MAX(c.hosts), 0) AS unique_hosts,
    BYTES{IFNULL(SUM(m.current_allocated), 0)} AS current_memory,
    BYTES{IFNULL(SUM(m.total_allocated), 0)} AS total_memory_allocated
FROM (SELECT user, SUM(current_connections) AS current_connections, SUM(total_connections) AS total_connections,
        COUNT(DISTINCT host) AS hosts FROM performance_schema.accounts GROUP BY user) AS c
    LEFT JOIN sys.x$user_summary_by_statement_latency AS s ON s.user = IFNULL(c.user, 'background')
    LEFT JOIN sys.x$user_summary_by_file_io AS f ON f.user = s.user
    LEFT JOIN sys.x$memory_by_user_by_current_bytes AS m ON m.user = s.user
GROUP BY IF(c.user IS NULL, 'background', c.user)
ORDER BY SUM(s.total_latency) DESC

-- views user_summary_by_file_io
SELECT IF(user IS NULL, 'background', user) AS user, SUM(count_star) AS ios, TIME{SUM(sum_timer_wait)} AS io_latency
FROM performance_schema.events_waits_summary_by_user_by_event_name
WHERE event_name LIKE 'wait/io/file/%'
GROUP BY IF(user IS NULL, 'background', user)
ORDER BY SUM(sum_timer_wait) DESC

-- views user_summary_by_file_io_type
SELECT IF(user IS NULL, 'background', user) AS user, event_name AS event_name, count_star AS total,
    TIME{sum_timer_wait} AS latency, TIME{max_timer_wait} AS max_latency
FROM performance_schema.events_waits_summary_by_user_by_event_name
WHERE event_name LIKE 'wait/io/file/%' AND count_star > 0
ORDER BY IFNULL(user, 'background'), sum_timer_wait DESC

-- views user_summary_by_stages
SELECT IF(user IS NULL, 'background', user) AS user, event_name AS event_name, count_star AS total,
    TIME{sum_timer_wait} AS total_latency, TIME{avg_timer_wait} AS avg_latency
FROM performance_schema.events_stages_summary_by_user_by_event_name
WHERE sum_timer_wait <> 0
ORDER BY IFNULL(user, 'background'), sum_timer_wait DESC

-- views user_summary_by_statement_latency
SELECT IF(user IS NULL, 'background', user) AS user, SUM(count_star) AS total,
    TIME{SUM(sum_timer_wait)} AS total_latency, TIME{CAST(MAX(max_timer_wait) AS DECIMAL(42, 0))} AS max_latency,
    TIME{SUM(sum_lock_time)} AS lock_latency, TIME{SUM(sum_cpu_time)} AS cpu_latency,
    SUM(sum_rows_sent) AS rows_sent, SUM(sum_rows_examined) AS rows_examined, SUM(sum_rows_affected) AS rows_affected,
    SUM(sum_no_index_used) + SUM(sum_no_good_index_used) AS full_scans
FROM performance_schema.events_statements_summary_by_user_by_event_name
GROUP BY IF(user IS NULL, 'background', user)
ORDER BY SUM(sum_timer_wait) DESC

-- views user_summary_by_statement_type
SELECT IF(user IS NULL, 'background', user) AS user, SUBSTRING_INDEX(event_name, '/', -1) AS statement, count_star AS total,
    TIME{sum_timer_wait} AS total_latency, TIME{max_timer_wait} AS max_latency,
    TIME{sum_lock_time} AS lock_latency, TIME{sum_cpu_time} AS cpu_latency,
    sum_rows_sent AS rows_sent, sum_rows_examined AS rows_examined, sum_rows_affected AS rows_affected,
    sum_no_index_used + sum_no_good_index_used AS full_scans
FROM performance_schema.events_statements_summary_by_user_by_event_name
WHERE sum_timer_wait <> 0
ORDER BY IFNULL(user, 'background'), sum_timer_wait DESC

-- views processlist
SELECT t.thread_id AS thd_id, t.processlist_id AS conn_id,
    IF(t.type = 'FOREGROUND', CONCAT(t.processlist_user, '@', t.processlist_host), SUBSTRING_INDEX(t.name, 'thread/', -1)) AS user,
    t.processlist_db AS db, t.processlist_command AS command, t.processlist_state AS state, t.processlist_time AS time,
    TEXT{t.processlist_info} AS current_statement,
    t.execution_engine AS execution_engine,
    IF(s.end_event_id IS NULL, TIME{s.timer_wait}, NULL) AS statement_latency,
    IF(s.end_event_id IS NULL, ROUND(100 * (g.work_completed / g.work_estimated), 2), NULL) AS progress,
    TIME{s.lock_time} AS lock_latency, TIME{s.cpu_time} AS cpu_latency,
    s.rows_examined AS rows_examined, s.rows_sent AS rows_sent, s.rows_affected AS rows_affected,
    s.created_tmp_tables AS tmp_tables, s.created_tmp_disk_tables AS tmp_disk_tables,
    IF(s.no_index_used > 0 OR s.no_good_index_used > 0, 'YES', 'NO') AS full_scan,
    IF(s.end_event_id IS NOT NULL, TEXT{s.sql_text}, NULL) AS last_statement,
    IF(s.end_event_id IS NOT NULL, TIME{s.timer_wait}, NULL) AS last_statement_latency,
    BYTES{m.current_allocated} AS current_memory,
    w.event_name AS last_wait,
    IF(w.event_name IS NOT NULL AND w.end_event_id IS NULL, 'Still Waiting', TIME{w.timer_wait}) AS last_wait_latency,
    w.source AS source,
    TIME{x.timer_wait} AS trx_latency, x.state AS trx_state, x.autocommit AS trx_autocommit,
    p.attr_value AS pid, n.attr_value AS program_name
FROM performance_schema.threads AS t
    LEFT JOIN performance_schema.events_waits_current AS w ON w.thread_id = t.thread_id
    LEFT JOIN performance_schema.events_stages_current AS g ON g.thread_id = t.thread_id
    LEFT JOIN performance_schema.events_statements_current AS s ON s.thread_id = t.thread_id
    LEFT JOIN performance_schema.events_transactions_current AS x ON x.thread_id = t.thread_id
    LEFT JOIN sys.x$memory_by_thread_by_current_bytes AS m ON m.thread_id = t.thread_id
    LEFT JOIN performance_schema.session_connect_attrs AS p ON p.processlist_id = t.processlist_id AND p.attr_name = '_pid'
    LEFT JOIN performance_schema.session_connect_attrs AS n ON n.processlist_id = t.processlist_id AND n.attr_name = 'program_name'
ORDER BY t.processlist_time DESC, last_wait_latency DESC

-- views session
SELECT * FROM sys.EITHER{processlist|x$processlist} WHERE conn_id IS NOT NULL AND command <> 'Daemon'

-- view session_ssl_status
SELECT v.thread_id AS thread_id, v.variable_value AS ssl_version, c.variable_value AS ssl_cipher, r.variable_value AS ssl_sessions_reused
FROM performance_schema.status_by_thread AS v
    LEFT JOIN performance_schema.status_by_thread AS c ON c.thread_id = v.thread_id AND c.variable_name = 'Ssl_cipher'
    LEFT JOIN performance_schema.status_by_thread AS r ON r.thread_id = v.thread_id AND r.variable_name = 'Ssl_sessions_reused'
WHERE v.variable_name = 'Ssl_version'
ORDER BY v.thread_id

-- views latest_file_io
SELECT CAST(IF(t.processlist_id IS NULL, CONCAT(SUBSTRING_INDEX(t.name, '/', -1), ':', e.thread_id),
        CONCAT(t.processlist_user, '@', t.processlist_host, ':', t.processlist_id)) AS CHAR(317)) AS thread,
    PATH{e.object_name} AS file, TIME{e.timer_wait} AS latency, e.operation AS operation, BYTES{e.number_of_bytes} AS requested
FROM performance_schema.events_waits_history_long AS e JOIN performance_schema.threads AS t ON t.thread_id = e.thread_id
WHERE e.event_name LIKE 'wait/io/file/%' AND e.object_name IS NOT NULL
ORDER BY e.timer_start

-- views io_by_thread_by_latency
SELECT IF(t.processlist_id IS NULL, SUBSTRING_INDEX(t.name, '/', -1), CONCAT(t.processlist_user, '@', t.processlist_host)) AS user,
    SUM(e.count_star) AS total, TIME{SUM(e.sum_timer_wait)} AS total_latency, TIME{MIN(e.min_timer_wait)} AS min_latency,
    TIME{AVG(e.avg_timer_wait)} AS avg_latency, TIME{MAX(e.max_timer_wait)} AS max_latency,
    e.thread_id AS thread_id, t.processlist_id AS processlist_id
FROM performance_schema.events_waits_summary_by_thread_by_event_name AS e
    LEFT JOIN performance_schema.threads AS t ON t.thread_id = e.thread_id
WHERE e.event_name LIKE 'wait/io/file/%' AND e.sum_timer_wait > 0
GROUP BY e.thread_id, t.processlist_id, user
ORDER BY SUM(e.sum_timer_wait) DESC
