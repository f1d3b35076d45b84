// What every client must be able to do, through mysql2.
'use strict';
const assert = require('assert');
const fs = require('fs');
const mysql = require('mysql2/promise');

const base = { host: '127.0.0.1', port: +process.env.PORT, user: 'root', password: process.env.PASSWORD, supportBigNumbers: true, bigNumberStrings: true };
const tls = { ca: fs.readFileSync(process.env.CA), rejectUnauthorized: false };

async function scenario(options) {
  const connection = await mysql.createConnection({ ...base, database: 'clients_node', ...options });
  await connection.query('DROP TABLE IF EXISTS t');
  await connection.query("CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, d DECIMAL(65,30), s VARCHAR(50), b LONGBLOB, j JSON, at DATETIME(6), z INT)");
  const blob = Buffer.alloc(17_000_000, 0xab);
  for (const method of ['query', 'execute']) {
    await connection[method]('DELETE FROM t');
    await connection[method]('INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)', ['18446744073709551615', '1.5', '☃💩', blob, '{"a": [1]}', '2026-11-21 01:02:03.456789', null]);
    const [rows, fields] = await connection[method]('SELECT id, d, s, b, j, CAST(at AS CHAR) AS at, z FROM t WHERE s = ?', ['☃💩']);
    assert.strictEqual(rows[0].id, '18446744073709551615');
    assert.strictEqual(rows[0].d, '1.500000000000000000000000000000');
    assert.strictEqual(rows[0].s, '☃💩');
    assert.ok(blob.equals(rows[0].b));
    assert.deepStrictEqual(rows[0].j, { a: [1] });
    assert.strictEqual(rows[0].at, '2026-11-21 01:02:03.456789');
    assert.strictEqual(rows[0].z, null);
    assert.strictEqual(fields[0].table, 't');
  }
  await connection.beginTransaction();
  await connection.query('UPDATE t SET z = 5');
  await connection.rollback();
  const [[row]] = await connection.query('SELECT z FROM t');
  assert.strictEqual(row.z, null);
  await assert.rejects(connection.query('SELECT * FROM nowhere'), { errno: 1146, sqlState: '42S02' });
  await connection.changeUser({ database: 'clients_node' });
  await connection.ping();
  await connection.end();
}

(async () => {
  const admin = await mysql.createConnection({ ...base, multipleStatements: true });
  const [results] = await admin.query('DROP DATABASE IF EXISTS clients_node; CREATE DATABASE clients_node; SELECT 7 AS seven');
  assert.equal(results[2][0].seven, 7);
  await scenario({});
  await scenario({ ssl: tls });
  await scenario({ compress: true });
  await admin.query('DROP DATABASE clients_node');
  await admin.end();
  console.log('  mysql2: text, prepared, TLS, compression, transactions, errors, change user');
})().catch((error) => { console.error(error); process.exit(1); });
