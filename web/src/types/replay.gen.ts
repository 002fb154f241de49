// Made by make web from the Go types of internal/replay. Do not edit.

export interface PyTorch {
  first: string | null;
  last: string | null;
  rules: string;
}
