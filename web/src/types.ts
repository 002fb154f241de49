// The documents that the server answers with. Those of stats and explain are
// the ones of the commands with --json (docs/json.md); only what the page
// shows is written down here.

export type Pool = readonly [number, number];

export interface Run {
  id: number;
  file: string;
  device: number | null;
  label: string;
  state: 'loading' | 'ready' | 'failed';
  read_bytes: number;
  file_bytes: number;
  events: number;
  error: string | null;
  dropped: boolean;
  host: boolean;
  chosen: boolean; // the device that the commands would choose
  warnings: string[];
}

export interface Runs {
  version: number;
  runs: Run[];
}

export interface Frame {
  name: string;
  filename: string;
  line: number;
  extra?: Record<string, string>; // such as the node of a compiled graph
}

export interface Moment {
  event: number | null;
  time_us: number | null;
  since_start_us: number | null;
  step: number | null;
  annotation: string | null;
}

export interface Meta {
  events: number;
  first_time: number | null;
  last_time: number | null;
  peak: { allocated: Peak | null; reserved: Peak | null };
  exact: boolean;
  ooms: number[];
  limit: Limit;
  device_bytes: number | null;
  streams: number[];
  pools: Pool[];
  steps: { number: number; begin: number; end: number; complete: boolean }[];
  ranges: Range[];
  categories: string[];
  start: string;
  max_live_bytes: number;
  max_reserved_bytes: number;
  at_least: boolean;
  older: number;
  oom_count: number;
  steps_detail: string;
  available_bytes: number | null;
  available_source: string;
}

export interface Peak {
  event: number;
  bytes: number;
}

export interface Limit {
  bytes: number | null; // what is taken
  min_bytes: number | null;
  max_bytes: number | null;
  source: string;
}

export interface Range {
  name: string;
  begin_time: number | null;
  end_time: number | null;
  begin_event: number;
  end_event: number;
  depth: number;
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
  requested_end: number[];
  pending_end: number[]; // `pending` is above zero at every ordinary free
}

export interface Alloc {
  id: number;
  size_bytes: number;
  requested_bytes: number;
  address: number;
  stream: number;
  pool: Pool | null;
  category: string | null;
  category_confidence: string | null;
  alloc_event: number | null;
  alloc_time: number | null;
  free_event: number | null;
  free_time: number | null;
  completed_event: number | null;
  frames: Frame[] | null;
  site: string | null;
  segment: { address: number; size_bytes: number } | null;
  total_bytes: number | null;
  user_metadata: string | null;
  compile_context: string | null;
  predates: boolean;
  address_use: number;
  free_frames: Frame[] | null;
  frames_missing: string | null;
  state_at_end: 'allocated' | 'pending' | 'freed';
  extra: Record<string, unknown> | null;
}

export interface Legend {
  entries: { colour: number; label: string; bytes: number; blocks: number }[];
  total_bytes: number;
  others_bytes: number;
}

// A block is [offset, size, state, allocation, requested].
export type Block = readonly [number, number, number, number, number];

export const free = 0;
export const allocated = 1;
export const pending = 2;
export const unmapped = 3;

export interface Segment {
  address: number;
  size_bytes: number;
  span_bytes: number; // with what is not mapped
  stream: number;
  pool: Pool | null;
  type: 'small' | 'large' | null;
  expandable: boolean;
  blocks: Block[];
}

export interface Segments {
  event: number;
  time: number | null;
  reserved_bytes: number;
  allocated_bytes: number;
  pending_bytes: number;
  free_bytes: number;
  segments: Segment[];
  request: { size_bytes: number; segment_bytes: number | null; stream: number; event: number } | null;
  largest_free_bytes: number;
  first_failure: number | null; // of a what-if, so far
}

export interface StackNode {
  name: string;
  file: string;
  line: number;
  bytes: number;
  blocks: number;
  depth: number;
  self: number;
  user: boolean;
  a_bytes?: number; // of two runs that are compared; absent for 0
  b_bytes?: number;
}

export interface Stacks {
  total_bytes: number;
  nodes: StackNode[];
}

