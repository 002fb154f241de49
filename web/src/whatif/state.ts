// The what-ifs of all runs: each run keeps its form and what was answered last,
// also while another screen is shown.

import { signal, type Signal } from '@preact/signals';
import { Asking } from '../asking';
import { put } from '../route';
import { begun, Work, type Going } from '../work';
import { changes, inAddress, searchChanges, searchInAddress, usual, type Question, type Search, type Told } from './question';
import type { Document as Tune, Choice } from '../types/tune.gen';
import type { Choice as Chosen, Refusal } from '../types/view.gen';
import type { Document as Answer } from '../types/whatif.gen';

// State is what became of the questions of one kind.
interface State<Q, R> {
  asked: Q | null; // last
  going: Going | null; // null: nothing is under way
  result: R | null; // of the last one that was answered
  error: string | null;
  stopped: boolean; // somebody stopped it
}

export interface Tried {
  question: Question;
  answer: Answer;
  choices: ReadonlyMap<number, Choice>; // by the place of the result
}

export interface Found {
  question: Search;
  tune: Tune;
}

// Draft is what the form has.
export interface Draft extends Question {
  seconds: number;
  goal: Search['goal'];
}

interface Slot {
  about: string | null; // the address that the form began with
  draft: Signal<Draft>;
  tries: Signal<State<Question, Tried>>;
  search: Signal<State<Search, Found>>;
  refused: Signal<ReadonlyMap<string, string>>; // settings that cannot be tried, and why
  works: { tries: Work | null; search: Work | null };
  asking: Asking;
}

const nothing = { asked: null, going: null, result: null, error: null, stopped: false };

const slots = new Map<number, Slot>();

export function slotOf(run: number): Slot {
  const known = slots.get(run);
  if (known) return known;
  const s: Slot = {
    about: null,
    draft: signal({ sets: usual, limit: '', memory: '', skip: false, seconds: 60, goal: '' }),
    tries: signal(nothing),
    search: signal(nothing),
    refused: signal(new Map()),
    works: { tries: null, search: null },
    asking: new Asking(
      () => {
        record(s);
        attempt(run);
      },
      () => withdraw(s),
    ),
  };
  slots.set(run, s);
  return s;
}

export function questionOf(d: Draft): Question {
  return { sets: d.sets, limit: d.limit.trim(), memory: d.memory.trim(), skip: d.skip };
}

export function searchOf(d: Draft): Search {
  return { limit: d.limit.trim(), memory: d.memory.trim(), seconds: d.seconds, goal: d.goal };
}

function same<Q>(a: Q | null, b: Q | null): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

// staleness is what the table is for, if that is not what the form has.
export function staleness(s: Slot): string | null {
  const [now, of] = [questionOf(s.draft.value), s.tries.value.result?.question];
  return !of || same(now, of) ? null : changes(now, of);
}

export function searchStaleness(s: Slot): string | null {
  const [now, of] = [searchOf(s.draft.value), s.search.value.result?.question];
  return !of || same(now, of) ? null : searchChanges(now, of);
}

// edit changes the form of a run. What it asks is answered when it rests; a search
// waits until somebody wants one.
export function edit(run: number, change: Partial<Draft>): void {
  const s = slotOf(run);
  const before = s.draft.peek();
  const now = { ...before, ...change };
  s.draft.value = now;
  if (!same(searchOf(before), searchOf(now))) stopSearch(run);
  if (!same(questionOf(before), questionOf(now))) s.asking.changed();
  else record(s);
}

// record puts what the form has into the address; a search only if it is the one
// that was asked for.
function record(s: Slot): void {
  const d = s.draft.peek();
  put({ ...(same(s.search.peek().asked, searchOf(d)) ? {} : searchInAddress(null)), ...inAddress(questionOf(d)) }, 'replace');
}

export function askNow(run: number): void {
  slotOf(run).asking.now();
}

// follow does what the address says: it fills the form and, if the run is ready,
// asks.
export function follow(run: number, told: Told, about: string, ready: boolean): void {
  const s = slotOf(run);
  const draft = s.draft.peek();
  const asked: Draft = {
    sets: told.sets ?? (told.seconds === null ? usual : draft.sets),
    limit: told.limit,
    memory: told.memory,
    skip: told.skip,
    seconds: told.seconds ?? draft.seconds,
    goal: told.seconds === null ? draft.goal : told.goal,
  };
  const agreed = same(questionOf(draft), questionOf(asked)) && same(searchOf(draft), searchOf(asked));
  const news = s.about !== about;
  s.about = about;
  if (news && !agreed) s.draft.value = asked;
  if (!ready) return;
  if (told.seconds !== null && !same(s.search.peek().asked, searchOf(s.draft.peek()))) search(run, told.sets === null);
  if ((told.seconds === null || told.sets !== null) && s.asking.rests()) {
    if (news || agreed) attempt(run);
    else s.asking.now(); // what was typed before the screen was left
  }
}

