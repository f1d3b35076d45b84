import assert from 'node:assert/strict';
import test from 'node:test';
import { parquetReadObjects } from 'hyparquet';
import { load } from './load.mjs';

const { pieces, placeholders, statementAt } = await load('split.ts');
const { ownTime, readPlan } = await load('plan.ts');
const { allOf, content } = await load('export.ts');
const { arrange, arrangeInSlices } = await load('arrange.ts');
const { flameOf, readStacks } = await load('flame.tsx');
const { layersOf } = await load('graph.tsx');
const { revokeOf } = await load('grants.ts');
const { rate } = await load('samples.ts');
const { quoteName, quoteText } = await load('api.ts');

test('statements end at semicolons outside texts and comments', () => {
  const sql = "SELECT ';', `a;b`, \"c;\" -- one; two\n; /* ; */ SELECT 'it''s; \\'so;'; # last;\n";
  assert.deepEqual(pieces(sql).map(({ from, to }) => sql.slice(from, to).trim()), ["SELECT ';', `a;b`, \"c;\" -- one; two", "/* ; */ SELECT 'it''s; \\'so;'", '# last;']);
  assert.equal(statementAt('SELECT 1; SELECT 2; SELECT 3', 12), 'SELECT 2');
  assert.equal(statementAt('', 0), '');
});

test('question marks in texts are no parameters', () => {
  assert.equal(placeholders("SELECT ?, '?', `?`, \"?\" -- ?\n, ? /* ? */"), 2);
});

test('a plan of EXPLAIN ANALYZE becomes a tree', () => {
  const [root] = readPlan([
    '-> Sort: r8  (cost=1.49..1.49 rows=1.41) (actual time=0.1..0.5 rows=2 loops=1)',
    '    -> Nested loop inner join  (cost=1.15 rows=2) (actual time=0.05..0.3 rows=2 loops=1)',
    '        -> Table scan on o  (cost=0.45 rows=2) (actual time=0.03..0.1 rows=2 loops=1)',
    '        -> Single-row index lookup on c using PRIMARY (id = o.c)  (cost=0.35 rows=1) (actual time=0.005..0.05 rows=1 loops=2)',
    '        -> Table scan on never  (cost=1e+3 rows=2e+6) (never executed)',
  ].join('\n'));
  assert.equal(root.text, 'Sort: r8');
  assert.equal(root.estimated, 1.41);
  assert.equal(root.children[0].children.length, 3);
  const [scan, lookup, never] = root.children[0].children;
  assert.equal(scan.text, 'Table scan on o');
  assert.equal(lookup.text, 'Single-row index lookup on c using PRIMARY (id = o.c)');
  assert.equal(lookup.milliseconds, 0.1);
  assert.equal(never.neverRun, true);
  assert.equal(never.estimated, 2e6);
  assert.ok(Math.abs(ownTime(root) - 0.2) < 1e-9);
});

const columns = [{ name: 'id', type: 'bigint' }, { name: 'price', type: 'decimal' }, { name: 'note', type: 'varchar' }];
const rows = [[1, '10.50', 'a "quoted", text'], [2, '9.00', null], [10, null, '']];

test('files of a result', async () => {
  const all = allOf(columns, rows, null);
  const text = async (kind, rows) => (await content(kind, rows)).text();
  assert.equal(await text('csv', all), 'id,price,note\r\n1,10.50,"a ""quoted"", text"\r\n2,9.00,\r\n10,,""\r\n');
  assert.equal(await text('csv', allOf(columns, rows, Uint32Array.of(2, 1))), 'id,price,note\r\n10,,""\r\n2,9.00,\r\n');
  assert.deepEqual(JSON.parse(await text('json', all))[1], { id: 2, price: '9.00', note: null });
  assert.deepEqual(JSON.parse(await text('json', allOf(columns, [], null))), []);
  const read = await parquetReadObjects({ file: await (await content('parquet', all)).arrayBuffer() });
  assert.deepEqual(read, [{ id: 1n, price: '10.50', note: 'a "quoted", text' }, { id: 2n, price: '9.00', note: null }, { id: 10n, price: null, note: '' }]);
  const twice = [{ name: 'a', type: 'int' }, { name: 'a', type: 'varchar' }];
  assert.deepEqual(await parquetReadObjects({ file: await (await content('parquet', allOf(twice, [[1, 'x']], null))).arrayBuffer() }), [{ a: 1n, a_2: 'x' }]);
});

