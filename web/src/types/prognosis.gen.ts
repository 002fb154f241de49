// Made by make web from the Go types of internal/prognosis. Do not edit.

export interface Carries {
  kind: string;
  steps: number | null;
  rests_on: string;
}
