-- The procedures of the schema sys. Each runs with the rights of its caller.

-- procedure create_synonym_db
CREATE PROCEDURE create_synonym_db (IN in_db_name VARCHAR(64), IN in_synonym VARCHAR(64))
    COMMENT 'Makes a schema whose views show the tables and views of another one'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE is_done BOOLEAN DEFAULT FALSE;
    DECLARE made INT DEFAULT 0;
    DECLARE name VARCHAR(64);
    DECLARE message VARCHAR(128);
    DECLARE names CURSOR FOR
        SELECT table_name FROM information_schema.tables WHERE table_schema = in_db_name ORDER BY table_name;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET is_done = TRUE;
    IF NOT EXISTS (SELECT 1 FROM information_schema.schemata WHERE schema_name = in_db_name) THEN
        SET message = CONCAT('Unknown database ', in_db_name);
        SIGNAL SQLSTATE 'HY000' SET MESSAGE_TEXT = message;
    END IF;
    IF EXISTS (SELECT 1 FROM information_schema.schemata WHERE schema_name = in_synonym) THEN
        SET message = CONCAT('Can\'t create database ', in_synonym, '; database exists');
        SIGNAL SQLSTATE 'HY000' SET MESSAGE_TEXT = message;
    END IF;
    CALL sys.execute_prepared_stmt(CONCAT('CREATE DATABASE ', sys.quote_identifier(in_synonym)));
    OPEN names;
    each_table: LOOP
        FETCH names INTO name;
        IF is_done THEN LEAVE each_table; END IF;
        CALL sys.execute_prepared_stmt(CONCAT('CREATE SQL SECURITY INVOKER VIEW ', sys.quote_identifier(in_synonym), '.',
            sys.quote_identifier(name), ' AS SELECT * FROM ', sys.quote_identifier(in_db_name), '.', sys.quote_identifier(name)));
        SET made = made + 1;
    END LOOP;
    CLOSE names;
    SELECT CONCAT('Created ', made, ' view', IF(made = 1, '', 's'), ' in the ', sys.quote_identifier(in_synonym), ' database') AS summary;
END

