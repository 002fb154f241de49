// Made by make web from the Go types of internal/view. Do not edit.

import type { Category, Confidence } from './findings.gen';
import type { Exercise, Experiment } from './playground.gen';
import type { Amount } from './timeline.gen';
import type { WorstChoice } from './tune.gen';
import type { Result } from './whatif.gen';

export interface Alloc {
  id: number;
  size_bytes: number;
  requested_bytes: number;
  address: number;
  address_use: number;
  stream: number;
  pool: readonly [number, number] | null;
  category: Category;
  category_confidence: Confidence;
  segment: SegmentOf | null;
  predates: boolean;
  alloc_event: number | null;
  alloc_time: number | null;
  free_event: number | null;
  free_time: number | null;
  completed_event: number | null;
  state_at_end: EndState;
  total_bytes: number;
  site: string | null;
  frames: Frame[];
  frames_missing: string | null;
  free_frames: Frame[] | null;
  user_metadata: string | null;
  compile_context: string | null;
  extra: Record<string, unknown> | null;
}

export interface Between {
  after: number;
  until: number;
  events: number;
  duration_us: number | null;
  at_begin: TotalsAt;
  at_end: TotalsAt;
  at_peak: TotalsAt;
  all: Flow;
  stacks: StackFlow[];
  other_stacks: number;
  categories: CategoryFlow[];
  command: string;
}

export type Block = readonly [number, number, number, number, number];

export interface CategoryFlow {
  before: Amount;
  peak: Amount;
  end: Amount;
  kept: Amount;
  leaked: Amount;
  passing: Amount;
  released: Amount;
  delta_bytes: number;
  category: Category;
  colour: number;
}

export interface Changes {
  a_bytes: number;
  b_bytes: number;
  total_bytes: number;
  nodes: StackNode[];
}

export interface Checked {
  wrong: string | null;
}

export interface Choice {
  result: number;
  settings: string;
  export: string;
  smallest_limit_bytes: number | null;
  need_bytes: number | null;
  peak_reserved_bytes: number;
  estimated_driver_ms: number;
  warm_driver_calls: number;
  warm_driver_ms: number;
  start_released_bytes: number;
  under_limit: Result | null;
  value: number | null;
  worst: WorstChoice | null;
  recorded: boolean;
  reason?: string;
  requires?: string;
}

export interface Curve {
  x: number[];
  event: number[];
  reserved: number[];
  allocated: number[];
  active: number[];
  requested: number[];
  pending: number[];
  live_end: number[];
  reserved_end: number[];
  requested_end: number[];
  pending_end: number[];
}

export type EndState = 'allocated' | 'pending' | 'freed';

export interface EventRow {
  event: number;
  action: string;
  address: number | null;
  size_bytes: number;
  stream: number;
  time: number | null;
  since_us: number | null;
  reserved_bytes: number;
  allocated_bytes: number;
  active_bytes: number;
  running_bytes: number;
  alloc: number | null;
  category: Category | null;
  completed_event: number | null;
  site: string | null;
  device_free_bytes: number | null;
  frames?: Frame[];
}

export interface Events {
  total: number;
  matches: number;
  listed: number;
  first_match: number;
  rows: EventRow[];
  next: number | null;
}

export interface Extent {
  from: number;
  to: number;
}

export interface FailedRequest {
  size_bytes: number;
  segment_bytes: number;
  stream: number;
  event: number;
  device_free_bytes: number;
}

export interface FixCurve {
  event: number[];
  reserved_bytes: number[];
  active_bytes: number[];
}

export interface Flow {
  before: Amount;
  peak: Amount;
  end: Amount;
  kept: Amount;
  leaked: Amount;
  passing: Amount;
  released: Amount;
  delta_bytes: number;
}

export interface Found {
  event: number | null;
}

export interface FoundAt {
  alloc: number | null;
}

export interface Frame {
  name: string;
  filename: string;
  line: number;
  text: string;
  user: boolean;
  extra?: Record<string, unknown>;
}

export interface Kind {
  name: string;
  title: string;
  set: Record<string, string>;
  own: string[];
  why: string;
}

export interface Legend {
  color: string;
  event: number;
  entries: LegendEntry[];
  total_bytes: number;
  others_bytes: number;
}

export interface LegendEntry {
  colour: number;
  label: string;
  bytes: number;
  blocks: number;
}

export interface Lessons {
  version: number;
  max_lines: number;
  max_bytes: number;
  max_stream: number;
  default_device: string;
  experiments: Experiment[];
  exercises: Exercise[];
}

export interface Limit {
  bytes: number | null;
  min_bytes: number | null;
  max_bytes: number | null;
  source: string;
}

