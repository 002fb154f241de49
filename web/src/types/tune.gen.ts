// Made by make web from the Go types of internal/answer/tune. Do not edit.

import type { Limit, Memory, Result, SelfCheck } from './whatif.gen';

export interface Choice {
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

export interface Document {
  warning: string;
  file: string;
  device: number;
  device_reason: string | null;
  contradictions: string[];
  self_check: SelfCheck;
  goal: Goal;
  limit: Limit;
  device_memory: Memory;
  current: Choice;
  recommended: Choice;
  after_upgrade: Choice | null;
  others: Choice[];
  variations: number;
  evaluated: number;
  finished: boolean;
  cut_off: boolean;
  interrupted: boolean;
  lower_bound_bytes: number;
  warm_seconds: number | null;
  elapsed_seconds: number;
  notes: string[];
}

export type Goal = 'reserved' | 'limit' | 'calls';

export interface WorstChoice {
  variation: string;
  value: number | null;
  recorded_value: number | null;
}