-- procedure diagnostics
CREATE PROCEDURE diagnostics (IN in_max_runtime INT UNSIGNED, IN in_interval INT UNSIGNED, IN in_auto_config ENUM('current', 'medium', 'full'))
    COMMENT 'Reports what the server is and does: settings, then its state every few seconds, then sums and differences over the whole time'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE is_done BOOLEAN DEFAULT FALSE;
    DECLARE round_number INT DEFAULT 0;
    DECLARE until_time DATETIME(6);
    DECLARE name VARCHAR(64);
    DECLARE fields, shape, keys_same, differences LONGTEXT;
    DECLARE text_limit BIGINT UNSIGNED DEFAULT @@SESSION.group_concat_max_len;
    DECLARE names CURSOR FOR
        SELECT table_name FROM information_schema.tables
        WHERE table_schema = 'sys' AND (table_name LIKE 'x$io\\_global%' OR table_name LIKE 'x$io_by%' OR table_name LIKE 'x$host_summary%'
            OR table_name LIKE 'x$user_summary%' OR table_name LIKE 'x$wait%' OR table_name IN ('x$schema_index_statistics', 'x$schema_table_statistics', 'x$schema_tables_with_full_table_scans'))
        ORDER BY table_name;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET is_done = TRUE;
    SET in_max_runtime = IFNULL(in_max_runtime, 60), in_interval = IFNULL(in_interval, 30);
    IF in_max_runtime < in_interval THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'in_max_runtime must be greater than or equal to in_interval';
    END IF;
    IF in_interval = 0 THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'in_interval must be greater than 0';
    END IF;
    CALL sys.ps_setup_disable_thread(CONNECTION_ID());
    IF in_auto_config <> 'current' THEN
        SET @sys.diagnosed_consumers = (SELECT JSON_OBJECTAGG(c.name, c.enabled) FROM performance_schema.setup_consumers AS c),
            @sys.diagnosed_instruments = (SELECT JSON_OBJECTAGG(i.name, i.enabled) FROM performance_schema.setup_instruments AS i);
        UPDATE performance_schema.setup_consumers AS c SET c.enabled = 'YES'
            WHERE c.name IN ('statements_digest', 'events_statements_current', 'events_statements_history')
                OR in_auto_config = 'full' AND (c.name LIKE 'events_statements%' OR c.name LIKE 'events_stages%');
        UPDATE performance_schema.setup_instruments AS i SET i.enabled = 'YES' WHERE in_auto_config = 'full';
    END IF;
    SET until_time = SYSDATE(6) + INTERVAL in_max_runtime SECOND;
    SELECT 'Hostname' AS Name, @@GLOBAL.hostname AS Value UNION ALL SELECT 'Port', @@GLOBAL.port UNION ALL SELECT 'Socket', @@GLOBAL.socket
        UNION ALL SELECT 'Datadir', @@GLOBAL.datadir UNION ALL SELECT 'Server UUID', @@GLOBAL.server_uuid
        UNION ALL SELECT 'MySQL Version', VERSION() UNION ALL SELECT 'Sys Schema Version', (SELECT sys_version FROM sys.version)
        UNION ALL SELECT 'Version Comment', @@GLOBAL.version_comment UNION ALL SELECT 'Version Compile OS', @@GLOBAL.version_compile_os
        UNION ALL SELECT 'Version Compile Machine', @@GLOBAL.version_compile_machine
        UNION ALL SELECT 'UTC Time', UTC_TIMESTAMP() UNION ALL SELECT 'Local Time', NOW() UNION ALL SELECT 'Time Zone', @@SESSION.time_zone
        UNION ALL SELECT 'System Time Zone', @@GLOBAL.system_time_zone UNION ALL SELECT 'Time Zone Offset', TIMEDIFF(NOW(), UTC_TIMESTAMP());
    SELECT 'GLOBAL VARIABLES' AS `The following output is:`;
    SELECT variable_name AS Variable_name, variable_value AS Variable_value FROM performance_schema.global_variables ORDER BY variable_name;
    SELECT 'Performance Schema Setup - Consumers' AS `The following output is:`;
    SELECT c.name AS Consumer, c.enabled AS ENABLED, sys.ps_is_consumer_enabled(c.name) AS COLLECTS FROM performance_schema.setup_consumers AS c;
    SELECT 'Performance Schema Setup - Instruments' AS `The following output is:`;
    SELECT SUBSTRING_INDEX(i.name, '/', 2) AS InstrumentClass, ROUND(100 * AVG(i.enabled = 'YES'), 2) AS EnabledPct, ROUND(100 * AVG(IFNULL(i.timed, 'NO') = 'YES'), 2) AS TimedPct
        FROM performance_schema.setup_instruments AS i GROUP BY 1 ORDER BY 1;
    SELECT 'Performance Schema Setup - Threads' AS `The following output is:`;
    SELECT t.type AS ThreadType, COUNT(*) AS Total, ROUND(100 * AVG(t.instrumented = 'YES'), 2) AS InstrumentedPct FROM performance_schema.threads AS t GROUP BY 1;
    SELECT IF(COUNT(*) > 0, 'Replication Configured', 'No Replication Configured') AS `Replication Status` FROM performance_schema.replication_connection_configuration;
    SELECT channel_name, service_state, source_uuid, last_error_number, last_error_message FROM performance_schema.replication_connection_status;
    SET SESSION group_concat_max_len = 65536, @sys.diagnosed = JSON_OBJECT();
    -- The first values of the views whose differences are shown at the end.
    OPEN names;
    each_first: LOOP
        FETCH names INTO name;
        IF is_done THEN LEAVE each_first; END IF;
        SELECT GROUP_CONCAT('\'', column_name, '\', ', sys.quote_identifier(column_name) ORDER BY ordinal_position) INTO fields
            FROM information_schema.columns WHERE table_schema = 'sys' AND table_name = name;
        CALL sys.execute_prepared_stmt(CONCAT('SELECT JSON_SET(@sys.diagnosed, \'$."', name, '"\', IFNULL(JSON_ARRAYAGG(JSON_OBJECT(', fields, ')), JSON_ARRAY())) INTO @sys.diagnosed FROM sys.', sys.quote_identifier(name)));
        IF IFNULL(@sys.diagnostics.include_raw, sys.sys_get_config('diagnostics.include_raw', 'OFF')) = 'ON' THEN
            SELECT CONCAT('Initial ', SUBSTRING(name, 3)) AS `The following output is:`;
            CALL sys.execute_prepared_stmt(CONCAT('SELECT * FROM sys.', sys.quote_identifier(SUBSTRING(name, 3))));
        END IF;
    END LOOP;
    CLOSE names;
    REPEAT
        SET round_number = round_number + 1;
        SELECT NOW(), CONCAT('Iteration Number ', round_number) AS `The following output is:`;
        SELECT 'SHOW ENGINE INNODB STATUS' AS `The following output is:`;
        SHOW ENGINE INNODB STATUS;
        SELECT 'InnoDB - Transactions' AS `The following output is:`;
        SELECT * FROM information_schema.innodb_trx;
        SELECT 'SELECT * FROM sys.processlist' AS `The following output is:`;
        SELECT * FROM sys.processlist;
        SELECT 'SELECT * FROM sys.memory_by_host_by_current_bytes' AS `The following output is:`;
        SELECT * FROM sys.memory_by_host_by_current_bytes;
        SELECT 'SELECT * FROM sys.memory_by_thread_by_current_bytes' AS `The following output is:`;
        SELECT * FROM sys.memory_by_thread_by_current_bytes;
        SELECT 'SELECT * FROM sys.memory_by_user_by_current_bytes' AS `The following output is:`;
        SELECT * FROM sys.memory_by_user_by_current_bytes;
        SELECT 'SELECT * FROM sys.memory_global_by_current_bytes' AS `The following output is:`;
        SELECT * FROM sys.memory_global_by_current_bytes;
        SELECT 'SELECT * FROM sys.metrics' AS `The following output is:`;
        SELECT * FROM sys.metrics;
        DO SLEEP(GREATEST(LEAST(in_interval, TIMESTAMPDIFF(MICROSECOND, SYSDATE(6), until_time) / 1000000), 0));
    UNTIL SYSDATE(6) >= until_time END REPEAT;
    IF IFNULL(@sys.diagnostics.allow_i_s_tables, sys.sys_get_config('diagnostics.allow_i_s_tables', 'OFF')) = 'ON' THEN
        SELECT COUNT(*) AS `Total Number of Tables` FROM information_schema.tables;
    END IF;
    SELECT 'Unused Indexes' AS `The following output is:`;
    SELECT object_schema, COUNT(*) AS NumUnusedIndexes FROM sys.schema_unused_indexes GROUP BY object_schema;
    SELECT 'CALL sys.ps_statement_avg_latency_histogram()' AS `The following output is:`;
    CALL sys.ps_statement_avg_latency_histogram();
    CALL sys.statement_performance_analyzer('overall', 'NOW()', 'with_runtimes_in_95th_percentile');
    SET is_done = FALSE;
    OPEN names;
    each_last: LOOP
        FETCH names INTO name;
        IF is_done THEN LEAVE each_last; END IF;
        SELECT CONCAT('Overall ', SUBSTRING(name, 3)) AS `The following output is:`;
        CALL sys.execute_prepared_stmt(CONCAT('SELECT * FROM sys.', sys.quote_identifier(SUBSTRING(name, 3))));
        -- Rows are the same where their texts and numbers of threads are; averages and extremes are those of the end.
        SELECT GROUP_CONCAT(sys.quote_identifier(column_name), ' ', IF(data_type LIKE '%text', 'longtext', column_type), ' PATH \'$.', column_name, '\''),
            GROUP_CONCAT(IF(is_key, CONCAT('e.', sys.quote_identifier(column_name), ' <=> b.', sys.quote_identifier(column_name)), NULL) SEPARATOR ' AND '),
            GROUP_CONCAT(IF(column_name LIKE '%latency', 'format_pico_time', ''), '(e.', sys.quote_identifier(column_name),
                IF(is_key OR column_name REGEXP '(^|_)(avg|min|max|pct)(_|$)', '', CONCAT(' - IFNULL(b.', sys.quote_identifier(column_name), ', 0)')), ') AS ', sys.quote_identifier(column_name))
            INTO shape, keys_same, differences
            FROM (SELECT column_name AS column_name, data_type AS data_type, column_type AS column_type,
                    data_type LIKE '%char' OR data_type LIKE '%text' OR column_name IN ('thread_id', 'processlist_id') AS is_key
                FROM information_schema.columns WHERE table_schema = 'sys' AND table_name = name ORDER BY ordinal_position) AS c;
        SELECT CONCAT('Delta ', SUBSTRING(name, 3)) AS `The following output is:`;
        CALL sys.execute_prepared_stmt(CONCAT('SELECT ', differences, ' FROM sys.', sys.quote_identifier(name), ' AS e LEFT JOIN JSON_TABLE(@sys.diagnosed, \'$."', name, '"[*]\' COLUMNS (', shape, ')) AS b ON ', keys_same));
    END LOOP;
    CLOSE names;
    SET SESSION group_concat_max_len = text_limit, @sys.diagnosed = NULL, @sys.tmp_digests = NULL;
    IF in_auto_config <> 'current' THEN
        UPDATE performance_schema.setup_consumers AS c SET c.enabled = JSON_UNQUOTE(JSON_EXTRACT(@sys.diagnosed_consumers, CONCAT('$."', c.name, '"')));
        UPDATE performance_schema.setup_instruments AS i SET i.enabled = IFNULL(JSON_UNQUOTE(JSON_EXTRACT(@sys.diagnosed_instruments, CONCAT('$."', i.name, '"'))), i.enabled);
        SET @sys.diagnosed_consumers = NULL, @sys.diagnosed_instruments = NULL;
    END IF;
    CALL sys.ps_setup_enable_thread(CONNECTION_ID());
