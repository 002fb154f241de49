// Made by make web from the Go types of internal/answer/whatif. Do not edit.

import type { Category } from './findings.gen';
import type { Moment } from './timeline.gen';
import type { Frame } from './view.gen';

export interface Change {
  kind: string;
  value: string;
  note: string;
}

export interface Curve {
  event: number[];
  time_us: (number | null)[];
  reserved_bytes: number[];
  active_bytes: number[];
  allocated_bytes: number[];
  requested_bytes: number[];
  largest_free_bytes: number[];
  fragmentation: number[];
}

export interface Document {
  warning: string;
  file: string;
  device: number;
  device_reason: string | null;
  contradictions: string[];
  self_check: SelfCheck;
  limit: Limit;
  device_memory: Memory;
  on_oom: string;
  empty_cache: EmptyCacheCalls | null;
  changes: Change[];
  overflow: Overflow | null;
  interrupted: boolean;
  not_run: string[];
  notes: string[];
  results: Result[];
}

export interface EmptyCacheCalls {
  when: string;
  recorded: number;
  made: number;
}

export interface Failure {
  event: number | null;
  time_us: number | null;
  since_start_us: number | null;
  step: number | null;
  annotation: string | null;
  size_bytes: number;
  segment_bytes: number;
  stream: number;
  reserved_bytes: number;
  allocated_bytes: number;
  unallocated_bytes: number;
  active_bytes: number;
  largest_free_bytes: number;
  device_free_bytes: number | null;
  recorded_too: boolean;
  at_start: boolean;
  looks_caught: boolean;
  caught_by: string | null;
  stack: Frame[] | null;
  site: string | null;
}

export interface Limit {
  bytes: number | null;
  source: string;
  min_bytes: number | null;
  max_bytes: number | null;
}

export interface Memory {
  bytes: number | null;
  source: string;
  event: number | null;
}

export interface Overflow {
  host_bytes: number;
  runs: boolean;
  failed_bytes: number;
  recorded_failure: boolean;
  peak_host_bytes: number;
  extra_seconds: Range | null;
  step_seconds: number | null;
  steps: number;
  slowdown: Range | null;
  frozen_bytes: number;
  holders: OverflowHolder[];
}

export interface OverflowHolder {
  category: Category;
  site: string;
  bytes: number;
}

export interface Range {
  low: number;
  high: number;
}

export interface Result {
  settings: string;
  export: string;
  needs: string;
  after: string;
  recorded: boolean;
  empty_cache: string | null;
  change: string | null;
  limit_bytes: number | null;
  device_memory_bytes: number | null;
  fails: boolean;
  first_failure: Failure | null;
  start_released_bytes: number;
  peak_reserved_bytes: number;
  peak_reserved_at: Moment;
  peak_active_bytes: number;
  peak_active_at: Moment;
  peak_allocated_bytes: number;
  peak_allocated_at: Moment;
  peak_requested_bytes: number;
  peak_requested_at: Moment;
  fragmentation: number | null;
  num_alloc_retries: number;
  num_ooms: number;
  num_device_alloc: number;
  num_device_free: number;
  maps: number;
  unmaps: number;
  estimated_driver_ms: number;
  curve: Curve | null;
}

export interface SelfCheck {
  events: number;
  identical: number;
  note: string;
}
