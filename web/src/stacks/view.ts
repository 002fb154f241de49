// What the graph of call stacks is set to, read from the address of the page.

import { computed } from '@preact/signals';
import type { Query } from '../api';
import { number, place, put, range, screen, type Range } from '../route';
import { meta, moment } from '../state';

const params = computed(() => (screen.value === 'stacks' ? place.value.params : {}));

export const views = [
  { value: 'down', text: 'top-down' },
  { value: 'up', text: 'bottom-up' },
  { value: 'sandwich', text: 'sandwich' },
] as const;

const modes = [
  { value: 'moment', text: 'at the moment' },
  { value: 'peak', text: 'at the peak' },
  { value: 'area', text: 'bytes × time' },
  { value: 'diff', text: 'difference' },
] as const;

export const segments = computed(() => params.value['what'] === 'segments');
// Segments have no averages.
export const knownModes = computed(() => modes.filter((o) => o.value !== 'area' || !segments.value));
export const mode = computed(() => knownModes.value.find((o) => o.value === params.value['mode'])?.value ?? 'moment');
export const view = computed(() => views.find((o) => o.value === params.value['view'])?.value ?? 'down');
export const folded = computed(() => params.value['lib'] !== '1');
export const changesOnly = computed(() => params.value['width'] !== 'larger');
export const search = computed(() => params.value['q'] ?? '');

// zoomed are the frames on the way to the one that is zoomed to.
export const zoomed = computed<readonly number[]>(() => (params.value['zoom'] ?? '').split('.').map((w) => number(w)).filter((n) => n !== null));

// moments are those that are compared: as the address says, else the ends of the
// selected range, else the start of the run and the moment.
export const moments = computed<Range | null>(() => {
  const p = params.value;
  const after = number(p['after']) ?? range.value?.after ?? -1;
  const until = number(p['until']) ?? range.value?.until ?? moment.value ?? -1;
  return after < until ? { after, until } : null;
});

// asked is the question to the server.
export const asked = computed<Query>(() => {
  const r = range.value;
  const when: Record<typeof mode.value, Query> = {
    moment: { event: moment.value ?? -1 },
    peak: { peak: 1 },
    area: { area: 1, ...(r && { from: r.after + 1, to: r.until + 1 }) },
    diff: { ...moments.value, width: changesOnly.value ? 'change' : 'larger' },
  };
  return {
    user: folded.value ? 1 : 0,
    what: segments.value ? 'segments' : null,
    view: view.value === 'down' ? null : view.value,
    ...(view.value === 'sandwich' ? { frame: params.value['frame'] } : { zoom: params.value['zoom'] }),
    q: search.value,
    ...when[mode.value],
  };
});

export function nextView(): void {
  const i = views.findIndex((v) => v.value === view.value);
  setView(views[(i + 1) % views.length]!.value);
}

// setView keeps the frame that is zoomed to: it is the middle of a sandwich.
export function setView(v: string): void {
  put({ view: v === 'down' ? null : v, zoom: null, frame: v === 'sandwich' ? (zoomed.value.at(-1) ?? null) : null }, 'push');
}

// eventOf reads a moment as people write it; null if it is none.
export function eventOf(text: string): number | null {
  const m = meta.value.data;
  const t = text.trim().toLowerCase().replaceAll(',', '');
  if (!m) return null;
  if (t === 'start') return -1;
  if (t === 'end') return m.events - 1;
  if (t === 'peak') return m.peak.allocated?.event ?? null;
  const step = /^step[ :]*(\d+)$/.exec(t);
  if (step) {
    const end = m.steps.find((s) => s.number === Number(step[1]))?.end;
    return end === undefined ? null : end - 1;
  }
  return /^\d+$/.test(t) && Number(t) < m.events ? Number(t) : null;
}
