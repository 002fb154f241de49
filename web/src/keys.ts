// Keys. Every screen says which it takes; the sheet behind ? lists them.

import { signal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';

export interface Binding {
  keys: readonly string[]; // values of KeyboardEvent.key
  shown?: string; // how the sheet writes them
  text: string;
  run: (e: KeyboardEvent) => void;
  when?: () => boolean; // else the key is left alone
}

export interface Group {
  title: string;
  bindings: readonly Binding[];
}

export const groups = signal<readonly Group[]>([]);

// A screen takes its keys as soon as it can be seen, not a frame later.
export function useKeys(title: string, bindings: () => readonly Binding[], inputs: readonly unknown[] = []): void {
  useLayoutEffect(() => {
    const group = { title, bindings: bindings() };
    groups.value = [...groups.peek(), group];
    return () => (groups.value = groups.peek().filter((g) => g !== group));
  }, inputs);
}

// useMouse says in the sheet what the mouse does.
export function useMouse(title: string, gestures: readonly (readonly [string, string])[]): void {
  useKeys(title + ', with the mouse', () => gestures.map(([shown, text]) => ({ keys: [], shown, text, run: () => {} })));
}

// In a field letters are text; in lists and sliders arrows have their own meaning.
function taken(e: KeyboardEvent): boolean {
  const t = e.target;
  if (e.key !== '?' && document.querySelector('dialog[open]')) return true;
  if (!(t instanceof HTMLElement) || t === document.body || t.id === 'main') return false;
  if (t instanceof HTMLSelectElement || t instanceof HTMLTextAreaElement) return true;
  if (t instanceof HTMLInputElement && !['checkbox', 'radio', 'button', 'range'].includes(t.type)) return true;
  const own = e.key.startsWith('Arrow') || ['Home', 'End', 'PageUp', 'PageDown', ' ', 'Enter'].includes(e.key);
  if (own && t.dataset['keys'] !== 'screen')
    return t instanceof HTMLInputElement || e.key === ' ' || e.key === 'Enter' || !!t.closest('[data-keys=own]');
  return false;
}

addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
  if (e.key === 'Escape' && e.target instanceof HTMLInputElement) {
    e.target.blur();
    return;
  }
  if (taken(e)) return;
  // The newest group first: a screen may take a key that the page has too.
  for (const g of [...groups.peek()].reverse()) {
    const found = g.bindings.find((b) => b.keys.includes(e.key) && (b.when?.() ?? true));
    if (found) {
      e.preventDefault();
      found.run(e);
      return;
    }
  }
});

const signs: Record<string, string> = {
  ArrowLeft: '←',
  ArrowRight: '→',
  ArrowUp: '↑',
  ArrowDown: '↓',
  Escape: 'Esc',
  ' ': 'Space',
  PageUp: 'PgUp',
  PageDown: 'PgDn',
};

export function sign(key: string): string {
  return signs[key] ?? key;
}
