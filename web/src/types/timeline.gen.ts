// Made by make web from the Go types of internal/timeline. Do not edit.

export interface Amount {
  bytes: number;
  blocks: number;
}

export interface Moment {
  event: number | null;
  time_us: number | null;
  since_start_us: number | null;
  step: number | null;
  annotation: string | null;
}

export interface NameCount {
  name: string;
  count: number;
}
