// What the server's tables say is wrong, each with the statement that shows it.
import { bytes, selectIfThere, show, type Item } from './api';
import { openQuery } from './query';
import { age, Button, Failure, Loading, useLoad } from './ui';

type Weight = 'bad' | 'warn' | 'remark';
interface Finding { weight: Weight; title: string; text: string; sql: string }
/** A rule asks one statement; what it answers is shown as findings. */
interface Rule { about: string; sql: string; judge: (rows: Item[]) => Finding[] }

const number = (value: Item[string]): number => Number(value ?? 0);
const status = (rows: Item[]): Map<string, number> => new Map(rows.map((row) => [show(row.n).toLowerCase().replace(/^[a-z]+\.(?=[a-z]+\.)/, ''), number(row.v)]));
const one = (rule: { weight: Weight; sql: string }, title: string, text: string): Finding => ({ ...rule, title, text });

const LONG_SECONDS = 60;
const PURGE_MAX = 10_000;
const FLUSH_MAX_US = 20_000;
const EXAMINED_MIN = 10_000;

const RULES: Rule[] = [
  {
    about: 'Long transactions',
    sql: `SELECT trx_mysql_thread_id AS session, TIMESTAMPDIFF(SECOND, trx_started, NOW()) AS seconds, trx_rows_locked AS locked, trx_rows_modified AS changed, trx_query AS statement\nFROM information_schema.innodb_trx\nWHERE trx_started < NOW() - INTERVAL ${LONG_SECONDS} SECOND\nORDER BY trx_started`,
    judge(rows) {
      if (!rows.length) return [];
      const oldest = rows[0];
      return [one({ weight: number(oldest.seconds) > 600 ? 'bad' : 'warn', sql: this.sql }, rows.length === 1 ? `A transaction is open for ${age(number(oldest.seconds))}` : `${rows.length} transactions are open for more than a minute, the oldest for ${age(number(oldest.seconds))}`,
        `Session ${show(oldest.session)} keeps old row versions from purge and holds ${number(oldest.locked).toLocaleString()} row locks. Commit sooner, or kill it on the page Transactions.`)];
    },
  },
  {
    about: 'Lock waits',
    sql: 'SELECT wait_age_secs AS seconds, locked_table AS what, waiting_pid AS waiter, waiting_query, blocking_pid AS holder, blocking_query\nFROM sys.innodb_lock_waits\nWHERE wait_age_secs >= 5\nORDER BY wait_age_secs DESC',
    judge(rows) {
      if (!rows.length) return [];
      return [one({ weight: 'warn', sql: this.sql }, `${rows.length} ${rows.length === 1 ? 'session waits' : 'sessions wait'} for row locks for more than 5 seconds`, `The longest waits ${age(number(rows[0].seconds))} for session ${show(rows[0].holder)} on ${show(rows[0].what)}. The page Locks draws who waits for whom.`)];
    },
  },
  {
    about: 'Purge lag and the log',
    sql: "SELECT status_rows.n, status_rows.v\nFROM (SELECT name AS n, value AS v FROM data_dictionary.INNODB_STATUS) AS status_rows\nWHERE n LIKE '%purge%' OR n LIKE '%deadlocks%' OR n LIKE '%brake%' OR n LIKE '%pool.%' OR n LIKE '%undo_file%'",
    judge(rows) {
      const of = status(rows);
      const found: Finding[] = [];
      const waiting = of.get('purge.transactions_waiting_for_purge') ?? 0;
      if (waiting > PURGE_MAX) found.push(one({ weight: waiting > 100 * PURGE_MAX ? 'bad' : 'warn', sql: this.sql }, `Purge is ${waiting.toLocaleString()} transactions behind`, `Old row versions make reads slower and files larger (undo: ${bytes(of.get('transactions.undo_file_bytes') ?? 0)}). An old snapshot keeps them: look for long transactions.`));
      if ((of.get('log.brake_microseconds') ?? 0) > 1000) found.push(one({ weight: 'warn', sql: this.sql }, 'Writers are slowed down so that pages are written in time', 'The log fills faster than changed pages reach their files. Faster storage or a larger log help.'));
      const deadlocks = of.get('locks.deadlocks_total') ?? 0;
      if (deadlocks > 0) found.push(one({ weight: 'remark', sql: 'SHOW ENGINE INNODB STATUS' }, `${deadlocks.toLocaleString()} ${deadlocks === 1 ? 'deadlock' : 'deadlocks'} since the start`, 'The status shows the latest one. Take locks in the same order everywhere.'));
      const [used, total, read] = [of.get('pool.pages_data') ?? 0, of.get('pool.pages_total') ?? 0, of.get('pool.evictions_total') ?? 0];
      if (total > 0 && used / total > 0.95 && read > used) found.push(one({ weight: 'warn', sql: this.sql }, 'The buffer pool is too small for the data in use', `${read.toLocaleString()} pages had to leave for others. A larger innodb_buffer_pool_size saves reads.`));
      return found;
    },
  },
  {
    about: 'Full scans',
    sql: `SELECT schema_name, digest_text, count_star AS runs, sum_rows_examined AS examined, sum_rows_sent AS sent, ROUND(sum_timer_wait / 1e12, 3) AS seconds\nFROM performance_schema.events_statements_summary_by_digest\nWHERE sum_no_index_used > 0 AND sum_rows_examined > ${EXAMINED_MIN} AND sum_rows_examined > 50 * (sum_rows_sent + sum_rows_affected)\nORDER BY sum_rows_examined DESC\nLIMIT 5`,
    judge(rows) {
      return rows.map((row) => one({ weight: 'warn', sql: this.sql }, `A statement reads ${Math.round(number(row.examined) / Math.max(1, number(row.runs))).toLocaleString()} rows each time without an index`, `${show(row.digest_text).slice(0, 200)} ran ${number(row.runs).toLocaleString()} times and returned ${number(row.sent).toLocaleString()} of ${number(row.examined).toLocaleString()} rows. An index on the columns of its WHERE clause may help: open it and press Explain.`));
    },
  },
  {
    about: 'Slow storage',
    sql: "SELECT engine, status FROM data_dictionary.ENGINE_STATUS WHERE status LIKE '%log.flush_p99_microseconds%'",
    judge(rows) {
      return rows.flatMap((row) => {
        const late = Number(/log\.flush_p99_microseconds (\d+)/.exec(show(row.status))?.[1] ?? 0);
        return late > FLUSH_MAX_US ? [one({ weight: 'remark', sql: this.sql }, `Storage takes long: one log write in a hundred takes ${(late / 1000).toFixed(0)} ms`, 'A commit waits for it. A faster disk, or fewer and larger transactions, help.')] : [];
      });
    },
  },
  {
    about: 'Connections',
    sql: "SELECT variable_name AS n, variable_value AS v FROM performance_schema.global_status WHERE variable_name IN ('Threads_connected', 'Max_used_connections', 'Aborted_connects', 'Created_tmp_tables', 'Created_tmp_disk_tables', 'Slow_queries')\nUNION ALL\nSELECT variable_name, variable_value FROM performance_schema.global_variables WHERE variable_name = 'max_connections'",
    judge(rows) {
      const of = status(rows);
      const found: Finding[] = [];
      const [most, limit] = [of.get('max_used_connections') ?? 0, of.get('max_connections') ?? 0];
      if (limit > 0 && most > 0.8 * limit) found.push(one({ weight: most >= limit ? 'bad' : 'warn', sql: this.sql }, `${most} of ${limit} connections were in use at once`, 'Raise max_connections, or let the application share its connections.'));
      const [disk, all] = [of.get('created_tmp_disk_tables') ?? 0, of.get('created_tmp_tables') ?? 0];
      if (disk > 100 && disk > 0.2 * all) found.push(one({ weight: 'remark', sql: this.sql }, `${((100 * disk) / all).toFixed(0)} % of the temporary tables went to disk`, 'A larger tmp_table_size, or an index that gives the wanted order, avoids it.'));
      return found;
    },
  },
  {
    about: 'Disk space',
    sql: "SELECT variable_name AS n, variable_value AS v FROM performance_schema.global_status WHERE variable_name IN ('Datadir_free_bytes', 'Datadir_total_bytes')",
    judge(rows) {
      const of = status(rows);
      const [free, total] = [of.get('datadir_free_bytes') ?? 0, of.get('datadir_total_bytes') ?? 0];
      if (total === 0 || (free > 0.1 * total && free > 2 ** 31)) return [];
      return [one({ weight: free < 0.03 * total || free < 2 ** 29 ? 'bad' : 'warn', sql: this.sql }, `${bytes(free)} of ${bytes(total)} are free on the disk of the data`, 'When it is full, statements that write fail. Free some space or move the data directory.')];
    },
  },
  {
    about: 'Tables without a primary key',
    sql: "SELECT t.table_schema, t.table_name\nFROM information_schema.tables t\nLEFT JOIN information_schema.table_constraints c ON c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.constraint_type = 'PRIMARY KEY'\nWHERE t.table_type = 'BASE TABLE' AND t.table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema', 'data_dictionary') AND c.constraint_name IS NULL\nLIMIT 200",
    judge(rows) {
      if (!rows.length) return [];
      const names = rows.slice(0, 3).map((row) => `${show(row.table_schema)}.${show(row.table_name)}`).join(', ');
      return [one({ weight: 'remark', sql: this.sql }, `${rows.length} ${rows.length === 1 ? 'table has' : 'tables have'} no primary key`, `${names}${rows.length > 3 ? ' and others' : ''}. Rows cannot be named, and replication and tools work worse.`)];
    },
  },
  {
    about: 'Accounts without a password',
    sql: "SELECT user, host FROM mysql.user WHERE authentication_string = '' AND account_locked = 'N' AND plugin LIKE '%password'",
    judge(rows) {
      return rows.length ? [one({ weight: 'bad', sql: this.sql }, `${rows.length} ${rows.length === 1 ? 'account has' : 'accounts have'} no password`, `${rows.slice(0, 3).map((row) => `${show(row.user)}@${show(row.host)}`).join(', ')}: whoever reaches the server may use them.`)] : [];
    },
  },
  {
    about: 'Durability',
    sql: "SELECT variable_name AS n, variable_value AS v FROM performance_schema.global_variables WHERE variable_name IN ('innodb_flush_log_at_trx_commit', 'innodb_doublewrite')",
    judge(rows) {
      const of = new Map(rows.map((row) => [show(row.n), show(row.v)]));
      const weak = of.get('innodb_flush_log_at_trx_commit');
      return weak !== undefined && weak !== '1' ? [one({ weight: 'warn', sql: this.sql }, 'A crash of the machine may lose the last commits', `innodb_flush_log_at_trx_commit is ${weak}; 1 makes each commit durable.`)] : [];
    },
  },
];

