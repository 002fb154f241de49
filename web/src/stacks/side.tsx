// What the panel beside the graph says: the frame, and where memory was allocated.

import { count, share } from '../format';
import { Bytes, Delta, Go } from '../parts/basic';
import { quoted } from '../parts/frames';
import type { StackNode, StackSite } from '../types/view.gen';
import { difference } from './change';
import { nameOf } from './icicle';
import { path, type Tree } from './tree';
import { mode, view } from './view';

export function Details({
  tree,
  i,
  onPick,
  onMiddle,
  lost,
}: {
  tree: Tree;
  i: number;
  onPick: (i: number) => void;
  onMiddle: (i: number) => void;
  lost: boolean;
}) {
  const n = tree.nodes[i];
  if (!n) return <Hint lost={lost} />;
  const way = path(tree, i).reverse().slice(1);
  return (
    <section aria-label="Frame" data-panel="frame" data-frame={n.frame} aria-live="polite">
      <h2 class="frame-name">{nameOf(n)}</h2>
      <dl class="facts">
        {mode.value === 'diff' ? <Changed n={n} /> : <Held n={n} total={tree.total} />}
        <dt>Blocks</dt>
        <dd class="num">
          {mode.value === 'diff' && 'at most '}
          {count(n.blocks)}
        </dd>
        {n.file && (
          <>
            <dt>File</dt>
            <dd class="mono">
              {n.file}:{n.line}
            </dd>
          </>
        )}
      </dl>
      {n.frame >= 0 && (
        <p class="links wrap">
          {!(tree.sandwich && i === 0) && (
            <button class="small" onClick={() => onMiddle(i)} title="Who calls it, and what it calls (s)" data-frame-view="sandwich">
              Callers and callees
            </button>
          )}
          {n.file && (
            <>
              <Go screen="timeline" change={{ stack: quoted(n.file, n.line) }}>
                In the timeline
              </Go>
              <Go screen="events" change={{ stack: quoted(n.file, n.line), action: 'alloc' }}>
                Its events
              </Go>
            </>
          )}
        </p>
      )}
      {way.length > 0 && (
        <>
          <h3>{i >= tree.callers || view.value === 'up' ? 'On the way to' : 'Called through'}</h3>
          <ol class="stack">
            {way.map((j) => (
              <li class={tree.nodes[j]!.user ? 'own' : ''}>
                <button class="link" onClick={() => onPick(j)}>
                  {nameOf(tree.nodes[j]!)}
                </button>
              </li>
            ))}
          </ol>
        </>
      )}
    </section>
  );
}

function Held({ n, total }: { n: StackNode; total: number }) {
  return (
    <>
      <dt>Memory</dt>
      <dd>
        <Bytes n={n.bytes} field="frame.bytes" />, {share(n.bytes, total)}
      </dd>
      {view.value !== 'up' && (
        <>
          <dt>In this frame itself</dt>
          <dd>
            <Bytes n={n.self} field="frame.self" />
          </dd>
        </>
      )}
    </>
  );
}

function Changed({ n }: { n: StackNode }) {
  return (
    <>
      <dt>From</dt>
      <dd>
        <Bytes n={n.a_bytes ?? 0} field="frame.a" />
      </dd>
      <dt>To</dt>
      <dd>
        <Bytes n={n.b_bytes ?? 0} field="frame.b" />
      </dd>
      <dt>Change</dt>
      <dd>
        <Delta n={difference(n)} field="frame.delta" />
      </dd>
    </>
  );
}

const hints = {
  down: 'Outermost frames are at the top; a frame is as wide as the memory allocated below it.',
  up: 'The frames that allocated are at the top, with their callers below them.',
  sandwich: 'The outlined frame is the one that was chosen: above it who calls it, below it what it calls. Click another to go on from there.',
};

function Hint({ lost }: { lost: boolean }) {
  return (
    <section class="muted">
      <h2>All call stacks</h2>
      {lost && <p class="pending-text">The frame that was zoomed to has no memory here.</p>}
      <p>
        {hints[view.value]} {view.value !== 'sandwich' && 'Click one to zoom, click the top row or go back to see all. '}
        {mode.value === 'diff' ? 'Red grew, blue shrank; the stronger, the more of it changed.' : 'Your own code is coloured.'}
      </p>
    </section>
  );
}

// Sites are the places that allocated most of what is in view.
export function Sites({ sites, below, onPick }: { sites: readonly StackSite[]; below: boolean; onPick: (path: readonly number[]) => void }) {
  if (sites.length === 0) return null;
  return (
    <section data-panel="sites">
      <h2>{below ? 'Allocated through this frame' : 'Allocated at'}</h2>
      <ol class="leaves">
        {sites.map((s) => (
          <li>
            <button class="plain leaf" onClick={() => onPick(s.path)} data-site-bytes={s.bytes}>
              {mode.value === 'diff' ? <Delta n={(s.b_bytes ?? 0) - (s.a_bytes ?? 0)} /> : <Bytes n={s.bytes} />}
              <span>
                {s.site} <span class="muted">× {count(s.blocks)}</span>
              </span>
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