END

-- procedure execute_prepared_stmt
CREATE PROCEDURE execute_prepared_stmt (IN in_query LONGTEXT CHARACTER SET utf8mb4)
    COMMENT 'Prepares a statement, executes it and forgets it'
    READS SQL DATA SQL SECURITY INVOKER
BEGIN
    IF IFNULL(TRIM(in_query), '') = '' THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'The @sys.execute_prepared_stmt.sql must contain a query';
    END IF;
    SET @sys.execute_prepared_stmt.sql = in_query;
    PREPARE sys_execute_prepared_stmt FROM @sys.execute_prepared_stmt.sql;
    EXECUTE sys_execute_prepared_stmt;
    DEALLOCATE PREPARE sys_execute_prepared_stmt;
END

-- procedure ps_setup_disable_background_threads
CREATE PROCEDURE ps_setup_disable_background_threads ()
    COMMENT 'Switches recording off for the threads that serve no connection'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE changed BIGINT;
    UPDATE performance_schema.threads SET instrumented = 'NO' WHERE type = 'BACKGROUND';
    SET changed = ROW_COUNT();
    SELECT CONCAT('Disabled ', changed, ' background thread', IF(changed = 1, '', 's')) AS summary;
END

-- procedure ps_setup_disable_consumer
CREATE PROCEDURE ps_setup_disable_consumer (IN consumer VARCHAR(128))
    COMMENT 'Switches the consumers off whose names contain a text'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE changed BIGINT;
    UPDATE performance_schema.setup_consumers SET enabled = 'NO' WHERE name LIKE CONCAT('%', consumer, '%');
    SET changed = ROW_COUNT();
    SELECT CONCAT('Disabled ', changed, ' consumer', IF(changed = 1, '', 's')) AS summary;
END

-- procedure ps_setup_disable_instrument
CREATE PROCEDURE ps_setup_disable_instrument (IN in_pattern VARCHAR(128))
    COMMENT 'Switches the instruments off whose names contain a text'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE changed BIGINT;
    UPDATE performance_schema.setup_instruments SET enabled = 'NO' WHERE name LIKE CONCAT('%', in_pattern, '%');
    SET changed = ROW_COUNT();
    SELECT CONCAT('Disabled ', changed, ' instrument', IF(changed = 1, '', 's')) AS summary;
END

-- procedure ps_setup_disable_thread
CREATE PROCEDURE ps_setup_disable_thread (IN in_connection_id BIGINT)
    COMMENT 'Switches recording off for the thread of a connection'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE changed BIGINT;
    UPDATE performance_schema.threads SET instrumented = 'NO' WHERE processlist_id = in_connection_id;
    SET changed = ROW_COUNT();
    SELECT CONCAT('Disabled ', changed, ' thread', IF(changed = 1, '', 's')) AS summary;
END

-- procedure ps_setup_enable_background_threads
CREATE PROCEDURE ps_setup_enable_background_threads ()
    COMMENT 'Switches recording on for the threads that serve no connection'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE changed BIGINT;
    UPDATE performance_schema.threads SET instrumented = 'YES' WHERE type = 'BACKGROUND';
    SET changed = ROW_COUNT();
    SELECT CONCAT('Enabled ', changed, ' background thread', IF(changed = 1, '', 's')) AS summary;
END

-- procedure ps_setup_enable_consumer
CREATE PROCEDURE ps_setup_enable_consumer (IN consumer VARCHAR(128))
    COMMENT 'Switches the consumers on whose names contain a text'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE changed BIGINT;
    UPDATE performance_schema.setup_consumers SET enabled = 'YES' WHERE name LIKE CONCAT('%', consumer, '%');
    SET changed = ROW_COUNT();
    SELECT CONCAT('Enabled ', changed, ' consumer', IF(changed = 1, '', 's')) AS summary;
END

-- procedure ps_setup_enable_instrument
CREATE PROCEDURE ps_setup_enable_instrument (IN in_pattern VARCHAR(128))
    COMMENT 'Switches the instruments on whose names contain a text'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE changed BIGINT;
    UPDATE performance_schema.setup_instruments SET enabled = 'YES', timed = 'YES' WHERE name LIKE CONCAT('%', in_pattern, '%');
    SET changed = ROW_COUNT();
    SELECT CONCAT('Enabled ', changed, ' instrument', IF(changed = 1, '', 's')) AS summary;
END

-- procedure ps_setup_enable_thread
CREATE PROCEDURE ps_setup_enable_thread (IN in_connection_id BIGINT)
    COMMENT 'Switches recording on for the thread of a connection'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE changed BIGINT;
    UPDATE performance_schema.threads SET instrumented = 'YES' WHERE processlist_id = in_connection_id;
    SET changed = ROW_COUNT();
    SELECT CONCAT('Enabled ', changed, ' thread', IF(changed = 1, '', 's')) AS summary;
END

