// Where threads spend their time: what each does, the locks that were waited for, and the calls to files.
import { useRef } from 'preact/hooks';
import { bytes, selectIfThere, show, type Item } from './api';
import { micro } from './trends';
import { Bar, Failure, Loading, Table, useLoad } from './ui';

const PARTS: [key: string, label: string, series: number][] = [['run', 'running', 3], ['queue', 'ready to run', 6], ['locks', 'locks', 7], ['io', 'files', 2], ['network', 'network', 5], ['idle', 'idle', 0]];
const THREADS = 'SELECT thread_id AS id, name, connection_id AS connection, state, state_ns AS since, run_ns AS run, run_queue_ns AS queue, lock_wait_ns AS locks, io_wait_ns AS io, network_wait_ns AS network, idle_ns AS idle FROM data_dictionary.THREAD_STATES ORDER BY name, thread_id';
const LOCKS = 'SELECT name, kind, waits, acquires, wait_ns AS wait, max_wait_ns AS most, hold_ns AS hold FROM data_dictionary.LOCK_STATS WHERE waits > 0 ORDER BY wait_ns DESC LIMIT 25';
const FILES = 'SELECT file_class AS class, operation, requests, bytes, total_us AS total, p50_us AS p50, p95_us AS p95, p99_us AS p99, max_us AS most, errors FROM data_dictionary.IO_STATS WHERE requests > 0 ORDER BY total_us DESC';

const nano = (value: Item[string]): string => micro(Number(value ?? 0) / 1000);

function Shares({ row }: { row: Item }) {
  const all = PARTS.reduce((sum, [key]) => sum + Number(row[key]), 0) || 1;
  const words = PARTS.filter(([key]) => Number(row[key]) / all >= 0.001).map(([key, label]) => `${label} ${((100 * Number(row[key])) / all).toFixed(1)} %`).join(', ');
  return <span class="shares" role="img" aria-label={words} title={words}>{PARTS.map(([key, , series]) => <i key={key} class={`series-${series}`} style={{ width: `${(100 * Number(row[key])) / all}%` }} />)}</span>;
}

/** The rows with the times since they were last asked for; those since the start at first. */
function since(rows: Item[], before: Map<string, Item>): Item[] {
  return rows.map((row) => {
    const old = before.get(show(row.id));
    return old ? { ...row, ...Object.fromEntries(PARTS.map(([key]) => [key, Math.max(0, Number(row[key]) - Number(old[key]))])) } : row;
  });
}

export function Waits({ turn }: { turn: number }) {
  const before = useRef(new Map<string, Item>());
  const { value, error } = useLoad(async () => {
    const [threads, locks, files] = await Promise.all([selectIfThere(THREADS), selectIfThere(LOCKS), selectIfThere(FILES)]);
    const shown = since(threads, before.current);
    before.current = new Map(threads.map((row) => [show(row.id), row]));
    return { threads: shown, locks, files };
  }, [turn]);
  if (!value) return error ? <Failure error={error} /> : <Loading what="waits" />;
  const most = Math.max(1, ...value.locks.map((row) => Number(row.wait)));
  const isIdle = (row: Item) => show(row.state) === 'idle' || show(row.state) === 'sleeping';
  const idle = value.threads.filter(isIdle);
  const threads = (label: string, rows: Item[]) => <Table label={label} rows={rows} empty="All threads are idle." columns={[
    ['Thread', (row) => <span class="mono">{show(row.name)}</span>], ['Now', (row) => <span class={`badge ${show(row.state) === 'running' ? 'on' : isIdle(row) ? '' : 'warn'}`}>{show(row.state)}</span>],
    ['For', (row) => (row.since === null || isIdle(row) ? '' : nano(row.since)), 'numeric'], ['Session', (row) => (row.connection === null ? '' : show(row.connection)), 'numeric'], ['Time', (row) => <Shares row={row} />],
  ]} />;
  return <>
    <Failure error={error} />
    <section class="card"><h2>Threads</h2>
      <ul class="keys">{PARTS.map(([key, label, series]) => <li key={key}><span class={`swatch series-${series}`} />{label}</li>)}</ul>
      {threads('Threads', value.threads.filter((row) => !isIdle(row)))}
      {idle.length > 0 && <details class="idle-threads"><summary>{idle.length} idle threads</summary>{threads('Idle threads', idle)}</details>}
    </section>
    <section class="card"><h2>Locks that were waited for</h2>
      <Table label="Locks that were waited for" rows={value.locks} empty="No thread has waited for a lock yet." columns={[
        ['Lock', (row) => <span class="mono">{show(row.name)}</span>], ['Kind', (row) => show(row.kind)], ['Waits', (row) => Number(row.waits).toLocaleString(), 'numeric'],
        ['Waited', (row) => nano(row.wait), 'numeric'], ['Longest', (row) => nano(row.most), 'numeric'], ['Share', (row) => <Bar share={Number(row.wait) / most} />],
      ]} />
    </section>
    <section class="card"><h2>Files</h2>
      <Table label="Calls to files" rows={value.files} empty="No file was used yet." columns={[
        ['Files', (row) => show(row.class)], ['Call', (row) => show(row.operation)], ['Calls', (row) => Number(row.requests).toLocaleString(), 'numeric'], ['Bytes', (row) => bytes(Number(row.bytes)), 'numeric'],
        ['Time', (row) => micro(Number(row.total)), 'numeric'], ['Median', (row) => micro(Number(row.p50)), 'numeric'], ['95 %', (row) => micro(Number(row.p95)), 'numeric'], ['99 %', (row) => micro(Number(row.p99)), 'numeric'],
        ['Longest', (row) => micro(Number(row.most)), 'numeric'], ['Errors', (row) => Number(row.errors).toLocaleString(), 'numeric'],
      ]} />
    </section>
  </>;
}
