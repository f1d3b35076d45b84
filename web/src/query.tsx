// The page Query: tabs with an editor, and what their statements answered.
import { computed, signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, cancel, errorText, me, progressOf, selectIfThere, show, stream, type Column, type Progress, type Result, type Row, type Value, type Warning } from './api';
import { firstSchema, loadNames, names, schemas } from './catalog';
import { Chart } from './chart';
import { Editor, type Handle } from './editor';
import { allOf, content, download, type Kind } from './export';
import { Flame } from './flame';
import { Grid } from './grid';
import { PlanView } from './planview';
import { placeholders, statementAt } from './split';
import { micro } from './trends';
import { Button, Dialog, say } from './ui';

const ROWS_MAX = 1_000_000;
const HISTORY_MAX = 300;
const WATCH_MS = 400;

interface Parameter { text: string; kind: 'text' | 'number' | 'null' }
interface Tab { id: number; title: string; sql: string; schema: string; parameters: Parameter[] }
interface Past { sql: string; schema: string; at: number; ms: number; ok: boolean; note: string }

/** A result as the page holds it. */
type Picture = 'plan' | 'flame';
interface Shown { columns?: Column[]; rows: Row[]; picture?: Picture; ended?: Result }
interface Outcome { results: Shown[]; progress?: Progress; isStopping?: boolean; error?: unknown; warnings: Warning[]; started: number; ms?: number; serverUs?: number; running: boolean; statementId: string; stop: AbortController; version: number; sql: string }

function read<T>(key: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(key);
    return text ? JSON.parse(text) as T : otherwise;
  } catch { return otherwise; }
}

function keep(key: string, value: unknown): void {
  try { localStorage.setItem(key, JSON.stringify(value)); } catch { say('The browser keeps no more text: close tabs or clear the history'); }
}

/** Tabs and history belong to the account: another one at the same browser does not see them. */
const keyOf = (what: string): string => `squall.${what}.${me.value?.user ?? ''}`;
const blank = (id: number): Tab => ({ id, title: `Query ${id}`, sql: '', schema: firstSchema(), parameters: [] });

const tabs = signal<Tab[]>([]);
const current = signal(1);
const past = signal<Past[]>([]);
const outcomes = signal<Record<number, Outcome>>({});
const tab = computed(() => tabs.value.find((one) => one.id === current.value) ?? tabs.value[0]);
let keptFor: string | undefined;

function restore(): void {
  if (keptFor === me.value?.user) return;
  keptFor = me.value?.user;
  const kept = read<Tab[]>(keyOf('tabs'), []);
  tabs.value = kept.length ? kept : [{ ...blank(1), sql: 'SELECT VERSION(), CURRENT_USER(), NOW();' }];
  current.value = tabs.value[0].id;
  past.value = read<Past[]>(keyOf('history'), []);
  outcomes.value = {};
}

function change(id: number, part: Partial<Tab>): void {
  tabs.value = tabs.value.map((one) => (one.id === id ? { ...one, ...part } : one));
  keep(keyOf('tabs'), tabs.value);
}

/** Opens a tab with a statement, as other pages do. */
export function openQuery(sql: string, schema: string): void {
  restore();
  const id = Math.max(0, ...tabs.value.map((one) => one.id)) + 1;
  tabs.value = [...tabs.value, { ...blank(id), sql, schema }];
  current.value = id;
  keep(keyOf('tabs'), tabs.value);
  location.hash = '#/query';
}

function valueOf(parameter: Parameter): Value {
  if (parameter.kind === 'null') return null;
  if (parameter.kind === 'text') return parameter.text;
  const number = Number(parameter.text);
  // A number that a double cannot hold goes as its digits; the server converts them.
  return Number.isFinite(number) && (Number.isSafeInteger(number) || parameter.text.includes('.')) ? number : parameter.text;
}

function publish(id: number, outcome: Outcome): void {
  outcome.version += 1;
  outcomes.value = { ...outcomes.value, [id]: { ...outcome } };
}

