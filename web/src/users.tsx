// The page Users: accounts and roles, what they may do, and forms that write the statements.
import { useState } from 'preact/hooks';
import { revokeOf } from './grants';
import { quoteName, quoteText, run, select, selectIfThere, show } from './api';
import { Button, Dialog, Failure, Field, Loading, SqlStep, Table, useLoad } from './ui';

interface Account { user: string; host: string; locked: boolean; expired: boolean; plugin: string; role: boolean }
const spell = (account: { user: string; host: string }): string => `${quoteText(account.user)}@${quoteText(account.host)}`;
const title = (account: { user: string; host: string }): string => `${account.user || '(anyone)'}@${account.host}`;
const PRIVILEGES = ['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'CREATE', 'ALTER', 'DROP', 'INDEX', 'REFERENCES', 'CREATE VIEW', 'SHOW VIEW', 'TRIGGER', 'EXECUTE', 'CREATE ROUTINE', 'ALTER ROUTINE', 'EVENT', 'LOCK TABLES', 'CREATE TEMPORARY TABLES'];
const SERVER = ['PROCESS', 'RELOAD', 'SHUTDOWN', 'FILE', 'CREATE USER', 'SHOW DATABASES', 'REPLICATION CLIENT', 'REPLICATION SLAVE', 'SUPER'];

async function load() {
  const rows = await select("SELECT user, host, account_locked AS locked, password_expired AS expired, plugin, authentication_string AS secret FROM mysql.user ORDER BY 1, 2");
  const edges = await selectIfThere('SELECT from_user AS fu, from_host AS fh, to_user AS tu, to_host AS th FROM mysql.role_edges');
  const accounts = rows.map((row): Account => ({
    user: show(row.user), host: show(row.host), locked: row.locked === 'Y', expired: row.expired === 'Y', plugin: show(row.plugin),
    // CREATE ROLE makes an account that is locked, expired and has no password.
    role: row.locked === 'Y' && row.expired === 'Y' && (row.secret === null || row.secret === ''),
  }));
  return { accounts, edges: edges.map((row) => ({ role: `${show(row.fu)}@${show(row.fh)}`, to: `${show(row.tu)}@${show(row.th)}` })) };
}

function Password({ text, onText }: { text: string; onText: (text: string) => void }) {
  return <Field label="Password"><input type="password" autocomplete="new-password" value={text} onInput={(event) => onText(event.currentTarget.value)} /></Field>;
}

function CreateAccount({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [user, setUser] = useState('');
  const [host, setHost] = useState('%');
  const [password, setPassword] = useState('');
  const [role, setRole] = useState(false);
  const sql = user === '' ? '' : role ? `CREATE ROLE ${spell({ user, host })}` : `CREATE USER ${spell({ user, host })} IDENTIFIED BY ${quoteText(password)}`;
  return (
    <Dialog title="Create account or role" onClose={onClose}>
      <label><input type="checkbox" checked={role} onChange={(event) => setRole(event.currentTarget.checked)} /> a role: a set of privileges that accounts share</label>
      <div class="form-grid"><Field label="Name"><input value={user} spellcheck={false} onInput={(event) => setUser(event.currentTarget.value)} /></Field><Field label="From host"><input value={host} spellcheck={false} onInput={(event) => setHost(event.currentTarget.value)} /></Field></div>
      {!role && <Password text={password} onText={setPassword} />}
      <SqlStep sql={sql} secret={role || !password ? undefined : quoteText(password)} onDone={onDone} />
    </Dialog>
  );
}

function Grant({ account, roles, onClose, onDone }: { account: Account; roles: Account[]; onClose: () => void; onDone: () => void }) {
  const [what, setWhat] = useState<'privileges' | 'role'>('privileges');
  const [picked, setPicked] = useState<string[]>(['SELECT']);
  const [schema, setSchema] = useState('*');
  const [table, setTable] = useState('*');
  const [option, setOption] = useState(false);
  const [role, setRole] = useState(0);
  const flip = (name: string, on: boolean) => setPicked(on ? [...picked, name] : picked.filter((each) => each !== name));
  const place = `${schema === '*' ? '*' : quoteName(schema)}.${table === '*' ? '*' : quoteName(table)}`;
  const to = spell(account);
  const sql = what === 'role' ? (roles[role] ? `GRANT ${spell(roles[role])} TO ${to}` : '') : picked.length ? `GRANT ${picked.join(', ')} ON ${place} TO ${to}${option ? ' WITH GRANT OPTION' : ''}` : '';
  return (
    <Dialog title={`Grant to ${title(account)}`} onClose={onClose} wide>
      <Field label="Grant"><select value={what} onChange={(event) => setWhat(event.currentTarget.value as typeof what)}><option value="privileges">privileges</option><option value="role">a role</option></select></Field>
      {what === 'role' ? (roles.length ? <Field label="Role"><select value={role} onChange={(event) => setRole(Number(event.currentTarget.value))}>{roles.map((one, at) => <option key={at} value={at}>{title(one)}</option>)}</select></Field> : <p class="muted">There is no role yet.</p>) : <>
        <div class="form-grid"><Field label="Schema (* for all)"><input value={schema} spellcheck={false} onInput={(event) => setSchema(event.currentTarget.value || '*')} /></Field><Field label="Table (* for all)"><input value={table} spellcheck={false} onInput={(event) => setTable(event.currentTarget.value || '*')} /></Field></div>
        <fieldset class="checks"><legend>Privileges</legend>{[...PRIVILEGES, ...(schema === '*' && table === '*' ? SERVER : [])].map((name) => <label key={name}><input type="checkbox" checked={picked.includes(name)} onChange={(event) => flip(name, event.currentTarget.checked)} />{name}</label>)}</fieldset>
        <label><input type="checkbox" checked={option} onChange={(event) => setOption(event.currentTarget.checked)} /> may grant them to others</label>
      </>}
      <SqlStep sql={sql} onDone={onDone} />
    </Dialog>
  );
}

function AccountView({ account, all, changed }: { account: Account; all: Account[]; changed: () => void }) {
  const [dialog, setDialog] = useState<'grant' | 'drop' | 'password' | 'lock' | null>(null);
  const [revoking, setRevoking] = useState('');
  const [password, setPassword] = useState('');
  const grants = useLoad(async () => (await run(`SHOW GRANTS FOR ${spell(account)}`)).results[0].rows?.map((row) => show(row[0])) ?? [], [spell(account)]);
  const done = () => { setDialog(null); setRevoking(''); grants.again(); changed(); };
  return (
    <section class="card stack">
      <div class="bar"><h2>{title(account)}</h2>{account.role && <span class="badge">role</span>}{account.locked && !account.role && <span class="badge warn">locked</span>}<span class="spring" />
        <Button icon="plus" label="Grant" kind="primary" onClick={() => setDialog('grant')} />
        {!account.role && <><Button label="Password" onClick={() => setDialog('password')} /><Button label={account.locked ? 'Unlock' : 'Lock'} onClick={() => setDialog('lock')} /></>}
        <Button label="Drop" kind="danger" onClick={() => setDialog('drop')} />
      </div>
      <p class="muted">{account.role ? 'Accounts that have this role have these privileges.' : `Logs in with ${account.plugin}.`}</p>
      <Failure error={grants.error} />
      {grants.value && <Table label="Grants" rows={grants.value} columns={[['Grant', (line) => <code>{line}</code>], ['', (line) => revokeOf(line) && <Button label="Revoke" aria-label={`Revoke: ${line}`} onClick={() => setRevoking(revokeOf(line))} />]]} />}
      {dialog === 'grant' && <Grant account={account} roles={all.filter((one) => one.role && one !== account)} onClose={() => setDialog(null)} onDone={done} />}
      {dialog === 'drop' && <Dialog title={`Drop ${title(account)}`} onClose={() => setDialog(null)}><SqlStep danger sql={`DROP ${account.role ? 'ROLE' : 'USER'} ${spell(account)}`} onDone={done} /></Dialog>}
      {dialog === 'lock' && <Dialog title={account.locked ? 'Unlock' : 'Lock'} onClose={() => setDialog(null)}><SqlStep sql={`ALTER USER ${spell(account)} ACCOUNT ${account.locked ? 'UNLOCK' : 'LOCK'}`} onDone={done} /></Dialog>}
      {dialog === 'password' && <Dialog title={`Password of ${title(account)}`} onClose={() => setDialog(null)}><Password text={password} onText={setPassword} /><SqlStep sql={password ? `ALTER USER ${spell(account)} IDENTIFIED BY ${quoteText(password)}` : ''} secret={quoteText(password)} onDone={() => { setPassword(''); done(); }} /></Dialog>}
      {revoking && <Dialog title="Revoke" onClose={() => setRevoking('')}><SqlStep danger sql={revoking} onDone={done} /></Dialog>}
    </section>
  );
}

export function Users() {
  const { value, error, again } = useLoad(load, []);
  const [chosen, setChosen] = useState('');
  const [creating, setCreating] = useState(false);
  const account = value?.accounts.find((one) => title(one) === chosen) ?? value?.accounts[0];
  return (
    <div class="page">
      <header><h1>Users</h1><span class="spring" /><Button icon="plus" label="Create account or role" kind="primary" onClick={() => setCreating(true)} /></header>
      <Failure error={error} />
      {!value ? !error && <Loading what="accounts" /> : <>
        <section class="card"><Table label="Accounts" rows={value.accounts} columns={[
          ['Account', (one) => <button type="button" class="as-text" aria-pressed={one === account} onClick={() => setChosen(title(one))}>{title(one)}</button>], ['Kind', (one) => (one.role ? 'role' : 'account')],
          ['State', (one) => (one.role ? '' : one.locked ? <span class="badge warn">locked</span> : one.expired ? <span class="badge warn">password expired</span> : <span class="badge on">open</span>)],
          ['Roles', (one) => value.edges.filter((edge) => edge.to === title(one)).map((edge) => edge.role).join(', ')], ['Log-in', (one) => (one.role ? '' : one.plugin)],
        ]} /></section>
        {account && <AccountView key={title(account)} account={account} all={value.accounts} changed={again} />}
      </>}
      {creating && <CreateAccount onClose={() => setCreating(false)} onDone={() => { setCreating(false); again(); }} />}
    </div>
  );
}
