// The HTTP interface of plugins/json-server over the MySQL port of any server: to work on the console without building the server.
//   node test/mock/server.mjs PORT-OF-MYSQL [PORT-TO-SERVE]
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import mysql from 'mysql2/promise';

const dist = join(dirname(fileURLToPath(import.meta.url)), '../../dist');
const KINDS = { 0: 'decimal', 1: 'tinyint', 2: 'smallint', 3: 'int', 4: 'float', 5: 'double', 7: 'timestamp', 8: 'bigint', 9: 'mediumint', 10: 'date', 11: 'time', 12: 'datetime', 13: 'year', 15: 'varchar', 16: 'bit', 245: 'json', 246: 'decimal', 252: 'blob', 253: 'varchar', 254: 'char' };
const MEDIA = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml' };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const column = (field) => ({ name: field.name, type: field.columnType === 252 && field.characterSet !== 63 ? 'text' : KINDS[field.columnType] ?? 'varchar', schema: field.schema ?? field.db, table: field.table, nullable: !(field.flags & 1), unsigned: !!(field.flags & 32), ...(field.characterSet === 63 && field.columnType >= 249 && field.columnType <= 254 ? { encoding: 'base64' } : {}) });
const cell = (value) => (Buffer.isBuffer(value) ? value.toString('base64') : value);

export function serve(mysqlPort, port, host = '127.0.0.1') {
  const sessions = new Map();
  const running = new Map();
  const samples = [];
  let names = [];
  const connect = (who) => mysql.createConnection({ host, port: mysqlPort, user: who.user, password: who.password, multipleStatements: true, rowsAsArray: true, dateStrings: true, supportBigNumbers: true, bigNumberStrings: false, jsonStrings: false });

  const reply = (response, status, body, headers = {}) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(body === undefined ? '' : JSON.stringify(body));
  };
  const refuse = (response, status, error) => reply(response, status, { error: { code: error.errno ?? 0, sqlstate: error.sqlState ?? 'HY000', message: error.sqlMessage ?? error.message } });

  async function sql(who, body, request, response) {
    let link;
    try {
      link = await connect(who);
      if (body.schema) await link.changeUser({ database: body.schema });
      if (body.id) running.set(body.id, link.threadId);
      const started = process.hrtime.bigint();
      const [rows, fields] = await link.query(body.sql, body.parameters ?? []);
      const us = Number((process.hrtime.bigint() - started) / 1000n);
      const several = Array.isArray(fields) && (Array.isArray(fields[0]) || fields.some((field) => field === undefined));
      const pairs = several ? rows.map((each, at) => [each, fields[at]]) : [[rows, fields]];
      const results = pairs.map(([each, described]) => (described
        ? { columns: described.map(column), rows: each.slice(0, body.max_rows ?? 100_000).map((row) => row.map(cell)), row_count: each.length, truncated: each.length > (body.max_rows ?? 100_000), warnings: 0 }
        : { affected_rows: each.affectedRows, last_insert_id: each.insertId, info: each.info ?? '', warnings: each.warningStatus }));
      if (!request.headers.accept?.includes('ndjson')) {
        reply(response, 200, { results, warnings: [], duration_us: us, connection_id: link.threadId });
        return;
      }
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      for (const { columns, rows: lines, ...end } of results) {
        if (columns) response.write(`${JSON.stringify({ columns })}\n`);
        for (let at = 0; at < (lines?.length ?? 0); at += 1000) response.write(`${lines.slice(at, at + 1000).map((line) => JSON.stringify(line)).join('\n')}\n`);
        response.write(`${JSON.stringify({ end })}\n`);
      }
      response.end(`${JSON.stringify({ end: { duration_us: us } })}\n`);
    } catch (error) {
      refuse(response, error.errno === 1045 ? 401 : error.errno === 1142 ? 403 : 400, error);
    } finally {
      running.delete(body.id);
      link?.destroy();
    }
  }

  async function sample() {
    const who = [...sessions.values()][0];
    if (!who) return;
    const link = await connect(who);
    const [rows] = await link.query('SHOW GLOBAL STATUS');
    link.destroy();
    const numbers = rows.filter(([, value]) => value !== '' && Number.isFinite(Number(value)));
    names = numbers.map(([name]) => name);
    samples.push([Date.now() / 1000, ...numbers.map(([, value]) => Number(value))]);
    samples.splice(0, samples.length - 600);
  }
  const timer = setInterval(() => sample().catch(() => undefined), 1000);

  async function api(request, response, url, text) {
    const token = /squall_session=([\w-]+)/.exec(request.headers.cookie ?? '')?.[1];
    const who = sessions.get(token);
    const body = request.headers['content-type']?.startsWith('application/json') && text ? JSON.parse(text) : {};
    if (url.pathname === '/1.0/login' && request.method === 'POST') {
      try {
        (await connect(body)).destroy();
      } catch (error) { refuse(response, 401, error); return; }
      const fresh = randomUUID();
      sessions.set(fresh, body);
      reply(response, 200, { token: fresh, expires_in: 3600, user: body.user }, { 'set-cookie': `squall_session=${fresh}; Path=/; HttpOnly; SameSite=Strict` });
      return;
    }
    if (!who) { refuse(response, 401, new Error('log in first')); return; }
    if (request.method !== 'GET' && request.headers['x-squall'] !== '1') { refuse(response, 403, new Error('the header X-Squall is missing')); return; }
    if (url.pathname === '/1.0/login') { sessions.delete(token); reply(response, 204); return; }
    if (url.pathname === '/1.0/me') { reply(response, 200, { user: who.user }); return; }
    if (url.pathname === '/1.0/sql') { await sql(who, body, request, response); return; }
    if (url.pathname === '/1.0/live/history') { reply(response, 200, { names, samples: samples.filter(([at]) => at > Date.now() / 1000 - Number(url.searchParams.get('seconds'))) }); return; }
    const statement = /^\/1\.0\/statements\/(.+)$/.exec(url.pathname)?.[1];
    if (statement && running.has(decodeURIComponent(statement))) {
      const link = await connect(who);
      await link.query(`KILL QUERY ${running.get(decodeURIComponent(statement))}`);
      link.destroy();
      reply(response, 204);
      return;
    }
    refuse(response, 404, new Error('there is no such call'));
  }

  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://mock');
    let text = '';
    for await (const chunk of request) text += chunk;
    if (url.pathname.startsWith('/1.0/')) { api(request, response, url, text).catch((error) => refuse(response, 500, error)); return; }
    const name = url.pathname === '/' ? 'index.html' : url.pathname.slice(1);
    try {
      if (!/^[\w.]+$/.test(name)) throw new Error('no such file');
      const content = await readFile(join(dist, name));
      response.writeHead(200, { 'content-type': MEDIA[extname(name)] ?? 'application/octet-stream', 'content-security-policy': POLICY });
      response.end(content);
    } catch { refuse(response, 404, new Error('there is no such file')); }
  });
  server.on('close', () => clearInterval(timer));
  return new Promise((ready) => server.listen(port, '127.0.0.1', () => ready(server)));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = await serve(Number(process.argv[2] ?? 3306), Number(process.argv[3] ?? 8086));
  console.log(`http://127.0.0.1:${server.address().port}/`);
}
