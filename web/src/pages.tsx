// Pages that plugins of the server bring: modules that are loaded when their page is opened.
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { call, run, type Options } from './api';
import { Failure, Loading } from './ui';

export interface PluginPage { name: string; title: string; module: string; style: string | null }
export const pages = signal<PluginPage[]>([]);

export async function loadPages(): Promise<void> {
  const answer = await call<{ pages: PluginPage[] }>('GET', '1.0/pages');
  // Only the server's own files, whatever the list says.
  pages.value = answer.pages.filter((page) => [page.module, page.style].every((path) => path === null || /^\/pages\/[a-z0-9-]+\/[\w.-]+$/.test(path)));
}

type Mount = (element: HTMLElement, api: unknown) => void | (() => void) | Promise<void | (() => void)>;

const api = {
  run: (sql: string, options: Options = {}) => run(sql, options),
  call: (method: string, path: string, body?: unknown) => call(method, path, body),
};

export function PluginView({ page }: { page: PluginPage }) {
  const host = useRef<HTMLDivElement>(null);
  const [state, setState] = useState<{ error?: unknown; ready?: boolean }>({});
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    let isOpen = true;
    let leave: void | (() => void);
    const style = document.createElement('link');
    if (page.style) {
      style.rel = 'stylesheet';
      style.href = page.style;
      document.head.append(style);
    }
    const open = async () => {
      const module = await import(page.module) as { mount?: Mount };
      if (typeof module.mount !== 'function') throw new Error(`The page ${page.title} has no function mount`);
      if (isOpen) leave = await module.mount(element, api);
      if (!isOpen) leave?.();
    };
    open().then(() => setState({ ready: true }), (error) => setState({ error }));
    return () => { isOpen = false; leave?.(); style.remove(); element.replaceChildren(); };
  }, [page.module]);
  return <>
    {state.error ? <div class="page"><h1>{page.title}</h1><Failure error={state.error} /></div> : !state.ready && <Loading what={page.title} />}
    <div class="page" ref={host} />
  </>;
}
