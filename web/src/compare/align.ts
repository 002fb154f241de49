// One axis for several runs: the places of their events on it.

import { count, seconds, ticks, type Tick } from '../format';
import type { Curve, Meta } from '../types/view.gen';

export type Align = 'step' | 'event' | 'time';

// Step n goes from n - 1 to n. What comes before the first step is as wide as a
// step. An unfinished last step, and what comes after the last one, are as wide
// as their share of the events of a usual step: a run that died early in a step
// ends there, and not where others finish it.
export function stepPlace(m: Meta): (event: number) => number {
  const all = m.steps;
  const first = all[0]!;
  const last = all[all.length - 1]!;
  const lengths = all.filter((s) => s.complete).map((s) => s.end - s.begin).sort((x, y) => x - y);
  const usual = lengths[lengths.length >> 1] ?? 0;
  const width = (events: number) => (usual > 0 ? Math.min(1, events / usual) : 1);
  const ending = last.complete ? 1 : width(last.end - last.begin);
  const rest = width(m.events - last.end);
  const between = (x: number, from: number, to: number, place: number) => place + (to > from ? (x - from) / (to - from) : 0);
  return (event) => {
    if (event < first.begin) return between(event, 0, first.begin, first.number - 2);
    if (event >= last.end) return last.number - 1 + ending + rest * between(Math.min(event, m.events), last.end, m.events, 0);
    let low = 0;
    let high = all.length - 1;
    while (low < high) {
      const mid = (low + high + 1) >> 1;
      if (all[mid]!.begin <= event) low = mid;
      else high = mid - 1;
    }
    const s = all[low]!;
    return s.number - 1 + (s === last ? ending : 1) * between(Math.min(event, s.end), s.begin, s.end, 0);
  };
}

// steps are known from two on: with one there is nothing to align.
export function hasSteps(m: Meta): boolean {
  return m.steps.length > 1;
}

export interface Placed {
  xs: number[];
  end: number;
}

// placed puts the columns of a curve on the axis. For time the curve is one by
// time.
export function placed(curve: Curve, m: Meta, align: Align): Placed {
  if (align === 'step') {
    const place = stepPlace(m);
    return { xs: curve.x.map(place), end: place(m.events) };
  }
  return { xs: curve.x, end: align === 'event' ? m.events : (m.last_time ?? 0) - (m.first_time ?? 0) + 1 };
}

export function axisTicks(align: Align, from: number, to: number, n: number): Tick[] {
  const list = ticks(from, to, n);
  switch (align) {
    case 'time':
      return list.map((t) => ({ at: t, text: seconds(t) }));
    case 'event':
      return list.filter((t) => t % 1 === 0).map((t) => ({ at: t, text: t === 0 ? 'event 0' : count(t) }));
    case 'step':
      // A step's number stands in its middle.
      return [
        ...(from < 0 ? [{ at: -0.5, text: 'before' }] : []),
        ...list.filter((t) => t % 1 === 0 && t >= 0 && t + 0.5 < to).map((t) => ({ at: t + 0.5, text: `step ${count(t + 1)}` })),
      ];
  }
}

export function axisPlace(align: Align, x: number, last: number): string {
  switch (align) {
    case 'time':
      return seconds(x);
    case 'event':
      return `event ${count(Math.floor(x))}`;
    case 'step':
      return x < 0 ? 'before the first step' : x >= last ? 'after the last step' : `step ${count(Math.floor(x) + 1)}`;
  }
}
