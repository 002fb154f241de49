// Rows of the segment map: what each segment sums up to, in the order asked for.

import type { Block, Segment as Recorded } from '../types/view.gen';

// Segment is one of a recording, or of the playground, where blocks have no
// colours.
export type Segment = Omit<Recorded, 'colours'> & { colours?: readonly number[] };

// The states of a block.
export const free = 0;
export const allocated = 1;
export const pending = 2;
export const unmapped = 3;

export interface Row {
  segment: Segment;
  name?: string; // where segments have one
  allocated: number;
  free: number;
  pending: number;
  unmapped: number;
  largestFree: number;
  live: number; // blocks in use, pending ones included
  stuck: number; // free bytes that live blocks keep from release
}

export const sorts = [
  ['size', 'size'],
  ['free', 'free bytes'],
  ['stuck', 'pinned free bytes'],
  ['stream', 'stream'],
  ['pool', 'pool'],
  ['address', 'address'],
] as const;

export type Sort = (typeof sorts)[number][0];

export function sum(segment: Segment): Row {
  const row: Row = { segment, allocated: 0, free: 0, pending: 0, unmapped: 0, largestFree: 0, live: 0, stuck: 0 };
  for (const [, size, state] of segment.blocks) {
    switch (state) {
      case allocated:
        row.allocated += size;
        row.live++;
        break;
      case pending:
        row.pending += size;
        row.live++;
        break;
      case free:
        row.free += size;
        row.largestFree = Math.max(row.largestFree, size);
        break;
      case unmapped:
        row.unmapped += size;
        break;
    }
  }
  if (row.live > 0) row.stuck = row.free;
  return row;
}

// extent is what a segment takes of addresses: what is not mapped counts too.
export function extent(s: Segment): number {
  return Math.max(1, s.size_bytes, s.span_bytes);
}

export function sorted(rows: readonly Row[], by: Sort): Row[] {
  const size = (a: Row, b: Row) => b.segment.size_bytes - a.segment.size_bytes || a.segment.address - b.segment.address;
  const poolOf = (r: Row) => r.segment.pool ?? [-1, -1];
  const order: Record<Sort, (a: Row, b: Row) => number> = {
    size,
    free: (a, b) => b.free - a.free || size(a, b),
    stuck: (a, b) => b.stuck - a.stuck || size(a, b),
    stream: (a, b) => a.segment.stream - b.segment.stream || size(a, b),
    pool: (a, b) => poolOf(a)[0]! - poolOf(b)[0]! || poolOf(a)[1]! - poolOf(b)[1]! || size(a, b),
    address: (a, b) => a.segment.address - b.segment.address,
  };
  return [...rows].sort(order[by]);
}

export function blockAt(s: Segment, offset: number): Block | null {
  return s.blocks.find((b) => b[0] <= offset && offset < b[0] + b[1]) ?? null;
}

export function rowOf(rows: readonly Row[], alloc: number): number {
  return rows.findIndex((r) => r.segment.blocks.some((b) => b[3] === alloc));
}

// holeAt is the free block that is looked at: the one at an address, else the
// largest.
export function holeAt(rows: readonly Row[], address: number | null): Hole | null {
  let best: Hole | null = null;
  for (const row of rows) {
    row.segment.blocks.forEach((b, index) => {
      if (b[2] !== free) return;
      if (row.segment.address + b[0] === address) best = { row, index, chosen: true };
      else if (!best || (!best.chosen && b[1] > best.row.segment.blocks[best.index]![1])) best = { row, index, chosen: false };
    });
  }
  return best;
}

export interface Hole {
  row: Row;
  index: number; // of the block in its segment
  chosen: boolean; // it was asked for
}

// beside lists the blocks at the edges of a hole: those that keep it from being
// larger.
export function beside({ row, index }: Hole): Block[] {
  const b = row.segment.blocks;
  return [b[index - 1], b[index + 1]].filter((n): n is Block => n !== undefined && n[3] >= 0);
}
