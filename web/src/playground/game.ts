// The experiment that is played: its lines are in the address, its states come
// from the server.
//
//	lesson=NAME          one of the lessons
//	v=1&s=LINE;LINE;...  any other; v is the version of the language
//	step=N               after so many steps

import { computed, effect, signal } from '@preact/signals';
import { Follower, post } from '../api';
import { number, place, put, screen } from '../route';
import { hush, load, say } from '../state';
import type { Answer, Experiment } from '../types/playground.gen';
import type { Lessons } from '../types/view.gen';

const separator = ';';

// No link is longer; browsers stop at two million.
const longest = 900_000;

export const lessons = computed(() => load<Lessons>('playground', {}).value);

const list = computed<readonly Experiment[]>(() => lessons.value.data?.experiments ?? []);
const script = computed(() => place.value.params['s']);

// lesson is the one that is played unchanged; null while somebody plays by hand.
export const lesson = computed<Experiment | null>(() => {
  if (script.value !== undefined) return null;
  return list.value.find((e) => e.name === (place.value.params['lesson'] ?? first)) ?? null;
});

// What a page begins with that was asked for nothing else.
const first = 'every-second';

export const lines = computed<readonly string[] | null>(() => {
  if (script.value !== undefined) return script.value.split(separator);
  return lesson.value?.lines ?? null;
});

export const at = computed(() => Math.max(0, Math.round(number(place.value.params['step']) ?? 0)));

interface Question {
  version: number;
  lines: readonly string[];
  at: number;
}

export const answer = signal<Answer | null>(null);
export const trouble = signal<string | null>(null);
export const asking = signal(false);

const follow = new Follower<Question, Answer>(
  (q, stop) => post<Answer>('playground', q, stop),
  (a, q) => {
    answer.value = a;
    trouble.value = null;
    hush();
    // What a person sees is what was asked for last.
    if (q.at === at.peek()) asking.value = false;
  },
  (text) => {
    trouble.value = text;
    asking.value = false;
    playing.value = false;
  },
);

// Whoever looks at the screen has the states follow the address.
export function attend(): () => void {
  const stop = effect(() => {
    if (screen.value !== 'playground') return;
    const l = lines.value;
    const data = lessons.value.data;
    if (!data) return;
    if (l === null) {
      trouble.value = `There is no lesson ${place.value.params['lesson']}: choose one above.`;
      return;
    }
    asking.value = true;
    follow.want({ version: script.value === undefined ? data.version : (number(place.value.params['v']) ?? 0), lines: l, at: at.value });
  });
  return () => {
    stop();
    follow.cancel();
    playing.value = false;
  };
}

export const steps = computed(() => answer.value?.steps ?? []);

export function go(to: number): void {
  put({ step: Math.max(0, Math.min(steps.peek().length, to)) || null }, 'replace');
}

export function forward(by: number): void {
  playing.value = false;
  go(at.peek() + by);
}

// turn goes to the beginning of the next chapter, or of this or the last one.
export function turn(by: 1 | -1): void {
  playing.value = false;
  const s = steps.peek();
  const begins = s.flatMap((step, i) => (i === 0 || s[i - 1]!.chapter !== step.chapter ? [i + 1] : []));
  const now = at.peek();
  const next = by > 0 ? begins.find((b) => b > now) : begins.filter((b) => b < now).pop();
  go(next ?? (by > 0 ? s.length : 0));
}

// Playing: one step after the other.
export const playing = signal(false);
export const speeds = [
  ['slow', 'slow', 1600],
  ['usual', 'usual', 700],
  ['fast', 'fast', 90],
] as const;
export const speed = signal<(typeof speeds)[number][0]>('usual');

export function togglePlay(): void {
  if (!playing.value && at.value >= steps.value.length) go(0);
  playing.value = !playing.value;
}

effect(() => {
  if (!playing.value || asking.value) return;
  if (at.value >= steps.value.length) {
    playing.value = false;
    return;
  }
  const wait = speeds.find(([name]) => name === speed.value)![2];
  const timer = setTimeout(() => go(at.peek() + 1), wait);
  return () => clearTimeout(timer);
});

