// What can be done with a frame of a call stack: filter by it, open it in an editor.

import { signal } from '@preact/signals';
import { screen, show } from '../route';
import type { Frame } from '../types/view.gen';

// How a frame is opened. {file} and {line} stand for the frame's.
const usual = 'vscode://file/{file}:{line}';
const kept = 'ashlar.editor';
export const editor = signal(read());

function read(): string {
  try {
    return localStorage.getItem(kept) || usual;
  } catch {
    return usual;
  }
}

export function keepEditor(pattern: string): void {
  editor.value = pattern || usual;
  try {
    localStorage.setItem(kept, editor.value);
  } catch {
    // It holds until the page is closed.
  }
}

// editorLink is the address that opens a frame. The scheme is the pattern's own:
// nothing in a file may choose it.
export function editorLink(pattern: string, file: string, line: number): string | null {
  if (!/^[a-z][a-z0-9+.-]*:/i.test(pattern) || /^(javascript|data|blob|vbscript):/i.test(pattern)) return null;
  const path = encodeURI(file).replace(/[?#]/g, encodeURIComponent);
  return pattern.replaceAll('{file}', () => path).replaceAll('{line}', String(line));
}

// quoted is a regular expression that finds one line of code.
export function quoted(file: string, line: number): string {
  return `${file.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}:${line}\\b`;
}

// filterBy shows what a line of code allocates.
export function filterBy(f: Frame): void {
  show(screen.value === 'events' ? 'events' : 'timeline', { stack: quoted(f.filename, f.line) });
}
