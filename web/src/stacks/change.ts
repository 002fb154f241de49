// What changed from one side to another: red is what grew, blue what shrank.

import { delta, size } from '../format';
import { changed } from '../palette';
import type { StackNode } from '../types/view.gen';
import type { Look } from './icicle';

export function difference(n: StackNode): number {
  return (n.b_bytes ?? 0) - (n.a_bytes ?? 0);
}

export function changeLook(a: number, b: number, changesOnly: boolean): Look {
  return {
    tint: (n, theme) => changed(n.bytes > 0 ? difference(n) / n.bytes : 0, theme),
    amount: (n) => delta(difference(n)),
    all: () => `all: ${size(a)} → ${size(b)}, ${delta(b - a)}${changesOnly ? '; only what changed' : ''}`,
  };
}
