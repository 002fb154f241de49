// What the timeline is set to, read from the address of the page.

import { computed, signal } from '@preact/signals';
import { get } from '../api';
import { ceiling } from '../draw/curve';
import { colourings, type Colouring } from '../palette';
import { event, number, place, put, range, run, screen, type Range } from '../route';
import { load, meta, moment, selectRange } from '../state';
import type { Matches, Meta, Windows } from '../types/view.gen';
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
  put({ color: c === usual.value ? null : c, pick: null }, 'push');
}

// whole is all of the run, from the bottom to above the highest line.
export const whole = computed<Window>(() => {
  const m = meta.value.data;
  if (!m) return { from: 0, to: 1, low: 0, high: 1 };
  return { from: 0, to: axis.value === 'time' ? m.last_time! - m.first_time! + 1 : Math.max(1, m.events), low: 0, high: ceiling(m) };
});

// Filter is what is asked for beside the window; what it leaves out is dimmed.
export const filter = computed<Record<string, string>>(() => {
  const p = params.value;
  const out: Record<string, string> = {};
  for (const key of ['stack', 'min', 'max', 'stream', 'pool', 'like', 'pick']) {
    const value = p[key];
    if (value) out[key] = value;
  }
  if (out['pick']) out['color'] = colouring.value;
  if (p['alive'] && moment.value !== null) out['alive'] = String(moment.value);
  if (p['never']) out['never_freed'] = '1';
  return out;
});

export const filtered = computed(() => Object.keys(filter.value).length > 0);

// What is left out of the picture instead of dimmed: what the filter does not
// choose, and what lives through the whole window.
export const only = computed(() => filtered.value && !!params.value['only']);
export const moving = computed(() => !!params.value['moving']);

// Without all blocks the axis of bytes fits what is left, unless somebody zoomed
// on it; the answer says how far up that goes.
export const fitted = signal<number | null>(null);
export const fits = computed(() => (only.value || moving.value) && number(params.value['high']) === null);

export const shown = computed<Window>(() => {
  const p = params.value;
  const w = whole.value;
  const from = number(p['from']) ?? w.from;
  const to = number(p['to']) ?? w.to;
  const low = number(p['low']) ?? w.low;
  const high = number(p['high']) ?? (fits.value ? (fitted.value ?? w.high) : w.high);
  return limited({ from, to: to > from ? to : w.to, low, high: high > low ? high : w.high });
});

