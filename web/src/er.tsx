// The tables of a schema and their foreign keys as a picture.
import { useMemo } from 'preact/hooks';
import { select, show } from './api';
import { Graph, layersOf, type Box, type Edge } from './graph';
import { Failure, Loading, useLoad } from './ui';

const TABLES_MAX = 150;
const COLUMNS_SHOWN = 14;
const HEAD = 34;
const LINE = 19;
const WIDTH = 196;

interface Column { name: string; type: string; key: string }
interface Key { child: string; column: string; parent: string; parentColumn: string; name: string }

export function ErPicture({ schema, turn }: { schema: string; turn: number }) {
  const { value, error } = useLoad(async () => {
    const columns = await select("SELECT c.table_name AS t, c.column_name AS c, c.column_type AS y, c.column_key AS k FROM information_schema.columns c JOIN information_schema.tables b ON b.table_schema = c.table_schema AND b.table_name = c.table_name WHERE c.table_schema = ? AND b.table_type = 'BASE TABLE' ORDER BY 1, c.ordinal_position", [schema]);
    const keys = await select('SELECT constraint_name AS n, table_name AS t, column_name AS c, referenced_table_name AS rt, referenced_column_name AS rc FROM information_schema.key_column_usage WHERE table_schema = ? AND referenced_table_schema = ? AND referenced_table_name IS NOT NULL', [schema, schema]);
    const tables = new Map<string, Column[]>();
    for (const row of columns) tables.set(show(row.t), [...(tables.get(show(row.t)) ?? []), { name: show(row.c), type: show(row.y), key: show(row.k ?? '') }]);
    return { tables, keys: keys.map((row): Key => ({ name: show(row.n), child: show(row.t), column: show(row.c), parent: show(row.rt), parentColumn: show(row.rc) })) };
  }, [schema, turn]);
  const drawn = useMemo(() => {
    if (!value) return undefined;
    const linked = new Set(value.keys.flatMap((key) => [key.child, key.parent]));
    const names = [...value.tables.keys()].sort((a, b) => Number(linked.has(b)) - Number(linked.has(a)) || a.localeCompare(b)).slice(0, TABLES_MAX);
    const layers = layersOf(names, value.keys.map((key) => ({ from: key.child, to: key.parent })));
    // Tables without foreign keys fill further layers, so that the picture stays about as wide as high.
    const alone = names.filter((name) => !linked.has(name));
    const first = linked.size ? Math.max(0, ...names.filter((name) => linked.has(name)).map((name) => layers.get(name) ?? 0)) + 1 : 0;
    const high = Math.max(4, Math.ceil(Math.sqrt(alone.length)));
    alone.forEach((name, at) => layers.set(name, first + Math.floor(at / high)));
    const order = new Map<string, string[]>();
    const boxes: Box[] = names.map((name) => {
      const columns = value.tables.get(name) ?? [];
      const inKey = new Set(value.keys.flatMap((key) => [...(key.child === name ? [key.column] : []), ...(key.parent === name ? [key.parentColumn] : [])]));
      const wanted = columns.length <= COLUMNS_SHOWN ? columns : [...columns.filter((column) => inKey.has(column.name) || column.key === 'PRI'), ...columns.filter((column) => !inKey.has(column.name) && column.key !== 'PRI')].slice(0, COLUMNS_SHOWN);
      order.set(name, wanted.map((column) => column.name));
      const left = columns.length - wanted.length;
      return {
        id: name, width: WIDTH, height: HEAD + LINE * (wanted.length + (left ? 1 : 0)) + 10, layer: layers.get(name) ?? 0, label: `Table ${name}, ${columns.length} columns`,
        onClick: () => { location.hash = `#/schema/${encodeURIComponent(schema)}/${encodeURIComponent(name)}`; },
        content: <span class="er-table"><b>{name}</b>{wanted.map((column) => <span key={column.name}><span class={column.key === 'PRI' ? 'key' : ''}>{column.name}</span><i>{column.type}</i></span>)}{left > 0 && <span><i>{left} more</i></span>}</span>,
      };
    });
    const y = (table: string, column: string) => HEAD + LINE * (Math.max(0, order.get(table)?.indexOf(column) ?? 0) + 0.5);
    const edges: Edge[] = value.keys.map((key) => ({ from: key.child, to: key.parent, fromY: y(key.child, key.column), toY: y(key.parent, key.parentColumn), marker: 'arrow' as const }));
    return { boxes, edges, hidden: value.tables.size - names.length };
  }, [value, schema]);
  if (!drawn) return error ? <Failure error={error} /> : <Loading what="the picture" />;
  if (!drawn.boxes.length) return <p class="muted">No table yet.</p>;
  return <>{drawn.hidden > 0 && <p class="muted">{drawn.hidden} more tables are not drawn.</p>}<Graph label={`Tables of ${schema} and their foreign keys`} boxes={drawn.boxes} edges={drawn.edges} across gap={46} /></>;
}
