// Comparisons, asked for once and kept. They are replays, so they come with
// progress.

import { signal, type Signal } from '@preact/signals';
import { address, type Query } from '../api';
import { begun, Work, type Going } from '../work';

export interface Answer<T> {
  data: T | null;
  going: Going | null;
  error: string | null;
}

const answers = new Map<string, { answer: Signal<Answer<unknown>>; work: Work }>();

// Beyond so many the oldest are forgotten.
const most = 40;

// compare asks for a document of the server: pair, changes or ranks.
export function compare<T>(name: string, query: Query): Signal<Answer<T>> {
  void rounds.value;
  const key = address(name, query);
  const known = answers.get(key);
  if (known) return known.answer as Signal<Answer<T>>;
  const answer = signal<Answer<T>>({ data: null, going: begun, error: null });
  const work = new Work(name, query, {
    going: (change) => {
      const now = answer.value;
      if (now.going) answer.value = { ...now, going: { ...now.going, ...change } };
    },
    document: (_, value) => (answer.value = { ...answer.value, data: value as T }),
    over: (error, stopped) => (answer.value = { ...answer.value, going: null, error: stopped ? 'It was stopped.' : error }),
  });
  answers.set(key, { answer: answer as Signal<Answer<unknown>>, work });
  if (answers.size > most) answers.delete(answers.keys().next().value!);
  return answer;
}

const rounds = signal(0);

// again asks for what failed or was stopped.
export function again(): void {
  for (const [key, a] of answers) if (a.answer.value.error !== null) answers.delete(key);
  rounds.value++;
}

export function stopAll(): void {
  for (const [, a] of answers) if (a.answer.value.going) a.work.stop();
}

// leave ends what is under way and forgets it: nobody looks at it any more.
export function leave(): void {
  for (const [key, a] of answers) {
    if (!a.answer.value.going) continue;
    a.work.drop();
    answers.delete(key);
  }
}