async function execute(id: number, sql: string, picture?: Picture): Promise<void> {
  const one = tabs.value.find((each) => each.id === id);
  if (!one || sql.trim() === '') return;
  const outcome: Outcome = { results: [], warnings: [], started: performance.now(), running: true, statementId: crypto.randomUUID?.() ?? String(Math.random()).slice(2), stop: new AbortController(), version: 0, sql };
  let last: Shown | undefined;
  let due = 0;
  const show = (now: boolean) => {
    const clock = performance.now();
    if (!now && clock < due) return;
    due = clock + 150;
    publish(id, outcome);
  };
  show(true);
  const count = placeholders(sql);
  watch(id, outcome);
  try {
    await stream(sql, {
      schema: one.schema || undefined, id: outcome.statementId, max_rows: ROWS_MAX,
      parameters: count ? Array.from({ length: count }, (_, at) => valueOf(one.parameters[at] ?? { text: '', kind: 'text' })) : undefined,
    }, {
      columns: (columns) => { last = { columns, rows: [], picture: picture ?? (columns.length === 1 && columns[0].name === 'EXPLAIN' ? 'plan' : undefined) }; outcome.results.push(last); show(false); },
      rows: (rows) => { for (const row of rows) last?.rows.push(row); show(false); },
      end: (end) => {
        if (last) { last.ended = end; last = undefined; } else if (end.affected_rows !== undefined) outcome.results.push({ rows: [], ended: end });
        if (end.duration_us !== undefined) outcome.serverUs = (outcome.serverUs ?? 0) + end.duration_us;
        if (end.warning_list) outcome.warnings = end.warning_list;
      },
    }, outcome.stop.signal);
  } catch (error) {
    outcome.error = error instanceof DOMException && error.name === 'AbortError' ? new Error('Stopped') : error;
    if (error instanceof ApiError) {
      for (const result of error.results) outcome.results.push({ columns: result.columns, rows: result.rows ?? [], ended: result });
    }
  }
  outcome.running = false;
  outcome.ms = performance.now() - outcome.started;
  publish(id, outcome);
  const rows = outcome.results.reduce((sum, result) => sum + result.rows.length, 0);
  past.value = [{ sql, schema: one.schema, at: Date.now(), ms: outcome.ms, ok: !outcome.error, note: outcome.error ? errorText(outcome.error) : `${rows} rows` }, ...past.value.filter((entry) => entry.sql !== sql)].slice(0, HISTORY_MAX);
  keep(keyOf('history'), past.value);
}

/** Asks the server now and then how far the statement is. */
function watch(id: number, outcome: Outcome): void {
  setTimeout(async () => {
    if (!outcome.running) return;
    try {
      const progress = await progressOf(outcome.statementId);
      if (outcome.running) { outcome.progress = progress; publish(id, outcome); }
    } catch { /* it has just ended, or the server does not say */ }
    watch(id, outcome);
  }, WATCH_MS);
}

/** Asks the server to end the statement; it answers the request itself with error 1317. */
async function stopRunning(id: number, outcome: Outcome): Promise<void> {
  outcome.isStopping = true;
  publish(id, outcome);
  try {
    await cancel(outcome.statementId);
    setTimeout(() => outcome.stop.abort(), 3000);
  } catch {
    outcome.stop.abort();
  }
}

function Elapsed({ outcome }: { outcome: Outcome }) {
  const [now, setNow] = useState(performance.now());
  useEffect(() => {
    if (!outcome.running) return undefined;
    const id = setInterval(() => setNow(performance.now()), 100);
    return () => clearInterval(id);
  }, [outcome.running]);
  return <>{formatTime(outcome.ms ?? Math.max(0, now - outcome.started))}</>;
}

/** The share of its expected work that a statement has done, and how long the rest may take. */
function Ahead({ progress }: { progress: Progress | undefined }) {
  const { work_done: done, work_expected: expected, elapsed_us: elapsed } = progress ?? { work_done: null, work_expected: null, elapsed_us: 0 };
  if (done === null || !expected) return <progress aria-label="Running" />;
  // The estimate may be too low: a running statement is never done.
  const percent = Math.min(99, (100 * done) / expected);
  const left = percent > 0.5 && percent < 99 ? `about ${formatTime((elapsed / 1000) * (expected / done - 1))} left` : '';
  return <><progress max={100} value={percent} aria-label="Share of the estimated work" /><b class="percent" title="Of the work that the optimizer expects">{percent < 10 ? percent.toFixed(1) : percent.toFixed(0)} %</b><span class="muted">{left}</span></>;
}

const formatTime = (ms: number): string => (ms < 1000 ? `${ms.toFixed(0)} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`);

