// What all screens share: the runs, the documents of the one that is shown, and
// the moment that is looked at.

import { computed, effect, signal, type Signal } from '@preact/signals';
import { aborted, ask, Failure, forget, get, send, words, type Query, type Taken } from './api';
import { event, here, isExtra, ofNoRun, open, place, put, run, screen, show, visit, type Range } from './route';
import type { Document as Stats } from './types/stats.gen';
import type { Document as Explain } from './types/explain.gen';
import type { Alloc, Found, Link, Meta, Run, Runs } from './types/view.gen';

// Loaded is a document on its way: neither value is there while it is asked for.
export interface Loaded<T> {
  data?: T;
  error?: string;
}

export const runs = signal<Run[]>([]);
export const lost = signal<string | null>(null);
export const listed = signal(false);
export const extra = signal<'live' | 'fleet' | null>(null); // the screen that only pages of this kind have
export const current = computed(() => runs.value.find((r) => r.id === run.value) ?? null);
export const ready = computed(() => current.value?.state === 'ready');

// watch keeps the list of runs. The server answers when something changes.
export async function watch(): Promise<void> {
  let version = -1;
  for (;;) {
    try {
      const reply = await get<Runs>('runs', version < 0 ? {} : { since: version });
      version = reply.version;
      runs.value = reply.runs;
      extra.value = reply.live ? 'live' : reply.fleet ? 'fleet' : null;
      listed.value = true;
      lost.value = null;
    } catch (err) {
      lost.value = words(err);
      listed.value = true;
      await new Promise((done) => setTimeout(done, 2000));
    }
  }
}

// Screens of a run show one that there is. Several runs begin with a table of
// them, which is the overview of none.
effect(() => {
  const all = runs.value;
  const known = all.some((r) => r.id === run.value);
  if (known || all.length === 0 || ofNoRun(screen.value) || (run.value === null && screen.value === 'overview' && all.length > 1)) return;
  // A file with several devices begins with the one that the commands choose.
  const first = all.find((r) => r.chosen) ?? all.find((r) => r.state !== 'failed') ?? all[0]!;
  open(first.id, 'replace');
});

const documents = new Map<string, Signal<Loaded<unknown>>>();

// Beyond so many the oldest are forgotten: pointing at blocks asks for many.
const mostDocuments = 2000;

// load asks for a document once and keeps it.
export function load<T>(path: string, query: Query): Signal<Loaded<T>> {
  const key = path + JSON.stringify(query);
  let slot = documents.get(key) as Signal<Loaded<T>> | undefined;
  if (!slot) {
    const made = signal<Loaded<T>>({});
    slot = made;
    documents.set(key, made as Signal<Loaded<unknown>>);
    if (documents.size > mostDocuments) documents.delete(documents.keys().next().value!);
    get<T>(path, query).then(
      (data) => (made.value = { data }),
      (err) => {
        made.value = { error: words(err) };
        // A connection may come back; an answer in words will not change.
        if (!(err instanceof Failure) || err.status === 0 || err.status >= 500) documents.delete(key);
      },
    );
  }
  return slot;
}

const nothing = signal<Loaded<never>>({});

function ofRun<T>(path: string, query: Query = {}) {
  return computed<Loaded<T>>(() => (ready.value ? load<T>(path, { run: run.value, ...query }) : (nothing as Signal<Loaded<T>>)).value);
}

export const meta = ofRun<Meta>('meta');
export const stats = ofRun<Stats>('stats', { sites: 1 });

export function allocation(id: number): Signal<Loaded<Alloc>> {
  return load<Alloc>('alloc', { run: run.value, id });
}

// moment is the event that is looked at: the selected one, else the last
// failure, else the peak.
export const moment = computed<number | null>(() => {
  if (event.value !== null) return event.value;
  const m = meta.value.data;
  if (!m) return null;
  if (m.events === 0) return -1;
  return m.ooms[m.ooms.length - 1] ?? m.peak.allocated?.event ?? m.peak.reserved?.event ?? m.events - 1;
});

// summons counts how often somebody asked to see the moment: a screen that shows
// another piece of the run goes there.
export const summons = signal(0);

export function select(e: number | null, how: 'push' | 'replace' = 'push'): void {
  const last = (meta.value.data?.events ?? 1) - 1;
  if (e !== null) summons.value++;
  put({ event: e === null ? null : Math.max(-1, Math.min(last, Math.round(e))) }, how);
}

export function selectRange(r: Range | null): void {
  put({ range: r && r.after < r.until ? `${r.after}..${r.until}` : null }, 'push');
}

export function pin(id: number | null): void {
  put({ alloc: id }, 'push');
}

export type Target = 'oom' | 'segment' | 'alloc';

