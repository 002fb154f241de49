// Made by make web from the Go types of internal/answer/stats. Do not edit.

import type { Kind } from './input.gen';
import type { PyTorch } from './replay.gen';
import type { Moment, NameCount } from './timeline.gen';
import type { Range } from './units.gen';
import type { Frame } from './view.gen';

export interface Count {
  now: number;
  peak: number | null;
  peak_at: Moment | null;
  peak_at_least: boolean;
}

export interface Device {
  device: number | null;
  host: boolean;
  chosen: boolean;
  events: number;
  oom_events: number;
  segments: number;
  reserved_bytes: number;
  allocated_bytes: number;
}

export interface Document {
  warning: string;
  file: string;
  kind: Kind;
  snapshot: Snapshot | null;
  memory_stats: Dump[];
  oom_messages: Message[];
}

export interface Dump {
  device: number | null;
  label: string | null;
  line: number;
  source: string;
  exact: boolean;
  values: Record<string, number>;
  ranges: Record<string, Range>;
  extra: Record<string, number>;
  missing: string[];
  fragmentation: DumpFragmentation;
  readings: Reading[];
  empty_cache: Released | null;
}

export interface DumpFragmentation {
  reserved_unallocated: Share | null;
  inactive_split: Share | null;
  internal: Share | null;
  reserved_unallocated_of_peaks: Share | null;
}

export interface Fragmentation {
  reserved_unallocated: number | null;
  inactive_split: number | null;
  internal: number | null;
  external: number | null;
  reserved_unallocated_of_peaks: number | null;
  reserved_unallocated_at_peak: number | null;
}

export interface Group {
  pool: readonly [number, number] | null;
  stream: number;
  type: string | null;
  expandable: boolean;
  segments: number;
  reserved_bytes: number;
  allocated_bytes: number;
  active_bytes: number;
  free_bytes: number;
  largest_free_bytes: number;
}

export interface Holder {
  active_bytes: number;
  blocks: number;
  frames: Frame[] | null;
  site: string | null;
}

export interface Level {
  now_bytes: number | null;
  peak_bytes: number | null;
  peak_at: Moment | null;
  peak_at_least: boolean;
}

export interface Memory {
  reserved: Level;
  allocated: Level;
  active: Level;
  requested: Level;
  pending: Level;
  active_blocks: Count;
  free_bytes: number;
  largest_free_bytes: number;
  inactive_split_bytes: number;
}

export interface Message {
  line: number;
  version: string | null;
  backend: string;
  platform: string | null;
  library: string | null;
  exception: string | null;
  device: number | null;
  tried_bytes: Range | null;
  total_bytes: Range | null;
  free_bytes: Range | null;
  limit_bytes: Range | null;
  allocated_bytes: Range | null;
  active_bytes: Range | null;
  reserved_bytes: Range | null;
  reserved_unallocated_bytes: Range | null;
  private_pool_free_bytes: Range | null;
  reserved_computed: boolean;
  reserved_unallocated_computed: boolean;
  processes: Process[];
  advice: string | null;
  reserved_unallocated: Share | null;
}

export interface Missing {
  what: string;
  text: string;
}

export interface OOM {
  event: number | null;
  time_us: number | null;
  since_start_us: number | null;
  step: number | null;
  annotation: string | null;
  request_bytes: number;
  device_free_bytes: number;
  stream: number;
  reserved_bytes: number;
  requested_bytes: number;
  allocated_bytes: number | null;
  unallocated_bytes: number | null;
  free_bytes: number | null;
  largest_free_bytes: number | null;
  frames: Frame[] | null;
  site: string | null;
}

export interface Process {
  pid: number | null;
  self: boolean;
  used_bytes: Range;
}

export interface Reading {
  statistic: string;
  value: string;
  means: string;
  problem: string;
  why: string;
}

export interface Released {
  bytes: number;
  upper_bound: boolean;
  note: string;
}

export interface Replay {
  identical: boolean;
  events: number;
  identical_events: number;
  segments_identical: boolean;
  start: string;
  notes: string[];
}

export interface Setting {
  key: string;
  value: string;
  meaning: string;
}

export interface Settings {
  known: boolean;
  conf: string | null;
  non_default: Setting[];
}

export interface Share {
  value: number;
  low: number;
  high: number;
}

export interface Snapshot {
  format: string;
  compression: string | null;
  file_bytes: number | null;
  unpacked_bytes: number;
  writer: string | null;
  pytorch: PyTorch;
  truncated: Truncated | null;
  contradictions: string[];
  device: number | null;
  host: boolean;
  device_reason: string | null;
  devices: Device[];
  events: number;
  actions: Record<string, number>;
  first_time_us: number | null;
  last_time_us: number | null;
  span_us: number | null;
  steps: Steps | null;
  annotations: NameCount[];
  streams: number[];
  settings: Settings;
  memory: Memory;
  segments: Group[];
  fragmentation: Fragmentation;
  oom_events: OOM[];
  readings: Reading[];
  empty_cache: Released | null;
  traffic: Traffic | null;
  replay: Replay | null;
  missing: Missing[];
  top_stacks: Holder[];
  stack_count: number;
}

export interface StepTurnover {
  step: number | null;
  allocations: number;
  frees: number;
  allocated_bytes: number;
  freed_bytes: number;
  misses: number;
  hit_rate: number | null;
}

export interface Steps {
  annotation: string;
  complete: number;
}

export interface StreamTurnover {
  stream: number;
  allocations: number;
  frees: number;
  allocated_bytes: number;
  freed_bytes: number;
  misses: number;
  hit_rate: number | null;
}

export interface Traffic {
  allocations: number;
  frees: number;
  allocated_bytes: number;
  freed_bytes: number;
  misses: number;
  hit_rate: number | null;
  steps: StepTurnover[];
  streams: StreamTurnover[];
}

export interface Truncated {
  read_bytes: number;
  where: string;
}
