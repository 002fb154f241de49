// The plans of this page: each that was made is kept, so that one can go back and
// see what a change did.

import { computed, signal } from '@preact/signals';
import { load } from '../state';
import { begun, Work, type Going } from '../work';
import { changes, configText, fileName, keyOf, same, type Question } from './question';
import type { Document as Answer } from '../types/plan.gen';
import type { Offer } from '../types/view.gen';

export const offer = computed(() => load<Offer>('plan', {}).value);

export interface Step {
  question: Question;
  answer: Answer;
  label: string; // how it came about
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

// draft is what the form has; it is no question yet.
export const draft = signal<Question | null>(null);

// edit changes the draft as it is now: events may come faster than drawing.
export function edit(change: (q: Question) => Question): void {
  const now = draft.peek();
  if (now) draft.value = change(now);
}

const most = 40;

// pieces of the step: enough for a wide screen.
const pieces = 900;

let work: Work | null = null;
let asking: string | null = null; // what is under way

// ask plans, unless the answer is there or under way.
export function ask(q: Question, against: number | null, o: Offer): void {
  const key = JSON.stringify([keyOf(q), against]);
  if (key === asking) return;
  drop();
  trouble.value = null;
  stopped.value = false;
  const known = trail.value.findIndex((s) => same(s.question, q));
  if (known >= 0) {
    at.value = known;
    if (trail.value[known]!.against === against) return;
    if (against === null) return amend(known, { against, trouble: null });
  }
  asking = key;
  going.value = begun;
  let heard = false;
  work = new Work(
    'plan',
    {},
    {
      going: (change) => going.value && (going.value = { ...going.value, ...change }),
      document: (name, value) => {
        if (name !== 'plan') return;
        heard = true;
        const got = { question: q, answer: value as Answer, against, trouble: null };
        const here = trail.value.findIndex((s) => same(s.question, q));
        if (here >= 0) return amend(here, got);
        const kept = trail.value.slice(Math.max(0, at.value + 2 - most), at.value + 1);
        trail.value = [...kept, { ...got, label: changes(kept[kept.length - 1]?.question ?? null, q) }];
        at.value = kept.length;
      },
      over: (error, wasStopped) => {
        asking = null;
        going.value = null;
        stopped.value = wasStopped;
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
export function drop(): void {
  work?.drop();
  work = null;
  asking = null;
  going.value = null;
}
