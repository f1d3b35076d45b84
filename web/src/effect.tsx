// The steps of a change, which the server lists without taking them: EXPLAIN SET, EXPLAIN ALTER TABLE.
import { useEffect, useState } from 'preact/hooks';
import { ApiError, bytes, errorText, select, show, type Item } from './api';

/** What a change would do, asked of the server while it is typed; nothing is changed. */
export function Effect({ sql, schema }: { sql: string; schema?: string }) {
  const [steps, setSteps] = useState<{ rows?: Item[]; error?: unknown }>({});
  useEffect(() => {
    if (sql === '') { setSteps({}); return undefined; }
    let isCurrent = true;
    const timer = setTimeout(() => {
      select(`EXPLAIN ${sql}`, undefined, schema).then((rows) => isCurrent && setSteps({ rows }), (error) => isCurrent && setSteps({ error }));
    }, 250);
    return () => { isCurrent = false; clearTimeout(timer); };
  }, [sql, schema]);
  if (steps.error instanceof ApiError && (steps.error.code === 1064 || steps.error.code === 1235)) return null;
  if (steps.error) return <div class="failure" role="status">{errorText(steps.error)}</div>;
  if (!steps.rows) return null;
  const list = steps.rows.filter((row) => row.step !== null);
  // EXPLAIN SET has a line with the sums; a change of a table has none.
  const total = steps.rows.find((row) => row.step === null);
  const sum = (key: string) => (total ? Number(total[key] ?? 0) : list.reduce((all, row) => all + Number(row[key] ?? 0), 0));
  const [seconds, size] = [sum('estimated_seconds'), sum('estimated_bytes')];
  const algorithm = list[0]?.algorithm;
  return (
    <section class="effect" aria-label="Effect">
      <h3>What it would do {algorithm ? <span class="badge on">{show(algorithm).toLowerCase()}</span> : null}</h3>
      <ol>{list.map((row) => (
        <li key={show(row.step)}>{show(row.action)}{row.current_value !== null && row.current_value !== undefined && <> <code>{show(row.current_value)}</code> → <code>{show(row.new_value ?? '')}</code></>}
          {row.blocks !== null && show(row.blocks) !== 'nothing' && <span class={`badge ${row.online === 'NO' ? 'warn' : ''}`}>blocks {show(row.blocks)}</span>}{row.needs_restart === 'YES' && <span class="badge">restart</span>}</li>
      ))}</ol>
      <p class="muted">About {seconds < 1 ? `${(seconds * 1000).toFixed(0)} ms` : `${seconds.toFixed(1)} s`}{size !== 0 && `, ${size < 0 ? '−' : ''}${bytes(Math.abs(size))}`}. Nothing has changed yet.</p>
    </section>
  );
}
