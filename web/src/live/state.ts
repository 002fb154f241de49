// The jobs as the server has them, asked for each second while the screen is seen.

import { aborted, ask, computed, effect, get, link, place, put, runs, signal, visit, words } from '../shared';
import type { Alarm, RunStatus } from '../types/watch.gen';
import type { Job, Sketch, Sketches, State } from '../types/live.gen';
import type { Runs } from '../types/view.gen';

export const state = signal<State | null>(null);
export const trouble = signal<string | null>(null); // why there is no newer state
export const refused = signal<string | null>(null); // why a snapshot is not opened
export const sketches = signal<ReadonlyMap<string, Sketch>>(new Map());

const second = 1000;

// repeat calls f, waits, and calls it again, until the function that it returns is
// called. A page that nobody sees asks for nothing.
export function repeat(f: (stop: AbortSignal) => Promise<void>, wait: () => number, failed: (text: string | null) => void): () => void {
  const stop = new AbortController();
  let timer = 0;
  const turn = async () => {
    clearTimeout(timer);
    if (document.hidden || stop.signal.aborted) return;
    const began = Date.now();
    try {
      await f(stop.signal);
      failed(null);
    } catch (err) {
      if (!aborted(err)) failed(words(err));
    }
    if (!stop.signal.aborted) timer = setTimeout(turn, Math.max(100, wait() - (Date.now() - began)));
  };
  const back = () => void (document.hidden || turn());
  document.addEventListener('visibilitychange', back);
  void turn();
  return () => {
    stop.abort();
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', back);
  };
}

// follow keeps the state and the sketches.
export function follow(): () => void {
  const ends = [
    repeat(
      async (stop) => void (state.value = await get<State>('live', { job: place.value.params['job'] }, stop)),
      () => second,
      (text) => (trouble.value = text),
    ),
    repeat(
      async (stop) => {
        const got = await get<Sketches>('live/sketches', {}, stop);
        sketches.value = new Map(got.jobs.map((j) => [j.key, j]));
      },
      () => 30 * second,
      () => {}, // the state says what is wrong
    ),
  ];
  return () => ends.forEach((end) => end());
}

export const jobs = computed<readonly Job[]>(() => state.value?.jobs ?? []);
export const chosen = computed(() => {
  const key = place.value.params['job'];
  return key === undefined ? null : (jobs.value.find((j) => j.key === key) ?? undefined);
});

export function jobOf(a: Alarm): Job | undefined {
  return jobs.value.find((j) => j.ranks.some((r) => r.session === a.session));
}

export function rankName(r: { rank: number; gpu: number | null }, several: boolean): string {
  return `rank ${r.rank}${several && r.gpu !== null ? ` gpu ${r.gpu}` : ''}`;
}

// several reports whether a rank of a job has more than one GPU.
export function several(ranks: readonly RunStatus[]): boolean {
  return new Set(ranks.map((r) => r.session)).size < ranks.length;
}

export const opening = signal<string | null>(null);

// openSnapshot shows the snapshot of an alarm with its verdict.
export async function openSnapshot(name: string): Promise<void> {
  if (opening.value) return;
  opening.value = name;
  refused.value = null;
  try {
    const got = (await (await ask('live/open', { snapshot: name }, { method: 'POST' })).json()) as { runs: number[] };
    runs.value = (await get<Runs>('runs')).runs;
    if (place.value.params['snapshot']) put({ snapshot: null });
    if (got.runs[0] !== undefined) visit(got.runs[0], 'overview', {});
  } catch (err) {
    refused.value = words(err);
    put({ snapshot: null });
  } finally {
    opening.value = null;
  }
}

export function snapshotLink(name: string): string {
  return link('live', { snapshot: name });
}

// The title says how many alarms are raised: it is seen in another tab.
effect(() => {
  if (place.value.screen !== 'live' || !state.value) return;
  const raised = state.value.alarms.filter((a) => a.cleared_us === null).length;
  document.title = `${raised > 0 ? `(${raised}) ` : ''}Live - Ashlar`;
});
