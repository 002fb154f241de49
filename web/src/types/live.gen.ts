// Made by make web from the Go types of internal/view/live. Do not edit.

import type { Odd } from './diff.gen';
import type { Alarm, RunStatus } from './watch.gen';

export interface Curve {
  session: string;
  gpu: number | null;
  at_ms: number[];
  min: number[];
  max: number[];
  last: number[];
}

export interface Curves {
  name: string;
  from_us: number;
  to_us: number;
  point_us: number;
  ranks: Curve[];
}

export interface Job {
  key: string;
  label: string;
  ranks: RunStatus[];
  odd: Odd[];
}

export interface Sketch {
  key: string;
  allocated_mib: number[];
  reserved_mib: number[];
}

export interface Sketches {
  from_us: number;
  piece_us: number;
  jobs: Sketch[];
}

export interface State {
  now_us: number;
  jobs: Job[];
  alarms: Alarm[];
  older_alarms: number;
  lost_samples: number;
  notes: string[];
}
