// The jobs as the server has them, asked for each second while the screen is seen.

import { computed, effect, get, link, place, put, repeat, signal, visitFile, words } from '../shared';
import type { Alarm, RunStatus } from '../types/watch.gen';
import type { Job, Sketch, Sketches, State } from '../types/live.gen';

export const state = signal<State | null>(null);
export const trouble = signal<string | null>(null); // why there is no newer state
export const refused = signal<string | null>(null); // why a snapshot is not opened
export const sketches = signal<ReadonlyMap<string, Sketch>>(new Map());

const second = 1000;

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
  put({ snapshot: null });
  try {
    await visitFile('live/open', { snapshot: name });
  } catch (err) {
    refused.value = words(err);
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