// leave is for a screen that is left: what was typed is asked when it is shown
// again, and so is what has no answer yet.
export function leave(run: number): void {
  const s = slotOf(run);
  if (!s.asking.rests() || (s.tries.peek().going && !s.tries.peek().result)) s.asking.cancel();
}

function withdraw(s: Slot): void {
  s.works.tries?.drop();
  s.works.tries = null;
  s.tries.value = { ...s.tries.peek(), asked: null, going: null, error: null, stopped: false };
}

// columns of a curve: enough for a wide screen.
const points = 1000;

// The most settings of a search that are drawn: nobody can distinguish more lines.
const drawn = 6;

function change<Q, R>(of: Signal<State<Q, R>>, by: Partial<State<Q, R>>): void {
  of.value = { ...of.value, ...by };
}

function goOn<Q, R>(of: Signal<State<Q, R>>, by: Partial<Going>): void {
  const now = of.value.going;
  if (now) change(of, { going: { ...now, ...by } });
}

function bounds(q: { limit: string; memory: string }) {
  return { limit: q.limit, device_memory: q.memory };
}

// attempt tries what the form has, unless that was done or is under way.
function attempt(run: number): void {
  const s = slotOf(run);
  const q = questionOf(s.draft.peek());
  if (same(s.tries.peek().asked, q)) return;
  s.works.tries?.drop();
  change(s.tries, { asked: q, going: begun, error: null, stopped: false });
  s.works.tries = new Work(
    'whatif',
    { run, set: q.sets, recorded: 1, ...bounds(q), on_oom: q.skip ? 'skip' : 'die', curve: points },
    {
      going: (by) => goOn(s.tries, by),
      document: (name, value) => {
        if (name === 'refused') {
          const { set, error } = value as Refusal;
          s.refused.value = new Map(s.refused.value).set(set, error);
        }
        if (name === 'whatif') change(s.tries, { result: { question: q, answer: value as Answer, choices: new Map() } });
        const result = s.tries.value.result;
        if (name === 'choice' && result) {
          const { result: place, ...choice } = value as Chosen;
          change(s.tries, { result: { ...result, choices: new Map(result.choices).set(place, choice) } });
        }
      },
      over: (error) => change(s.tries, { error, going: null }),
    },
  );
}

export function stop(run: number): void {
  const s = slotOf(run);
  const now = s.tries.peek();
  if (now.going && !now.going.stopping) {
    change(s.tries, { going: { ...now.going, stopping: true }, stopped: true });
    s.works.tries?.stop();
  }
  stopSearch(run);
}

function stopSearch(run: number): void {
  const s = slotOf(run);
  const now = s.search.peek();
  if (!now.going || now.going.stopping) return;
  change(s.search, { going: { ...now.going, stopping: true }, stopped: true });
  s.works.search?.stop();
}

// tune has the settings searched for, and then tries what was found.
export function tune(run: number): void {
  const s = slotOf(run);
  s.asking.cancel();
  put(searchInAddress(searchOf(s.draft.peek())), 'push');
  search(run, true);
}

function search(run: number, tries: boolean): void {
  const s = slotOf(run);
  const q = searchOf(s.draft.peek());
  s.works.search?.drop();
  change(s.search, { asked: q, going: begun, error: null, stopped: false });
  let found: Tune | null = null;
  s.works.search = new Work(
    'tune',
    { run, ...bounds(q), budget: `${q.seconds}s`, goal: q.goal },
    {
      going: (by) => goOn(s.search, by),
      document: (name, value) => {
        if (name === 'tune') change(s.search, { result: { question: q, tune: (found = value as Tune) } });
      },
      over: (error) => {
        change(s.search, { error, going: null });
        if (!found || !tries || !s.asking.rests() || !same(q, searchOf(s.draft.peek()))) return;
        const sets = worthDrawing(found);
        if (sets.length > 0) s.draft.value = { ...s.draft.peek(), sets };
        attempt(run);
      },
    },
  );
}

function worthDrawing(t: Tune): string[] {
  const all = [t.recommended, ...t.others].filter((c) => !c.recorded).map((c) => c.settings);
  return [...new Set(all)].slice(0, drawn);
}
