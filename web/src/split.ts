// Finds statements and placeholders in SQL text, without understanding more than quotes and comments.

export interface Piece { from: number; to: number; placeholders: number }

/** Where the quoted text or comment that starts at `at` ends, or `at` itself when none starts there. */
function skip(sql: string, at: number): number {
  const two = sql.slice(at, at + 2);
  const one = sql[at];
  if (one === '#' || (two === '--' && /\s|^$/.test(sql[at + 2] ?? ''))) {
    const end = sql.indexOf('\n', at);
    return end < 0 ? sql.length : end;
  }
  if (two === '/*') {
    const end = sql.indexOf('*/', at + 2);
    return end < 0 ? sql.length : end + 2;
  }
  if (one !== "'" && one !== '"' && one !== '`') return at;
  for (let next = at + 1; next < sql.length; next += 1) {
    if (sql[next] === '\\' && one !== '`') { next += 1; continue; }
    if (sql[next] !== one) continue;
    if (sql[next + 1] !== one) return next + 1;
    next += 1;
  }
  return sql.length;
}

/** The statements of a text, each with its place and its number of `?`. */
export function pieces(sql: string): Piece[] {
  const all: Piece[] = [];
  let from = 0;
  let placeholders = 0;
  const close = (to: number) => {
    if (sql.slice(from, to).trim()) all.push({ from, to, placeholders });
    from = to + 1;
    placeholders = 0;
  };
  for (let at = 0; at < sql.length;) {
    const after = skip(sql, at);
    if (after > at) { at = after; continue; }
    if (sql[at] === '?') placeholders += 1;
    if (sql[at] === ';') close(at);
    at += 1;
  }
  close(sql.length);
  return all;
}

/** The statement around a position, or the last one before it. */
export function statementAt(sql: string, position: number): string {
  const all = pieces(sql);
  const found = all.find((piece) => position <= piece.to + 1) ?? all.at(-1);
  return found ? sql.slice(found.from, found.to).trim() : '';
}

export const placeholders = (sql: string): number => pieces(sql).reduce((sum, piece) => sum + piece.placeholders, 0);
