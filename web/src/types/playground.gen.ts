// Made by make web from the Go types of internal/playground. Do not edit.

export interface Answer {
  version: number;
  device: Device;
  steps: Step[];
  at: number;
  moment: Moment;
}

export interface Block {
  name: string;
  address: number;
  segment: string;
  offset_bytes: number;
  size_bytes: number;
  requested_bytes: number;
  stream: number;
  pending: boolean;
  uses: number[];
}

export interface Device {
  line: string;
  total_bytes: number;
  limit_bytes: number | null;
  settings: string;
}

export interface Exercise {
  name: string;
  title: string;
  text: string;
  lines: string[];
  questions: Question[];
}

export interface Experiment {
  name: string;
  title: string;
  text: string;
  lines: string[];
}

export interface Moment {
  sentences: Sentence[];
  events: string[];
  message: string;
  settings: string;
  limit_bytes: number | null;
  reserved_bytes: number;
  allocated_bytes: number;
  pending_bytes: number;
  requested_bytes: number;
  free_bytes: number;
  free_blocks: number;
  largest_free_bytes: number;
  releasable_bytes: number;
  stranded_bytes: number;
  fragmentation: number;
  external: number;
  requests: number;
  hits: number;
  chapter_requests: number;
  chapter_hits: number;
  driver_allocs: number;
  driver_frees: number;
  driver_cost_us: number;
  num_alloc_retries: number;
  num_ooms: number;
  segments: Segment[];
  blocks: Block[];
  tenants: Tenant[];
  touched: Touched | null;
  next_name: string;
}

export interface Question {
  text: string;
  unit: string;
}

export interface Segment {
  name: string;
  address: number;
  size_bytes: number;
  span_bytes: number;
  stream: number;
  pool: readonly [number, number];
  type: string;
  expandable: boolean;
  tenant: string;
  blocks: (readonly [number, number, number, number, number])[];
}

export interface Sentence {
  rule: string;
  name: string;
  text: string;
}

export interface Step {
  line: number;
  text: string;
  chapter: string;
  outcome: string;
  reserved_bytes: number;
  allocated_bytes: number;
  active_bytes: number;
}

export interface Tenant {
  name: string;
  reserved_bytes: number;
  guarantee_bytes: number;
  ceiling_bytes: number;
}

export interface Touched {
  address: number;
  size_bytes: number;
}