-- procedure ps_setup_reload_saved
CREATE PROCEDURE ps_setup_reload_saved ()
    COMMENT 'Brings accounts, consumers and instruments back to what ps_setup_save() found in this session'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    IF @sys.saved_consumers IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'Nothing was saved: call sys.ps_setup_save() first';
    END IF;
    DELETE FROM performance_schema.setup_actors;
    INSERT INTO performance_schema.setup_actors
        SELECT a.host, a.user, a.role, a.enabled, a.history FROM JSON_TABLE(@sys.saved_actors, '$[*]'
            COLUMNS (host VARCHAR(255) PATH '$[0]', user VARCHAR(32) PATH '$[1]', role VARCHAR(32) PATH '$[2]',
                enabled VARCHAR(3) PATH '$[3]', history VARCHAR(3) PATH '$[4]')) AS a;
    UPDATE performance_schema.setup_consumers
        SET enabled = JSON_UNQUOTE(JSON_EXTRACT(@sys.saved_consumers, CONCAT('$."', name, '"')))
        WHERE JSON_EXTRACT(@sys.saved_consumers, CONCAT('$."', name, '"')) IS NOT NULL;
    UPDATE performance_schema.setup_instruments
        SET enabled = JSON_UNQUOTE(JSON_EXTRACT(@sys.saved_instruments, CONCAT('$."', name, '"')))
        WHERE JSON_EXTRACT(@sys.saved_instruments, CONCAT('$."', name, '"')) IS NOT NULL;
    SET @sys.saved_actors = NULL, @sys.saved_consumers = NULL, @sys.saved_instruments = NULL;
    DO RELEASE_LOCK('sys.ps_setup_save');
END

-- procedure ps_setup_reset_to_default
CREATE PROCEDURE ps_setup_reset_to_default (IN in_verbose BOOLEAN)
    COMMENT 'Brings accounts, consumers and instruments to what they are in a server that nobody configured'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    IF in_verbose THEN SELECT 'Resetting: setup_actors' AS status; END IF;
    DELETE FROM performance_schema.setup_actors;
    INSERT INTO performance_schema.setup_actors VALUES ('%', '%', '%', 'YES', 'YES');
    IF in_verbose THEN SELECT 'Resetting: setup_consumers' AS status; END IF;
    UPDATE performance_schema.setup_consumers
        SET enabled = IF(name IN ('events_statements_current', 'global_instrumentation', 'thread_instrumentation'), 'YES', 'NO');
    IF in_verbose THEN SELECT 'Resetting: setup_instruments' AS status; END IF;
    UPDATE performance_schema.setup_instruments SET enabled = 'NO' WHERE name = 'wait/io/table/sql/handler';
END

-- procedure ps_setup_save
CREATE PROCEDURE ps_setup_save (IN in_timeout INT)
    COMMENT 'Notes in this session which accounts, consumers and instruments are on; one session at a time'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    IF NOT IFNULL(GET_LOCK('sys.ps_setup_save', in_timeout), FALSE) THEN
        SIGNAL SQLSTATE VALUE '90000' SET MESSAGE_TEXT = 'Could not lock the sys.ps_setup_save user lock, another thread has a saved configuration';
    END IF;
    SET @sys.saved_actors = (SELECT JSON_ARRAYAGG(JSON_ARRAY(host, user, role, enabled, history)) FROM performance_schema.setup_actors);
    SET @sys.saved_consumers = (SELECT JSON_OBJECTAGG(name, enabled) FROM performance_schema.setup_consumers);
    SET @sys.saved_instruments = (SELECT JSON_OBJECTAGG(name, enabled) FROM performance_schema.setup_instruments);
END

-- procedure ps_setup_show_disabled
CREATE PROCEDURE ps_setup_show_disabled (IN in_show_instruments BOOLEAN, IN in_show_threads BOOLEAN)
    COMMENT 'Shows what is not recorded'
    READS SQL DATA SQL SECURITY INVOKER
BEGIN
    SELECT @@performance_schema AS performance_schema_enabled;
    SELECT CONCAT('\'', host, '\'@\'', user, '\'') AS disabled_users
        FROM performance_schema.setup_actors WHERE enabled = 'NO' ORDER BY disabled_users;
    SELECT object_type, CONCAT(object_schema, '.', object_name) AS objects, enabled, timed
        FROM performance_schema.setup_objects WHERE enabled = 'NO' ORDER BY object_type, objects;
    CALL sys.ps_setup_show_disabled_consumers();
    IF in_show_threads THEN
        SELECT IF(name = 'thread/sql/one_connection', CONCAT(processlist_user, '@', processlist_host), REPLACE(name, 'thread/', '')) AS disabled_threads,
            type AS thread_type
            FROM performance_schema.threads WHERE instrumented = 'NO' ORDER BY disabled_threads;
    END IF;
    IF in_show_instruments THEN CALL sys.ps_setup_show_disabled_instruments(); END IF;
END

-- procedure ps_setup_show_disabled_consumers
CREATE PROCEDURE ps_setup_show_disabled_consumers ()
    COMMENT 'Shows the consumers that are off'
    READS SQL DATA SQL SECURITY INVOKER
BEGIN
    SELECT name AS disabled_consumers FROM performance_schema.setup_consumers WHERE enabled = 'NO' ORDER BY disabled_consumers;
END

-- procedure ps_setup_show_disabled_instruments
CREATE PROCEDURE ps_setup_show_disabled_instruments ()
    COMMENT 'Shows the instruments that are off'
    READS SQL DATA SQL SECURITY INVOKER
BEGIN
    SELECT name AS disabled_instruments, timed FROM performance_schema.setup_instruments WHERE enabled = 'NO' ORDER BY disabled_instruments;
END

-- procedure ps_setup_show_enabled
CREATE PROCEDURE ps_setup_show_enabled (IN in_show_instruments BOOLEAN, IN in_show_threads BOOLEAN)
    COMMENT 'Shows what is recorded'
    READS SQL DATA SQL SECURITY INVOKER
BEGIN
    SELECT @@performance_schema AS performance_schema_enabled;
    SELECT CONCAT('\'', host, '\'@\'', user, '\'') AS enabled_users
        FROM performance_schema.setup_actors WHERE enabled = 'YES' ORDER BY enabled_users;
    SELECT object_type, CONCAT(object_schema, '.', object_name) AS objects, enabled, timed
        FROM performance_schema.setup_objects WHERE enabled = 'YES' ORDER BY object_type, objects;
    CALL sys.ps_setup_show_enabled_consumers();
    IF in_show_threads THEN
        SELECT IF(name = 'thread/sql/one_connection', CONCAT(processlist_user, '@', processlist_host), REPLACE(name, 'thread/', '')) AS enabled_threads,
            type AS thread_type
            FROM performance_schema.threads WHERE instrumented = 'YES' ORDER BY enabled_threads;
    END IF;
    IF in_show_instruments THEN CALL sys.ps_setup_show_enabled_instruments(); END IF;
