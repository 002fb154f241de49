// The address of the page holds all that it shows: run, screen, the selected
// moment (event), range and block (alloc), and what the screen itself is set to.
//
//	#/RUN/SCREEN?event=E&range=A..B&alloc=N&...

import { computed, signal } from '@preact/signals';

export const screens = ['overview', 'timeline', 'segments', 'stacks', 'events', 'whatif', 'compare', 'playground', 'plan', 'live', 'fleet'] as const;
export type Screen = (typeof screens)[number];
export type Params = Readonly<Record<string, string>>;

export interface Place {
  run: number | null;
  screen: Screen;
  params: Params;
}

export const place = signal<Place>(parse(location.hash));

export const screen = computed(() => place.value.screen);
export const run = computed(() => place.value.run);
export const event = computed(() => number(place.value.params['event']));
export const block = computed(() => number(place.value.params['alloc']));

// Range is a piece of the run: from the moment after one event to the moment
// after a later one; -1 is before the first.
export interface Range {
  after: number;
  until: number;
}

export const range = computed<Range | null>(() => {
  const found = /^(-?\d+)\.\.(\d+)$/.exec(place.value.params['range'] ?? '');
  return found && Number(found[1]) < Number(found[2]) ? { after: Number(found[1]), until: Number(found[2]) } : null;
});

// What a screen was set to when it was left, so that coming back finds it.
const left = new Map<Screen, Params>();
const shared = ['event', 'range', 'alloc'];
// The map of a what-if is shown where somebody asked for it, and not whenever the
// segments are.
const passing = ['variant', 'vlimit', 'vmemory'];

function arrived(): void {
  clearTimeout(waiting);
  waiting = 0;
  written = location.hash;
  if (location.hash !== write(place.value)) {
    left.set(place.value.screen, place.value.params);
    place.value = parse(location.hash);
  }
}
// A link fires both; an entry that pushState made only the second.
addEventListener('hashchange', arrived);
addEventListener('popstate', arrived);

function parse(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#/, '').split('?', 2);
  const [, id, name] = path.split('/');
  const params: Record<string, string> = {};
  new URLSearchParams(query).forEach((value, key) => (params[key] = value));
  return {
    run: number(id),
    screen: screens.find((s) => s === name) ?? 'overview',
    params,
  };
}

function write(p: Place): string {
  const query = new URLSearchParams(p.params).toString();
  return `#/${p.run ?? ''}/${p.screen}${query && '?' + query}`;
}

// here is what the address has, or will have in a moment.
export function here(): string {
  return write(place.value);
}

export function number(text: string | undefined): number | null {
  if (text === undefined || text === '') return null;
  const n = Number(text);
  return Number.isFinite(n) ? n : null;
}

export type Change = Record<string, string | number | boolean | null>;

// put sets parameters; null takes one away. What follows the pointer replaces
// the entry in the history, what was meant makes a new one.
export function put(change: Change, how: 'push' | 'replace' = 'replace'): void {
  move({ ...place.value, params: merge(place.value.params, change) }, how);
}

function merge(params: Params, change: Change): Params {
  const out: Record<string, string> = { ...params };
  for (const [key, value] of Object.entries(change)) {
    if (value === null || value === '' || value === false) delete out[key];
    else out[key] = value === true ? '1' : String(value);
  }
  return out;
}

// to is the place of another screen, with the same moment and block.
export function to(name: Screen, change: Change = {}): Place {
  const now = place.value;
  if (name === now.screen) return { ...now, params: merge(now.params, change) };
  const params: Record<string, string> = { ...left.get(name) };
  for (const key of shared) {
    delete params[key];
    const value = now.params[key];
    if (value !== undefined) params[key] = value;
  }
  for (const key of passing) delete params[key];
  return { run: now.run, screen: name, params: merge(params, change) };
}

export function link(name: Screen, change: Change = {}): string {
  return write(to(name, change));
}

export function show(name: Screen, change: Change = {}, how: 'push' | 'replace' = 'push'): void {
  move(to(name, change), how);
}

// Screens that are about no run: an experiment, a plan, running jobs, many files.
const runless: readonly Screen[] = ['playground', 'plan', 'live', 'fleet'];

// isExtra reports whether a screen has a script of its own, assets/NAME.js, and is
// only on some pages.
export function isExtra(name: Screen): name is 'live' | 'fleet' {
  return name === 'live' || name === 'fleet';
}

export function ofNoRun(name: Screen): boolean {
  return runless.includes(name);
}

// forget drops what the screens of a run were set to.
function forget(): void {
  for (const name of [...left.keys()]) if (!ofNoRun(name)) left.delete(name);
}

// visit goes to a screen of any run.
export function visit(id: number, name: Screen, change: Change): void {
  if (id === place.value.run) show(name, change);
  else {
    forget();
    move({ run: id, screen: name, params: merge({}, change) }, 'push');
  }
}

// home is the table of runs.
export function home(): void {
  forget();
  move({ run: null, screen: 'overview', params: {} }, 'push');
}

// What a screen is set to that means the same for every run.
const lasting = ['x', 'color', 'sort', 'mode', 'lib', 'what', 'bars', 'q', 'stack', 'sets', 'limit', 'memory', 'oom', 'align', 'lines'];

// open goes to another run. Moments and ranges of the old one mean nothing there.
export function open(id: number, how: 'push' | 'replace' = 'push'): void {
  const params: Record<string, string> = {};
  if (place.value.run !== null) forget();
  for (const [key, value] of Object.entries(place.value.params)) {
    if (place.value.run === null || ofNoRun(place.value.screen) || lasting.includes(key)) params[key] = value;
  }
  move({ ...place.value, run: id, params }, how);
}

let waiting = 0;
let written = location.hash; // the address as we know it

// Browsers refuse more than some hundred changes of the address in half a
// minute, and a wheel turns faster: those that replace are written with a delay.
const addressDelay = 200;

function move(next: Place, how: 'push' | 'replace'): void {
  const now = place.value;
  if (next.screen !== now.screen) left.set(now.screen, now.params);
  if (write(next) === write(now)) return;
  clearTimeout(waiting);
  if (how === 'push') {
    if (waiting) history.replaceState(null, '', write(now));
    waiting = 0;
    history.pushState(null, '', write(next));
    written = location.hash;
  } else {
    waiting = setTimeout(() => {
      waiting = 0;
      // A link that was followed meanwhile has not been told us yet.
      if (location.hash === written) history.replaceState(null, '', write(place.value));
      written = location.hash;
    }, addressDelay);
  }
  place.value = next;
}
