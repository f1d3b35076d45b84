// Sessions that wait for row locks, as a graph: an arrow leads from the one that waits to the one that holds the lock.
import { useMemo, useState } from 'preact/hooks';
import { select, selectIfThere, show, type Item } from './api';
import { Graph, layersOf, type Box, type Edge } from './graph';
import { age, Dialog, Failure, Loading, SqlStep, useLoad } from './ui';

interface Wait { waiter: string; holder: string; table: string; data: string; mode: string }

async function load(): Promise<{ waits: Wait[]; sessions: Map<string, Item> }> {
  const rows = await select(
    'SELECT COALESCE(rt.processlist_id, w.requesting_thread_id) AS waiter, COALESCE(bt.processlist_id, w.blocking_thread_id) AS holder, l.object_schema AS s, l.object_name AS t, l.lock_data AS d, l.lock_mode AS m '
    + 'FROM performance_schema.data_lock_waits w LEFT JOIN performance_schema.data_locks l ON l.engine_lock_id = w.requesting_engine_lock_id '
    + 'LEFT JOIN performance_schema.threads rt ON rt.thread_id = w.requesting_thread_id LEFT JOIN performance_schema.threads bt ON bt.thread_id = w.blocking_thread_id');
  const waits = rows.map((row): Wait => ({ waiter: show(row.waiter), holder: show(row.holder), table: row.t === null ? '' : `${show(row.s)}.${show(row.t)}`, data: show(row.d ?? ''), mode: show(row.m ?? '') }));
  const sessions = new Map<string, Item>();
  if (waits.length) {
    for (const row of await select('SELECT id, user, host, db, command, time, state, info FROM information_schema.processlist')) sessions.set(show(row.id), row);
    for (const row of await selectIfThere('SELECT trx_mysql_thread_id AS id, trx_started AS started, trx_rows_locked AS locked, trx_query AS q FROM information_schema.innodb_trx')) {
      const id = show(row.id);
      sessions.set(id, { ...(sessions.get(id) ?? {}), started: row.started, locked: row.locked });
    }
  }
  return { waits, sessions };
}

export function Locks({ turn, changed }: { turn: number; changed: () => void }) {
  const { value, error } = useLoad(load, [turn]);
  const [ending, setEnding] = useState<string | null>(null);
  const drawn = useMemo(() => {
    if (!value) return undefined;
    const edges: Edge[] = [];
    for (const wait of value.waits) {
      if (!edges.some((edge) => edge.from === wait.waiter && edge.to === wait.holder)) edges.push({ from: wait.waiter, to: wait.holder, marker: 'arrow' });
    }
    const ids = [...new Set(value.waits.flatMap((wait) => [wait.waiter, wait.holder]))];
    const layers = layersOf(ids, edges);
    const boxes: Box[] = ids.map((id) => {
      const session = value.sessions.get(id);
      const waits = value.waits.find((wait) => wait.waiter === id);
      const held = Number(session?.locked ?? 0);
      const info = session?.info ? show(session.info) : session?.command === 'Sleep' ? 'idle in a transaction' : '';
      return {
        id, width: 280, height: 164, layer: layers.get(id) ?? 0, tone: waits ? 'warm' : 'hot', label: `Session ${id} ${waits ? 'waits' : 'holds the lock'}; kill it`, onClick: () => setEnding(id),
        content: <span class="operator"><b>Session {id} {waits ? 'waits' : 'holds the lock'}</b><span>{session?.user ? `${show(session.user)} from ${show(session.host)}` : ''}</span><span class="what mono">{info}</span>{waits && <span class="wants">wants {waits.mode} on {waits.table} {waits.data && `(${waits.data})`}</span>}<span class="foot"><span>{session?.time !== undefined ? `${waits ? 'for ' : ''}${age(Number(session.time))}` : ''}</span>{held > 0 && <span>{held.toLocaleString()} {held === 1 ? 'row' : 'rows'} locked</span>}</span></span>,
      };
    });
    return { boxes, edges };
  }, [value]);
  if (!drawn) return error ? <Failure error={error} /> : <Loading what="locks" />;
  return <>
    <Failure error={error} />
    {drawn.boxes.length ? <Graph label="Lock waits" boxes={drawn.boxes} edges={drawn.edges} gap={70} /> : <p class="muted">No session waits for a lock.</p>}
    {ending && <Dialog title={`Kill session ${ending}`} onClose={() => setEnding(null)}>
      <p>Its transaction is rolled back and its locks are released.</p>
      <SqlStep danger sql={`KILL ${Number(ending)}`} onDone={() => { setEnding(null); changed(); }} />
    </Dialog>}
  </>;
}
