// Small parts that all screens use.

import { useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { count, delta, exact, seconds, size } from '../format';
import type { Frame } from '../types/view.gen';
import { link, show, type Change, type Screen } from '../route';
import { meta, moment, select } from '../state';
import { editor, editorLink, filterBy, keepEditor } from './frames';

// Bytes is a size with the exact number behind it.
export function Bytes({ n, field }: { n: number | null | undefined; field?: string }) {
  if (n === null || n === undefined)
    return (
      <span class="muted" data-field={field} title="The file does not contain it.">
        not known
      </span>
    );
  return (
    <span class="num" data-bytes={n} data-field={field} title={exact(n)}>
      {size(n)}
    </span>
  );
}

// Delta is a difference of sizes.
export function Delta({ n, field }: { n: number; field?: string }) {
  return (
    <span class={'num' + (n > 0 ? ' more' : n < 0 ? ' less' : '')} data-delta={n} data-field={field} title={exact(n)}>
      {delta(n)}
    </span>
  );
}

export function Count({ n, field }: { n: number; field?: string }) {
  return (
    <span class="num" data-value={n} data-field={field}>
      {count(n)}
    </span>
  );
}

// Wait is shown where something is on its way.
export function Wait({ children }: { children: ComponentChildren }) {
  return (
    <p class="wait" role="status">
      <span class="spin" aria-hidden="true" />
      {children}
    </p>
  );
}

export function Trouble({ children, onClose }: { children: ComponentChildren; onClose?: () => void }) {
  return (
    <div class="trouble" role="alert">
      <div>{children}</div>
      {onClose && (
        <button class="plain" onClick={onClose} aria-label="Close this message">
          ✕
        </button>
      )}
    </div>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export function Panel({
  title,
  aside,
  children,
  name,
  wide,
}: {
  title: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
  name?: string;
  wide?: boolean;
}) {
  return (
    <section class={'panel' + (wide ? ' wide' : '')} data-panel={name}>
      <h2>
        {title}
        {aside && <span class="aside">{aside}</span>}
      </h2>
      {children}
    </section>
  );
}

// Copy puts a line on the clipboard.
export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [said, setSaid] = useState<string | null>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid('Copied');
    } catch {
      setSaid('Not allowed: select the line');
    }
    setTimeout(() => setSaid(null), 1500);
  };
  return (
    <button type="button" class="small" onClick={copy} data-copy={text}>
      <span role="status">{said ?? label}</span>
    </button>
  );
}

// Go is a link to a screen at a moment or a block.
export function Go({
  screen,
  change = {},
  children,
  title,
  tab,
  on,
}: {
  screen: Screen;
  change?: Change;
  children: ComponentChildren;
  title?: string;
  tab?: boolean;
  on?: boolean;
}) {
  return (
    <a
      class={tab ? (on ? 'tab on' : 'tab') : undefined}
      aria-current={on ? 'page' : undefined}
      data-screen={tab ? screen : undefined}
      href={link(screen, change)}
      title={title}
      onClick={(e) => {
        if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
        e.preventDefault();
        show(screen, change);
      }}
    >
      {children}
    </a>
  );
}

// At is an event that selects itself.
export function At({ event }: { event: number | null | undefined }) {
  if (event === null || event === undefined) return <span class="muted">-</span>;
  return (
    <button
      class="link num"
      onClick={() => select(event)}
      title="Select this moment"
      aria-current={moment.value === event ? 'true' : undefined}
      data-event={event}
    >
      {count(event)}
    </button>
  );
}

// since is the time of the clock as the time since the first event.
export function since(time: number | null | undefined): string | null {
  const first = meta.value.data?.first_time;
  return time === null || time === undefined || first === null || first === undefined ? null : seconds(time - first);
}

// noStack stands where a call site would.
export const noStack = '(no call stack)';

// Stack is a call stack, innermost frame first. What is not the user's own
// program stands back.
export function Stack({ frames, why }: { frames: readonly Frame[] | null; why?: string }) {
  const [open, setOpen] = useState<number | null>(null);
  if (!frames || frames.length === 0) {
    return <p class="muted">{why ?? 'No call stack: made outside Python, as in the backward pass, or not recorded.'}</p>;
  }
  return (
    <ol class="stack" tabIndex={0} aria-label="Call stack, innermost frame first">
      {frames.map((f, i) => (
        <li class={f.user ? 'own' : ''} title={`${f.filename}:${f.line} ${f.name}`}>
          <button class="link frame" aria-expanded={open === i} onClick={() => setOpen(open === i ? null : i)}>
            {f.text}
          </button>
          {open === i && <Uses f={f} />}
          {f.extra && Object.entries(f.extra).map(([key, text]) => <pre>{`${key}: ${text}`}</pre>)}
        </li>
      ))}
    </ol>
  );
}

