// The page Settings: every variable, and a change of one with its SQL.
import { useMemo, useState } from 'preact/hooks';
import { bytes, quoteName, quoteText, select, selectIfThere, show, type Value } from './api';
import { Effect } from './effect';
import { Dialog, Failure, Field, Loading, SqlStep, useLoad } from './ui';

interface Variable {
  name: string; value: string; source: string; restart: boolean; meaning: string; low: string; high: string; setBy: string; kept?: string;
  unit: string; allowed: string[]; standard?: string; unused: boolean;
}

async function load(): Promise<Variable[]> {
  const about = new Map((await selectIfThere('SELECT * FROM data_dictionary.GLOBAL_VARIABLES')).map((row) => [show(row.variable_name).toLowerCase(), row]));
  const info = new Map((await selectIfThere('SELECT variable_name AS n, variable_source AS s, min_value AS lo, max_value AS hi, set_user AS u, set_time AS t FROM performance_schema.variables_info')).map((row) => [show(row.n).toLowerCase(), row]));
  const kept = new Map((await selectIfThere('SELECT variable_name AS n, variable_value AS v FROM performance_schema.persisted_variables')).map((row) => [show(row.n).toLowerCase(), show(row.v)]));
  const text = (value: Value | undefined) => (value === null || value === undefined ? '' : show(value));
  return (await select('SELECT variable_name AS n, variable_value AS v FROM performance_schema.global_variables ORDER BY 1')).map((row) => {
    const name = show(row.n);
    const one = about.get(name.toLowerCase());
    const more = info.get(name.toLowerCase());
    const bounded = more && text(more.hi) !== '0' && text(more.hi) !== '';
    return {
      name, value: text(row.v), source: text(more?.s).toLowerCase(), restart: one?.needs_restart === 'YES', meaning: text(one?.description),
      low: text(one?.min_value) || (bounded ? text(more.lo) : ''), high: text(one?.max_value) || (bounded ? text(more.hi) : ''),
      setBy: more?.u ? `${show(more.u)}, ${show(more.t)}` : '', kept: kept.get(name.toLowerCase()),
      unit: one && 'unit' in one ? text(one.unit) : unitOf(name), allowed: text(one?.allowed_values).split(',').map((word) => word.trim()).filter(Boolean),
      standard: one && 'default_value' in one ? text(one.default_value) : undefined, unused: one?.has_effect === 'NO',
    };
  });
}

/** The unit that a name tells of, for a server that does not say. */
function unitOf(name: string): string {
  if (/_(bytes|size|packet)$|buffer_(length|size)$/.test(name)) return 'bytes';
  if (/_(ms|milliseconds)$/.test(name)) return 'milliseconds';
  if (/_(us|microseconds)$/.test(name)) return 'microseconds';
  if (/_(timeout|seconds|time)$/.test(name)) return 'seconds';
  return '';
}

/** A value with its unit, large sizes also as people say them. */
const worded = (value: string, unit: string): string => `${value}${unit ? ` ${unit}` : ''}${unit === 'bytes' && Number(value) >= 1024 ? ` (${bytes(Number(value))})` : ''}`;

const SCOPES: [string, string][] = [['GLOBAL', 'until the server stops'], ['PERSIST', 'now and after restarts'], ['PERSIST_ONLY', 'after the next restart']];

