-- One column of each type, changed in each way. `id` is the key by which readers find a row again.
CREATE DATABASE read_by_others;
USE read_by_others;
SET time_zone = '+00:00', sql_mode = 'NO_ENGINE_SUBSTITUTION,ALLOW_INVALID_DATES';
CREATE TABLE numbers (
    id INT PRIMARY KEY, t TINYINT, tu TINYINT UNSIGNED, s SMALLINT, su SMALLINT UNSIGNED, m MEDIUMINT, mu MEDIUMINT UNSIGNED,
    i INT, iu INT UNSIGNED, b BIGINT, bu BIGINT UNSIGNED, f FLOAT, d DOUBLE, n DECIMAL(30,10), nu DECIMAL(65,0), n5 DECIMAL(5,5),
    o BOOLEAN, bits1 BIT(1), bits12 BIT(12), bits64 BIT(64), y YEAR);
INSERT INTO numbers VALUES
    (1, -128, 255, -32768, 65535, -8388608, 16777215, -2147483648, 4294967295, -9223372036854775808, 18446744073709551615,
     1.5, -2.2250738585072014e-308, -12345678901234567890.0123456789, 99999999999999999999999999999999999999999999999999999999999999999,
     -0.99999, TRUE, b'1', b'101010101010', b'1111111111111111111111111111111111111111111111111111111111111111', 2155),
    (2, 127, 0, 32767, 0, 8388607, 0, 2147483647, 0, 9223372036854775807, 0, -0.1, 1.7976931348623157e308, 0.0000000001, 0, 0.00001, FALSE,
     b'0', b'0', b'1', 1901),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE texts (
    id INT PRIMARY KEY, c CHAR(10), c255 CHAR(255), v VARCHAR(20), v300 VARCHAR(300), tt TINYTEXT, t TEXT, mt MEDIUMTEXT, lt LONGTEXT,
    b BINARY(4), vb VARBINARY(300), tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB,
    e ENUM('one', 'two', 'drei, "vier"', 'fünf'), st SET('a', 'b', 'c', 'd'));
INSERT INTO texts VALUES
    (1, 'char', REPEAT('ü', 200), 'varchar é', REPEAT('長', 300), 'tiny', 'text 😀', REPEAT('m', 70000), REPEAT('l', 100),
     'ab', X'00FF10', X'00', X'01020300', REPEAT(X'FF', 70000), X'', 'two', 'a,c'),
    (2, '', '', '', '', '', '', '', '', '', '', '', '', '', '', 'fünf', ''),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 'x  ', 'x', ' x ', 'quote '' \\ "', 'a\nb', 'a\tb', 'a\0b', 'z', '\0\0\0\0', X'27', 'a', 'b', 'c', 'd', 'drei, "vier"', 'a,b,c,d');
CREATE TABLE times (
    id INT PRIMARY KEY, d DATE, t TIME, t3 TIME(3), t6 TIME(6), dt DATETIME, dt2 DATETIME(2), dt6 DATETIME(6),
    ts TIMESTAMP NULL, ts1 TIMESTAMP(1) NULL, ts6 TIMESTAMP(6) NULL);
INSERT INTO times VALUES
    (1, '2024-02-29', '12:34:56', '-12:34:56.789', '838:59:58.999999', '2024-02-29 23:59:59', '2024-02-29 23:59:59.12',
     '9999-12-31 23:59:59.123456', '2038-01-19 03:14:07', '2001-02-03 04:05:06.7', '1970-01-01 00:00:01.000001'),
    (2, '1000-01-01', '-838:59:59', '00:00:00.001', '-00:00:00.000001', '1000-01-01 00:00:00', '1999-12-31 00:00:00.01',
     '2000-01-01 00:00:00.000000', '1970-01-01 00:00:01', '1999-12-31 23:59:59.9', '2030-06-30 12:00:00.123450'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE documents (id INT PRIMARY KEY, j JSON, g GEOMETRY, p POINT, x INT AS (id * 2) STORED, vx INT AS (id * 3) VIRTUAL);
INSERT INTO documents (id, j, g, p) VALUES
    (1, '{"a": 1, "b": [true, false, null, "text", 1.5, -1, 18446744073709551615, {"c": {}}], "ü": "😀"}', ST_GeomFromText('LINESTRING(0 0, 1 1)'), POINT(1, 2)),
    (2, '[]', NULL, NULL), (3, NULL, NULL, NULL), (4, '"only a text"', NULL, NULL), (5, '-123456', NULL, NULL), (6, 'null', NULL, NULL),
    (7, JSON_OBJECT('long', REPEAT('x', 70000), 'n', 3), NULL, NULL), (8, JSON_ARRAY(9223372036854775807, 2147483648, -32769, 65536), NULL, NULL);
-- Changes and transactions.
UPDATE numbers SET t = 1, n = n + 1, bits12 = b'11' WHERE id = 2;
UPDATE texts SET v = 'changed', st = 'd', lb = X'0000' WHERE id IN (2, 3);
UPDATE times SET t6 = '01:02:03.040506', ts = ts + INTERVAL 1 SECOND WHERE id = 2;
UPDATE documents SET j = JSON_SET(j, '$.a', 'changed', '$.new', JSON_ARRAY(1, 2)) WHERE id = 1;
BEGIN;
INSERT INTO numbers (id, i) VALUES (10, 10), (11, 11);
UPDATE numbers SET i = i + 1 WHERE id >= 10;
DELETE FROM numbers WHERE id = 11;
UPDATE numbers SET id = 12 WHERE id = 10;
COMMIT;
BEGIN;
INSERT INTO numbers (id) VALUES (100);
ROLLBACK;
-- Another definition between changes.
ALTER TABLE numbers ADD COLUMN late VARCHAR(10) DEFAULT 'late', ADD INDEX (i);
INSERT INTO numbers (id, late) VALUES (20, 'new');
CREATE TABLE gone (id INT PRIMARY KEY);
INSERT INTO gone VALUES (1), (2);
DROP TABLE gone;
CREATE TABLE copied (PRIMARY KEY (id)) AS SELECT id, c, v FROM texts;
TRUNCATE TABLE copied;
INSERT INTO copied VALUES (7, 'c', 'v');