END

-- procedure ps_setup_show_enabled_consumers
CREATE PROCEDURE ps_setup_show_enabled_consumers ()
    COMMENT 'Shows the consumers that are on'
    READS SQL DATA SQL SECURITY INVOKER
BEGIN
    SELECT name AS enabled_consumers FROM performance_schema.setup_consumers WHERE enabled = 'YES' ORDER BY enabled_consumers;
END

-- procedure ps_setup_show_enabled_instruments
CREATE PROCEDURE ps_setup_show_enabled_instruments ()
    COMMENT 'Shows the instruments that are on'
    READS SQL DATA SQL SECURITY INVOKER
BEGIN
    SELECT name AS enabled_instruments, timed FROM performance_schema.setup_instruments WHERE enabled = 'YES' ORDER BY enabled_instruments;
END

-- procedure ps_statement_avg_latency_histogram
CREATE PROCEDURE ps_statement_avg_latency_histogram ()
    COMMENT 'Draws how the average times of statement digests are spread'
    READS SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE buckets INT DEFAULT 16;
    DECLARE at INT DEFAULT 0;
    DECLARE least, most, width DOUBLE;
    DECLARE digests, here, units BIGINT;
    DECLARE symbol CHAR(1);
    DECLARE drawn TEXT DEFAULT '\n\n  . = 1 unit\n  * = 2 units\n  # = 3 units\n\n';
    SELECT COUNT(*), IFNULL(MIN(avg_timer_wait), 0) / 1e9, IFNULL(MAX(avg_timer_wait), 0) / 1e9 INTO digests, least, most
        FROM performance_schema.events_statements_summary_by_digest;
    SET width = GREATEST((most - least) / buckets, 0.001);
    WHILE at < buckets DO
        SELECT COUNT(*) INTO here FROM performance_schema.events_statements_summary_by_digest
            WHERE LEAST(FLOOR((avg_timer_wait / 1e9 - least) / width), buckets - 1) = at;
        SET units = CASE WHEN here <= 30 THEN 1 WHEN here <= 60 THEN 2 ELSE 3 END;
        SET symbol = ELT(units, '.', '*', '#');
        SET drawn = CONCAT(drawn, RPAD(CONCAT('(', ROUND(least + at * width), ' - ', ROUND(least + (at + 1) * width), 'ms)'), 14, ' '),
            RPAD(here, 5, ' '), '| ', REPEAT(symbol, LEAST(CEIL(here / units), 100)), '\n');
        SET at = at + 1;
    END WHILE;
    SELECT CONCAT(drawn, '\n  Total Statements: ', digests, '; Buckets: ', buckets, '; Bucket Size: ', ROUND(width), ' ms;\n')
        AS `Performance Schema Statement Digest Average Latency Histogram`;
END

-- procedure ps_trace_statement_digest
CREATE PROCEDURE ps_trace_statement_digest (IN in_digest VARCHAR(64), IN in_runtime INT, IN in_interval DECIMAL(2,2), IN in_start_fresh BOOLEAN, IN in_auto_enable BOOLEAN)
    COMMENT 'Collects the executions of a digest for some seconds, and shows their sums, the longest one with its stages, and its plan'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE is_explained BOOLEAN DEFAULT TRUE;
    DECLARE until_time DATETIME(6);
    DECLARE longest_text LONGTEXT;
    DECLARE longest_schema VARCHAR(64);
    DECLARE longest_start, longest_end, longest_thread BIGINT UNSIGNED;
    IF in_auto_enable THEN
        SET @sys.traced_consumers = (SELECT JSON_OBJECTAGG(name, enabled) FROM performance_schema.setup_consumers);
        UPDATE performance_schema.setup_consumers SET enabled = 'YES'
            WHERE name IN ('events_statements_history_long', 'events_stages_history_long', 'events_statements_current', 'statements_digest');
    END IF;
    IF in_start_fresh THEN
        TRUNCATE TABLE performance_schema.events_statements_history_long;
        TRUNCATE TABLE performance_schema.events_stages_history_long;
    END IF;
    SET until_time = NOW(6) + INTERVAL in_runtime SECOND;
    WHILE NOW(6) < until_time DO
        DO SLEEP(GREATEST(in_interval, 0.01));
    END WHILE;
    SELECT 'SUMMARY STATISTICS' AS `SUMMARY STATISTICS`;
    SELECT COUNT(*) AS executions, format_pico_time(SUM(timer_wait)) AS exec_time, format_pico_time(SUM(lock_time)) AS lock_time,
        SUM(rows_sent) AS rows_sent, SUM(rows_affected) AS rows_affected, SUM(rows_examined) AS rows_examined,
        SUM(created_tmp_tables) AS tmp_tables, SUM(no_index_used) AS full_scans
        FROM performance_schema.events_statements_history_long WHERE digest = in_digest;
    SELECT g.event_name AS event_name, COUNT(*) AS count, format_pico_time(SUM(g.timer_wait)) AS latency
        FROM performance_schema.events_stages_history_long AS g
        JOIN performance_schema.events_statements_history_long AS s
            ON s.thread_id = g.thread_id AND g.timer_start >= s.timer_start AND g.timer_start <= s.timer_end
        WHERE s.digest = in_digest GROUP BY g.event_name ORDER BY SUM(g.timer_wait) DESC;
    SELECT sql_text, current_schema, timer_start, timer_end, thread_id INTO longest_text, longest_schema, longest_start, longest_end, longest_thread
        FROM performance_schema.events_statements_history_long WHERE digest = in_digest ORDER BY timer_wait DESC LIMIT 1;
    SELECT 'LONGEST RUNNING STATEMENT' AS `LONGEST RUNNING STATEMENT`;
    SELECT thread_id AS thread_id, format_pico_time(timer_wait) AS exec_time, format_pico_time(lock_time) AS lock_time, rows_sent AS rows_sent,
        rows_affected AS rows_affected, rows_examined AS rows_examined, created_tmp_tables AS tmp_tables, no_index_used AS full_scan
        FROM performance_schema.events_statements_history_long WHERE digest = in_digest ORDER BY timer_wait DESC LIMIT 1;
    SELECT sql_text AS sql_text FROM performance_schema.events_statements_history_long WHERE digest = in_digest ORDER BY timer_wait DESC LIMIT 1;
    SELECT g.event_name AS event_name, format_pico_time(g.timer_wait) AS latency
        FROM performance_schema.events_stages_history_long AS g
        WHERE g.thread_id = longest_thread AND g.timer_start >= longest_start AND g.timer_start <= longest_end ORDER BY g.timer_start;
    IF longest_text IS NOT NULL THEN
        BEGIN
            DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET is_explained = FALSE;
            SET @sys.explained = CONCAT('EXPLAIN FORMAT=TRADITIONAL ', longest_text);
            PREPARE sys_explained FROM @sys.explained;
            IF is_explained THEN
                EXECUTE sys_explained;
                DEALLOCATE PREPARE sys_explained;
            END IF;
        END;
        SET @sys.explained = NULL;
    END IF;
    IF in_auto_enable THEN
        UPDATE performance_schema.setup_consumers
            SET enabled = JSON_UNQUOTE(JSON_EXTRACT(@sys.traced_consumers, CONCAT('$."', name, '"')));
        SET @sys.traced_consumers = NULL;
    END IF;
