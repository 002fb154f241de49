// Made by make web from the Go types of internal/plan. Do not edit.

export interface Against {
  contradictions: string[];
  least_bytes: number;
  matched_bytes: number;
  missing_bytes: number;
  extra_bytes: number;
  covered: number;
  from: string;
  to: string;
  parts: PartPair[];
  first_difference: FirstPair | null;
  peaks: PeakPair[];
  terms: TermPair[];
  curve: PairCurve;
  notes: string[];
}

export interface Beside {
  what: string;
  where: string;
  bytes: number;
}

export interface BestRecompute {
  best: Recomputation;
  others: Recomputation[];
  plans: number;
}

export interface Component {
  name: string;
  bytes: number;
}

export interface Course {
  name: string;
  bytes: number[];
}

export interface Document {
  file: string;
  options: string;
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
  leaves_out: string[];
  model: string;
  parameters: number;
  preset: string;
  beside: Beside[];
  measured: boolean;
  rests_on: string[];
  assumed: string[];
  not_modelled: string[];
  max?: Largest;
  recompute?: BestRecompute;
  against?: Against;
  trace?: string;
  sources?: Source[];
}

export interface Failure {
  phase: string;
  step: number;
  op: string;
  module: string;
  bytes: number;
  reserved_bytes: number;
  allocated_bytes: number;
}

export interface FirstPair {
  change: string;
  what: string;
  where: string;
  phase: string;
  step: number;
  bytes: number;
  after: string;
}

export interface Largest {
  of: string;
  value: number;
  next: number;
  why: string;
  peak_reserved_bytes: number;
  next_peak_reserved_bytes: number;
  limited: Limited | null;
  plans: number;
}

export interface Lever {
  name: string;
  flags: string;
  lines: string[];
  saving_bytes: number;
  of: string;
  saving_reserved_bytes: number;
  cost: string;
  fits: boolean | null;
}

export interface Limited {
  peak_reserved_bytes: number;
  peak_device_bytes: number;
  retries: number;
}

export interface PairCurve {
  planned_bytes: number[] | null;
  measured_bytes: number[] | null;
  phases: Span[] | null;
}

export interface PartPair {
  name: string;
  matched_bytes: number;
  missing_bytes: number;
  extra_bytes: number;
  covered: number;
}

export interface PeakPair {
  name: string;
  planned_bytes: number;
  measured_bytes: number | null;
}

export interface Range {
  low_bytes: number;
  high_bytes: number;
  reserved_low_bytes: number;
  reserved_high_bytes: number;
  device_low_bytes: number;
  device_high_bytes: number;
  reasons: Reason[];
}

export interface Reason {
  name: string;
  low_bytes: number;
  high_bytes: number;
  reserved_low_bytes: number;
  reserved_high_bytes: number;
}

export interface Recomputation {
  name: string;
  flags: string;
  layers: number[];
  extra_compute: number;
  fits: boolean;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
}

export interface Source {
  file: string;
  used: string[];
  no_effect: string[];
  not_planned: string[];
  unknown: string[];
}

export interface Span {
  name: string;
  step: number;
  begin: number;
  end: number;
}

export interface TermPair {
  what: string;
  where: string;
  change: string;
  count: number;
  bytes: number;
  largest_bytes: number;
}

export interface Timeline {
  phases: Span[];
  allocated_bytes: number[];
  reserved_bytes: number[];
  requested_bytes: number[];
  components: Course[];
}
