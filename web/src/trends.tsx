// Charts of counters over time.
import type uPlot from 'uplot';
import { useMemo, useState } from 'preact/hooks';
import { bytes } from './api';
import { axis, Plot, seriesColour, short } from './chart';
import { find, rate, sourceOf, type Everything } from './samples';
import { theme } from './theme';

type Line = [counter: string, label: string];
interface Picture { title: string; lines: Line[]; rates?: boolean; scale?: number; format?: (value: number) => string; filled?: boolean; hideUnused?: boolean }

export const micro = (value: number): string => (value >= 1e6 ? `${+(value / 1e6).toFixed(2)} s` : value >= 1000 ? `${+(value / 1000).toFixed(1)} ms` : `${value.toFixed(0)} µs`);
const percent = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} %`;
const WAITS: Line[] = [['wait_row_lock_microseconds', 'row lock'], ['wait_metadata_lock_microseconds', 'metadata lock'], ['wait_log_flush_microseconds', 'log flush'], ['wait_read_microseconds', 'read'],
  ['wait_write_microseconds', 'write'], ['wait_sync_microseconds', 'sync'], ['wait_latch_microseconds', 'latch'], ['wait_mutex_microseconds', 'mutex']];

const PICTURES: Picture[] = [
  { title: 'Statements a second', rates: true, filled: true, lines: [['com_select', 'SELECT'], ['com_insert', 'INSERT'], ['com_update', 'UPDATE'], ['com_delete', 'DELETE'], ['com_commit', 'COMMIT']] },
  { title: 'Latency of statements', format: micro, hideUnused: true, lines: [['statement_p50_microseconds', 'median'], ['statement_p95_microseconds', '95 %'], ['statement_p99_microseconds', '99 %']] },
  { title: 'Processors', rates: true, filled: true, scale: 1e-4, format: percent, lines: [['cpu_microseconds', 'of one processor']] },
  { title: 'Waits, seconds a second', rates: true, scale: 1e-6, lines: WAITS },
  { title: 'Connections', filled: true, lines: [['threads_connected', 'open'], ['threads_running', 'running']] },
  { title: 'Row operations a second', rates: true, lines: [['handler_read_key', 'by key'], ['handler_read_rnd_next', 'scanned'], ['handler_write', 'written'], ['handler_update', 'updated'], ['handler_delete', 'deleted']] },
  { title: 'Latency of log writes', format: micro, lines: [['log_flush_p50_microseconds', 'median'], ['log_flush_p99_microseconds', '99 %']] },
  { title: 'Latency of page reads', format: micro, hideUnused: true, lines: [['pool_page_read_p50_microseconds', 'median'], ['pool_page_read_p99_microseconds', '99 %']] },
  { title: 'Lock waits', format: micro, hideUnused: true, lines: [['locks_wait_p50_microseconds', 'median'], ['locks_wait_p99_microseconds', '99 %']] },
  { title: 'Row locks', lines: [['locks_row_locks', 'held'], ['transactions_active_writers', 'active writers']] },
  { title: 'Buffer pool, pages', filled: true, lines: [['pool_pages_data', 'used'], ['pool_pages_dirty', 'changed']] },
  { title: 'Pages a second', rates: true, lines: [['pool_pages_read_total', 'read'], ['pool_pages_written_total', 'written']] },
  { title: 'Log written a second', rates: true, filled: true, format: bytes, lines: [['log_written_bytes', 'bytes']] },
  { title: 'Purge', lines: [['purge_transactions_waiting_for_purge', 'transactions that wait for purge']] },
  { title: 'Network a second', rates: true, format: bytes, lines: [['bytes_received', 'received'], ['bytes_sent', 'sent']] },
  { title: 'Memory of the server', filled: true, format: bytes, lines: [['resident_bytes', 'resident']] },
  { title: 'Temporary tables and sorts a second', rates: true, lines: [['created_tmp_tables', 'tables'], ['created_tmp_disk_tables', 'tables on disk'], ['sort_merge_passes', 'merge passes']] },
  { title: 'Plan cache a second', rates: true, lines: [['plan_cache_hits', 'hits'], ['plan_cache_misses', 'misses']] },
];

const clock = (at: number, seconds = true): string => new Date(at * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', ...(seconds ? { second: '2-digit' } : {}), hour12: false });

function Trend({ picture, all, span }: { picture: Picture; all: Everything; span: number }) {
  const [at, setAt] = useState<number | null>(null);
  const samples = picture.lines.map(([name]) => sourceOf(all, name)).find((source) => picture.lines.some(([name]) => find(source, name))) ?? all.server;
  const shade = theme.value;
  const format = picture.format ?? short;
  const there = picture.lines.map(([name, label]) => ({ label, values: find(samples, name) })).filter((line) => line.values);
  const labels = there.map((line) => line.label).join('|');
  const options = useMemo((): Omit<uPlot.Options, 'width' | 'height'> => ({
    cursor: { sync: { key: 'live' }, points: { size: 6 } },
    legend: { show: false },
    hooks: { setCursor: [(plot: uPlot) => setAt(plot.cursor.idx ?? null)] },
    padding: [6, 8, 0, 0],
    scales: { x: { time: true, range: (_, low, high) => [Math.min(low, high - span), high] }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(picture.scale ? 0.01 : 1, (high ?? 0) * 1.1)] } },
    axes: [{ ...axis(), space: 74, size: 26, values: (_, all) => all.map((second) => clock(second, all.length > 1 && all[1] - all[0] < 60)) }, axis(format, 62)],
    series: [{}, ...labels.split('|').map((label, place) => ({ label, stroke: seriesColour(place), width: 1.75, points: { show: false }, ...(picture.filled && place === 0 ? { fill: `${seriesColour(place)}2a` } : {}) }))],
  }), [picture, labels, shade, span]);
  const from = Math.max(0, samples.times.findIndex((time) => time >= (samples.times.at(-1) ?? 0) - span));
  const data = useMemo(() => [samples.times.slice(from), ...there.map((line) => {
    const values = (picture.rates ? rate(samples.times, line.values!) : line.values!).slice(from);
    return picture.scale ? values.map((value) => (value === null ? null : value * picture.scale!)) : values;
  })] as uPlot.AlignedData, [samples, span, labels]);
  if (!there.length || (picture.hideUnused && there.every((line) => line.values!.every((value) => !value)))) return null;
  const place = at !== null && at < data[0].length ? at : data[0].length - 1;
  return (
    <section class="card trend">
      <header><h3>{picture.title}</h3><span class="muted">{at === null || place < 0 ? '' : clock(data[0][place])}</span></header>
      <ul class="keys">{there.map((line, n) => {
        const value = data[n + 1]?.[place];
        return <li key={line.label}><span class={`swatch series-${(n % 8) + 1}`} />{line.label} <b>{value === null || value === undefined ? '–' : format(value)}</b></li>;
      })}</ul>
      <Plot options={options} data={data} height={150} label={`${picture.title}, the last ${span} seconds`} />
    </section>
  );
}

export const Trends = ({ all, span }: { all: Everything; span: number }) =>
  <div class="plots">{PICTURES.map((picture) => <Trend key={picture.title} picture={picture} all={all} span={span} />)}</div>;
