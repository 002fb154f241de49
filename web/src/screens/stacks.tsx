// Stacks: who holds the memory, as an icicle graph of call stacks.

import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { Follower, get, type Query } from '../api';
import { count, plural, share, size } from '../format';
import { Bytes, Check, Choice, Empty, Field, Go, pattern, Trouble, Wait } from '../parts/basic';
import { quoted } from '../parts/frames';
import { place, put, range, run } from '../route';
import { meta, moment } from '../state';
import { Graph } from '../stacks/graph';
import { nameOf, plainLook } from '../stacks/icicle';
import { lay, matching, path, type Tree } from '../stacks/tree';
import type { Stacks as Answer } from '../types/view.gen';

const modes = [
  { value: 'moment', text: 'at the moment' },
  { value: 'peak', text: 'at the peak' },
  { value: 'area', text: 'bytes × time' },
];

export function Stacks() {
  const m = meta.value.data;
  const params = place.value.params;
  const known = modes.filter((o) => o.value !== 'area' || params['what'] !== 'segments');
  const mode = known.find((o) => o.value === params['mode'])?.value ?? 'moment';
  const folded = params['lib'] !== '1';
  const segments = params['what'] === 'segments';
  const answer = useSignal<Answer | null>(null);
  const asked = useSignal<string>('');
  const error = useSignal<string | null>(null);
  const follow = useMemo(
    () =>
      new Follower<Query, Answer>(
        (q, signal) => get<Answer>('stacks', q, signal),
        (a, q) => {
          answer.value = a;
          asked.value = JSON.stringify(q);
          error.value = null;
        },
        (text) => (error.value = text),
      ),
    [],
  );
  useEffect(() => () => follow.cancel(), []);
  const at = moment.value ?? -1;
  const query: Query = {
    run: run.value,
    user: folded ? 1 : 0,
    ...(segments ? { what: 'segments' } : {}),
    ...(mode === 'peak' ? { peak: 1 } : mode === 'area' ? { area: 1, ...(range.value && { from: range.value.after + 1, to: range.value.until + 1 }) } : { event: at }),
  };
  const key = JSON.stringify(query);
  useEffect(() => {
    if (m) follow.want(query);
  }, [key, !m]);
  const tree = useMemo(() => (answer.value ? lay(answer.value) : null), [answer.value]);
  const q = params['q'] ?? '';
  const { test, wrong } = pattern(q);
  const found = useMemo(() => (tree ? matching(tree, test) : null), [tree, q]);
  if (!m) return <Wait>Asking what there is</Wait>;
  return (
    <div class="stacks">
      <div class="tools" role="toolbar" aria-label="Stacks">
        <Choice
          label="What is counted"
          value={segments ? 'segments' : 'blocks'}
          options={[
            { value: 'blocks', text: 'blocks' },
            { value: 'segments', text: 'segments' },
          ]}
          onPick={(v) => put({ what: v === 'segments' ? v : null }, 'push')}
        />
        <Choice label="When" value={mode} options={known} onPick={(v) => put({ mode: v === 'moment' ? null : v }, 'push')} />
        <Check
          label="fold library frames"
          name="fold"
          on={folded}
          onPick={(on) => put({ lib: on ? null : '1' }, 'push')}
          title="Show your own frames and the one that allocated the memory"
        />
        <Field label="search" name="q" placeholder="regular expression" value={q} onText={(v) => put({ q: v })} wrong={wrong} width={24} />
        {wrong && <span class="pending-text">{wrong}</span>}
        {test && found && tree && (
          <span data-field="matched" data-bytes={found.bytes}>
            {found.count === 0
              ? 'no frame matches'
              : `${size(found.bytes)}, ${share(found.bytes, tree.total)} in ${plural(found.count, 'frame')}`}
          </span>
        )}
        <span class="grow" />
        {tree && (
          <span class="muted" aria-busy={asked.value !== key}>
            {mode === 'moment'
              ? at < 0
                ? 'before the first event: '
                : `after event ${count(at)}: `
              : mode === 'area'
                ? range.value
                  ? `average from event ${count(range.value.after + 1)} to ${count(range.value.until)}: `
                  : 'average over the run: '
                : 'at the peak: '}
            <Bytes n={tree.total} field="total_bytes" />
          </span>
        )}
      </div>
      {error.value && <Trouble>{error.value}</Trouble>}
      {!tree && !error.value && <Wait>Adding up call stacks</Wait>}
      {tree &&
        found &&
        (tree.nodes.length === 0 ? (
          <Empty>Nothing is allocated at this moment.</Empty>
        ) : (
          <Graph
            tree={tree}
            marks={found.marks}
            searching={!!test}
            look={plainLook}
            label={`Call stacks of ${size(tree.total)}`}
            onFold={() => put({ lib: place.value.params['lib'] === '1' ? null : '1' }, 'push')}
            side={(i, zoom) => (
              <>
                <Node tree={tree} i={i} onPick={zoom} />
                <Leaves tree={tree} onPick={zoom} />
              </>
            )}
          />
        ))}
    </div>
  );
}

function Node({ tree, i, onPick }: { tree: Tree; i: number; onPick: (i: number) => void }) {
  const n = tree.nodes[i];
  if (!n) {
    return (
      <section class="muted">
        <h2>All call stacks</h2>
        <p>
          A frame is as wide as the memory allocated below it. Click one to zoom, click the top row to go back. Your own code is coloured.
        </p>
      </section>
    );
  }
  return (
    <section aria-label="Frame" data-panel="frame" aria-live="polite">
      <h2 class="frame-name">{nameOf(n)}</h2>
      <dl class="facts">
        <dt>Memory</dt>
        <dd>
          <Bytes n={n.bytes} field="frame.bytes" />, {share(n.bytes, tree.total)}
        </dd>
        <dt>In this frame itself</dt>
        <dd>
          <Bytes n={n.self} field="frame.self" />
        </dd>
        <dt>Blocks</dt>
        <dd class="num">{count(n.blocks)}</dd>
        {n.file && (
          <>
            <dt>File</dt>
            <dd class="mono">
              {n.file}:{n.line}
            </dd>
          </>
        )}
      </dl>
      {n.file && (
        <p class="links">
          <Go screen="timeline" change={{ stack: quoted(n.file, n.line) }}>
            In the timeline
          </Go>
          <Go screen="events" change={{ stack: quoted(n.file, n.line), action: 'alloc' }}>
            Its events
          </Go>
        </p>
      )}
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

// Leaves are the places that asked for most.
function Leaves({ tree, onPick }: { tree: Tree; onPick: (i: number) => void }) {
  const top = useMemo(() => {
    const order = [...tree.nodes.keys()].filter((i) => tree.nodes[i]!.self > 0);
    return order.sort((a, b) => tree.nodes[b]!.self - tree.nodes[a]!.self).slice(0, 12);
  }, [tree]);
  return (
    <section>
      <h2>Allocated at</h2>
      <ol class="leaves">
        {top.map((i) => {
          const n = tree.nodes[i]!;
          const own = path(tree, i)
            .reverse()
            .find((j) => tree.nodes[j]!.user);
          return (
            <li>
              <button class="plain leaf" onClick={() => onPick(i)}>
                <Bytes n={n.self} />
                <span>{nameOf(n)}</span>
                {own !== undefined && own !== i && <span class="muted">{nameOf(tree.nodes[own]!)}</span>}
              </button>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
