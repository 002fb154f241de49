// Colours of what memory is for: the same in the bars and in the step.

import { css, part } from '../palette';
import type { Theme } from '../theme';

// The purposes that matter most have hues of their own; the rest share the
// fainter ones. What is not here is grey.
const order = [
  'weights',
  'optimizer state',
  'activations',
  'cache',
  'gradients',
  'loss',
  'temporary',
  'master weights',
  'collectives',
  'weight casts',
  'saved copies',
  'workspaces',
  'inputs',
  'buffers',
];

export function colourOf(name: string, theme: Theme): string {
  return css(part(order.indexOf(name), theme));
}

// stacking puts what is always there at the bottom: the order of the least that
// there ever is of each.
export function stacking<T extends { bytes: readonly number[] }>(list: readonly T[]): T[] {
  const least = new Map(list.map((c) => [c, Math.min(...c.bytes)]));
  const most = new Map(list.map((c) => [c, Math.max(...c.bytes)]));
  return [...list].sort((a, b) => least.get(b)! - least.get(a)! || most.get(b)! - most.get(a)!);
}