export const zoomed = computed(() => {
  const p = params.value;
  return ['from', 'to', 'low', 'high'].some((key) => number(p[key]) !== null);
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
  const still = fits.value && v.low === shown.value.low && v.high === shown.value.high;
  const allX = near(l.from, w.from, width) && near(l.to, w.to, width);
  const allY = still || (near(l.low, w.low, w.high) && near(l.high, w.high, w.high));
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

// piece asks where a piece of one axis lies on both, and which events it has.
export function piece(x: Axis, from: number, to: number): Promise<Windows> {
  return get<Windows>('window', { run: run.value, x, from, to });
}

// extent is where the events of a range lie on the axis.
async function extent(r: Range): Promise<{ from: number; to: number }> {
  const from = r.after + 1;
  const to = r.until + 1;
  if (axis.value === 'event') return { from, to };
  return (await piece('event', from, to)).time ?? { from, to };
}

// bring moves the window so that it has a range in it; one that is too wide
// is fitted in. An event is a range of one.
export async function bring(r: Range): Promise<void> {
  const asked = place.value.run;
  const x = await extent(r);
  if (place.value.run !== asked || screen.value !== 'timeline') return;
  const v = shown.value;
  if (x.from >= v.from && x.to <= v.to) return;
  const width = v.to - v.from;
  if (x.to - x.from > width) zoomTo(x, 0.05);
  else look({ ...v, from: (x.from + x.to - width) / 2, to: (x.from + x.to + width) / 2 });
}

export function bringEvent(e: number): Promise<void> {
  const at = Math.max(0, e);
  return bring({ after: at - 1, until: at });
}

function zoomTo(x: { from: number; to: number }, margin: number): void {
  const room = (x.to - x.from) * margin;
  look({ ...shown.value, from: x.from - room, to: x.to + room }, 'push');
}

export async function zoomToRange(r: Range, margin = 0): Promise<void> {
  zoomTo(await extent(r), margin);
}

// zoomToMoment shows a few hundred events around the moment.
export async function zoomToMoment(): Promise<void> {
  const e = Math.max(0, moment.value ?? 0);
  const last = (meta.value.data?.events ?? 1) - 1;
  await zoomToRange({ after: Math.max(-1, e - 200), until: Math.min(last, e + 200) });
}

// turn changes the axis and keeps what is in the window.
export async function turn(to: Axis): Promise<void> {
  const p = params.value;
  const change = { x: to === 'time' ? to : null, from: null as number | null, to: null as number | null };
  if (p['from'] !== undefined || p['to'] !== undefined) {
    const both = await piece(axis.value, shown.value.from, shown.value.to);
    const there = to === 'time' ? both.time : both.event;
    if (there) [change.from, change.to] = [there.from, there.to];
  }
  put(change, 'push');
}

// selectBetween selects what lies between two places of the axis.
export async function selectBetween(a: number, b: number): Promise<void> {
  const { after, until } = await piece(axis.value, Math.max(whole.value.from, Math.min(a, b)), Math.min(whole.value.to, Math.max(a, b)));
  if (after < until) selectRange({ after, until });
}

// extend moves the end of the range, which begins at the moment if there is none.
export function extend(dir: 1 | -1): void {
  const m = meta.value.data;
  const now = range.value;
  const e = moment.value;
  if (!m || e === null) return;
  const from = now ?? { after: e, until: e };
  const by = Math.max(1, Math.round(((axis.value === 'event' ? shown.value.to - shown.value.from : m.events) / 20)));
  const until = Math.min(m.events - 1, from.until + dir * by);
  if (until > from.after) {
    selectRange({ after: from.after, until });
    void bringEvent(until);
  } else if (!now) selectRange({ after: Math.max(-1, e + dir * by), until: e });
}

// toStep selects the next or previous step.
export function toStep(dir: 1 | -1): void {
  const steps = meta.value.data?.steps ?? [];
  const at = range.value ? range.value.after + 1 : (event.value ?? (dir > 0 ? -1 : Infinity));
  const found = dir > 0 ? steps.find((s) => s.begin > at) : [...steps].reverse().find((s) => s.begin < at);
  if (!found) return;
  const r = { after: found.begin - 1, until: found.end - 1 };
  selectRange(r);
  void bring(r);
}

// matches is what the filter chooses, in numbers.
export const matches = computed(() =>
  filtered.value && moment.value !== null
    ? load<Matches>('matches', { run: run.value, ...filter.value, event: moment.value, n: 1 }).value
    : null,
);

export const markColumns = 1200;

// marks is where in the run the filter chooses something.
export const marks = computed(() =>
  filtered.value ? load<Matches>('matches', { run: run.value, ...filter.value, event: -1, x: axis.value, n: markColumns }).value.data?.marks : undefined,
);

// isolate shows what has one colour alone, or everything again.
export function isolate(by: Colouring, colour: number): void {
  const on = params.value['pick'] === String(colour) && colouring.value === by;
  put(on ? { pick: null, only: null } : { color: by, pick: colour, like: null, only: true }, 'push');
}

// isolateLike shows the call stack of a block alone, or everything again. Small
// call stacks share a colour, so a colour does not choose one.
export function isolateLike(alloc: number): void {
  const on = params.value['like'] === String(alloc);
  put(on ? { like: null, only: null } : { like: alloc, pick: null, only: true }, 'push');
}

// lit is the colour that stands out while the pointer is on its name.
export const lit = signal<number | null>(null);

// What is stacked: blocks by allocation, or the segments that hold them.
export type What = 'blocks' | 'segments';
export const what = computed<What>(() => (params.value['what'] === 'segments' ? 'segments' : 'blocks'));

export const param = (key: string): string => params.value[key] ?? '';
export const asked = computed(() => params.value['asked'] === '1'); // the line of requested bytes
export const plain = computed(() => params.value['gl'] === '0');
