// Made by make web from the Go types of internal/watch. Do not edit.

export interface Action {
  action: string;
  time_us: number;
  result: string;
  before: number | null;
  after: number | null;
}

export interface Alarm {
  id: string;
  name: string;
  run: string;
  attempt: number;
  rank: number;
  gpu: number;
  session: string;
  rule: string;
  raised_us: number;
  cleared_us: number | null;
  value: number;
  value_text: string;
  actions: Action[];
  snapshot: string | null;
  at_hub: boolean;
}

export interface RunStatus {
  run: string;
  attempt: number;
  rank: number;
  world: number;
  gpu: number | null;
  host: string;
  pid: number;
  session: string;
  source: Source;
  started_us: number;
  ended: boolean;
  last_seen_s: number;
  step: number | null;
  allocated_bytes: number | null;
  reserved_bytes: number | null;
  fragmentation: number | null;
  headroom_bytes: number | null;
  growth_bytes_per_step: number | null;
  peak_allocated_bytes: number | null;
  peak_reserved_bytes: number | null;
  device_total_bytes: number | null;
  limit_bytes: number | null;
  step_us: number | null;
  num_alloc_retries: number | null;
  num_ooms: number | null;
  alarms: string[];
}

export type Source = 'job' | 'nvml';
