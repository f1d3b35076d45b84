// Starts a squalld with the JSON server for the tests, with data that the tests know.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import mysql from 'mysql2/promise';

const root = join(dirname(fileURLToPath(import.meta.url)), '../../..');

function freePort() {
  return new Promise((done, fail) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    }).on('error', fail);
  });
}

export const HOSTILE = '<img src=x onerror="window.hacked=1"><script>';
const HOSTILE_COLUMN = '"><svg onload=window.hacked=3>';

async function fill(port, password) {
  const link = await mysql.createConnection({ host: '127.0.0.1', port, user: 'root', password, multipleStatements: true });
  const quote = (name) => `\`${name}\``;
  await link.query(`
    CREATE DATABASE shop; USE shop;
    CREATE TABLE customer (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(80) NOT NULL, city VARCHAR(40), joined DATE, KEY (city));
    CREATE TABLE product (id INT PRIMARY KEY AUTO_INCREMENT, title VARCHAR(120) NOT NULL UNIQUE, price DECIMAL(10,2) NOT NULL, details JSON);
    CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, customer_id INT NOT NULL, placed DATETIME NOT NULL, state VARCHAR(20), FOREIGN KEY (customer_id) REFERENCES customer (id));
    CREATE TABLE order_line (order_id INT, product_id INT, quantity INT NOT NULL, PRIMARY KEY (order_id, product_id), FOREIGN KEY (order_id) REFERENCES orders (id), FOREIGN KEY (product_id) REFERENCES product (id));
    CREATE TABLE supplier (id INT PRIMARY KEY, name VARCHAR(80), country CHAR(2));
    CREATE TABLE digit (d INT PRIMARY KEY);
    INSERT INTO digit VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
    INSERT INTO customer (name, city, joined) SELECT CONCAT('Customer ', a.d * 10 + b.d), ELT(b.d MOD 5 + 1, 'Berlin', 'Lisbon', 'Tartu', 'Lyon', 'Oslo'), DATE_ADD('2024-01-01', INTERVAL a.d * 40 + b.d DAY) FROM digit a, digit b;
    INSERT INTO product (title, price, details) SELECT CONCAT('Product ', d), 5 + d * 3.25, JSON_OBJECT('weight', d) FROM digit;
    INSERT INTO orders (customer_id, placed, state) SELECT (a.d * 37 + b.d * 11 + c.d * 3) MOD 100 + 1, DATE_ADD('2026-01-01', INTERVAL (a.d * 100 + b.d * 10 + c.d) * 7 HOUR), ELT(c.d MOD 3 + 1, 'open', 'paid', 'sent') FROM digit a, digit b, digit c;
    INSERT INTO order_line SELECT o.id, d.d + 1, (o.id + d.d) MOD 5 + 1 FROM orders o, digit d WHERE (o.id + d.d) MOD 4 = 0;
    CREATE VIEW big_orders AS SELECT order_id, SUM(quantity) AS pieces FROM order_line GROUP BY order_id;
    CREATE DATABASE hostile; USE hostile;
    CREATE TABLE ${quote(HOSTILE)} (${quote(HOSTILE_COLUMN)} VARCHAR(200) COMMENT '<b onmouseover=window.hacked=4>', id INT PRIMARY KEY);
    INSERT INTO ${quote(HOSTILE)} VALUES ('${HOSTILE}', 1), ('<script>window.hacked=2</script>', 3), ('javascript:window.hacked=5', 2);
  `);
  await link.end();
}

/** A running server: its address, how to log in, and how to end it. */
export async function start() {
  const program = process.env.SQUALLD ?? join(root, 'target/debug/squalld');
  if (!existsSync(program)) throw new Error(`${program} is missing: build it, or name another in SQUALLD`);
  const datadir = await mkdtemp(join(tmpdir(), 'squall-console-'));
  const [port, http] = [await freePort(), await freePort()];
  const child = spawn(program, [`--datadir=${datadir}`, `--port=${port}`, '--plugin-add=json_server', '--plugin-add=audit_log', `--json-server-port=${http}`], { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', (chunk) => { log += chunk; });
  const stop = async () => {
    const ended = new Promise((done) => { child.once('exit', done); });
    if (child.exitCode === null && child.kill('SIGTERM')) await ended;
    await rm(datadir, { recursive: true, force: true });
  };
  for (let tries = 0; ; tries += 1) {
    try {
      const answer = await fetch(`http://127.0.0.1:${http}/`);
      if (answer.ok && log.includes('ready for connections')) break;
    } catch { /* not yet */ }
    if (child.exitCode !== null || tries > 300) { await stop(); throw new Error(`squalld does not start:\n${log}`); }
    await new Promise((done) => { setTimeout(done, 100); });
  }
  const password = (await readFile(join(datadir, 'root-password'), 'utf8')).trim();
  await fill(port, password).catch(async (error) => { await stop(); throw error; });
  return { url: `http://127.0.0.1:${http}/`, port, password, stop, connect: () => mysql.createConnection({ host: '127.0.0.1', port, user: 'root', password, database: 'shop', multipleStatements: true }) };
}
