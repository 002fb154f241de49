// Small parts of the views.

import { Select, Trouble, Wait, link, put, type Change } from '../shared';
import type { State } from '../types/fleet.gen';
import type { Frame } from '../types/view.gen';
import { fileLink, openFile, opening, type Answer } from './state';

type Child = preact.ComponentChildren;

function plain(e: MouseEvent): boolean {
  return !e.ctrlKey && !e.metaKey && !e.shiftKey && !e.button;
}

// To is a link to another view of the fleet.
export function To({ change, children, on, name, title }: { change: Change; children: Child; on?: boolean; name?: string; title?: string }) {
  return (
    <a
      href={link('fleet', change)}
      title={title}
      data-view={name}
      aria-current={on ? 'page' : undefined}
      onClick={(e) => {
        if (!plain(e)) return;
        e.preventDefault();
        put(change, 'push');
      }}
    >
      {children}
    </a>
  );
}

// FileLink opens a file on the Overview, with its verdict.
export function FileLink({ hash, children }: { hash: string; children: Child }) {
  return (
    <a
      href={fileLink(hash)}
      data-hash={hash}
      title={`Open ${hash.slice(0, 8)} in Overview`}
      aria-busy={opening.value === hash}
      onClick={(e) => {
        if (!plain(e)) return;
        e.preventDefault();
        void openFile(hash);
      }}
    >
      {children}
    </a>
  );
}

// Answered shows an answer when it is there, and what is wrong with the question.
export function Answered<T>({ answer, wait, children }: { answer: Answer<T>; wait: string; children: (data: T) => Child }) {
  return (
    <>
      {answer.error && <Trouble>{answer.error}</Trouble>}
      {answer.data === null && !answer.error && <Wait>{wait}</Wait>}
      {answer.data !== null && (
        <div class={answer.busy || answer.error ? 'fleet-stale' : ''} aria-busy={answer.busy}>
          {children(answer.data)}
        </div>
      )}
    </>
  );
}

export function RunSelect({ s, run, all }: { s: State; run: string; all?: string }) {
  return (
    <Select
      label="Run"
      name="of"
      value={run}
      options={[...(all ? [{ value: '', text: all }] : []), ...s.runs.map((r) => ({ value: r.run, text: r.run }))]}
      onPick={(v) => put({ of: v, launch: null }, 'push')}
    />
  );
}

// Frames are places in the program, innermost first; roles say what happened at each.
export function Frames({ frames, roles }: { frames: readonly Frame[]; roles?: readonly string[] }) {
  return (
    <ol class="fleet-frames">
      {frames.map((f, i) => (
        <li title={`${f.filename}:${f.line} ${f.name}`}>
          {roles && <span class="muted">{roles[i]?.replace('_', "'s ")}: </span>}
          {f.text}
        </li>
      ))}
    </ol>
  );
}

// Bars has peaks as lengths: allocated within reserved.
export function Bars({ allocated, reserved, most }: { allocated: number | null; reserved: number | null; most: number }) {
  const part = (n: number | null) => `${((100 * (n ?? 0)) / Math.max(1, most)).toFixed(1)}%`;
  return (
    <svg class="fleet-bars" width="100%" height="12" aria-hidden="true">
      <rect class="reserved" width={part(reserved)} height="12" />
      <rect class="allocated" width={part(allocated)} y="3" height="6" />
    </svg>
  );
}

// day is a time in the reader's time zone.
export function day(us: number): string {
  const at = new Date(us / 1000);
  return `${at.toLocaleDateString('en-CA')} ${at.toLocaleTimeString('en-GB')}`;
}

// shortPath has the end of a path, which tells files apart.
export function shortPath(path: string): string {
  const parts = path.split('/');
  return parts.length > 3 ? `…/${parts.slice(-2).join('/')}` : path;
}

// quote writes a text as an expression has it.
export function quote(text: string): string {
  return `"${text.replaceAll('"', '\\"')}"`;
}

// said is a name of a document in words.
export function said(word: string): string {
  return word.replaceAll('_', ' ');
}