function Change({ variable, onClose, onDone }: { variable: Variable; onClose: () => void; onDone: () => void }) {
  const [scope, setScope] = useState(variable.restart ? 'PERSIST_ONLY' : 'GLOBAL');
  const [text, setText] = useState(variable.value);
  const isSwitch = variable.value === 'ON' || variable.value === 'OFF';
  // A value that is none of the words is a list of them.
  const choices = variable.allowed.includes(variable.value) ? variable.allowed : isSwitch && !variable.allowed.length ? ['ON', 'OFF'] : [];
  const quoted = /^-?\d+(\.\d+)?$/.test(text) || /^(ON|OFF|DEFAULT)$/.test(text) ? text : quoteText(text);
  const sql = text === variable.value && scope === 'GLOBAL' ? '' : `SET ${scope} ${quoteName(variable.name)} = ${quoted}`;
  return (
    <Dialog title={variable.name} onClose={onClose}>
      {variable.meaning && <p>{variable.meaning}</p>}
      <dl class="facts">
        <dt>Value now</dt><dd class="mono">{variable.value === '' ? '(empty)' : worded(variable.value, variable.unit)}</dd>
        {variable.standard !== undefined && <><dt>Default</dt><dd class="mono">{variable.standard === '' ? '(empty)' : worded(variable.standard, variable.unit)}</dd></>}
        {variable.low !== '' && <><dt>Range</dt><dd>{variable.low} to {variable.high} {variable.unit}</dd></>}
        {variable.allowed.length > 0 && <><dt>Values</dt><dd>{variable.allowed.join(', ')}</dd></>}
        <dt>Source</dt><dd>{variable.source || 'unknown'}{variable.setBy && ` (${variable.setBy})`}</dd>
        {variable.kept !== undefined && <><dt>After a restart</dt><dd class="mono">{variable.kept}</dd></>}
        <dt>Takes effect</dt><dd>{variable.unused ? 'never: it is accepted for programs that set it' : variable.restart ? 'after a restart' : 'at once, for new sessions where a session has its own'}</dd>
      </dl>
      <Field label={`New value${variable.unit ? ` (${variable.unit})` : ''}`}>
        {choices.length ? <select value={text} onChange={(event) => setText(event.currentTarget.value)}>{choices.map((word) => <option key={word}>{word}</option>)}</select>
          : <input value={text} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />}
      </Field>
      <fieldset><legend>For how long</legend>{SCOPES.map(([name, meaning]) => (
        <div key={name}><label><input type="radio" name="scope" checked={scope === name} disabled={variable.restart && name !== 'PERSIST_ONLY'} onChange={() => setScope(name)} /> {meaning} <code class="muted">{name}</code></label></div>
      ))}</fieldset>
      <Effect sql={sql} />
      <SqlStep sql={sql} onDone={onDone} />
      {variable.kept !== undefined && <details><summary>Forget the kept value</summary><SqlStep sql={`RESET PERSIST ${quoteName(variable.name)}`} onDone={onDone} /></details>}
    </Dialog>
  );
}

export function Settings() {
  const { value, error, again } = useLoad(load, []);
  const [filter, setFilter] = useState('');
  const [only, setOnly] = useState(false);
  const [chosen, setChosen] = useState<Variable | null>(null);
  const shown = useMemo(() => {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    return (value ?? []).filter((one) => words.every((word) => `${one.name} ${one.meaning} ${one.value}`.toLowerCase().includes(word)) && (!only || (one.source !== '' && one.source !== 'compiled') || one.kept !== undefined));
  }, [value, filter, only]);
  return (
    <div class="page">
      <header><h1>Settings</h1><span class="spring" />
        <label class="inline"><input type="checkbox" checked={only} onChange={(event) => setOnly(event.currentTarget.checked)} /> changed only</label>
        <input type="search" aria-label="Filter settings" placeholder="Name, meaning or value" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
      </header>
      <Failure error={error} />
      {!value ? !error && <Loading what="settings" /> : <section class="card">
        <p class="muted" role="status">{shown.length} of {value.length} variables</p>
        <ul class="settings">{shown.map((one) => (
          <li key={one.name}><button type="button" onClick={() => setChosen(one)}>
            <span class="name mono">{one.name}</span>
            <span class="value mono">{one.value === '' ? '(empty)' : one.value}{one.unit && <small> {one.unit}</small>}</span>
            <span class="meaning">{one.meaning}</span>
            <span class="marks">{one.restart && <span class="badge">restart</span>}{one.kept !== undefined && <span class="badge on">kept</span>}{one.source && one.source !== 'compiled' && <span class="badge warn">{one.source}</span>}</span>
          </button></li>
        ))}</ul>
      </section>}
      {chosen && <Change variable={chosen} onClose={() => setChosen(null)} onDone={() => { setChosen(null); again(); }} />}
    </div>
  );
}
