// Made by make web from the Go types of internal/answer/explain. Do not edit.

import type { Kind } from './input.gen';
import type { Carries } from './prognosis.gen';
import type { PyTorch } from './replay.gen';
import type { Frame } from './view.gen';
import type { Overflow, SelfCheck } from './whatif.gen';

export interface Alternative {
  verdict: string;
  when: string;
}

export interface Block {
  bytes: number;
  blocks: number;
  stack: Frame[] | null;
  site: string | null;
}

export interface CategoryHolder {
  bytes: number;
  blocks: number;
  category: string;
  confidence: string;
}

export interface Document {
  file: string | null;
  kind: Kind;
  device: number | null;
  device_reason: string | null;
  pytorch: PyTorch | null;
  contradictions: string[];
  warning: string;
  cause: string;
  cause_text: string;
  cause_confidence: string;
  line: Frame | null;
  where: string;
  source_line: string;
  prognosis: Prognosis | null;
  trigger: string;
  summary: string;
  confidence: string;
  alternatives: Alternative[];
  break_even_limit_bytes: number | null;
  capped: boolean;
  limit: Limit;
  self_check: SelfCheck | null;
  failure: Failure | null;
  evidence: Evidence;
  pinners: Segment[];
  holders: Holder[];
  peak_holders: Holder[];
  lines: LineHolder[];
  modules: ModuleHolder[];
  categories: CategoryHolder[];
  findings: Finding[];
  fixes: Fix[];
  after_upgrade: Fix[];
  health: Health | null;
  arithmetic: string[];
  log: Log | null;
  record: string[];
  notes: string[] | null;
}

export interface EmptyCacheCalls {
  calls: number;
  steps: number;
  peak_reserved_without_bytes: number;
  estimated_driver_ms_without: number;
  fails_without: boolean;
}

export interface Evidence {
  live_bytes: number | null;
  request_bytes: number | null;
  rounded_bytes: number | null;
  segment_bytes: number | null;
  free_bytes: number | null;
  largest_free_bytes: number | null;
  free_usable_bytes: number | null;
  largest_usable_bytes: number | null;
  free_other_streams_bytes: number | null;
  free_pools_bytes: number | null;
  pending_bytes: number | null;
  reserved_bytes: number | null;
  device_free_bytes: number | null;
  device_total_bytes: number | null;
  outside_bytes: number | null;
  available_bytes: number | null;
  gap_bytes: number | null;
}

export interface Failure {
  event: number | null;
  time_us: number | null;
  since_start_us: number | null;
  step: number | null;
  annotation: string | null;
  stream: number;
  pool: readonly [number, number] | null;
  ooms: number;
  survived: boolean;
  frames: Frame[] | null;
  site: string | null;
}

export interface Failures {
  messages: number;
  distinct: number;
  ranks: number[];
  devices: number[];
  first_line: number;
  last_line: number;
  explained_line: number;
  same: boolean;
}

export interface Finding {
  kind: string;
  bytes: number;
  bytes_per_step: number | null;
  spread_bytes: number | null;
  steps: number[];
  detail: string;
  confidence: string;
  stack: Frame[] | null;
  parts: Block[];
  site: string | null;
}

export interface Fix {
  kind: string;
  settings?: string;
  export?: string;
  requires?: string;
  code?: string;
  line?: Frame;
  carries: Carries | null;
  passes_failure: boolean | null;
  until_event: number | null;
  smallest_limit_bytes: number | null;
  peak_reserved_bytes: number | null;
  estimated_driver_ms: number | null;
  bytes: number | null;
  detail: string;
  overflow?: Overflow;
}

export interface Health {
  peak_reserved_bytes: number;
  peak_allocated_bytes: number;
  peaks_at_least: boolean;
  fragmentation: number | null;
  fragmentation_at_peak: number | null;
  headroom_bytes: number | null;
  survives_limit: boolean | null;
  fails_at_event: number | null;
  num_alloc_retries: number;
  retried_for: Retry[];
  growth_bytes: number | null;
  empty_cache_in_steps: EmptyCacheCalls | null;
  releasable_bytes: number | null;
  could_be_smaller: Smaller[];
  estimated_driver_ms: number | null;
}

export interface Holder {
  bytes: number;
  blocks: number;
  category: string;
  category_confidence: string;
  stack: Frame[] | null;
  site: string | null;
}

export interface Limit {
  min_bytes: number | null;
  max_bytes: number | null;
  source: string;
}

export interface LineHolder {
  bytes: number;
  blocks: number;
  line: Frame;
}

export interface Log {
  failures: Failures | null;
  op: string | null;
  frames: Frame[] | null;
  site: string | null;
  trend: Trend | null;
  refusal: string | null;
}

export interface ModuleHolder {
  bytes: number;
  blocks: number;
  module: string;
}

export interface Prognosis {
  need_bytes: number;
  ordinary_bytes: number | null;
  kept_bytes_per_step: number;
  packed: Carries;
}

export interface Retry {
  event: number | null;
  time_us: number | null;
  since_start_us: number | null;
  step: number | null;
  annotation: string | null;
  retries: number;
  request_bytes: number;
  free_bytes: number;
  largest_free_bytes: number;
  stack: Frame[] | null;
  site: string | null;
}

export interface Segment {
  segment: number;
  size_bytes: number;
  stuck_bytes: number;
  live_bytes: number;
  live_blocks: number;
  blocks: Block[];
}

export interface Smaller {
  settings: string;
  export: string;
  requires?: string;
  peak_reserved_bytes: number;
  saved_bytes: number;
  estimated_driver_ms: number;
}

export interface Trend {
  kind: string;
  dumps: number;
  first_bytes: number;
  last_bytes: number;
  least_bytes: number;
  most_bytes: number;
  bytes_per_dump: number;
  first_line: number;
  last_line: number;
}