async function look(): Promise<Finding[]> {
  const found = await Promise.all(RULES.map(async (rule) => rule.judge(await selectIfThere(rule.sql))));
  const order: Weight[] = ['bad', 'warn', 'remark'];
  return found.flat().sort((a, b) => order.indexOf(a.weight) - order.indexOf(b.weight));
}

const WORDS: Record<Weight, string> = { bad: 'urgent', warn: 'worth a look', remark: 'note' };

export function Advice({ turn }: { turn: number }) {
  const { value, error } = useLoad(look, [Math.floor(turn / 5)]);
  if (!value) return error ? <Failure error={error} /> : <Loading what="advice" />;
  return <>
    <Failure error={error} />
    {value.length === 0 && <p class="all-well"><span class="dot good" /> Nothing is wrong, as far as the server's tables say.</p>}
    <ul class="findings" aria-label="Findings">{value.map((finding) => (
      <li key={finding.title} class={finding.weight}>
        <span class={`badge ${finding.weight === 'remark' ? '' : finding.weight}`}>{WORDS[finding.weight]}</span>
        <div><h3>{finding.title}</h3><p>{finding.text}</p></div>
        <Button icon="query" label="Show" aria-label={`Show the statement of: ${finding.title}`} onClick={() => openQuery(finding.sql, '')} />
      </li>
    ))}</ul>
    <p class="muted">Looked at: {RULES.map((rule) => rule.about.toLowerCase()).join(', ')}.</p>
  </>;
}
