// Made by make web from the Go types of internal/dry. Do not edit.

import type { Against, Component, Failure, Lever, Limited, Range, Timeline } from './plan.gen';

export interface Document {
  file: string;
  fits: boolean | null;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
  peak_device_bytes: number;
  peak_requested_bytes: number;
  smallest_limit_bytes: number;
  available_bytes: number | null;
  headroom_bytes: number | null;
  limited: Limited | null;
  tight: boolean;
  range: Range;
  binding_phase: string;
  binding_step: number;
  components: Component[];
  fragmentation: number;
  context_bytes: number;
  context_estimated: boolean;
  total_estimated: boolean;
  collectives_bytes: number;
  first_failure: Failure | null;
  timeline: Timeline | null;
  levers: Lever[];
  settings: string;
  script: string[];
  torch: string;
  card: string;
  steps: number;
  events: number;
  compiled_graphs: number;
  ended: string;
  lines: Line[];
  notes: Note[];
  unknown_ops: Op[];
  assumed: string[];
  not_modelled: string[];
  exit_status: number | null;
  max?: Largest;
  against?: Against;
  trace?: string;
}

export interface Largest {
  of: string;
  value: number;
  next: number;
  next_run: boolean;
  why: string;
  peak_reserved_bytes: number;
  next_peak_reserved_bytes: number;
  limited: Limited | null;
  runs: number[];
  interpolated: number;
}

export interface Line {
  where: string;
  bytes: number;
  count: number;
  mostly: string;
}

export interface Note {
  text: string;
  count: number;
  where: string;
}

export interface Op {
  op: string;
  count: number;
  where: string;
}