function History({ onPick, onClose }: { onPick: (entry: Past) => void; onClose: () => void }) {
  const [filter, setFilter] = useState('');
  const shown = past.value.filter((entry) => entry.sql.toLowerCase().includes(filter.toLowerCase()));
  return (
    <Dialog title="History" onClose={onClose} wide>
      <div class="bar"><input type="search" aria-label="Filter the history" placeholder="Filter" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <Button label="Clear" onClick={() => { past.value = []; keep(keyOf('history'), []); }} /></div>
      {!shown.length && <p class="muted">No statement yet.</p>}
      <ul class="history">
        {shown.map((entry, at) => (
          <li key={at}><button type="button" onClick={() => onPick(entry)}>
            <code>{entry.sql.length > 400 ? `${entry.sql.slice(0, 400)}…` : entry.sql}</code>
            <small class={entry.ok ? '' : 'bad'}>{new Date(entry.at).toLocaleString()} · {formatTime(entry.ms)} · {entry.note}</small>
          </button></li>
        ))}
      </ul>
    </Dialog>
  );
}

function Parameters({ one, count }: { one: Tab; count: number }) {
  const set = (at: number, part: Partial<Parameter>) => {
    const next = Array.from({ length: count }, (_, place) => one.parameters[place] ?? { text: '', kind: 'text' as const });
    next[at] = { ...next[at], ...part };
    change(one.id, { parameters: next });
  };
  return (
    <div class="parameters" role="group" aria-label="Parameters">
      {Array.from({ length: count }, (_, at) => {
        const parameter = one.parameters[at] ?? { text: '', kind: 'text' };
        return (
          <span key={at}>
            <label>?{at + 1} <input value={parameter.text} disabled={parameter.kind === 'null'} spellcheck={false} onInput={(event) => set(at, { text: event.currentTarget.value })} /></label>
            <select aria-label={`Type of parameter ${at + 1}`} value={parameter.kind} onChange={(event) => set(at, { kind: event.currentTarget.value as Parameter['kind'] })}>
              <option value="text">text</option><option value="number">number</option><option value="null">NULL</option>
            </select>
          </span>
        );
      })}
    </div>
  );
}

function ResultView({ result, outcome, title }: { result: Shown; outcome: Outcome; title: string }) {
  const { picture } = result;
  const [view, setView] = useState<'table' | 'chart' | Picture>(picture ?? 'table');
  const [saving, setSaving] = useState(false);
  const order = useRef<Uint32Array | null>(null);
  const [filter, setFilter] = useState('');
  const [within, setWithin] = useState(-1);
  const columns = result.columns ?? [];
  const planText = picture === 'plan' && result.rows[0] ? show(result.rows[0][0]) : '';
  const save = async (kind: Kind) => {
    setSaving(true);
    try {
      const rows = allOf(columns, result.rows, view === 'table' ? order.current : null);
      download(`${title.toLowerCase().replace(/\W+/g, '-')}.${kind}`, await content(kind, rows));
      say(`${rows.count.toLocaleString()} rows saved`);
    } catch (failure) { say(errorText(failure)); } finally { setSaving(false); }
  };
  return (
    <>
      <div class="bar result-bar">
        <div class="segments" role="group" aria-label="View">
          {picture && <Button icon={picture} label={picture === 'plan' ? 'Plan' : 'Flame graph'} aria-pressed={view === picture} onClick={() => setView(picture)} />}
          <Button icon="table" label="Table" aria-pressed={view === 'table'} onClick={() => setView('table')} />
          {!picture && <Button icon="chart" label="Chart" aria-pressed={view === 'chart'} onClick={() => setView('chart')} />}
        </div>
        {view === 'table' && !picture && <>
          <input type="search" aria-label="Filter rows" placeholder="Filter rows" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
          {filter && <select aria-label="Column to filter" value={within} onChange={(event) => setWithin(Number(event.currentTarget.value))}>
            <option value={-1}>any column</option>{columns.map((column, at) => <option key={at} value={at}>{column.name}</option>)}
          </select>}
        </>}
        <span class="spring" />
        {!picture && <div class="segments" role="group" aria-label="Save as">
          <span class="muted save" role="status">{saving ? 'Saving…' : 'Save'}</span>{([['csv', 'CSV'], ['json', 'JSON'], ['parquet', 'Parquet']] as [Kind, string][]).map(([kind, label]) => <Button key={kind} label={label} disabled={saving} onClick={() => void save(kind)} />)}
        </div>}
      </div>
      <div class="result-body">
        {view === 'plan' && planText && <PlanView text={planText} />}
        {view === 'flame' && <Flame rows={result.rows} unit={micro} />}
        {view === 'chart' && <Chart columns={columns} rows={result.rows} version={outcome.version} />}
        {view === 'table' && <Grid columns={columns} rows={result.rows} version={outcome.version} filter={filter} within={within} label={title} onShown={(shown) => { order.current = shown; }} />}
      </div>
    </>
  );
}

