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

-- procedure ps_setup_reload_saved
CREATE PROCEDURE ps_setup_reload_saved ()
    COMMENT 'Brings consumers and instruments back to what ps_setup_save() found in this session'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    IF @sys.saved_consumers IS NULL THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'Nothing was saved: call sys.ps_setup_save() first';
    END IF;
    UPDATE performance_schema.setup_consumers
        SET enabled = JSON_UNQUOTE(JSON_EXTRACT(@sys.saved_consumers, CONCAT('$."', name, '"')))
        WHERE JSON_EXTRACT(@sys.saved_consumers, CONCAT('$."', name, '"')) IS NOT NULL;
    UPDATE performance_schema.setup_instruments
        SET enabled = JSON_UNQUOTE(JSON_EXTRACT(@sys.saved_instruments, CONCAT('$."', name, '"')))
        WHERE JSON_EXTRACT(@sys.saved_instruments, CONCAT('$."', name, '"')) IS NOT NULL;
    SET @sys.saved_consumers = NULL, @sys.saved_instruments = NULL;
    DO RELEASE_LOCK('sys.ps_setup_save');
END

-- procedure ps_setup_reset_to_default
CREATE PROCEDURE ps_setup_reset_to_default (IN in_verbose BOOLEAN)
    COMMENT 'Brings consumers and instruments to what they are in a server that nobody configured'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    IF in_verbose THEN SELECT 'Resetting: setup_consumers' AS status; END IF;
    UPDATE performance_schema.setup_consumers
        SET enabled = IF(name IN ('events_statements_current', 'global_instrumentation', 'thread_instrumentation'), 'YES', 'NO');
    IF in_verbose THEN SELECT 'Resetting: setup_instruments' AS status; END IF;
    UPDATE performance_schema.setup_instruments SET enabled = 'NO' WHERE name = 'wait/io/table/sql/handler';
END

-- procedure ps_setup_save
CREATE PROCEDURE ps_setup_save (IN in_timeout INT)
    COMMENT 'Notes in this session which consumers and instruments are on; one session at a time'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    IF NOT IFNULL(GET_LOCK('sys.ps_setup_save', in_timeout), FALSE) THEN
        SIGNAL SQLSTATE VALUE '90000' SET MESSAGE_TEXT = 'Could not lock the sys.ps_setup_save user lock, another thread has a saved configuration';
    END IF;
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
