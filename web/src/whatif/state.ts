// The what-ifs of all runs: each run keeps its last one, also while another
// screen is shown.

import { signal, type Signal } from '@preact/signals';
import { begun, Work, type Going } from '../work';
import type { Question } from './question';
import type { Document as Tune, Choice } from '../types/tune.gen';
import type { Choice as Chosen } from '../types/view.gen';
import type { Document as Answer } from '../types/whatif.gen';

export interface State {
  question: Question | null;
  going: Going | null; // null: nothing is under way
  answer: Answer | null;
  choices: ReadonlyMap<number, Choice>; // by the place of the result
  tune: Tune | null;
  error: string | null;
  stopped: boolean; // somebody stopped it
}

const fresh: State = { question: null, going: null, answer: null, choices: new Map(), tune: null, error: null, stopped: false };

const states = new Map<number, { state: Signal<State>; work: Work | null }>();

function slot(run: number) {
  let s = states.get(run);
  if (!s) states.set(run, (s = { state: signal(fresh), work: null }));
  return s;
}

export function stateOf(run: number): Signal<State> {
  return slot(run).state;
}

export function same(a: Question | null, b: Question | null): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

// Draft is what the form says and nobody asked yet.
export interface Draft {
  about: string; // the question in the address that it began with
  sets: readonly string[];
  limit: string;
  memory: string;
  skip: boolean;
  budget: number;
}

const drafts = new Map<number, Draft>();

// draftOf is what was typed for a run, also while another screen is shown.
export function draftOf(run: number, about: string): Draft | null {
  const d = drafts.get(run);
  return d?.about === about ? d : null;
}

export function keepDraft(run: number, d: Draft): void {
  drafts.set(run, d);
}

// columns of a curve: enough for a wide screen.
const points = 1000;

// The most settings of a search that are drawn: nobody can distinguish more lines.
const drawn = 6;

export function start(run: number, q: Question): void {
  const s = slot(run);
  s.work?.drop();
  s.state.value = { ...fresh, question: q, going: begun };
  if (q.tune === null) tryAll(run, q, q.sets);
  else search(run, q, q.tune);
}

export function stop(run: number): void {
  const s = slot(run);
  const now = s.state.value;
  if (!now.going || now.going.stopping) return;
  set(run, { going: { ...now.going, stopping: true }, stopped: true });
  s.work?.stop();
}

function set(run: number, change: Partial<State>): void {
  const s = slot(run).state;
  s.value = { ...s.value, ...change };
}

function going(run: number, change: Partial<Going>): void {
  const now = slot(run).state.value.going;
  if (now) set(run, { going: { ...now, ...change } });
}

function bounds(q: Question) {
  return { limit: q.limit, device_memory: q.memory };
}

function tryAll(run: number, q: Question, sets: readonly string[]): void {
  slot(run).work = new Work(
    'whatif',
    { run, set: sets, recorded: 1, ...bounds(q), on_oom: q.skip ? 'skip' : 'die', curve: points },
    {
      going: (change) => going(run, change),
      document: (name, value) => {
        if (name === 'whatif') set(run, { answer: value as Answer });
        if (name === 'choice') {
          const { result, ...choice } = value as Chosen;
          set(run, { choices: new Map(slot(run).state.value.choices).set(result, choice) });
        }
      },
      over: (error) => set(run, { error, going: null }),
    },
  );
}

function search(run: number, q: Question, seconds: number): void {
  let found: Tune | null = null;
  slot(run).work = new Work(
    'tune',
    { run, ...bounds(q), budget: `${seconds}s` },
    {
      going: (change) => going(run, change),
      document: (name, value) => {
        if (name === 'tune') set(run, { tune: (found = value as Tune) });
      },
      over: (error) => {
        if (error !== null || !found) return set(run, { error, going: null });
        // What was found is drawn as any other question.
        set(run, { going: begun });
        tryAll(run, q, worthDrawing(found));
      },
    },
  );
}

function worthDrawing(t: Tune): string[] {
  const all = [t.recommended, ...t.others].filter((c) => !c.recorded).map((c) => c.settings);
  return [...new Set(all)].slice(0, drawn);
}