test('a file of many rows is made in pieces', async () => {
  const many = Array.from({ length: 250_000 }, (_, at) => [at, at % 7 ? '1.5' : null, `text ${at}`]);
  const all = allOf(columns, many, null);
  const lines = (await (await content('csv', all)).text()).split('\r\n');
  assert.equal(lines.length, 250_002);
  assert.equal(lines[250_000], '249999,1.5,text 249999');
  assert.equal(JSON.parse(await (await content('json', all)).text()).length, 250_000);
  const read = await parquetReadObjects({ file: await (await content('parquet', all)).arrayBuffer() });
  assert.equal(read.length, 250_000);
  assert.deepEqual(read[249_998], { id: 249_998n, price: null, note: 'text 249998' });
});

test('rows are filtered and sorted, numbers by value and NULL first', () => {
  const of = (filter, within, order) => [...arrange(rows, columns, { filter, within, order })];
  assert.deepEqual(of('', -1, { column: 1, descending: false }), [2, 1, 0]);
  assert.deepEqual(of('', -1, { column: 0, descending: true }), [2, 1, 0]);
  assert.deepEqual(of('', -1, { column: 2, descending: false }), [1, 2, 0]);
  const words = [['b'], ['É'], ['a'], ['E'], [null]];
  assert.deepEqual([...arrange(words, [columns[2]], { filter: '', within: -1, order: { column: 0, descending: false } })], [4, 2, 0, 1, 3]);
  assert.deepEqual(of('QUOTED', -1, null), [0]);
  assert.deepEqual(of('10', 0, null), [2]);
});

test('many rows are sorted in slices, and equal ones keep their order', async () => {
  const many = Array.from({ length: 30_000 }, (_, at) => [(at * 7919) % 1000, null, `w${(at * 31) % 500}`]);
  const numbers = await arrangeInSlices(many, columns, { filter: '', within: -1, order: { column: 0, descending: true } }, () => true);
  const expected = many.map((_, at) => at).sort((a, b) => many[b][0] - many[a][0] || a - b);
  assert.deepEqual([...numbers], expected);
  const words = await arrangeInSlices(many, columns, { filter: 'w1', within: 2, order: { column: 2, descending: false } }, () => true);
  assert.deepEqual([...words], many.map((_, at) => at).filter((at) => many[at][2].includes('w1')).sort((a, b) => (many[a][2] < many[b][2] ? -1 : many[a][2] > many[b][2] ? 1 : a - b)));
  const large = Array.from({ length: 300_000 }, (_, at) => [at, null, `word ${at}`]);
  assert.equal(await arrangeInSlices(large, columns, { filter: 'word 1', within: -1, order: { column: 2, descending: true } }, () => false), undefined);
});

test('folded stacks become a tree with times added up', () => {
  const rows = [['statement;parse 10\nstatement;execute;Table scan on t 70'], ['statement;execute 20']];
  const root = flameOf(readStacks(rows));
  assert.equal(root.name, 'statement');
  assert.equal(root.value, 100);
  assert.deepEqual(root.children.map(({ name, value, from }) => [name, value, from]), [['parse', 10, 0], ['execute', 90, 10]]);
  assert.deepEqual(root.children[1].children.map(({ name, value }) => [name, value]), [['Table scan on t', 70]]);
  assert.deepEqual(readStacks([['a;b', 5]]), [{ names: ['a', 'b'], value: 5 }]);
});

test('layers of a graph with a circle', () => {
  assert.deepEqual([...layersOf(['a', 'b', 'c'], [{ from: 'a', to: 'b' }, { from: 'b', to: 'c' }])], [['c', 0], ['b', 1], ['a', 2]]);
  assert.equal(layersOf(['a', 'b'], [{ from: 'a', to: 'b' }, { from: 'b', to: 'a' }]).size, 2);
});

test('a grant becomes its revoke', () => {
  assert.equal(revokeOf('GRANT SELECT, INSERT ON `a`.* TO `u`@`%` WITH GRANT OPTION'), 'REVOKE SELECT, INSERT, GRANT OPTION ON `a`.* FROM `u`@`%`');
  assert.equal(revokeOf('GRANT `r`@`%` TO `u`@`%`'), 'REVOKE `r`@`%` FROM `u`@`%`');
  assert.equal(revokeOf('GRANT USAGE ON *.* TO `u`@`%`'), '');
});

test('rates have gaps where a counter starts again', () => {
  assert.deepEqual(rate([0, 1, 3, 4], [0, 5, 25, 2]), [null, 5, 10, null]);
});

test('names and texts in SQL', () => {
  assert.equal(quoteName('a`b'), '`a``b`');
  assert.equal(quoteText("it's \\ so"), "'it''s \\\\ so'");
});