END

-- procedure ps_trace_thread
CREATE PROCEDURE ps_trace_thread (IN in_thread_id BIGINT UNSIGNED, IN in_outfile VARCHAR(255), IN in_max_runtime DECIMAL(20,2), IN in_interval DECIMAL(20,2), IN in_start_fresh BOOLEAN, IN in_auto_setup BOOLEAN, IN in_debug BOOLEAN)
    COMMENT 'Collects the statements and stages of a thread for some seconds, and writes them into a file as a graph in the language DOT'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE step, runtime DECIMAL(20,2);
    DECLARE until_time DATETIME(6);
    DECLARE graph, edges LONGTEXT;
    SET runtime = IFNULL(in_max_runtime, 60), step = GREATEST(IFNULL(in_interval, 1), 0.01);
    CALL sys.ps_setup_disable_thread(CONNECTION_ID());
    IF in_auto_setup THEN
        SET @sys.traced_consumers = (SELECT JSON_OBJECTAGG(name, enabled) FROM performance_schema.setup_consumers),
            @sys.traced_threads = (SELECT JSON_OBJECTAGG(thread_id, instrumented) FROM performance_schema.threads);
        UPDATE performance_schema.threads SET instrumented = IF(thread_id = in_thread_id, 'YES', 'NO');
        UPDATE performance_schema.setup_consumers SET enabled = 'YES'
            WHERE name LIKE 'events_statements_history%' OR name LIKE 'events_stages_history%' OR name LIKE '%instrumentation';
    END IF;
    IF in_start_fresh THEN
        TRUNCATE TABLE performance_schema.events_statements_history_long;
        TRUNCATE TABLE performance_schema.events_stages_history_long;
    END IF;
    SELECT CONCAT('Data collection starting for THREAD_ID = ', in_thread_id) AS Info;
    SET until_time = NOW(6) + INTERVAL runtime SECOND;
    WHILE SYSDATE(6) < until_time AND EXISTS (SELECT 1 FROM performance_schema.threads WHERE thread_id = in_thread_id) DO
        DO SLEEP(step);
    END WHILE;
    SET SESSION group_concat_max_len = 4294967295;
    SELECT GROUP_CONCAT('  s', event_id, ' [label=', JSON_QUOTE(CONCAT(event_name, IF(in_debug, CONCAT('\n', IFNULL(source, '')), ''), '\n',
            LEFT(IFNULL(sql_text, ''), 64), '\n', format_pico_time(timer_wait))), '];\n' ORDER BY event_id SEPARATOR '') INTO graph
        FROM performance_schema.events_statements_history_long WHERE thread_id = in_thread_id;
    SELECT GROUP_CONCAT('  g', g.event_id, ' [label=', JSON_QUOTE(CONCAT(g.event_name, '\n', format_pico_time(g.timer_wait))), ' shape=box];\n',
            '  s', s.event_id, ' -> g', g.event_id, ';\n' ORDER BY g.event_id SEPARATOR '') INTO edges
        FROM performance_schema.events_stages_history_long AS g
        JOIN performance_schema.events_statements_history_long AS s
            ON s.thread_id = g.thread_id AND g.timer_start >= s.timer_start AND g.timer_end <= s.timer_end
        WHERE g.thread_id = in_thread_id;
    SET @sys.traced = CONCAT('digraph events {\n  rankdir=LR;\n', IFNULL(graph, ''), IFNULL(edges, ''), '}\n');
    CALL sys.execute_prepared_stmt(CONCAT('SELECT @sys.traced INTO OUTFILE ', QUOTE(in_outfile), ' FIELDS ESCAPED BY \'\' LINES TERMINATED BY \'\''));
    SELECT CONCAT('Stack trace written to ', in_outfile) AS Info;
    SELECT CONCAT('dot -Tpdf -o /tmp/stack_', in_thread_id, '.pdf ', in_outfile) AS `Convert to PDF`;
    SELECT CONCAT('dot -Tpng -o /tmp/stack_', in_thread_id, '.png ', in_outfile) AS `Convert to PNG`;
    IF in_auto_setup THEN
        UPDATE performance_schema.setup_consumers
            SET enabled = JSON_UNQUOTE(JSON_EXTRACT(@sys.traced_consumers, CONCAT('$."', name, '"')))
            WHERE JSON_EXTRACT(@sys.traced_consumers, CONCAT('$."', name, '"')) IS NOT NULL;
        UPDATE performance_schema.threads
            SET instrumented = IFNULL(JSON_UNQUOTE(JSON_EXTRACT(@sys.traced_threads, CONCAT('$."', thread_id, '"'))), 'YES');
        SET @sys.traced_consumers = NULL, @sys.traced_threads = NULL;
    END IF;
    SET @sys.traced = NULL;
    CALL sys.ps_setup_enable_thread(CONNECTION_ID());
END