export function choose(name: string): void {
  playing.value = false;
  put({ lesson: name, s: null, v: null, step: null }, 'push');
}

// use plays other lines, if the server takes them. What it refuses changes
// nothing, and why is returned; null if it took them.
async function use(next: readonly string[], step: number | null): Promise<string | null> {
  playing.value = false;
  const version = lessons.value.data?.version ?? 0;
  const text = next.join(separator);
  if (new URLSearchParams({ s: text }).toString().length > longest) return 'The experiment is too long for a link: begin a new one.';
  try {
    const got = await post<Answer>('playground', { version, lines: next, at: step ?? undefined });
    trouble.value = null;
    hush();
    put({ lesson: null, s: text, v: version, step: got.at || null }, 'push');
    return null;
  } catch (err) {
    return err instanceof Error ? err.message : String(err);
  }
}

// told says what is wrong with what somebody did in a form. Lines from the given
// one on are the form's own: nobody wrote them, so their number means nothing.
function told(problem: string | null, from: number, to = Infinity): boolean {
  if (problem === null) return true;
  const line = /^line (\d+), "(?:[^"\\]|\\.)*": /.exec(problem);
  const own = line && Number(line[1]) >= from && Number(line[1]) <= to;
  const text = own ? problem.slice(line[0].length) : problem;
  say(text.charAt(0).toUpperCase() + text.slice(1));
  return false;
}

// add does steps by hand, after the one that is looked at: those that followed
// are dropped, as when something is done after an undo.
export async function add(...more: string[]): Promise<boolean> {
  const now = lines.peek();
  const s = steps.peek();
  if (!now || !answer.peek()) return false;
  const next = s[at.peek()];
  const kept = next ? withoutHeadings(now.slice(0, next.line)) : now;
  return told(await use([...kept, ...more], null), kept.length + 1);
}

// withoutHeadings leaves out the headings at the end, under which nothing is.
function withoutHeadings(l: readonly string[]): readonly string[] {
  let end = l.length;
  while (end > 0 && l[end - 1]!.startsWith('#')) end--;
  return l.slice(0, end);
}

// restart plays the same steps on another device, or with other settings.
export async function restart(device: string): Promise<boolean> {
  const now = lines.peek();
  if (!now) return false;
  return told(await use([device, ...now.filter((l) => l.split(' ')[0] !== 'device')], at.peek()), 1, 1);
}

export function begin(): void {
  playing.value = false;
  put({ lesson: null, s: lessons.value.data?.default_device ?? '', v: lessons.value.data?.version ?? 0, step: null }, 'push');
}

// link is what is shown, as the end of an address: it means the same behind that
// of any ashlar view, and reveals nothing about this one.
export function link(): string {
  const p = new URLSearchParams();
  if (lesson.value) p.set('lesson', lesson.value.name);
  else {
    p.set('v', place.value.params['v'] ?? '');
    p.set('s', script.value ?? '');
  }
  if (at.value > 0) p.set('step', String(at.value));
  return `#//playground?${p}`;
}

// read takes a link, from whatever machine, or lines. It returns what is wrong
// with them; null if nothing is.
export async function read(text: string): Promise<string | null> {
  const hash = text.indexOf('#//playground?');
  const other = text.search(/#\/\d*\/playground\?/);
  const begins = hash >= 0 ? hash : other;
  if (begins >= 0) {
    const p = new URLSearchParams(text.slice(text.indexOf('?', begins) + 1).trim());
    if (p.has('s')) {
      const version = lessons.value.data?.version;
      if (number(p.get('v') ?? undefined) !== version)
        return `The link is of version ${p.get('v') ?? 'none'}; this ashlar plays version ${version}.`;
      return use(p.get('s')!.split(separator), number(p.get('step') ?? undefined));
    }
    const named = list.value.find((e) => e.name === p.get('lesson'));
    if (!named) return 'There is no such lesson here.';
    put({ lesson: named.name, s: null, v: null, step: number(p.get('step') ?? undefined) }, 'push');
    return null;
  }
  const typed = text
    .split(/[\n;]/)
    .map((l) => l.trim())
    .filter(Boolean);
  if (typed.length === 0) return 'Paste a link, or lines such as alloc a 4MiB.';
  return use(typed, null);
}
