// What every client must be able to do, through mysql2; a line for each point.
'use strict';
const assert = require('assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const mysql = require('mysql2/promise');

const SCHEMA = 'clients_node';
const base = { host: '127.0.0.1', port: +process.env.PORT, user: 'root', password: process.env.PASSWORD,
  supportBigNumbers: true, bigNumberStrings: true, dateStrings: true, jsonStrings: true };
const tls = { ca: fs.readFileSync(process.env.CA), servername: 'localhost' };
const columns = fs.readFileSync(path.join(__dirname, '../columns.tsv'), 'utf8').trimEnd().split('\n').map((line) => line.split('\t'));

const point = (name) => console.log(`  mysql2: ${name}`);
const skip = (name, reason) => console.log(`  mysql2: SKIPPED ${name}: ${reason}`);

async function login(user, password, more) {
  const connection = await mysql.createConnection({ ...base, user, password, ...more });
  const [[row]] = await connection.query('SELECT CURRENT_USER() AS who');
  assert.ok(row.who.startsWith(`${user}@`), row.who);
  await connection.end();
}

const refused = (promise) => assert.rejects(promise, { errno: 1045 });

async function authentication(admin) {
  const users = 'node_sha2, node_native, node_strict, node_peer@localhost, node_stranger@localhost';
  await admin.query(`DROP USER IF EXISTS ${users}`);
  await admin.query("CREATE USER node_sha2 IDENTIFIED WITH caching_sha2_password BY 'secret'");
  for (const more of [{ ssl: tls }, { ssl: tls }, {}]) {
    await login('node_sha2', 'secret', more);
    await refused(login('node_sha2', 'wrong', more));
  }
  point('caching sha2 password full and fast');
  await admin.query("ALTER USER node_sha2 IDENTIFIED BY 'other secret'");
  await login('node_sha2', 'other secret', {});
  await refused(login('node_sha2', 'wrong', {}));
  point('caching sha2 password with the servers public key');
  await admin.query("CREATE USER node_native IDENTIFIED WITH mysql_native_password BY 'secret'");
  for (const more of [{}, { ssl: tls }]) {
    await login('node_native', 'secret', more);
    await refused(login('node_native', 'wrong', more));
  }
  point('mysql native password');
  await admin.query(`CREATE USER node_peer@localhost IDENTIFIED WITH auth_socket AS '${os.userInfo().username}'`);
  await admin.query("CREATE USER node_stranger@localhost IDENTIFIED WITH auth_socket AS 'nobody else'");
  await login('node_peer', '', { socketPath: process.env.SOCKET });
  await assert.rejects(login('node_peer', '', {}));
  await assert.rejects(login('node_stranger', '', { socketPath: process.env.SOCKET }));
  point('auth socket');
  await admin.query("CREATE USER node_strict IDENTIFIED BY 'secret' REQUIRE SSL");
  await login('node_strict', 'secret', { ssl: tls });
  await refused(login('node_strict', 'secret', {}));
  await assert.rejects(login('root', base.password, { ssl: { rejectUnauthorized: true } }), /certificate/);
  point('tls required and verified');
  await admin.query(`DROP USER ${users}`);
}

function canonical(kind, cell) {
  if (Buffer.isBuffer(cell)) return '0x' + cell.toString('hex');
  return typeof cell === 'number' ? String(cell).replace('e+', 'e') : String(cell);
}

async function everyColumnType(connection, method) {
  const written = (text) => (text.startsWith('0x') ? Buffer.from(text.slice(2), 'hex') : text);
  const names = columns.map((_, i) => `c${i}`).join(', ');
  const marks = columns.map(() => '?').join(', ');
  const body = columns.map(([kind], i) => `c${i} ${kind} NULL`).join(', ');
  await connection.query('DROP TABLE IF EXISTS every_type, large');
  await connection.query(`CREATE TABLE every_type (id INT PRIMARY KEY AUTO_INCREMENT, ${body})`);
  const insert = `INSERT INTO every_type (${names}) VALUES (${marks})`;
  const [result] = await connection[method](insert, columns.map(([, text]) => written(text)));
  assert.deepStrictEqual([Number(result.insertId), result.affectedRows], [1, 1]);
  await connection[method](insert, columns.map(() => null));
  const [rows, fields] = await connection[method](`SELECT ${names} FROM every_type WHERE id > ? ORDER BY id`, [0]);
  columns.forEach(([kind, text], i) => {
    assert.strictEqual(canonical(kind, rows[0][`c${i}`]), text, kind);
    assert.strictEqual(rows[1][`c${i}`], null, kind);
    assert.strictEqual(fields[i].table, 'every_type');
  });
  await connection[method]('UPDATE every_type SET c0 = ? WHERE id = ?', [5, 2]);
  const [deleted] = await connection[method]('DELETE FROM every_type WHERE c0 = ?', [5]);
  assert.strictEqual(deleted.affectedRows, 1);
  const blob = Buffer.alloc(17_000_000, 0xab);
  await connection.query('CREATE TABLE large (body LONGBLOB)');
  await connection[method]('INSERT INTO large VALUES (?)', [blob]);
  const [[large]] = await connection[method]('SELECT body FROM large WHERE LENGTH(body) > ?', [1]);
  assert.ok(blob.equals(large.body));
  await connection.query('DROP TABLE large');
}

async function transactions(connection) {
  await connection.query('DROP TABLE IF EXISTS t');
  await connection.query('CREATE TABLE t (id INT PRIMARY KEY, z INT)');
  await connection.query('INSERT INTO t VALUES (1, NULL)');
  await connection.beginTransaction();
  await connection.query('UPDATE t SET z = 5');
  await connection.rollback();
  const z = async () => (await connection.query('SELECT z FROM t'))[0][0].z;
  assert.strictEqual(await z(), null);
  await connection.beginTransaction();
  await connection.query('UPDATE t SET z = 6');
  await connection.commit();
  assert.strictEqual(await z(), 6);
  point('transactions');
  for (const [sql, errno, sqlState] of [['SELEC 1', 1064, '42000'], ['SELECT * FROM nowhere', 1146, '42S02'],
    ['SELECT nothing FROM t', 1054, '42S22'], ['INSERT INTO t VALUES (1, 1)', 1062, '23000'],
    ["INSERT INTO t VALUES ('x', 1)", 1366, 'HY000']]) {
    await assert.rejects(connection.query(sql), { errno, sqlState });
    await assert.rejects(connection.execute(sql), { errno, sqlState });
  }
  point('errors have numbers');
}

async function kill(admin) {
  const outcomes = [];
  for (const [kill, sql] of [['KILL QUERY', 'SELECT SLEEP(30) AS slept'],
    ['KILL QUERY', 'SELECT SLEEP(30) AS slept FROM (SELECT 1 UNION ALL SELECT 2) AS two'], ['KILL', 'SELECT SLEEP(30) AS slept']]) {
    const victim = await mysql.createConnection(base);
    const stopped = victim.query(sql).then(([rows]) => Number(rows[0].slept), (error) => error.errno || error.code);
    for (let running = 0; !running;) {
      [[{ running }]] = await admin.query("SELECT COUNT(*) AS running FROM information_schema.processlist WHERE id = ? AND info LIKE 'SELECT SLEEP%'", [victim.threadId]);
    }
    // It is listed before it sleeps.
    await new Promise((done) => setTimeout(done, 100));
    await admin.query(`${kill} ${victim.threadId}`);
    outcomes.push(await stopped);
    victim.destroy();
  }
  assert.deepStrictEqual(outcomes, [1, 1317, 'PROTOCOL_CONNECTION_LOST']);
  point('kill from a second connection');
}

(async () => {
  const admin = await mysql.createConnection({ ...base, multipleStatements: true });
  await authentication(admin);
  const [results] = await admin.query(`DROP DATABASE IF EXISTS ${SCHEMA}; CREATE DATABASE ${SCHEMA}; SELECT 7 AS seven`);
  assert.equal(results[2][0].seven, 7);
  point('several statements in one');
  for (const [name, more] of Object.entries({ plain: {}, TLS: { ssl: tls }, compressed: { compress: true } })) {
    const connection = await mysql.createConnection({ ...base, database: SCHEMA, ...more });
    for (const method of ['query', 'execute']) {
      await everyColumnType(connection, method);
      point(`every column type and values over 16 mib, ${method}, ${name}`);
    }
    await connection.end();
  }
  const connection = await mysql.createConnection({ ...base, database: SCHEMA });
  const statement = await connection.prepare('SELECT ? AS number, ? AS text');
  for (let i = 0; i < 50; i++) {
    const [[row]] = await statement.execute([i, '☃']);
    assert.deepStrictEqual([Number(row.number), row.text], [i, '☃']);
  }
  await statement.close();
  point('statements are prepared');
  skip('server side cursors', 'the driver has none; rows are streamed');
  await transactions(connection);
  await kill(admin);
  await connection.changeUser({ database: SCHEMA });
  await connection.ping();
  await connection.end();
  await admin.query(`DROP DATABASE ${SCHEMA}`);
  await admin.end();
  point('change user and ping');
})().catch((error) => { console.error(error); process.exit(1); });
