// Made by make web from the Go types of internal/fleet/answers. Do not edit.

import type { Divergence, Measure, Odd, Replay, Stack } from './diff.gen';
import type { Frame } from './view.gen';

export interface Cause {
  verdict: string;
  frames: Frame[] | null;
  roles: Role[];
  files: number;
  runs: number;
  ranks: number;
  commits: number;
  first_us: number;
  last_us: number;
  example: string;
  example_hash: string;
  fix: CauseFix | null;
}

export interface CauseFix {
  kind: string;
  settings: string;
  passes: number;
  of: number;
}

export interface CausesDocument {
  causes: Cause[];
  notes: string[];
}

export interface Column {
  name: string;
  kind: Kind;
}

export interface CommitGrowth {
  commit: string;
  first_seen_us: number;
  ranks: number;
  failed: number;
  peak_allocated_bytes: number | null;
  peak_reserved_bytes: number | null;
  grew: boolean;
  delta_bytes: number | null;
  than: string | null;
  measure: string | null;
  stacks: Stack[];
  notes: string[];
}

export interface GrowthDocument {
  runs: RunGrowth[];
}

export type Kind = 'text' | 'count' | 'bytes' | 'time' | 'duration' | 'bool';

export interface Launch {
  commit: string | null;
  attempt: number | null;
  first_seen_us: number;
  failed: number;
  sizes: string;
  measures: Measure[];
  odd: Odd[];
  calls_compared: boolean;
  calls_in_common: number;
  calls_shifted: boolean;
  divergence: Divergence | null;
  notes: string[];
  ranks: LaunchedRank[];
}

export interface LaunchedRank {
  rank: number | null;
  hash: string;
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

export interface OddRank {
  rank: number | null;
  commit: string | null;
  attempt: number | null;
  file: string;
  hash: string;
  measure: string;
  delta_bytes: number | null;
  delta_count: number | null;
  delta_fraction: number | null;
}

export interface QueryDocument {
  columns: Column[];
  matched: number;
  total: number;
  rows: (Record<string, unknown>)[];
  notes: string[];
}

export interface RanksDocument {
  run: string;
  odd: OddRank[];
  launches: Launch[];
}

export type Role = 'request' | 'holder' | 'holder_caller';

export interface RunGrowth {
  run: string;
  commits: CommitGrowth[];
}
