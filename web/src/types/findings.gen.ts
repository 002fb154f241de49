// Made by make web from the Go types of internal/findings. Do not edit.

export type Category = 'parameters' | 'gradients' | 'optimizer_state' | 'activations' | 'temporaries' | 'workspace' | 'unknown';

export type Confidence = 'certain' | 'likely' | 'guess';
