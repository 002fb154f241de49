// Made by make web from the Go types of internal/view/fleet. Do not edit.

import type { Column } from './answers.gen';

export interface Run {
  run: string;
  files: number;
  last_us: number;
}

export interface State {
  files: number;
  failed: number;
  refused: number;
  runs: Run[];
  columns: Column[];
  show: string;
}
