// The order in which the parts of a plan are stacked.

// stacking puts what is always there at the bottom: the order of the least that
// there ever is of each.
export function stacking<T extends { bytes: readonly number[] }>(list: readonly T[]): T[] {
  const least = new Map(list.map((c) => [c, Math.min(...c.bytes)]));
  const most = new Map(list.map((c) => [c, Math.max(...c.bytes)]));
  return [...list].sort((a, b) => least.get(b)! - least.get(a)! || most.get(b)! - most.get(a)!);
}