function Results({ id, outcome }: { id: number; outcome: Outcome | undefined }) {
  const [chosen, setChosen] = useState(0);
  useEffect(() => setChosen(0), [outcome?.started]);
  if (!outcome) {
    return <div class="empty"><p><kbd>Ctrl</kbd> <kbd>Enter</kbd> runs the selection, or all statements; <kbd>Shift</kbd> <kbd>Enter</kbd> the one at the cursor.</p><p class="muted">Results, charts and plans appear here.</p></div>;
  }
  const results = outcome.results;
  const at = Math.min(chosen, results.length - 1);
  const result = results[at];
  const rows = results.reduce((sum, one) => sum + one.rows.length, 0);
  return (
    <section class="results" aria-label="Results">
      <div class={`state ${outcome.error ? 'bad' : ''}`} role="status">
        {outcome.running ? <Ahead progress={outcome.progress} /> : <span class={`dot ${outcome.error ? 'bad' : 'good'}`} />}
        <span>{outcome.running ? outcome.isStopping ? 'Stopping' : 'Running' : outcome.error ? 'Failed' : 'Done'}</span>
        <span><Elapsed outcome={outcome} /></span>
        {outcome.serverUs !== undefined && <span class="muted">server {(outcome.serverUs / 1000).toFixed(1)} ms</span>}
        {rows > 0 && <span>{rows.toLocaleString()} {rows === 1 ? 'row' : 'rows'}{outcome.running ? ' so far' : ''}{result?.ended?.truncated ? ' (cut off)' : ''}</span>}
        {outcome.running && <Button icon="stop" label="Cancel" kind="danger" disabled={outcome.isStopping} onClick={() => void stopRunning(id, outcome)} />}
      </div>
      {outcome.error ? <div class="failure" role="alert">{errorText(outcome.error)}</div> : null}
      {outcome.warnings.length > 0 && <details class="warnings"><summary>{outcome.warnings.length} warnings</summary><ul>{outcome.warnings.map((warning, n) => <li key={n}>{warning.level} {warning.code}: {warning.message}</li>)}</ul></details>}
      {results.length > 1 && (
        <div class="tabs small" role="tablist" aria-label="Results of the statements">
          {results.map((one, n) => <button type="button" role="tab" key={n} aria-selected={n === at} onClick={() => setChosen(n)}>{one.columns ? `Result ${n + 1}` : `Done ${n + 1}`}</button>)}
        </div>
      )}
      {result && (result.columns
        ? <ResultView key={`${outcome.started} ${at}`} result={result} outcome={outcome} title={`Result ${at + 1}`} />
        : <p class="done">{(result.ended?.affected_rows ?? 0).toLocaleString()} rows changed{result.ended?.last_insert_id ? `, last id ${result.ended.last_insert_id}` : ''}. {result.ended?.info}</p>)}
    </section>
  );
}

/** Whether the server draws profiles. */
const profiles = signal(false);

