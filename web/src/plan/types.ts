// The document of ashlar plan --json (docs/json.md), and what the form offers.

export interface Option {
  name: string;
  value: string; // what stands behind it; empty for a switch
  usage: string;
  words: string[];
  numbered: string[]; // words that take a number, as in chunked:1024
  least: number;
  most: number; // 0: it is no number
  mode: string; // the only one it is for; empty: all
}

export interface Shape {
  name: string;
  title: string;
  start: Record<string, string>;
  config: unknown;
}

export interface Offer {
  version: number;
  max_config_bytes: number;
  max_value_bytes: number;
  options: Option[];
  heads: string[];
  cards: { name: string; title: string; total_bytes: number }[];
  shapes: Shape[];
}

export interface Component {
  name: string;
  bytes: number;
}

export interface Span {
  name: string;
  step: number;
  begin: number;
  end: number;
}

export interface Timeline {
  phases: Span[];
  allocated_bytes: number[];
  reserved_bytes: number[];
  requested_bytes: number[];
  components: { name: string; bytes: number[] }[];
}

export interface Lever {
  name: string;
  flags: string;
  saving_bytes: number;
  of: 'allocated' | 'reserved';
  saving_reserved_bytes: number;
  cost: string;
  fits: boolean | null;
}

export interface Reason {
  name: string;
  low_bytes: number;
  high_bytes: number;
  reserved_low_bytes: number;
  reserved_high_bytes: number;
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

export interface Failure {
  phase: string;
  step: number;
  op: string;
  module: string;
  bytes: number;
  reserved_bytes: number;
  allocated_bytes: number;
}

export interface Largest {
  of: string;
  value: number; // 0 if not even 1 fits
  next: number;
  why: string;
  peak_reserved_bytes: number;
  next_peak_reserved_bytes: number;
  plans: number;
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

export interface Term {
  what: string;
  where: string;
  change: 'missing' | 'extra' | 'matched';
  count: number;
  bytes: number;
  largest_bytes: number;
}

export interface Against {
  least_bytes: number;
  matched_bytes: number;
  missing_bytes: number;
  extra_bytes: number;
  covered: number;
  from: string;
  to: string;
  peaks: { name: string; planned_bytes: number; measured_bytes: number | null }[];
  terms: Term[];
  curve: { planned_bytes: number[] | null; measured_bytes: number[] | null; phases: Span[] | null };
  notes: string[];
}

export interface Answer {
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
  range: Range;
  binding_phase: string;
  binding_step: number;
  components: Component[];
  fragmentation: number;
  context_bytes: number;
  context_estimated: boolean;
  collectives_bytes: number;
  first_failure: Failure | null;
  timeline: Timeline | null;
  levers: Lever[];
  model: string;
  parameters: number;
  preset: string;
  settings: string;
  measured: boolean;
  assumed: string[];
  not_modelled: string[];
  max?: Largest;
  recompute?: { best: Recomputation; others: Recomputation[]; plans: number };
  against?: Against;
}
