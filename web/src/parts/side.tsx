// The panel beside a picture. Its edge can be dragged; the width is kept where the
// browser lets us keep it. In a narrow window it is a sheet behind a button.

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { signal, useSignal } from '@preact/signals';
import { useKeys } from '../keys';
import { Sheet } from './sheet';

// From this width on there is room for the panel; the style sheets go by it too.
const roomy = matchMedia('(min-width: 900px)');
const narrow = signal(!roomy.matches);
roomy.addEventListener('change', () => (narrow.value = !roomy.matches));

const key = 'ashlar-side';
const [least, usual, most] = [240, 320, 900];

function kept(): number {
  try {
    return bounded(Number(localStorage.getItem(key)) || usual);
  } catch {
    return usual;
  }
}

function bounded(n: number): number {
  return Math.round(Math.max(least, Math.min(most, n)));
}

const width = signal(kept());

function widen(to: number): void {
  width.value = bounded(to);
  try {
    localStorage.setItem(key, String(width.value));
  } catch {
    // It lasts as long as the page then.
  }
}

export function Side({ label = 'Details', children }: { label?: string; children: ComponentChildren }) {
  return narrow.value ? <Behind label={label}>{children}</Behind> : <Beside label={label}>{children}</Beside>;
}

function Behind({ label, children }: { label: string; children: ComponentChildren }) {
  const shown = useSignal(false);
  useKeys(label, () => [{ keys: ['D'], text: 'Show the panel', run: () => (shown.value = true) }], [label]);
  return (
    <>
      <button class="side-open" onClick={() => (shown.value = true)} title={`${label} (D)`} aria-haspopup="dialog">
        {label}
      </button>
      <Sheet title={label} shown={shown} kind="side-sheet">
        <div class="side">{children}</div>
      </Sheet>
    </>
  );
}

function Beside({ label, children }: { label: string; children: ComponentChildren }) {
  const box = useRef<HTMLElement>(null);
  const w = width.value;
  useLayoutEffect(() => box.current!.style.setProperty('--side-width', `${w}px`), [w]);
  return (
    <aside class="side wide-side" aria-label={label} ref={box}>
      <div
        class="side-edge"
        role="separator"
        aria-orientation="vertical"
        aria-label="Width of the details"
        aria-valuemin={least}
        aria-valuemax={most}
        aria-valuenow={w}
        tabIndex={0}
        title="Drag to widen; double click for the usual width"
        data-keys="own"
        onPointerDown={(e) => {
          e.preventDefault();
          e.currentTarget.setPointerCapture(e.pointerId);
        }}
        onPointerMove={(e) => {
          if (e.currentTarget.hasPointerCapture(e.pointerId)) widen(box.current!.getBoundingClientRect().right - e.clientX);
        }}
        onDblClick={() => widen(usual)}
        onKeyDown={(e) => {
          if (e.key === 'ArrowLeft' || e.key === 'ArrowRight') widen(w + (e.key === 'ArrowLeft' ? 40 : -40));
        }}
      />
      <div class="side-body">{children}</div>
    </aside>
  );
}
