// Loads a module of the console's sources into Node.
import { build } from 'esbuild';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const sources = join(dirname(fileURLToPath(import.meta.url)), '../../src');

export async function load(name) {
  const { outputFiles } = await build({ entryPoints: [join(sources, name)], bundle: true, write: false, format: 'esm', jsx: 'automatic', jsxImportSource: 'preact', platform: 'browser' });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString('base64')}`);
}