export function Query() {
  restore();
  useEffect(() => { void selectIfThere("SELECT 1 FROM data_dictionary.PLUGINS WHERE plugin_type = 'PROFILE FORMAT' AND plugin_name = 'FOLDED' AND is_active = 'YES'").then((found) => { profiles.value = found.length > 0; }); }, [me.value?.user]);
  const handle = useRef<Handle | null>(null);
  const [showHistory, setShowHistory] = useState(false);
  const [renaming, setRenaming] = useState(false);
  useEffect(() => {
    loadNames().then(() => { for (const one of tabs.value) if (!one.schema && !one.sql.includes('.')) change(one.id, { schema: firstSchema() }); }, (error) => say(errorText(error)));
  }, []);
  const one = tab.value;
  const outcome = outcomes.value[one.id];
  const chosen = () => handle.current?.selection().trim() || handle.current?.text() || one.sql;
  const go = () => { if (!outcome?.running) void execute(one.id, chosen()); };
  const explain = (words: string, picture: Picture) => {
    const text = handle.current?.selection().trim() || statementAt(handle.current?.text() ?? one.sql, handle.current?.position() ?? 0);
    if (text && !outcome?.running) void execute(one.id, `${words} ${text.replace(/;\s*$/, '').replace(/^\s*(explain|profile)\s+(analyze\s+|format\s*=\s*\w+\s+)*/i, '')}`, picture);
  };
  const add = () => {
    const id = Math.max(0, ...tabs.value.map((each) => each.id)) + 1;
    tabs.value = [...tabs.value, { ...blank(id), schema: one.schema }];
    current.value = id;
    keep(keyOf('tabs'), tabs.value);
  };
  const close = (id: number) => {
    outcomes.value[id]?.stop.abort();
    const left = tabs.value.filter((each) => each.id !== id);
    tabs.value = left.length ? left : [blank(1)];
    if (current.value === id) current.value = tabs.value.at(-1)!.id;
    keep(keyOf('tabs'), tabs.value);
  };
  const step = (event: KeyboardEvent) => {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (!by) return;
    const at = tabs.value.findIndex((each) => each.id === one.id);
    current.value = tabs.value[(at + by + tabs.value.length) % tabs.value.length].id;
    (event.currentTarget as HTMLElement).querySelector<HTMLElement>(`#tab-${current.value}`)?.focus();
  };
  const count = placeholders(one.sql);
  return (
    <div class="query">
      <h1 class="out-of-sight">Query</h1>
      <div class="tab-row">
        <div class="tabs" role="tablist" aria-label="Queries" onKeyDown={step}>
          {tabs.value.map((each) => (
            <button type="button" role="tab" id={`tab-${each.id}`} key={each.id} aria-selected={each.id === one.id} tabIndex={each.id === one.id ? 0 : -1} title="Double-click to rename"
              onClick={() => { current.value = each.id; }} onDblClick={() => setRenaming(true)}>{outcomes.value[each.id]?.running && <span class="dot busy" />}{each.title}</button>
          ))}
        </div>
        <Button icon="plus" label="New query" hideLabel kind="quiet" onClick={add} />
        <Button icon="close" label={`Close ${one.title}`} hideLabel kind="quiet" onClick={() => close(one.id)} />
      </div>
      <div class="bar">
        <Button icon="play" label="Run" kind="primary" title="Ctrl-Enter" disabled={outcome?.running} onClick={go} />
        <Button icon="plan" label="Explain" disabled={outcome?.running} onClick={() => explain('EXPLAIN FORMAT=TREE', 'plan')} />
        <Button label="Analyze" title="Runs the statement and shows where its time went" disabled={outcome?.running} onClick={() => explain('EXPLAIN ANALYZE', 'plan')} />
        {profiles.value && <Button icon="flame" label="Profile" title="Runs the statement and draws a flame graph of its time" disabled={outcome?.running} onClick={() => explain('PROFILE FORMAT=FOLDED', 'flame')} />}
        <span class="spring" />
        <label class="inline">Schema <select value={one.schema} onChange={(event) => change(one.id, { schema: event.currentTarget.value })}>
          <option value="">(none)</option>{schemas.value.map((name) => <option key={name}>{name}</option>)}
        </select></label>
        <Button icon="history" label="History" onClick={() => setShowHistory(true)} />
      </div>
      <div class="sheet"><Editor key={one.id} document={one.sql} names={names.value} schema={one.schema} handle={handle} onChange={(sql) => change(one.id, { sql })} onRun={go} onRunOne={() => { if (!outcome?.running) void execute(one.id, statementAt(handle.current?.text() ?? one.sql, handle.current?.position() ?? 0)); }} /></div>
      {count > 0 && <Parameters one={one} count={count} />}
      <Results key={`results-${one.id}`} id={one.id} outcome={outcome} />
      {showHistory && <History onClose={() => setShowHistory(false)} onPick={(entry) => { setShowHistory(false); handle.current?.replace(entry.sql); handle.current?.focus(); }} />}
      {renaming && <Dialog title="Rename" onClose={() => setRenaming(false)}>
        <form onSubmit={(event) => { event.preventDefault(); change(one.id, { title: String(new FormData(event.currentTarget as HTMLFormElement).get('title')) || one.title }); setRenaming(false); }}>
          <label class="field"><span>Name</span><input name="title" defaultValue={one.title} /></label><button type="submit" class="button primary">Rename</button>
        </form>
      </Dialog>}
    </div>
  );
}
