// Light and dark. The choice is kept where the browser lets us keep it.

import { effect, signal } from '@preact/signals';

export type Theme = 'light' | 'dark';

const key = 'ashlar-theme';
const system = matchMedia('(prefers-color-scheme: dark)');

function kept(): Theme | null {
  try {
    const t = localStorage.getItem(key);
    return t === 'light' || t === 'dark' ? t : null;
  } catch {
    return null;
  }
}

let chosen = kept();

export const theme = signal<Theme>(chosen ?? (system.matches ? 'dark' : 'light'));

system.addEventListener('change', () => {
  if (!chosen) theme.value = system.matches ? 'dark' : 'light';
});

export function toggle(): void {
  chosen = theme.value === 'dark' ? 'light' : 'dark';
  theme.value = chosen;
  try {
    localStorage.setItem(key, chosen);
  } catch {
    // It lasts as long as the page then.
  }
}

// Ink is what drawings take from the style sheet.
export interface Ink {
  back: string;
  panel: string;
  line: string;
  text: string;
  muted: string;
  accent: string;
  live: string;
  liveFill: string;
  reserved: string;
  reservedFill: string;
  requested: string;
  pending: string;
  oom: string;
  limit: string;
  free: string;
  waste: string;
  pinned: string;
  good: string;
  mono: string;
  sans: string;
}

const names: (keyof Ink)[] = [
  'back',
  'panel',
  'line',
  'text',
  'muted',
  'accent',
  'live',
  'liveFill',
  'reserved',
  'reservedFill',
  'requested',
  'pending',
  'oom',
  'limit',
  'free',
  'waste',
  'pinned',
  'good',
  'mono',
  'sans',
];

function read(): Ink {
  const style = getComputedStyle(document.documentElement);
  const out: Partial<Ink> = {};
  for (const n of names) out[n] = style.getPropertyValue('--' + n.replace(/[A-Z]/g, (c) => '-' + c.toLowerCase())).trim();
  return out as Ink;
}

export const ink = signal<Ink>(read());

effect(() => {
  document.documentElement.dataset['theme'] = theme.value;
  ink.value = read();
});
