import 'uplot/dist/uPlot.min.css';
import './style.css';
import { signal } from '@preact/signals';
import { render, type ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { logout, me, whoAmI } from './api';
import { Live } from './live';
import { Login } from './login';
import { loadPages, pages, PluginView } from './pages';
import { Plugins } from './plugins';
import { Query } from './query';
import { Schema } from './schema';
import { Settings } from './settings';
import { flip, theme } from './theme';
import { Button, Failure, Icon, Note } from './ui';
import { Users } from './users';

const PAGES: [name: string, title: string, page: ComponentType<{ rest: string[] }>][] = [
  ['query', 'Query', Query], ['schema', 'Schema', Schema], ['live', 'Live', Live],
  ['settings', 'Settings', Settings], ['users', 'Users', Users], ['plugins', 'Plugins', Plugins],
];

const route = signal<string[]>([]);
const readRoute = () => { route.value = location.hash.replace(/^#\/?/, '').split('/').filter(Boolean).map(decodeURIComponent); };
addEventListener('hashchange', readRoute);
readRoute();

function Shell() {
  useEffect(() => { loadPages().catch(() => { pages.value = []; }); }, [me.value?.user]);
  const own = route.value[0] === 'page' ? pages.value.find((page) => page.name === route.value[1]) : undefined;
  const [name, title, Page] = own ? [`page/${own.name}`, own.title, null] : PAGES.find(([each]) => each === route.value[0]) ?? PAGES[0];
  useEffect(() => { document.title = `${title} · Squall`; }, [title]);
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById('main')?.focus(); }}>Skip to the page</a>
      <nav aria-label="Pages">
        <span class="brand"><img src="favicon.svg" alt="" width="28" height="28" /><b>Squall</b></span>
        {PAGES.map(([each, label]) => (
          <a key={each} href={`#/${each}`} aria-current={each === name ? 'page' : undefined}><Icon name={each} /><span>{label}</span></a>
        ))}
        {pages.value.map((page) => (
          <a key={page.name} href={`#/page/${page.name}`} aria-current={name === `page/${page.name}` ? 'page' : undefined}><Icon name="page" /><span>{page.title}</span></a>
        ))}
        <span class="spring" />
        <a href="docs/" target="_blank" rel="noopener"><Icon name="docs" /><span>Manual</span></a>
        <span class="who"><span class="muted name" title={`Logged in as ${me.value?.user}`}>{me.value?.user}</span>
          <Button icon={theme.value === 'dark' ? 'sun' : 'moon'} label={theme.value === 'dark' ? 'Light colours' : 'Dark colours'} hideLabel kind="quiet" onClick={flip} />
          <Button icon="out" label="Log out" hideLabel kind="quiet" onClick={() => void logout()} /></span>
      </nav>
      <main id="main" tabIndex={-1}>{own ? <PluginView key={own.module} page={own} /> : Page && <Page rest={route.value.slice(1)} />}</main>
      <Note />
    </div>
  );
}

function App() {
  const [error, setError] = useState<unknown>();
  useEffect(() => { whoAmI().catch(setError); }, []);
  if (error) return <main class="login"><Failure error={error} /></main>;
  if (me.value === undefined) return <main class="login" aria-busy="true" />;
  return me.value ? <Shell /> : <Login />;
}

render(<App />, document.getElementById('app')!);
