import assert from 'node:assert/strict';
import test from 'node:test';
import { parquetReadObjects } from 'hyparquet';
import { load } from './load.mjs';

const { pieces, placeholders, statementAt } = await load('split.ts');
const { ownTime, readPlan } = await load('plan.ts');
const { csv, json, parquet } = await load('export.ts');
const { arrange } = await load('grid.tsx');
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
  assert.equal(csv(columns, rows), 'id,price,note\r\n1,10.50,"a ""quoted"", text"\r\n2,9.00,\r\n10,,""\r\n');
  assert.deepEqual(JSON.parse(json(columns, rows))[1], { id: 2, price: '9.00', note: null });
  const read = await parquetReadObjects({ file: parquet(columns, rows) });
  assert.deepEqual(read, [{ id: 1n, price: '10.50', note: 'a "quoted", text' }, { id: 2n, price: '9.00', note: null }, { id: 10n, price: null, note: '' }]);
});

test('rows are filtered and sorted, numbers by value and NULL first', () => {
  assert.deepEqual([...arrange(rows, columns, '', -1, { column: 1, descending: false })], [2, 1, 0]);
  assert.deepEqual([...arrange(rows, columns, '', -1, { column: 0, descending: true })], [2, 1, 0]);
  assert.deepEqual([...arrange(rows, columns, 'QUOTED', -1, null)], [0]);
  assert.deepEqual([...arrange(rows, columns, '10', 0, null)], [2]);
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
