// The plans of this page: each that was made is kept, so that one can go back and
// see what a change did.

import { computed, signal } from '@preact/signals';
import { Asking } from '../asking';
import { place, put } from '../route';
import { load } from '../state';
import { begun, Work, type Going } from '../work';
import { addressOf, againstOf, changes, configText, fileName, fitting, keyOf, same, settled, tooLong, type Question } from './question';
import type { Document as Answer } from '../types/plan.gen';
import type { Offer } from '../types/view.gen';

export const offer = computed(() => load<Offer>('plan', {}).value);

export interface Step {
  question: Question;
  answer: Answer;
  label: string; // how it came about
  typed: string; // the field whose change made it; empty for anything else
  against: number | null; // the run that the answer was held against, or was to be
  trouble: string | null; // why it could not be
}

// The plans in the order in which they were made, and the one that is shown. One
// that is made after going back takes the place of those that followed.
export const trail = signal<readonly Step[]>([]);
export const at = signal(-1);

export const step = computed<Step | null>(() => trail.value[at.value] ?? null);
export const before = computed<Step | null>(() => trail.value[at.value - 1] ?? null);

export const going = signal<Going | null>(null);
export const trouble = signal<string | null>(null);
export const stopped = signal(false);

// ledger is the file of a dry run that is shown in place of the plans.
export const ledger = signal<File | null>(null);

// draft is what the form has.
export const draft = signal<Question | null>(null);

// asked is the draft as a question.
export const asked = computed(() => {
  const o = offer.value.data;
  return draft.value && o ? fitting(draft.value, o) : null;
});

// staleness is what the plan that is shown is for, if that is not what the form
// has; null if it is.
export const staleness = computed<string | null>(() => {
  const [q, s] = [asked.value, step.value];
  if (!q || !s || same(q, s.question) || same(q, settled(s.question, s.answer))) return null;
  return changes(q, s.question) || 'other inputs';
});

// The defaults of options, as the server says, and the question that they are
// for: a batch, a card and settings do not change them.
const told = signal<{ about: string; values: Readonly<Record<string, string>> }>({ about: '', values: {} });

export const defaults = computed(() => (asked.value && told.value.about === about(asked.value) ? told.value.values : {}));

function about(q: Question): string {
  const { batch: _, ...options } = q.options;
  return JSON.stringify([q.shape, q.config, Object.entries(options).sort()]);
}

let typed = '';

const asking = new Asking(
  () => {
    const o = offer.peek().data;
    if (o && asked.peek()) pursue(asked.peek()!, o, 'replace');
  },
  () => drop(),
);

// edit changes the draft as it is now: events may come faster than drawing. Field
// is the name of the input, if there is one.
export function edit(change: (q: Question) => Question, field = ''): void {
  const now = draft.peek();
  if (!now) return;
  draft.value = { ...change(now), max: '' };
  trouble.value = null;
  stopped.value = false;
  typed = field;
  asking.changed();
}

// askNow asks what the form has.
export function askNow(): void {
  asking.now();
}

// want puts a question into the form and asks it.
export function want(q: Question, o: Offer): void {
  asking.cancel();
  typed = '';
  draft.value = q;
  pursue(fitting(q, o), o, 'push');
}

function pursue(q: Question, o: Offer, how: 'push' | 'replace'): void {
  if (ledger.peek()) return;
  if (tooLong(q.config, o)) {
    trouble.value = 'The config is too long for the page: use ashlar plan on the command line.';
    return;
  }
  put(addressOf(q, o, place.peek().params), how);
  ask(q, againstOf(place.peek().params), o);
}

const most = 40;

// pieces of the step: enough for a wide screen.
const pieces = 900;

let work: Work | null = null;
let underway: string | null = null;

// ask plans, unless the answer is there or under way.
export function ask(q: Question, against: number | null, o: Offer): void {
  const key = JSON.stringify([keyOf(q), against]);
  if (key === underway) return;
  drop();
  trouble.value = null;
  stopped.value = false;
  const known = trail.value.findIndex((s) => same(s.question, q));
  if (known >= 0) {
    at.value = known;
    if (trail.value[known]!.against === against) return;
    if (against === null) return amend(known, { against, trouble: null });
  }
  underway = key;
  going.value = begun;
  const by = typed;
  typed = '';
  let heard = false;
  work = new Work(
    'plan',
    {},
    {
      going: (change) => going.value && (going.value = { ...going.value, ...change }),
      document: (name, value) => {
        if (name === 'defaults') told.value = { about: about(q), values: value as Record<string, string> };
        if (name !== 'plan') return;
        heard = true;
        const got = { question: q, answer: value as Answer, against, trouble: null, typed: by };
        const here = trail.value.findIndex((s) => same(s.question, q));
        if (here >= 0) return amend(here, got);
        let kept = trail.value.slice(Math.max(0, at.value + 2 - most), at.value + 1);
        // What was typed into one field is one change.
        if (by && kept[kept.length - 1]?.typed === by) kept = kept.slice(0, -1);
        trail.value = [...kept, { ...got, label: changes(kept[kept.length - 1]?.question ?? null, q) }];
        at.value = kept.length;
      },
      over: (error, wasStopped) => {
        underway = null;
        going.value = null;
        stopped.value = wasStopped;
        // A search that found nothing is no input that anybody sees.
        if (q.max && (wasStopped || error !== null) && draft.peek()) draft.value = { ...draft.peek()!, max: '' };
        const here = trail.value.findIndex((s) => same(s.question, q));
        // A plan that cannot be compared is a plan.
        if (heard && here >= 0 && error !== null) amend(here, { trouble: error });
        else trouble.value = error;
      },
    },
    {
      version: o.version,
      name: fileName(q),
      config: configText(q, o),
      options: q.options,
      gpu: q.gpu,
      limit: q.limit,
      settings: q.settings,
      head: q.head,
      max: q.max,
      curve: pieces,
      against: against ?? 0,
    },
  );
}

function amend(i: number, change: Partial<Step>): void {
  trail.value = trail.value.map((s, k) => (k === i ? { ...s, ...change } : s));
  at.value = i;
}

export function stop(): void {
  if (!going.value || going.value.stopping) return;
  going.value = { ...going.value, stopping: true };
  work?.stop();
}

// drop is for an answer that nobody wants any more.
function drop(): void {
  work?.drop();
  work = null;
  underway = null;
  going.value = null;
}

// leave is for a screen that is left: what was typed is asked when it is shown
// again.
export function leave(): void {
  asking.cancel();
}
