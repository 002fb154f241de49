// The documents of ashlar whatif --json and ashlar tune --json, as far as the
// page shows them (docs/json.md).

import type { Frame, Limit, Moment } from '../types';

export interface Failure extends Moment {
  size_bytes: number;
  segment_bytes: number;
  reserved_bytes: number;
  allocated_bytes: number;
  largest_free_bytes: number;
  recorded_too: boolean;
  at_start: boolean;
  looks_caught: boolean;
  caught_by: string | null;
  stack: Frame[] | null;
}

export interface Result {
  settings: string;
  export: string;
  recorded: boolean;
  limit_bytes: number | null;
  fails: boolean;
  first_failure: Failure | null;
  start_released_bytes: number;
  peak_reserved_bytes: number;
  peak_reserved_at: Moment;
  peak_allocated_bytes: number;
  num_alloc_retries: number;
  num_ooms: number;
  num_device_alloc: number;
  num_device_free: number;
  estimated_driver_ms: number;
  curve: { event: number[]; reserved_bytes: number[] } | null;
}

export interface Bound {
  bytes: number | null;
  source: string;
}

export interface SelfCheck {
  events: number;
  identical: number;
  note: string;
}

export interface Answer {
  self_check: SelfCheck;
  limit: Limit;
  device_memory: Bound & { event: number | null };
  on_oom: 'die' | 'skip';
  interrupted: boolean;
  not_run: string[];
  notes: string[];
  results: Result[];
}

export interface Choice {
  settings: string;
  export: string;
  smallest_limit_bytes: number | null;
  start_released_bytes: number;
  need_bytes: number | null;
  peak_reserved_bytes: number;
  estimated_driver_ms: number;
  recorded: boolean;
  reason?: string;
  requires?: string;
  under_limit: Result | null;
}

export interface Tune {
  limit: Limit;
  current: Choice;
  recommended: Choice;
  front: Choice[];
  front_complete: boolean;
  evaluated: number;
  finished: boolean;
  interrupted: boolean;
  lower_bound_bytes: number;
  elapsed_seconds: number;
  notes: string[];
}
