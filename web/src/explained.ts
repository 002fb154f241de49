// The answers of explain. It takes all cores for a while, so it is asked for once
// the first curve is drawn, and stopped when no screen shows it any more.

import { computed, signal, type Signal } from '@preact/signals';
import { wholeCurve } from './parts/curve';
import { run } from './route';
import { meta, ready, stats, type Loaded } from './state';
import type { Document as Explain } from './types/explain.gen';
import { Work } from './work';

export interface Explained extends Loaded<Explain> {
  stopped?: boolean; // somebody stopped it
}

// A screen that goes and one that comes may both show it.
const grace = 100;

class Explanation {
  readonly state: Signal<Explained>;
  private work: Work | null = null;
  private watched = false;

  constructor(private readonly id: number) {
    this.state = signal<Explained>({}, { watched: () => this.look(true), unwatched: () => this.look(false) });
  }

  private look(watched: boolean): void {
    this.watched = watched;
    setTimeout(() => {
      const now = this.state.peek();
      if (this.watched && !this.work && !now.data && !now.error && !now.stopped) this.begin();
      if (!this.watched && this.work) {
        this.work.drop();
        this.work = null;
      }
    }, watched ? 0 : grace);
  }

  begin(): void {
    this.state.value = {};
    this.work = new Work(
      'explain',
      { run: this.id },
      {
        going: () => undefined,
        document: (_, data) => (this.state.value = { data: data as Explain }),
        over: (error, stopped) => {
          this.work = null;
          if (stopped) this.state.value = { stopped };
          else if (error !== null) this.state.value = { error };
        },
      },
    );
  }

  stop(): void {
    this.work?.stop();
  }
}

const all = new Map<number, Explanation>();

function of(id: number): Explanation {
  let e = all.get(id);
  if (!e) all.set(id, (e = new Explanation(id)));
  return e;
}

function settled(x: Loaded<unknown>): boolean {
  return x.data !== undefined || x.error !== undefined;
}

export const explain = computed<Explained>(() => {
  const m = meta.value.data;
  if (!ready.value || !m || !settled(stats.value) || (m.events > 0 && !settled(wholeCurve().value))) return {};
  return of(run.value!).state.value;
});

export function stopExplaining(): void {
  of(run.value!).stop();
}

export function explainAgain(): void {
  of(run.value!).begin();
}
