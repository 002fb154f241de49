// A word of the glossary, which says what it means.

import type { ComponentChildren } from 'preact';
import { glossary } from '../types/glossary.gen';

export type Term = keyof typeof glossary;

export function meaning(of: Term): string {
  return `${of}: ${glossary[of]}`;
}

export function Word({ of, children }: { of: Term; children?: ComponentChildren }) {
  return (
    <span class="word" title={meaning(of)} data-word={of}>
      {children ?? of}
    </span>
  );
}
