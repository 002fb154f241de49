// Made by make web from the Go types of internal/answer/diff. Do not edit.

import type { Frame } from './view.gen';

export interface Branch {
  ranks: number[];
  call: string;
  size_bytes: number;
  event: number;
  frames: Frame[] | null;
  site: string | null;
}

export interface Changes {
  stacks: number;
  delta_bytes: number;
}

export interface Divergence {
  calls_in_common: number;
  majority: boolean;
  branches: Branch[];
}

export interface Fragmentation {
  reserved_unallocated_of_peaks: number | null;
  reserved_unallocated: number | null;
  inactive_split: number | null;
  external: number | null;
}

export interface Matched {
  exact: number;
  lines: number;
  functions: number;
  site: number;
}

export interface Measure {
  measure: string;
  median_bytes: number | null;
  threshold_bytes: number | null;
  median_count: number | null;
  threshold_count: number | null;
}

export interface Moment {
  asked: string;
  event: number | null;
  time_us: number | null;
  since_start_us: number | null;
  step: number | null;
  annotation: string | null;
}

export interface Odd {
  rank: number;
  measure: string;
  delta_bytes: number | null;
  delta_count: number | null;
  delta_fraction: number | null;
}

export interface PairDocument {
  kind: string;
  a: Side;
  b: Side;
  sizes: string;
  a_bytes: number;
  b_bytes: number;
  delta_bytes: number;
  grown: Changes;
  shrunk: Changes;
  new: Changes;
  gone: Changes;
  same: Changes;
  matched: Matched;
  stacks: Stack[];
  notes: string[];
}

export interface Rank {
  file: string;
  device: number | null;
  name: string;
  contradictions: string[];
  events: number;
  calls: number;
  oom_events: number;
  replay: Replay | null;
  peak_allocated_bytes: number | null;
  peak_requested_bytes: number | null;
  peak_reserved_bytes: number;
  fragmentation: number | null;
  fragmentation_bytes: number | null;
  cached_at_peak_bytes: number | null;
  reserved_unallocated_at_peak: number | null;
  partial: boolean;
  diverges_at_event: number | null;
}

export interface RanksDocument {
  kind: string;
  sizes: string;
  ranks: Rank[];
  measures: Measure[];
  odd: Odd[];
  calls_compared: boolean;
  calls_in_common: number;
  calls_shifted: boolean;
  divergence: Divergence | null;
  notes: string[];
  skipped: Skipped[];
}

export interface Replay {
  identical: boolean;
  events: number;
  identical_events: number;
}

export interface Side {
  file: string;
  device: number | null;
  device_reason: string | null;
  contradictions: string[];
  settings: string | null;
  events: number;
  oom_events: number;
  replay: Replay | null;
  at: Moment;
  peak_allocated_bytes: number | null;
  peak_reserved_bytes: number | null;
  peak_requested_bytes: number | null;
  reserved_bytes: number;
  allocated_bytes: number | null;
  active_bytes: number | null;
  requested_bytes: number | null;
  active_blocks: number;
  fragmentation: Fragmentation;
}

export interface Skipped {
  file: string;
  error: string;
}

export interface Stack {
  change: string;
  delta_bytes: number;
  a_bytes: number;
  b_bytes: number;
  a_blocks: number;
  b_blocks: number;
  matched: string | null;
  frames: Frame[] | null;
  a_frames: Frame[] | null;
  site: string | null;
}