function Uses({ f }: { f: Frame }) {
  const [editing, setEditing] = useState(false);
  const link = f.line > 0 ? editorLink(editor.value, f.filename, f.line) : null;
  return (
    <div class="frame-uses">
      <span class="path">
        {f.filename}:{f.line}
      </span>
      <button class="small" onClick={() => filterBy(f)} title="Show what this line allocates" data-frame="filter">
        Filter
      </button>
      <Copy text={`${f.filename}:${f.line}`} />
      {link !== null && (
        <a class="button small" href={link} data-frame="open">
          Open
        </a>
      )}
      <button class="plain" onClick={() => setEditing(!editing)} aria-expanded={editing} title="Which editor opens it" aria-label="Which editor">
        ⋯
      </button>
      {editing && (
        <label class="field">
          <span>editor</span>
          <input
            type="text"
            name="editor"
            value={editor.value}
            size={28}
            spellcheck={false}
            title="An address with {file} and {line}; empty for VS Code"
            onChange={(e) => keepEditor(e.currentTarget.value.trim())}
          />
        </label>
      )}
    </div>
  );
}

export interface Option {
  value: string;
  text: string;
}

export function Select({
  label,
  value,
  options,
  onPick,
  name,
}: {
  label: string;
  value: string;
  options: readonly Option[];
  onPick: (v: string) => void;
  name?: string;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <select name={name} value={value} onChange={(e) => onPick(e.currentTarget.value)}>
        {options.map((o) => (
          <option value={o.value} selected={o.value === value}>
            {o.text}
          </option>
        ))}
      </select>
    </label>
  );
}

// Choice is one of a few, all in view.
export function Choice({
  label,
  value,
  options,
  onPick,
}: {
  label: string;
  value: string;
  options: readonly Option[];
  onPick: (v: string) => void;
}) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map((o) => (
        <button type="button" aria-pressed={o.value === value} onClick={() => onPick(o.value)} data-choice={o.value}>
          {o.text}
        </button>
      ))}
    </div>
  );
}

export function Check({
  label,
  on,
  onPick,
  name,
  title,
}: {
  label: string;
  on: boolean;
  onPick: (on: boolean) => void;
  name?: string;
  title?: string;
}) {
  return (
    <label class="field check" title={title}>
      <input type="checkbox" name={name} checked={on} onChange={(e) => onPick(e.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}

// Field is a line of text that counts when it rests. What is being typed stays,
// whatever is drawn anew meanwhile, and if onText says that it is of no use.
export function Field({
  label,
  value,
  onText,
  name,
  placeholder,
  width,
  wrong,
  list,
}: {
  label: string;
  value: string;
  onText: (v: string) => unknown;
  name: string;
  placeholder?: string;
  width?: number;
  wrong?: string | null;
  list?: string; // of a datalist with what could be written
}) {
  const [draft, setDraft] = useState<string | null>(null);
  const [timer] = useState({ id: 0, value, own: false });
  // The address changed otherwise than by typing here: what was typed is past.
  if (timer.value !== value) {
    timer.value = value;
    if (draft !== null && !timer.own) {
      clearTimeout(timer.id);
      setDraft(null);
    }
    timer.own = false;
  }
  const settle = async (v: string) => {
    clearTimeout(timer.id);
    if ((await onText(v)) !== false) setDraft((now) => (now === v ? null : now));
  };
  return (
    <label class="field" title={wrong ?? undefined}>
      <span>{label}</span>
      <input
        type="text"
        name={name}
        value={draft ?? value}
        placeholder={placeholder}
        size={width ?? 14}
        list={list}
        spellcheck={false}
        autocomplete="off"
        aria-invalid={wrong ? 'true' : undefined}
        onInput={(e) => {
          const v = e.currentTarget.value;
          setDraft(v);
          clearTimeout(timer.id);
          timer.id = setTimeout(async () => {
            timer.own = true;
            if ((await onText(v)) === false) timer.own = false;
          }, 250);
        }}
        onBlur={() => draft !== null && void settle(draft)}
        onKeyDown={(e) => e.key === 'Enter' && void settle(e.currentTarget.value)}
      />
      {wrong && (
        <span class="wrong-note" role="status">
          {wrong}
        </span>
      )}
    </label>
  );
}

// pattern compiles what was typed, or says what is wrong with it.
export function pattern(text: string): { test: RegExp | null; wrong: string | null } {
  if (!text) return { test: null, wrong: null };
  try {
    return { test: new RegExp(text, 'i'), wrong: null };
  } catch (err) {
    return { test: null, wrong: `This is no regular expression: ${err instanceof Error ? err.message : err}` };
  }
}

// Swatch is a square of a colour.
export function Swatch({ colour }: { colour: string }) {
  return (
    <i
      ref={(el) => {
        if (el) el.style.background = colour;
      }}
    />
  );
}
