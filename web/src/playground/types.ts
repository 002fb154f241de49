// The answers of api/playground.

import type { Segment } from '../types';

export interface Experiment {
  name: string;
  title: string;
  text: string;
  lines: string[];
}

export interface Lessons {
  version: number;
  max_lines: number;
  max_bytes: number;
  max_stream: number;
  default_device: string;
  experiments: Experiment[];
}

export interface Step {
  line: number; // position of its line
  text: string;
  chapter: string;
  outcome: '' | 'hit' | 'new' | 'oom';
  reserved_bytes: number;
  allocated_bytes: number;
  active_bytes: number;
}

export interface Sentence {
  rule: string;
  name: string;
  text: string;
}

export interface Held {
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

export interface NamedSegment extends Segment {
  name: string;
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
  segments: NamedSegment[];
  blocks: Held[];
  touched: { address: number; size_bytes: number } | null;
  next_name: string;
}

export interface Answer {
  version: number;
  device: { line: string; total_bytes: number; limit_bytes: number | null; settings: string };
  steps: Step[];
  at: number;
  moment: Moment;
}
