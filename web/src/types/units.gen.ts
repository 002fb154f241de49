// Made by make web from the Go types of internal/units. Do not edit.

export interface Range {
  low: number;
  mid: number;
  high: number;
}
