// Screens that are loaded when they are first shown, each from a script of its own:
// assets/NAME.js.

import type { FunctionComponent } from 'preact';
import { signal } from '@preact/signals';
import { Trouble, Wait } from './parts/basic';
import * as shared from './shared';

const made = signal<Readonly<Record<string, FunctionComponent>>>({});
const missing = signal(false);
const asked = new Set<string>();

// provide is how a script hands over its screen.
export function provide(name: string, page: FunctionComponent): void {
  made.value = { ...made.value, [name]: page };
}

function load(name: string): void {
  if (asked.has(name)) return;
  asked.add(name);
  Object.assign(globalThis, { ashlar: shared });
  const script = document.createElement('script');
  script.src = `assets/${name}.js`;
  script.onerror = () => {
    asked.delete(name);
    missing.value = true;
  };
  document.head.append(script);
}

export function Extra({ name }: { name: string }) {
  const Page = made.value[name];
  if (Page) return <Page />;
  load(name);
  if (missing.value) return <Trouble>This screen could not be loaded. Was ashlar stopped? Reload the page.</Trouble>;
  return <Wait>Loading the screen</Wait>;
}