export interface Link {
  command: string;
}

export interface Matches {
  blocks: number;
  bytes: number;
  most_bytes: number;
  most_event: number | null;
  event: number;
  event_bytes: number;
  event_blocks: number;
  previous: number | null;
  next: number | null;
  marks: number[];
}

export interface Meta {
  device: number | null;
  host: boolean;
  events: number;
  first_time: number | null;
  last_time: number | null;
  peak: { allocated: Peak; reserved: Peak };
  exact: boolean;
  at_least: boolean;
  ooms: number[];
  oom_count: number;
  limit: Limit;
  device_bytes: number | null;
  available_bytes: number | null;
  available_source: string;
  streams: number[];
  pools: (readonly [number, number])[];
  pool_unknown: boolean;
  default_color: string;
  steps: Step[];
  steps_source: string;
  steps_detail: string;
  ranges: Range[];
  categories: Category[];
  start: string;
  older: number;
  allocs: number;
  max_live_bytes: number;
  max_reserved_bytes: number;
}

export interface Offer {
  version: number;
  max_config_bytes: number;
  max_value_bytes: number;
  kinds: Kind[];
  options: Option[];
  heads: string[];
  cards: PlanCard[];
  shapes: Shape[];
  ledgers: boolean;
}

export interface Option {
  name: string;
  value: string;
  usage: string;
  words: string[];
  numbered: string[];
  least: number;
  most: number;
  mode: string;
}

export interface Peak {
  event: number;
  bytes: number;
}

export interface PlanCard {
  name: string;
  title: string;
  total_bytes: number;
}

export interface Progress {
  done: number;
  total?: number;
  seconds?: number;
  budget_seconds?: number;
  what?: string;
}

export interface Range {
  name: string;
  begin_time: number | null;
  end_time: number | null;
  begin_event: number;
  end_event: number;
  depth: number;
}

export interface Refusal {
  set: string;
  error: string;
}

export interface Run {
  id: number;
  file: string;
  device: number | null;
  host: boolean;
  chosen: boolean;
  label: string;
  state: RunState;
  read_bytes: number;
  file_bytes: number;
  events: number;
  rank: number | null;
  ooms: number;
  last_oom: number | null;
  went_on: boolean;
  error: string | null;
  dropped: boolean;
  warnings: string[];
}

export type RunState = 'loading' | 'ready' | 'failed';

export interface Runs {
  version: number;
  runs: Run[];
  live: boolean;
  fleet: boolean;
}

export interface Segment {
  address: number;
  size_bytes: number;
  span_bytes: number;
  stream: number;
  pool: readonly [number, number] | null;
  type: string | null;
  expandable: boolean;
  blocks: Block[];
  colours: number[];
}

export interface SegmentOf {
  address: number;
  size_bytes: number;
}

export interface Segments {
  event: number;
  time: number | null;
  reserved_bytes: number;
  allocated_bytes: number;
  active_bytes: number;
  pending_bytes: number;
  requested_bytes: number;
  free_bytes: number;
  largest_free_bytes: number;
  request: FailedRequest | null;
  first_failure: number | null;
  segments: Segment[];
}

export interface Shape {
  name: string;
  title: string;
  start: Record<string, string>;
  config: unknown;
}

export interface StackFlow {
  before: Amount;
  peak: Amount;
  end: Amount;
  kept: Amount;
  leaked: Amount;
  passing: Amount;
  released: Amount;
  delta_bytes: number;
  site: string;
  alloc: number;
  colour: number;
}

export interface StackFound {
  frames: number;
  blocks: number;
  bytes: number;
}

export interface StackNode {
  frame: number;
  name: string;
  file: string;
  line: number;
  bytes: number;
  blocks: number;
  depth: number;
  self: number;
  user: boolean;
  native: boolean;
  match?: boolean;
  a_bytes?: number;
  b_bytes?: number;
}

export interface StackSite {
  site: string;
  bytes: number;
  blocks: number;
  a_bytes?: number;
  b_bytes?: number;
  path: number[];
}

export interface Stacks {
  event: number | null;
  total_bytes: number;
  nodes: StackNode[];
  a_bytes?: number;
  b_bytes?: number;
  middle: number | null;
  callers?: StackNode[];
  zoomed: number;
  sites: StackSite[];
  found: StackFound | null;
}

export interface Step {
  number: number;
  begin: number;
  end: number;
  complete: boolean;
}

export interface TotalsAt {
  event: number;
  reserved_bytes: number;
  allocated_bytes: number;
  active_bytes: number;
  requested_bytes: number;
}

export interface Windows {
  after: number;
  until: number;
  event: Extent;
  time: Extent | null;
}