export const notice = signal<string | null>(null);

let noticeEnds = 0;

export function say(text: string): void {
  notice.value = text;
  clearTimeout(noticeEnds);
  noticeEnds = setTimeout(() => (notice.value = null), 4000);
}

// hush takes back what was said: it does not hold any more.
export function hush(): void {
  notice.value = null;
}

const names: Record<Target, string> = { oom: 'out-of-memory event', segment: 'segment event', alloc: 'allocation' };

// jump goes to the next or previous event of a kind; if no moment is selected,
// to the first or last one.
export async function jump(what: Target, dir: 1 | -1): Promise<void> {
  const from = place.value;
  const find = (after: number | null) => get<Found>('find', { run: run.value, what, after, dir });
  try {
    const found = await find(event.value);
    if (place.value.run !== from.run) return;
    summons.value++;
    if (found.event === null) say(`There is no ${dir > 0 ? 'later' : 'earlier'} ${names[what]}.`);
    else select(found.event);
  } catch (err) {
    if (!aborted(err)) say(words(err));
  }
}

// toPeak goes to the highest allocated or reserved memory.
export function toPeak(of: 'allocated' | 'reserved'): void {
  const m = meta.value.data;
  if (m && m.events > 0) select(m.peak[of].event);
}

export function step(by: number): void {
  const m = moment.value;
  if (m !== null) select(m + by, 'replace');
}

// A dropped file on its way in, or why it did not get in.
export interface Incoming {
  name: string;
  part: number;
  error: string | null;
}

export const incoming = signal<Incoming[]>([]);

export async function take(files: Iterable<File>): Promise<void> {
  await Promise.all(
    [...files].map(async (file) => {
      const set = (change: Partial<Incoming>) => {
        incoming.value = incoming.value.map((i) => (i.name === file.name ? { ...i, ...change } : i));
      };
      incoming.value = [...incoming.value.filter((i) => i.name !== file.name), { name: file.name, part: 0, error: null }];
      try {
        const got = await send(file, (part) => set({ part }));
        incoming.value = incoming.value.filter((i) => i.name !== file.name);
        if (got.explain) told.value = got.explain;
        else await showFirst(got.runs);
      } catch (err) {
        set({ error: words(err) });
      }
    }),
  );
}

async function showFirst(made: readonly number[]): Promise<void> {
  runs.value = (await get<Runs>('runs')).runs;
  if (made[0] === undefined) return;
  open(made[0]);
  if (screen.value === 'playground') show('overview');
}

// told is what explain says of a text that was dropped or pasted.
export const told = signal<Explain | null>(null);

// takeText explains a pasted message.
export function takeText(text: string): Promise<void> {
  return take([new File([text], 'pasted text', { type: 'text/plain' })]);
}

export async function takeSample(): Promise<void> {
  try {
    await showFirst((await (await ask('sample', {}, { method: 'POST' })).json() as Taken).runs);
  } catch (err) {
    say(words(err));
  }
}

// copyLink copies the command that shows this place again.
export async function copyLink(): Promise<void> {
  let command = '';
  try {
    command = (await get<Link>('link', { at: here() })).command;
    await navigator.clipboard.writeText(command);
    say(`Copied: ${command}`);
  } catch (err) {
    say(command ? `The browser does not let the page copy: ${command}` : words(err));
  }
}

// outcome says how a run ended.
export function outcome(r: Run): string {
  if (r.ooms === 0) return r.events === 0 ? 'no events' : 'no failure';
  return r.went_on ? 'OOM, went on' : 'OOM';
}

export async function remove(id: number): Promise<void> {
  try {
    await forget(id);
  } catch (err) {
    say(words(err));
  }
}

// visitFile lets the server read a file that it knows, and shows it.
export async function visitFile(path: string, query: Query): Promise<void> {
  const got = (await (await ask(path, query, { method: 'POST' })).json()) as Taken;
  runs.value = (await get<Runs>('runs')).runs;
  if (got.runs[0] !== undefined) visit(got.runs[0], 'overview', {});
}

export function dismiss(name: string): void {
  incoming.value = incoming.value.filter((i) => i.name !== name);
}

// The title distinguishes tabs.
effect(() => {
  if (isExtra(screen.value)) return; // it has its own
  const c = current.value;
  const failed = runs.value.filter((r) => r.ooms > 0).length;
  const all = runs.value.length > 1 ? `${runs.value.length} runs${failed > 0 ? `, ${failed} OOM` : ''} - Ashlar` : 'Ashlar';
  document.title = c ? `${c.ooms > 0 ? 'OOM: ' : ''}${c.label} - ${place.value.screen} - Ashlar` : all;
});
