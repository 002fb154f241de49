// Made by make web from the Go types of internal/input. Do not edit.

export type Kind = 'snapshot' | 'memory_stats' | 'oom_message' | 'library_error';
