// Asks for the pictures of the timeline: at once if nothing is on its way, else
// when that has come. A question whose answer is no longer of use is cancelled.
// Meanwhile the screen shows the old picture, moved and stretched.

import { signal } from '@preact/signals';
import { aborted, get, getBinary, words } from '../api';
import type { Curve } from '../types/view.gen';
import { decode, type Picture, type Window } from './picture';

export interface Question {
  run: number;
  window: Window;
  whole: Window;
  axis: string;
  what: string;
  colour: string;
  filter: Record<string, string>;
  fits: boolean; // the axis of bytes is for the server to choose
  width: number;
  height: number;
}

// kind distinguishes questions whose pictures must not be mixed.
function kind(q: Question): string {
  return JSON.stringify([q.run, q.axis, q.what, q.colour, q.filter, q.fits]);
}

function same(a: Question, b: Question): boolean {
  return kind(a) === kind(b) && JSON.stringify(a.window) === JSON.stringify(b.window) && a.width === b.width && a.height === b.height;
}

export class Feed {
  // detail is the newest picture, base the one of the whole run, to be seen
  // where the newest does not reach.
  detail: Picture | null = null;
  base: Picture | null = null;
  curve: Curve | null = null;
  curveEnd = 0;

  // pace is how long answers take of late, in milliseconds.
  pace = 100;

  readonly error = signal<string | null>(null);
  readonly busy = signal(false);

  // answered is when the present answer was asked for; whoever draws it takes it.
  answered: number | null = null;

  private asked: Question | null = null;
  private wanted: Question | null = null;
  private began = 0;
  private stop: AbortController | null = null;
  private lineStop = new AbortController();
  private baseKind = '';
  private detailKind = '';

  constructor(private readonly arrived: () => void) {}

  want(q: Question): void {
    if (this.wanted && same(this.wanted, q)) return;
    this.began = performance.now();
    this.wanted = q;
    if (this.stop && this.asked && kind(this.asked) !== kind(q)) this.stop.abort();
    if (!this.stop || this.stop.signal.aborted) void this.ask();
  }

  private async ask(): Promise<void> {
    while (this.wanted && (!this.asked || !same(this.asked, this.wanted))) {
      const q = this.wanted;
      const stop = new AbortController();
      this.stop = stop;
      this.asked = q;
      this.busy.value = true;
      void this.lines(q);
      const began = performance.now();
      try {
        const p = await this.picture(q, stop.signal);
        if (stop.signal.aborted) return;
        this.pace = this.pace * 0.7 + (performance.now() - began) * 0.3;
        this.detail = p;
        this.detailKind = kind(q);
        if (q.window.from === q.whole.from && q.window.to === q.whole.to) this.setBase(p, q);
        else if (this.baseKind !== kind(q)) this.base = null;
        this.error.value = null;
        this.arrived();
        if (q === this.wanted) this.answered = this.began;
      } catch (err) {
        if (stop.signal.aborted || aborted(err)) return;
        this.error.value = words(err);
        this.arrived();
      }
    }
    this.stop = null;
    this.busy.value = false;
    if (this.wanted && this.baseKind !== kind(this.wanted)) void this.askBase(this.wanted);
  }

  private async picture(q: Question, signal: AbortSignal): Promise<Picture> {
    const { run, window: w, axis: x, what, colour: color, width, height, filter } = q;
    const bytes = q.fits ? {} : { ymin: Math.round(w.low), ymax: Math.round(w.high) };
    const data = await getBinary(
      'timeline',
      { run, from: w.from, to: w.to, x, what, width, height, color, ...bytes, ...filter },
      signal,
    );
    return decode(data, height);
  }

  // The totals of the stretch: what was requested, and which event a moment is.
  private async lines(q: Question): Promise<void> {
    this.lineStop.abort();
    const { signal } = (this.lineStop = new AbortController());
    try {
      const curve = await get<Curve>(
        'curve',
        { run: q.run, from: q.window.from, to: q.window.to, n: Math.min(1200, q.width), x: q.axis },
        signal,
      );
      if (signal.aborted) return;
      this.curve = curve;
      this.curveEnd = q.window.to;
      this.arrived();
    } catch {
      // The picture is there; the next one brings new lines.
    }
  }

  private setBase(p: Picture, q: Question): void {
    this.base = p;
    this.baseKind = kind(q);
  }

  private async askBase(q: Question): Promise<void> {
    try {
      const p = await this.picture({ ...q, window: q.whole }, new AbortController().signal);
      if (this.wanted && kind(this.wanted) === kind(q)) this.setBase(p, q);
    } catch {
      // It is only there to look better.
    }
  }

  get matches(): boolean {
    return this.wanted !== null && this.detailKind === kind(this.wanted);
  }

  cancel(): void {
    this.wanted = null;
    this.stop?.abort();
    this.lineStop.abort();
  }
}
