// Copies the published modules that the bundle is made of, with their licences,
// from node_modules into vendor. With --check it compares instead.
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const files = [
  ['preact/dist/preact.mjs', 'preact/preact.mjs'],
  ['preact/hooks/dist/hooks.mjs', 'preact/hooks.mjs'],
  ['preact/jsx-runtime/dist/jsxRuntime.mjs', 'preact/jsxRuntime.mjs'],
  ['preact/LICENSE', 'preact/LICENSE'],
  ['@preact/signals/dist/signals.module.js', 'signals/signals.module.js'],
  ['@preact/signals/LICENSE', 'signals/LICENSE'],
  ['@preact/signals-core/dist/signals-core.module.js', 'signals-core/signals-core.module.js'],
  ['@preact/signals-core/LICENSE', 'signals-core/LICENSE'],
];

let different = 0;
for (const [from, to] of files) {
  const source = join(web, 'node_modules', from);
  const target = join(web, 'vendor', to);
  if (process.argv.includes('--check')) {
    if (!readFileSync(source).equals(readFileSync(target))) {
      console.error(`vendor/${to} is not node_modules/${from}: npm run vendor`);
      different++;
    }
    continue;
  }
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(source, target);
}
process.exit(different ? 1 : 0);
