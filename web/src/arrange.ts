// Filters and sorts rows. A million of them takes seconds, so the work comes in slices: between two slices the page answers its user.
import { isNumber, show, type Column, type Row } from './api';

export interface Order { column: number; descending: boolean }
export interface Wanted { filter: string; within: number; order: Order | null }

/** Rows between two looks at the clock. */
const STEP = 4096;
const SLICE_MS = 12;

/** Lets the page do its own work before the next slice. */
export function pause(): Promise<void> {
  return new Promise((go) => { const channel = new MessageChannel(); channel.port1.onmessage = () => { channel.port1.close(); go(); }; channel.port2.postMessage(0); });
}

/** Merges two sorted neighbours of `from` into `to`; yields now and then. */
function* merge(from: Uint32Array, to: Uint32Array, left: number, middle: number, right: number, before: (a: number, b: number) => number): Generator<void> {
  let [a, b] = [left, middle];
  for (let at = left; at < right; at += 1) {
    if (a < middle && (b >= right || before(from[a], from[b]) <= 0)) { to[at] = from[a]; a += 1; } else { to[at] = from[b]; b += 1; }
    if (at % STEP === 0) yield;
  }
}

function* sorted(kept: Uint32Array<ArrayBuffer>, before: (a: number, b: number) => number): Generator<void, Uint32Array<ArrayBuffer>> {
  for (let at = 0; at < kept.length; at += STEP) { kept.subarray(at, at + STEP).sort(before); yield; }
  let from = kept;
  let to = new Uint32Array(kept.length);
  for (let size = STEP; size < kept.length; size *= 2) {
    for (let at = 0; at < kept.length; at += 2 * size) yield* merge(from, to, at, Math.min(at + size, kept.length), Math.min(at + 2 * size, kept.length), before);
    [from, to] = [to, from];
  }
  return from;
}

/** A text as it is sorted: without regard to case and accents. */
const plain = (text: string): string => (/^[\x00-\x7f]*$/.test(text) ? text : text.normalize('NFD').replace(/\p{M}/gu, '')).toLowerCase();

/** How two rows compare; rows that are equal keep their order, and NULL comes first, as in SQL. */
function* comparison(rows: Row[], columns: Column[], { column, descending }: Order): Generator<void, (a: number, b: number) => number> {
  const sign = descending ? -1 : 1;
  if (columns[column] && isNumber(columns[column])) {
    const keys = new Float64Array(rows.length);
    for (let at = 0; at < rows.length; at += 1) {
      const value = rows[at][column];
      keys[at] = value === null ? -Infinity : Number(value);
      if (at % STEP === 0) yield;
    }
    return (a, b) => sign * (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0) || a - b;
  }
  // A comparison by the language's rules takes ten times as long.
  const keys: (string | null)[] = [];
  for (let at = 0; at < rows.length; at += 1) {
    const value = rows[at][column];
    keys.push(value === null ? null : plain(show(value)));
    if (at % STEP === 0) yield;
  }
  return (left, right) => {
    const a = keys[left];
    const b = keys[right];
    if (a === b) return left - right;
    if (a === null || b === null) return a === null ? -sign : sign;
    return a < b ? -sign : sign;
  };
}

function* arranging(rows: Row[], columns: Column[], { filter, within, order }: Wanted): Generator<void, Uint32Array<ArrayBuffer>> {
  const words = filter.toLowerCase();
  let kept = new Uint32Array(rows.length);
  let count = 0;
  const hits = (value: Row[number]) => show(value).toLowerCase().includes(words);
  for (let at = 0; at < kept.length; at += 1) {
    const row = rows[at];
    if (words === '' || (within >= 0 ? hits(row[within]) : row.some(hits))) { kept[count] = at; count += 1; }
    if (at % STEP === 0) yield;
  }
  kept = kept.subarray(0, count);
  return order ? yield* sorted(kept, yield* comparison(rows, columns, order)) : kept;
}

/** The numbers of the rows to show, filtered and sorted. */
export function arrange(rows: Row[], columns: Column[], wanted: Wanted): Uint32Array {
  const work = arranging(rows, columns, wanted);
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

/** As `arrange`, in slices; nothing once `isWanted` says no. */
export async function arrangeInSlices(rows: Row[], columns: Column[], wanted: Wanted, isWanted: () => boolean): Promise<Uint32Array | undefined> {
  const work = arranging(rows, columns, wanted);
  for (;;) {
    const until = performance.now() + SLICE_MS;
    do {
      const { done, value } = work.next();
      if (done) return value;
    } while (performance.now() < until);
    await pause();
    if (!isWanted()) return undefined;
  }
}
