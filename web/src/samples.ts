// Counters over time: the last hour as the server kept it, then what is asked every two seconds.
import { ApiError, call, select, show } from './api';

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
async function ask(): Promise<Answer> {
  const rows = await select("SELECT variable_name AS n, variable_value AS v FROM performance_schema.global_status");
  const named: [string, number][] = rows.map((row) => [show(row.n), Number(row.v)]);
  for (const row of await select("SELECT status AS s FROM data_dictionary.ENGINE_STATUS WHERE engine <> 'MEMORY'")) {
    for (const line of show(row.s).split('\n')) {
      const [, name, value] = /^([a-z_.]+) (\d+)$/.exec(line) ?? [];
      if (name) named.push([name, Number(value)]);
    }
  }
  const numbers = named.filter(([, value]) => Number.isFinite(value));
  return { names: numbers.map(([name]) => name), samples: [[Date.now() / 1000, ...numbers.map(([, value]) => value)]] };
}

export const NONE: Samples = { times: [], series: new Map(), kept: true };

export async function more(samples: Samples): Promise<Samples> {
  if (samples.kept) {
    try {
      const seconds = samples.times.length ? Math.min(3600, Math.ceil(Date.now() / 1000 - samples.times[samples.times.length - 1]) + 3) : 3600;
      const answer = await call<Answer>('GET', `1.0/live/history?seconds=${seconds}`);
      return append(samples, answer.names, answer.samples);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    }
  }
  const answer = await ask();
  return append({ ...samples, kept: false }, answer.names, answer.samples);
}

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