export interface EventRow {
  event: number;
  action: string;
  address: number | null;
  size_bytes: number | null;
  stream: number | null;
  time: number | null;
  since_us: number | null;
  reserved_bytes: number | null;
  allocated_bytes: number | null;
  active_bytes: number | null;
  alloc: number | null;
  site: string | null;
  device_free_bytes: number | null;
  frames?: Frame[] | null;
}

export interface Events {
  total: number;
  matches: number;
  first_match: number;
  rows: EventRow[];
  next: number | null;
}

export interface Level {
  now_bytes: number | null;
  peak_bytes: number | null;
  peak_at: Moment | null;
  peak_at_least: boolean;
}

export interface Stats {
  file: string;
  kind: string;
  snapshot: {
    format: string;
    compression: string | null;
    file_bytes: number | null;
    writer: string | null;
    truncated: { read_bytes: number; where: string } | null;
    device: number | null;
    host: boolean;
    events: number;
    actions: Record<string, number>;
    span_us: number | null;
    steps: { annotation: string; complete: number } | null;
    streams: number[];
    settings: { known: boolean; conf: string; non_default: { key: string; value: string; meaning: string }[] };
    memory: {
      reserved: Level;
      allocated: Level;
      active: Level;
      requested: Level;
      pending: Level;
      active_blocks: { now: number | null; peak: number | null; peak_at: Moment | null };
      free_bytes: number | null;
      largest_free_bytes: number | null;
      inactive_split_bytes: number | null;
    };
    segments: SegmentGroup[];
    fragmentation: {
      reserved_unallocated: number | null;
      inactive_split: number | null;
      internal: number | null;
      external: number | null;
      reserved_unallocated_at_peak: number | null;
    };
    oom_events: (Moment & { request_bytes: number })[];
    replay: { identical: boolean; events: number; identical_events: number; start: string; notes: string[] } | null;
    missing: { what: string; text: string }[];
    top_stacks: { active_bytes: number; blocks: number; frames: Frame[] | null }[];
    stack_count: number;
  } | null;
}

export interface SegmentGroup {
  pool: Pool | null;
  stream: number;
  type: string;
  expandable: boolean;
  segments: number;
  reserved_bytes: number;
  allocated_bytes: number;
  free_bytes: number;
  largest_free_bytes: number;
}

export interface Part {
  bytes: number;
  blocks: number;
  stack: Frame[] | null;
}

export interface Fix {
  kind: string;
  settings?: string | null;
  export?: string | null;
  passes_failure: boolean | null;
  until_event: number | null;
  smallest_limit_bytes: number | null;
  peak_reserved_bytes: number | null;
  estimated_driver_ms: number | null;
  bytes: number | null;
  detail: string;
}

export interface Explain {
  verdict: string;
  summary: string;
  confidence: string;
  alternatives: { verdict: string; when: string }[];
  under_cap: boolean;
  limit: Limit | null;
  self_check: { events: number; identical: number; note: string } | null;
  failure: (Moment & { stream: number; ooms: number; survived: boolean; frames: Frame[] | null }) | null;
  evidence: {
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
  } | null;
  pinners: { segment: number; size_bytes: number; stuck_bytes: number; live_bytes: number; live_blocks: number; blocks: Part[] }[];
  holders: (Part & { category: string | null; category_confidence: string | null })[];
  peak_holders: (Part & { category: string | null; category_confidence: string | null })[];
  lines: { bytes: number; blocks: number; line: Frame }[];
  modules: { bytes: number; blocks: number; module: string }[];
  categories: { bytes: number; blocks: number; category: string; confidence: string }[];
  findings: { kind: string; bytes: number | null; detail: string; confidence: string; stack: Frame[] | null; parts: Part[] }[];
  fixes: Fix[];
  health: {
    peak_reserved_bytes: number | null;
    peak_allocated_bytes: number | null;
    peaks_at_least: boolean;
    fragmentation_at_peak: number | null;
    headroom_bytes: number | null;
    num_alloc_retries: number | null;
    growth_bytes: number | null;
  } | null;
  notes: string[] | null;
}
