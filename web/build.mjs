// Bundles the console into web/dist. The same sources and the same package-lock.json give the same bytes: names are fixed,
// and nothing depends on the clock or on the folder. `node build.mjs --into=FOLDER` builds elsewhere.
import { build } from 'esbuild';
import { copyFile, mkdir, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const into = process.argv.find((word) => word.startsWith('--into='))?.slice('--into='.length);
const dist = into ? resolve(into) : join(here, 'dist');
await rm(dist, { recursive: true, force: true });
await mkdir(dist, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { app: 'src/main.tsx' },
  outdir: dist,
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  charset: 'utf8',
  legalComments: 'eof',
  logLevel: 'warning',
});
for (const name of ['index.html', 'favicon.svg']) await copyFile(join(here, 'src', name), join(dist, name));
