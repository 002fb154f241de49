// The files: those that the command was given and those that were dropped on
// the page.

import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { count, percent, size } from '../format';
import { open, run } from '../route';
import { dismiss, incoming, outcome, remove, runs, take, takeText } from '../state';
import { offline } from '../transport';
import type { Run } from '../types/view.gen';
import { Trouble } from './basic';
import { Sheet } from './sheet';

export const filesShown = signal(false);

export function FilesDialog() {
  return (
    <Sheet title="Files" shown={filesShown}>
      <FileList />
      <DropZone />
    </Sheet>
  );
}

export function FileList() {
  return (
    <>
      {incoming.value.map((i) =>
        i.error ? (
          <Trouble onClose={() => dismiss(i.name)}>
            <strong>{i.name}</strong> could not be read: <span data-field="drop-error">{without(i.name, i.error)}</span>
          </Trouble>
        ) : (
          <p class="coming" role="status">
            {i.part < 1 ? `Sending ${i.name}: ${percent(i.part, 0)}` : `Reading ${i.name}`}
            <progress value={i.part} max={1} aria-label={`Sending ${i.name}`} />
          </p>
        ),
      )}
      <ul class="files" hidden={runs.value.length === 0}>
        {runs.value.map((r) => (
          <li class={r.id === run.value ? 'on' : ''}>
            <button
              class="file"
              disabled={r.state === 'failed'}
              aria-current={r.id === run.value ? 'true' : undefined}
              onClick={() => {
                open(r.id);
                filesShown.value = false;
              }}
            >
              <span class="name">{r.label}</span>
              <span class="muted">{state(r)}</span>
            </button>
            {r.dropped && (
              <button class="plain" onClick={() => remove(r.id)} aria-label={`Forget ${r.label}`} title="Forget this file">
                ✕
              </button>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

// without leaves out the name that an error begins with.
export function without(name: string, error: string): string {
  return error.startsWith(`${name}: `) ? error.slice(name.length + 2) : error;
}

function state(r: Run): string {
  switch (r.state) {
    case 'loading':
      return r.file_bytes > 0
        ? `reading, ${percent(r.read_bytes / r.file_bytes, 0)} of ${size(r.file_bytes)}`
        : `reading, ${size(r.read_bytes)}`;
    case 'failed':
      return without(r.file, r.error ?? 'cannot be read');
    case 'ready':
      return `${r.ooms > 0 ? `${outcome(r)}; ` : ''}${count(r.events)} events, ${size(r.file_bytes)}${r.device === null ? '' : `, device ${r.device}`}`;
  }
}

export function DropZone() {
  const ref = useRef<HTMLInputElement>(null);
  return (
    <div class="drop">
      <p>
        Drop snapshots here, or anywhere on the page: <code>.pickle</code>, <code>.json</code>, also <code>.gz</code> and <code>.zst</code>; or a log
        with an out-of-memory message. {offline ? 'They stay in this page: nothing leaves the browser.' : 'They go to the ashlar on this machine and nowhere else.'}
      </p>
      <label class="button">
        Choose files
        <input
          ref={ref}
          type="file"
          multiple
          name="files"
          onChange={(e) => {
            const files = e.currentTarget.files;
            if (files?.length) void shown(take([...files]));
            e.currentTarget.value = '';
          }}
        />
      </label>
    </div>
  );
}

const over = signal(false);

// taker may take a dropped file that is no snapshot; it reports whether it did.
export const taker = signal<((file: File) => Promise<boolean>) | null>(null);

async function receive(files: readonly File[]): Promise<void> {
  const only = files.length === 1 ? files[0] : undefined;
  if (only && (await taker.peek()?.(only))) return;
  await shown(take(files));
}

// receiveText explains a pasted message.
export function receiveText(text: string): Promise<void> {
  return shown(takeText(text));
}

// shown shows how far files are, and what is wrong with them.
async function shown(coming: Promise<void>): Promise<void> {
  filesShown.value = true;
  await coming;
  if (!incoming.value.some((i) => i.error)) filesShown.value = false;
}

// DropAnywhere lets files fall on the whole page.
export function DropAnywhere() {
  useEffect(() => {
    let depth = 0;
    const files = (e: DragEvent) => e.dataTransfer?.types.includes('Files') ?? false;
    const enter = (e: DragEvent) => {
      if (!files(e)) return;
      e.preventDefault();
      depth++;
      over.value = true;
    };
    const leave = (e: DragEvent) => {
      if (!files(e)) return;
      depth = Math.max(0, depth - 1);
      if (depth === 0) over.value = false;
    };
    const drag = (e: DragEvent) => files(e) && e.preventDefault();
    const drop = (e: DragEvent) => {
      if (!files(e)) return;
      e.preventDefault();
      depth = 0;
      over.value = false;
      void receive([...e.dataTransfer!.files]); // the list is gone after the event
    };
    const paste = (e: ClipboardEvent) => {
      if (e.target instanceof Element && e.target.closest('input, textarea')) return;
      const text = e.clipboardData?.getData('text/plain') ?? '';
      if (e.clipboardData?.files.length) void receive([...e.clipboardData.files]);
      else if (text.trim()) void receiveText(text);
    };
    addEventListener('dragenter', enter);
    addEventListener('dragleave', leave);
    addEventListener('dragover', drag);
    addEventListener('drop', drop);
    addEventListener('paste', paste);
    return () => {
      removeEventListener('dragenter', enter);
      removeEventListener('dragleave', leave);
      removeEventListener('dragover', drag);
      removeEventListener('drop', drop);
      removeEventListener('paste', paste);
    };
  }, []);
  return over.value ? (
    <div class="drop-over" aria-hidden="true">
      Drop to open
    </div>
  ) : null;
}
