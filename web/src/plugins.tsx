// The page Plugins: the modules of the server, what each brings, and how to load and unload them.
import { useState } from 'preact/hooks';
import { loadPages } from './pages';
import { quoteText, selectIfThere, select, show, type Item } from './api';
import { Button, Dialog, Failure, Field, Loading, SqlStep, Table, useLoad } from './ui';

/** A word that SQL takes without quotes, or else in quotes. */
const word = (name: string): string => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `\`${name.replaceAll('`', '``')}\``);

async function load() {
  const modules = await select('SELECT * FROM data_dictionary.MODULES ORDER BY module_name');
  const parts = await selectIfThere('SELECT plugin_name AS name, plugin_type AS type, is_active AS active, module_name AS module FROM data_dictionary.PLUGINS ORDER BY 2, 1');
  const byModule = new Map<string, Item[]>();
  for (const part of parts) byModule.set(show(part.module), [...(byModule.get(show(part.module)) ?? []), part]);
  return { modules, byModule };
}

const MORE: [string, string][] = [['module_version', 'Version'], ['module_author', 'Author'], ['module_license', 'Licence'], ['module_licence', 'Licence']];
const isLoaded = (module: Item): boolean | undefined => {
  const state = module.module_state ?? module.module_status ?? module.state ?? module.is_loaded ?? module.is_active;
  return state === undefined ? undefined : /^(active|loaded|yes|on|ready|running)$/i.test(show(state));
};

export function Plugins() {
  const { value, error, again } = useLoad(load, []);
  const [open, setOpen] = useState<Item | null>(null);
  const [installing, setInstalling] = useState<{ name: string; library: string } | null>(null);
  const [removing, setRemoving] = useState('');
  const changed = () => { again(); void loadPages().catch(() => undefined); };
  const count = (module: Item) => value?.byModule.get(show(module.module_name)) ?? [];
  const columns = Object.keys(value?.modules[0] ?? {});
  return (
    <div class="page">
      <header><h1>Plugins</h1><span class="spring" /><Button icon="plus" label="Install plugin" kind="primary" onClick={() => setInstalling({ name: '', library: '' })} /></header>
      <Failure error={error} />
      {!value ? !error && <Loading what="plugins" /> : <section class="card"><Table label="Modules" rows={value.modules} columns={[
        ['Module', (row) => <button type="button" class="as-text" onClick={() => setOpen(row)}>{show(row.module_name)}</button>],
        ['What it is', (row) => show(row.module_description ?? '')],
        ...MORE.filter(([key]) => columns.includes(key)).map(([key, label]): [string, (row: Item) => string] => [label, (row) => show(row[key] ?? '')]),
        ['Brings', (row) => (count(row).length ? count(row).length.toLocaleString() : ''), 'numeric'],
        ['State', (row) => { const loaded = isLoaded(row); return <span class={`badge ${loaded === false ? '' : 'on'}`}>{loaded === undefined ? (row.is_builtin === 'YES' ? 'built in' : 'loaded') : loaded ? 'loaded' : 'not loaded'}</span>; }],
        ['', (row) => (isLoaded(row) === false
          ? <Button label="Load" aria-label={`Load ${show(row.module_name)}`} onClick={() => setInstalling({ name: show(row.module_name), library: show(row.module_name) })} />
          : <Button label="Unload" kind="danger" aria-label={`Unload ${show(row.module_name)}`} onClick={() => setRemoving(show(row.module_name))} />)],
      ]} /></section>}
      {open && <Dialog title={show(open.module_name)} onClose={() => setOpen(null)} wide>
        <dl class="facts">{Object.entries(open).map(([key, text]) => [<dt key={key}>{key.replace(/^module_/, '').replaceAll('_', ' ')}</dt>, <dd key={`${key}=`}>{show(text)}</dd>])}</dl>
        <Table label="What it brings" rows={count(open)} empty="It brings nothing that has a name." columns={[['Name', (row) => <span class="mono">{show(row.name)}</span>], ['Kind', (row) => show(row.type).toLowerCase()], ['Active', (row) => show(row.active).toLowerCase()]]} />
      </Dialog>}
      {installing && <Dialog title="Install plugin" onClose={() => setInstalling(null)}>
        <Field label="Name"><input value={installing.name} spellcheck={false} onInput={(event) => setInstalling({ ...installing, name: event.currentTarget.value })} /></Field>
        <Field label="Library" hint="The name of a module of this server, or a file x.wasm in the plugin folder"><input value={installing.library} spellcheck={false} onInput={(event) => setInstalling({ ...installing, library: event.currentTarget.value })} /></Field>
        <SqlStep sql={installing.name && installing.library ? `INSTALL PLUGIN ${word(installing.name)} SONAME ${quoteText(installing.library)}` : ''} onDone={() => { setInstalling(null); changed(); }} />
      </Dialog>}
      {removing && <Dialog title={`Unload ${removing}`} onClose={() => setRemoving('')}>
        <p>Running statements keep it until they end; later ones do not find what it brings.</p>
        <SqlStep danger sql={`UNINSTALL PLUGIN ${word(removing)}`} onDone={() => { setRemoving(''); changed(); }} />
      </Dialog>}
    </div>
  );
}