-- procedure ps_truncate_all_tables
CREATE PROCEDURE ps_truncate_all_tables (IN in_verbose BOOLEAN)
    COMMENT 'Empties the summaries and histories of performance_schema that can be emptied'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE is_done BOOLEAN DEFAULT FALSE;
    DECLARE is_refused BOOLEAN;
    DECLARE emptied INT DEFAULT 0;
    DECLARE name VARCHAR(64);
    DECLARE names CURSOR FOR
        SELECT table_name FROM information_schema.tables
        WHERE table_schema = 'performance_schema' AND (table_name LIKE '%summary%' OR table_name LIKE '%history%')
        ORDER BY table_name;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET is_done = TRUE;
    OPEN names;
    each_table: LOOP
        FETCH names INTO name;
        IF is_done THEN LEAVE each_table; END IF;
        SET is_refused = FALSE;
        BEGIN
            DECLARE CONTINUE HANDLER FOR 1044, 1142, 1146, 1683 SET is_refused = TRUE;
            SET @sys.truncate = CONCAT('TRUNCATE TABLE performance_schema.', name);
            PREPARE sys_truncate FROM @sys.truncate;
            EXECUTE sys_truncate;
            DEALLOCATE PREPARE sys_truncate;
        END;
        IF NOT is_refused THEN
            IF in_verbose THEN SELECT CONCAT('Running: TRUNCATE TABLE performance_schema.', name) AS status; END IF;
            SET emptied = emptied + 1;
        END IF;
    END LOOP;
    CLOSE names;
    SET @sys.truncate = NULL;
    SELECT CONCAT('Truncated ', emptied, ' table', IF(emptied = 1, '', 's')) AS summary;
END

-- procedure revoke_schema_privileges_from_all_accounts_except
CREATE PROCEDURE revoke_schema_privileges_from_all_accounts_except (IN in_schema_name CHAR(255), IN in_privileges JSON, IN in_exclude_users JSON)
    COMMENT 'Revokes privileges on a schema from all accounts that have them, but those of a list'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE is_done BOOLEAN DEFAULT FALSE;
    DECLARE account VARCHAR(292);
    DECLARE privilege VARCHAR(64);
    DECLARE granted CURSOR FOR
        SELECT grantee, privilege_type FROM information_schema.schema_privileges
        WHERE table_schema = in_schema_name
            AND JSON_CONTAINS(UPPER(in_privileges), JSON_QUOTE(UPPER(privilege_type)))
            AND NOT IFNULL(JSON_CONTAINS(in_exclude_users, JSON_QUOTE(grantee)), FALSE)
        ORDER BY grantee, privilege_type;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET is_done = TRUE;
    IF NOT EXISTS (SELECT 1 FROM information_schema.schemata WHERE schema_name = in_schema_name) THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'The schema does not exist';
    END IF;
    OPEN granted;
    each_grant: LOOP
        FETCH granted INTO account, privilege;
        IF is_done THEN LEAVE each_grant; END IF;
        CALL sys.execute_prepared_stmt(CONCAT('REVOKE ', privilege, ' ON ', sys.quote_identifier(in_schema_name), '.* FROM ', account));
    END LOOP;
    CLOSE granted;
END

