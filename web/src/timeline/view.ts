// What the timeline is set to, read from the address of the page.

import { computed } from '@preact/signals';
import { ceiling } from '../draw/curve';
import { colourings, type Colouring } from '../palette';
import { number, place, put, screen } from '../route';
import { meta, moment } from '../state';
import type { Meta } from '../types/view.gen';
import type { Window } from './picture';

export type Axis = 'event' | 'time';

const params = computed(() => (screen.value === 'timeline' ? place.value.params : {}));

export const axis = computed<Axis>(() => (params.value['x'] === 'time' && hasTimes(meta.value.data) ? 'time' : 'event'));

export function hasTimes(m: Meta | undefined): boolean {
  return !!m && m.first_time !== null && m.last_time !== null && m.last_time > m.first_time;
}

// Segments are of no category.
const usual = computed(() => (params.value['what'] === 'segments' ? 'stack' : meta.value.data?.default_color));

export const colouring = computed<Colouring>(
  () => colourings.find(([c]) => c === params.value['color'])?.[0] ?? colourings.find(([c]) => c === usual.value)?.[0] ?? 'stack',
);

// colourBy chooses a way of colouring; the usual one is left out of the address.
export function colourBy(c: string): void {
  put({ color: c === usual.value ? null : c }, 'push');
}

// whole is all of the run, from the bottom to above the highest line.
export const whole = computed<Window>(() => {
  const m = meta.value.data;
  if (!m) return { from: 0, to: 1, low: 0, high: 1 };
  return { from: 0, to: axis.value === 'time' ? m.last_time! - m.first_time! + 1 : Math.max(1, m.events), low: 0, high: ceiling(m) };
});

export const shown = computed<Window>(() => {
  const p = params.value;
  const w = whole.value;
  const from = number(p['from']) ?? w.from;
  const to = number(p['to']) ?? w.to;
  const low = number(p['low']) ?? w.low;
  const high = number(p['high']) ?? w.high;
  return limited({ from, to: to > from ? to : w.to, low, high: high > low ? high : w.high });
});

export const zoomed = computed(() => {
  const [s, w] = [shown.value, whole.value];
  return s.from !== w.from || s.to !== w.to || s.low !== w.low || s.high !== w.high;
});

// The narrowest windows: a few events, and some small blocks.
const fewest = 4;
const least = 1 << 16;

export function limited(v: Window): Window {
  const w = whole.value;
  const width = Math.min(Math.max(v.to - v.from, Math.min(fewest, w.to)), w.to - w.from);
  const height = Math.min(Math.max(v.high - v.low, least), w.high - w.low);
  const from = Math.min(Math.max(v.from, w.from), w.to - width);
  const low = Math.min(Math.max(v.low, w.low), w.high - height);
  return { from, to: from + width, low, high: low + height };
}

function round(n: number): number {
  return Number(n.toPrecision(9));
}

// look moves the window. Ends that are those of the whole are left out of the address.
export function look(v: Window, how: 'push' | 'replace' = 'replace'): void {
  const l = limited(v);
  const w = whole.value;
  const near = (a: number, b: number, of: number) => Math.abs(a - b) < of * 1e-7;
  const width = w.to - w.from;
  const allX = near(l.from, w.from, width) && near(l.to, w.to, width);
  const allY = near(l.low, w.low, w.high) && near(l.high, w.high, w.high);
  put(
    {
      from: allX ? null : round(l.from),
      to: allX ? null : round(l.to),
      low: allY ? null : Math.round(l.low),
      high: allY ? null : Math.round(l.high),
    },
    how,
  );
}

export function zoomX(factor: number, at = 0.5): void {
  const v = shown.value;
  const x = v.from + (v.to - v.from) * at;
  const width = (v.to - v.from) * factor;
  look({ ...v, from: x - width * at, to: x + width * (1 - at) });
}

export function zoomY(factor: number, at = 0.5): void {
  const v = shown.value;
  const y = v.low + (v.high - v.low) * at;
  const height = (v.high - v.low) * factor;
  look({ ...v, low: y - height * at, high: y + height * (1 - at) });
}

export function panBy(x: number, y = 0): void {
  const v = shown.value;
  const dx = (v.to - v.from) * x;
  const dy = (v.high - v.low) * y;
  look({ from: v.from + dx, to: v.to + dx, low: v.low + dy, high: v.high + dy });
}

export function lookAtAll(): void {
  put({ from: null, to: null, low: null, high: null }, 'push');
}

// Filter is what is asked for beside the window; what it leaves out is dimmed.
export const filter = computed<Record<string, string>>(() => {
  const p = params.value;
  const out: Record<string, string> = {};
  for (const key of ['stack', 'min', 'max', 'stream', 'pool']) {
    const value = p[key];
    if (value) out[key] = value;
  }
  if (p['alive'] && moment.value !== null) out['alive'] = String(moment.value);
  if (p['never']) out['never_freed'] = '1';
  return out;
});

// What is stacked: blocks by allocation, or the segments that hold them.
export type What = 'blocks' | 'segments';
export const what = computed<What>(() => (params.value['what'] === 'segments' ? 'segments' : 'blocks'));

export const param = (key: string): string => params.value[key] ?? '';
export const plain = computed(() => params.value['gl'] === '0');
