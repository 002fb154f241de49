// The call stacks of both runs as one graph: red is what grew, blue what shrank.

import { useMemo } from 'preact/hooks';
import { count, percent } from '../format';
import { Bytes, Check, Choice, Delta, Empty, Panel, Trouble, Wait } from '../parts/basic';
import { place, put } from '../route';
import { changeLook } from '../stacks/change';
import { Graph } from '../stacks/graph';
import { nameOf } from '../stacks/icicle';
import { lay, path, type Tree as Laid } from '../stacks/tree';
import type { Changes as Tree } from '../types/view.gen';
import { compare } from './answers';
import type { Query } from '../api';

export function Flame({ query }: { query: Query }) {
  const params = place.value.params;
  const changesOnly = params['width'] !== 'larger';
  const folded = params['lib'] !== '1';
  const got = compare<Tree>('changes', { ...query, user: folded ? 1 : 0, width: changesOnly ? 'change' : 'larger' }).value;
  const t = got.data;
  const tree = useMemo(() => (t ? lay(t) : null), [t]);
  const look = useMemo(() => (t ? changeLook(t.a_bytes, t.b_bytes, changesOnly) : null), [t]);
  return (
    <Panel
      title="Red grew, blue shrank"
      name="flame"
      aside={
        <span class="legend">
          <Check label="fold library frames" name="fold" on={folded} onPick={(on) => put({ lib: on ? null : '1' })} />
          <Choice
            label="What the width is"
            value={changesOnly ? 'change' : 'larger'}
            options={[
              { value: 'change', text: 'what changed' },
              { value: 'larger', text: 'all, by the larger side' },
            ]}
            onPick={(v) => put({ width: v === 'larger' ? v : null })}
          />
        </span>
      }
    >
      {got.error && <Trouble>{got.error}</Trouble>}
      {!tree && !got.error && <Wait>Adding up call stacks</Wait>}
      {tree && look && tree.nodes.length === 0 && <Empty>Nothing changed.</Empty>}
      {tree && look && tree.nodes.length > 0 && (
        <div class="flame">
          <Graph
            tree={tree}
            look={look}
            label={`What changed from A to B by call stack, ${look.all(tree.total)}`}
            onFold={() => put({ lib: folded ? '1' : null })}
            part
            side={(i, zoom) => <Frame tree={tree} i={i} onPick={zoom} />}
          />
        </div>
      )}
    </Panel>
  );
}

function Frame({ tree, i, onPick }: { tree: Laid; i: number; onPick: (i: number) => void }) {
  const n = tree.nodes[i];
  if (!n) {
    return (
      <section class="muted">
        <p>
          Outermost frames are at the top. A frame is red if what is allocated below it grew from A to B, blue if it shrank; the
          stronger, the larger the part that changed. Click one to zoom, click the top row to go back.
        </p>
      </section>
    );
  }
  const [a, b] = [n.a_bytes ?? 0, n.b_bytes ?? 0];
  return (
    <section aria-label="Frame" data-panel="frame" aria-live="polite">
      <h2 class="frame-name">{nameOf(n)}</h2>
      <dl class="facts">
        <dt>A</dt>
        <dd>
          <Bytes n={a} field="frame.a" />
        </dd>
        <dt>B</dt>
        <dd>
          <Bytes n={b} field="frame.b" />
        </dd>
        <dt>B − A</dt>
        <dd>
          <Delta n={b - a} field="frame.delta" />
          {a > 0 && `, ${b > a ? '+' : ''}${percent((b - a) / a)}`}
        </dd>
        <dt>Blocks</dt>
        <dd class="num">at most {count(n.blocks)}</dd>
        {n.file && (
          <>
            <dt>File</dt>
            <dd class="mono">
              {n.file}:{n.line}
            </dd>
          </>
        )}
      </dl>
      <h3>Called through</h3>
      <ol class="stack">
        {path(tree, i)
          .reverse()
          .slice(1)
          .map((j) => (
            <li class={tree.nodes[j]!.user ? 'own' : ''}>
              <button class="link" onClick={() => onPick(j)}>
                {nameOf(tree.nodes[j]!)}
              </button>
            </li>
          ))}
      </ol>
    </section>
  );
}
