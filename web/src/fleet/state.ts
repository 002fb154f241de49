// What the server knows of the fleet, and the answer to the question that is shown.

import { aborted, effect, get, link, place, put, repeat, signal, useEffect, useSignal, visitFile, words, type Query } from '../shared';
import type { State } from '../types/fleet.gen';

export const state = signal<State | null>(null);
export const trouble = signal<string | null>(null); // why there is no newer state
export const refused = signal<string | null>(null); // why a file is not opened
export const opening = signal<string | null>(null); // the hash of a file

// version counts how often the fleet changed: then questions are asked again.
const version = signal(0);

const pause = 5000; // ms between looks whether there is something new

// follow keeps the state.
export function follow(): () => void {
  let last = '';
  return repeat(
    async (stop) => {
      const got = await get<State>('fleet', {}, stop);
      const text = JSON.stringify(got);
      if (text === last) return;
      if (last) version.value++;
      last = text;
      state.value = got;
    },
    () => pause,
    (text) => (trouble.value = text),
  );
}

export interface Answer<T> {
  data: T | null; // the last one, also while another is asked for
  error: string | null;
  busy: boolean;
}

// useAnswer asks a question, again if it or the fleet changes.
export function useAnswer<T>(path: string, query: Query): Answer<T> {
  const answer = useSignal<Answer<T>>({ data: null, error: null, busy: true });
  useEffect(() => {
    const stop = new AbortController();
    answer.value = { ...answer.value, busy: true };
    get<T>(path, query, stop.signal).then(
      (data) => (answer.value = { data, error: null, busy: false }),
      (err) => aborted(err) || (answer.value = { ...answer.value, error: words(err), busy: false }),
    );
    return () => stop.abort();
  }, [path, JSON.stringify(query), version.value]);
  return answer.value;
}

// openFile shows a file of the fleet with its verdict.
export async function openFile(hash: string): Promise<void> {
  if (opening.value) return;
  opening.value = hash;
  refused.value = null;
  put({ open: null });
  try {
    await visitFile('fleet/open', { hash });
  } catch (err) {
    refused.value = words(err);
  } finally {
    opening.value = null;
  }
}

export function fileLink(hash: string): string {
  return link('fleet', { open: hash });
}

effect(() => {
  if (place.value.screen === 'fleet') document.title = 'Fleet - Ashlar';
});