-- procedure statement_performance_analyzer
CREATE PROCEDURE statement_performance_analyzer (IN in_action ENUM('snapshot', 'overall', 'delta', 'create_table', 'create_tmp', 'save', 'cleanup'), IN in_table VARCHAR(129), IN in_views SET('with_runtimes_in_95th_percentile', 'analysis', 'with_errors_or_warnings', 'with_full_table_scans', 'with_sorting', 'with_temp_tables', 'custom'))
    COMMENT 'Reports of statements by digest: of all, of a snapshot, or of what happened between two'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE base VARCHAR(80) DEFAULT 'performance_schema.events_statements_summary_by_digest';
    DECLARE target, message VARCHAR(300);
    DECLARE shape, fields, differences, source, custom LONGTEXT;
    DECLARE row_limit BIGINT UNSIGNED DEFAULT IFNULL(@sys.statement_performance_analyzer.limit, sys.sys_get_config('statement_performance_analyzer.limit', '100'));
    DECLARE at INT DEFAULT 1;
    DECLARE report, view_name, title VARCHAR(64);
    DECLARE text_limit BIGINT UNSIGNED DEFAULT @@SESSION.group_concat_max_len;
    SET SESSION group_concat_max_len = 65536;
    -- The snapshot is kept as JSON: how to read it as a table, how to write it, and how to subtract an older one.
    SELECT GROUP_CONCAT(column_name, ' ', column_type, ' PATH \'$.', column_name, '\'' ORDER BY ordinal_position),
        GROUP_CONCAT('\'', column_name, '\', ', column_name ORDER BY ordinal_position),
        GROUP_CONCAT(CASE
            WHEN column_name = 'COUNT_STAR' OR column_name LIKE 'SUM\\_%' THEN CONCAT('s.', column_name, ' - IFNULL(b.', column_name, ', 0)')
            WHEN column_name = 'AVG_TIMER_WAIT' THEN '(s.SUM_TIMER_WAIT - IFNULL(b.SUM_TIMER_WAIT, 0)) DIV (s.COUNT_STAR - IFNULL(b.COUNT_STAR, 0))'
            ELSE CONCAT('s.', column_name) END, ' AS ', column_name ORDER BY ordinal_position)
        INTO shape, fields, differences
        FROM information_schema.columns WHERE table_schema = 'performance_schema' AND table_name = 'events_statements_summary_by_digest';
    SET SESSION group_concat_max_len = text_limit;
    SET shape = CONCAT('JSON_TABLE(@sys.tmp_digests, \'$[*]\' COLUMNS (', shape, '))');
    IF in_table IS NOT NULL AND in_table <> 'NOW()' THEN
        SET target = IF(LOCATE('.', in_table) > 0,
            CONCAT(sys.quote_identifier(SUBSTRING_INDEX(in_table, '.', 1)), '.', sys.quote_identifier(SUBSTRING(in_table, LOCATE('.', in_table) + 1))),
            CONCAT(sys.quote_identifier(DATABASE()), '.', sys.quote_identifier(in_table)));
    END IF;
    IF in_action IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'Unknown action. Supported actions are: cleanup, create_table, create_tmp, delta, overall, save, snapshot';
    END IF;
    IF target IS NULL AND in_action IN ('create_table', 'create_tmp', 'save', 'delta') THEN
        SET message = CONCAT('The ', in_action, ' action requires in_table to be ', IF(in_action LIKE 'create%', 'a name.', 'an existing table.'));
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = message;
    END IF;
    IF target IS NOT NULL AND in_action NOT LIKE 'create%' THEN
        BEGIN
            DECLARE EXIT HANDLER FOR 1046, 1049, 1146
            BEGIN
                SET message = CONCAT('The ', in_action, ' action requires in_table to be ', IF(in_action = 'overall', 'NULL, NOW() or specify ', ''), 'an existing table. The table ', target, ' does not exist.');
                SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = message;
            END;
            CALL sys.execute_prepared_stmt(CONCAT('DO (SELECT COUNT(*) FROM ', target, ' WHERE FALSE)'));
        END;
    END IF;
    IF in_action = 'cleanup' THEN
        SET @sys.tmp_digests = NULL;
    ELSEIF in_action LIKE 'create%' THEN
        CALL sys.execute_prepared_stmt(CONCAT('CREATE ', IF(in_action = 'create_tmp', 'TEMPORARY ', ''), 'TABLE ', target, ' AS SELECT * FROM ', base, ' WHERE FALSE'));
    ELSEIF in_action = 'snapshot' OR in_action = 'overall' AND in_table = 'NOW()' OR @sys.tmp_digests IS NULL AND NOT (in_action = 'overall' AND target IS NOT NULL) THEN
        CALL sys.execute_prepared_stmt(CONCAT('SELECT IFNULL(JSON_ARRAYAGG(JSON_OBJECT(', fields, ')), JSON_ARRAY()) INTO @sys.tmp_digests FROM ',
            IF(in_action = 'snapshot', IFNULL(target, base), base)));
    END IF;
    IF in_action = 'save' THEN
        CALL sys.execute_prepared_stmt(CONCAT('DELETE FROM ', target));
        CALL sys.execute_prepared_stmt(CONCAT('INSERT INTO ', target, ' SELECT * FROM ', shape, ' AS digests'));
    ELSEIF in_action IN ('overall', 'delta') THEN
        SET source = CASE
            WHEN in_action = 'delta' THEN CONCAT('(SELECT ', differences, ' FROM ', shape, ' AS s LEFT JOIN ', target,
                ' AS b ON s.DIGEST <=> b.DIGEST AND s.SCHEMA_NAME <=> b.SCHEMA_NAME WHERE s.COUNT_STAR > IFNULL(b.COUNT_STAR, 0))')
            WHEN target IS NOT NULL THEN CONCAT('(SELECT * FROM ', target, ')')
            ELSE CONCAT('(SELECT * FROM ', shape, ' AS j)') END;
        SET in_views = IFNULL(in_views, 'with_runtimes_in_95th_percentile,analysis,with_errors_or_warnings,with_full_table_scans,with_sorting,with_temp_tables');
        WHILE at <= 7 DO
            SET report = ELT(at, 'with_runtimes_in_95th_percentile', 'analysis', 'with_errors_or_warnings', 'with_full_table_scans', 'with_sorting', 'with_temp_tables', 'custom'),
                title = ELT(at, 'Queries with Runtime in 95th Percentile', 'Queries Ordered by Total Latency', 'Queries with Errors', 'Queries with Full Table Scan', 'Queries with Sorting', 'Queries with Internal Temporary Tables', 'Queries Using Custom View');
            IF FIND_IN_SET(report, in_views) THEN
                SET view_name = IF(report = 'analysis', 'statement_analysis', CONCAT('statements_', report)), custom = NULL;
                IF report = 'custom' THEN
                    SET custom = @sys.statement_performance_analyzer.view;
                    IF custom IS NULL THEN
                        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'The @sys.statement_performance_analyzer.view user variable must be set with the view or query to use.';
                    END IF;
                    IF LOCATE(' ', custom) = 0 THEN
                        SET custom = (SELECT view_definition FROM information_schema.views
                            WHERE table_schema = IF(LOCATE('.', custom) > 0, SUBSTRING_INDEX(custom, '.', 1), DATABASE()) AND table_name = SUBSTRING_INDEX(custom, '.', -1));
                    END IF;
                ELSE
                    SET custom = (SELECT view_definition FROM information_schema.views WHERE table_schema = 'sys' AND table_name = view_name);
                END IF;
                SET custom = REPLACE(custom, '`performance_schema`.`events_statements_summary_by_digest`', base);
                IF at = 1 THEN
                    SET custom = CONCAT(SUBSTRING_INDEX(custom, 'FROM performance_schema', 1), 'FROM (SELECT digests.*, CUME_DIST() OVER (ORDER BY ROUND(avg_timer_wait / 1000000)) AS share FROM ',
                        source, ' AS digests) AS d WHERE d.share > 0.95 ORDER BY d.avg_timer_wait DESC');
                ELSE
                    SET custom = REPLACE(custom, base, CONCAT(source, IF(LOCATE(CONCAT(base, ' AS '), custom) > 0 OR LOCATE(CONCAT(base, ' `'), custom) > 0, '', ' AS digests')));
                END IF;
                SELECT CONCAT(IF(at > 1 AND row_limit > 0, CONCAT('Top ', row_limit, ' '), ''), title) AS `Next Output`;
                CALL sys.execute_prepared_stmt(CONCAT(custom, IF(at > 1 AND row_limit > 0, CONCAT(' LIMIT ', row_limit), '')));
            END IF;
            SET at = at + 1;
        END WHILE;
    END IF;
END

-- procedure table_exists
CREATE PROCEDURE table_exists (IN in_db VARCHAR(64), IN in_table VARCHAR(64), OUT out_exists ENUM('', 'BASE TABLE', 'VIEW', 'TEMPORARY'))
    COMMENT 'Says what kind of table a name is, if it is one'
    READS SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE can_be_read BOOLEAN DEFAULT TRUE;
    DECLARE kind VARCHAR(64);
    SET kind = (SELECT table_type FROM information_schema.tables WHERE table_schema = in_db AND table_name = in_table LIMIT 1);
    IF kind IS NULL THEN
        BEGIN
            DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET can_be_read = FALSE;
            SET @sys.table_exists.sql = CONCAT('SELECT 1 FROM ', sys.quote_identifier(in_db), '.', sys.quote_identifier(in_table), ' LIMIT 0 INTO @sys.table_exists.row');
            PREPARE sys_table_exists FROM @sys.table_exists.sql;
            DEALLOCATE PREPARE sys_table_exists;
        END;
        SET @sys.table_exists.sql = NULL;
        SET kind = IF(can_be_read, 'TEMPORARY', '');
    END IF;
    SET out_exists = CASE kind WHEN 'SYSTEM VIEW' THEN 'VIEW' ELSE kind END;
END
