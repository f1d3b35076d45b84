// Counters over time: the last hour as the server kept it, then what is asked every two seconds.
import { ApiError, call, select, selectIfThere, show } from './api';

export interface Samples { times: number[]; series: Map<string, (number | null)[]>; kept: boolean }
interface Answer { names: string[]; samples: (number | null)[][] }

const POINTS_MAX = 4000;
const plain = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]+/g, '_');

function append(samples: Samples, names: string[], rows: (number | null)[][]): Samples {
  const last = samples.times.at(-1) ?? -Infinity;
  const fresh = rows.filter((row) => Number(row[0]) > last);
  if (!fresh.length) return samples;
  const times = [...samples.times, ...fresh.map((row) => Number(row[0]))].slice(-POINTS_MAX);
  const series = new Map<string, (number | null)[]>();
  const before = samples.times.length;
  const keys = new Map(names.map((name, at) => [plain(name), at + 1]));
  for (const key of new Set([...samples.series.keys(), ...keys.keys()])) {
    const old = samples.series.get(key) ?? new Array<null>(before).fill(null);
    const at = keys.get(key);
    series.set(key, [...old, ...fresh.map((row) => (at === undefined ? null : row[at]))].slice(-POINTS_MAX));
  }
  return { times, series, kept: samples.kept };
}

/** One sample made of SQL, for a server that keeps no history. */
async function askStatus(): Promise<Answer> {
  const rows = await select('SELECT variable_name AS n, variable_value AS v FROM performance_schema.global_status');
  return sampleOf(rows.map((row) => [show(row.n), show(row.v) === '' ? NaN : Number(row.v)]));
}

/** The engine's counters now: log, buffer pool, locks, purge. */
async function askEngine(): Promise<Answer> {
  const named: [string, number][] = [];
  for (const row of await selectIfThere("SELECT status AS s FROM data_dictionary.ENGINE_STATUS WHERE engine <> 'MEMORY'")) {
    for (const line of show(row.s).split('\n')) {
      const [, name, value] = /^([a-z0-9_.]+) (\d+)$/.exec(line) ?? [];
      if (name) named.push([name, Number(value)]);
    }
  }
  return sampleOf(named);
}

function sampleOf(named: [string, number][]): Answer {
  const numbers = named.filter(([, value]) => Number.isFinite(value));
  return { names: numbers.map(([name]) => name), samples: [[Date.now() / 1000, ...numbers.map(([, value]) => value)]] };
}

const EMPTY: Samples = { times: [], series: new Map(), kept: true };
/** What the server's history says, and what the engine says since the page is open. */
export interface Everything { server: Samples; engine: Samples }
export const NONE: Everything = { server: EMPTY, engine: EMPTY };

async function moreOfServer(samples: Samples): Promise<Samples> {
  if (samples.kept) {
    try {
      const last = samples.times.at(-1);
      const seconds = last === undefined ? 3600 : Math.max(1, Math.min(3600, Math.ceil(Date.now() / 1000 - last) + 3));
      const answer = await call<Answer>('GET', `1.0/live/history?seconds=${seconds}`);
      return append(samples, answer.names, answer.samples);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    }
  }
  const answer = await askStatus();
  return append({ ...samples, kept: false }, answer.names, answer.samples);
}

export async function more({ server, engine }: Everything): Promise<Everything> {
  const [next, answer] = await Promise.all([moreOfServer(server), askEngine()]);
  return { server: next, engine: append(engine, answer.names, answer.samples) };
}

/** The samples that have a counter. */
export const sourceOf = (all: Everything, name: string): Samples => (find(all.server, name) ? all.server : all.engine);

/** The series of a counter: by its name, or by the end of a longer name. */
export function find(samples: Samples, name: string): (number | null)[] | undefined {
  const key = plain(name);
  const exact = samples.series.get(key);
  if (exact) return exact;
  for (const [other, values] of samples.series) if (other.endsWith(`_${key}`)) return values;
  return undefined;
}

/** Growth a second; a counter that went back (the server started again) gives a gap. */
export function rate(times: number[], values: (number | null)[]): (number | null)[] {
  return values.map((value, at) => {
    const before = at ? values[at - 1] : null;
    const gap = at ? times[at] - times[at - 1] : 0;
    return value === null || before === null || gap <= 0 || value < before ? null : (value - before) / gap;
  });
}
