// The documents of ashlar diff --json, as far as the page shows them
// (docs/json.md), and the tree of what changed.

import type { Frame, Moment, StackNode } from '../types';

export interface Side {
  file: string;
  device: number | null;
  settings: string | null;
  events: number;
  oom_events: number;
  at: Moment & { asked: string };
  peak_allocated_bytes: number | null;
  peak_reserved_bytes: number | null;
  peak_requested_bytes: number | null;
  reserved_bytes: number;
  allocated_bytes: number | null;
  active_bytes: number | null;
  requested_bytes: number | null;
  active_blocks: number;
  fragmentation: { reserved_unallocated: number | null; inactive_split: number | null; external: number | null };
}

export interface Changes {
  stacks: number;
  delta_bytes: number;
}

export type Change = 'grown' | 'shrunk' | 'new' | 'gone' | 'same';

export interface StackChange {
  change: Change;
  delta_bytes: number;
  a_bytes: number;
  b_bytes: number;
  a_blocks: number;
  b_blocks: number;
  matched: 'exact' | 'lines' | 'functions' | 'site' | null;
  frames: Frame[] | null;
  a_frames: Frame[] | null;
}

export interface Pair {
  a: Side;
  b: Side;
  sizes: 'block' | 'requested' | 'mixed';
  a_bytes: number;
  b_bytes: number;
  delta_bytes: number;
  grown: Changes;
  shrunk: Changes;
  new: Changes;
  gone: Changes;
  same: Changes;
  stacks: StackChange[];
  notes: string[];
}

export interface Rank {
  name: string;
  events: number;
  calls: number;
  oom_events: number;
  peak_allocated_bytes: number | null;
  peak_requested_bytes: number | null;
  peak_reserved_bytes: number;
  cached_at_peak_bytes: number | null;
  partial: boolean;
  diverges_at_event: number | null;
}

export type Measure = 'peak_allocated' | 'peak_requested' | 'peak_reserved' | 'cached_at_peak' | 'oom_events' | 'events';

export interface Odd {
  rank: number;
  measure: Measure;
  delta_bytes: number | null;
  delta_count: number | null;
  delta_fraction: number | null;
}

export interface Branch {
  ranks: number[];
  call: string;
  size_bytes: number;
  event: number;
  frames: Frame[] | null;
}

export interface Ranks {
  sizes: 'block' | 'requested';
  ranks: Rank[];
  odd: Odd[];
  calls_compared: boolean;
  calls_in_common: number;
  calls_shifted: boolean;
  divergence: { calls_in_common: number; majority: boolean; branches: Branch[] } | null;
  notes: string[];
}

export interface Tree {
  a_bytes: number;
  b_bytes: number;
  total_bytes: number;
  nodes: StackNode[];
}
