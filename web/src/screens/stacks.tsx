// Stacks: who holds the memory, as a graph of call stacks.

import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { Follower, get, type Query } from '../api';
import { size } from '../format';
import { useMouse } from '../keys';
import { Empty, Trouble, Wait } from '../parts/basic';
import { put, run } from '../route';
import { meta } from '../state';
import { changeLook } from '../stacks/change';
import { Graph, type Walk } from '../stacks/graph';
import { plainLook } from '../stacks/icicle';
import { Details, Sites } from '../stacks/side';
import { Tools } from '../stacks/tools';
import { framesTo, lay, nodeAlong } from '../stacks/tree';
import { asked, changesOnly, folded, mode, moments, nextView, view, zoomed } from '../stacks/view';
import type { Stacks as Answer } from '../types/view.gen';

export function Stacks() {
  const m = meta.value.data;
  const answer = useSignal<{ data: Answer; for: string } | null>(null);
  const error = useSignal<string | null>(null);
  const walk = useRef<Walk | null>(null);
  const follow = useMemo(
    () =>
      new Follower<Query, Answer>(
        (q, signal) => get<Answer>('stacks', q, signal),
        (data, q) => {
          answer.value = { data, for: JSON.stringify(q) };
          error.value = null;
        },
        (text) => (error.value = text),
      ),
    [],
  );
  useEffect(() => () => follow.cancel(), []);
  useMouse('Stacks', [
    ['Click', 'Zoom to a frame; in a sandwich put it into the middle'],
    ['Top row', 'Click it to see all'],
  ]);
  const query: Query = { run: run.value, ...asked.value };
  const key = JSON.stringify(query);
  const possible = mode.value !== 'diff' || moments.value !== null;
  useEffect(() => {
    if (m && possible) follow.want(query);
  }, [key, !m, possible]);
  const got = answer.value?.data;
  const tree = useMemo(() => (got ? lay(got) : null), [got]);
  const look = useMemo(
    () => (got?.a_bytes !== undefined || got?.b_bytes !== undefined ? changeLook(got.a_bytes ?? 0, got.b_bytes ?? 0, changesOnly.value) : plainLook),
    [got],
  );
  if (!m) return <Wait>Asking what there is</Wait>;
  const root = tree && !tree.sandwich ? nodeAlong(tree, zoomed.value) : -1;
  const zoom = (i: number) => {
    const way = tree && framesTo(tree, i);
    if (!way) return;
    if (!tree.sandwich) put({ zoom: way.join('.') }, 'push');
    else if (i >= 0) put({ frame: way.at(-1)! }, 'push');
  };
  const middle = (i: number) => {
    const frame = tree?.nodes[i]?.frame ?? -1;
    if (frame >= 0) put({ view: 'sandwich', frame, zoom: null }, 'push');
  };
  return (
    <div class="stacks">
      <Tools answer={got ?? null} busy={answer.value?.for !== key} onMatch={(by) => walk.current?.match(by)} />
      {error.value && <Trouble>{error.value}</Trouble>}
      {!possible ? (
        <Empty>Two moments are compared: write events above, or select a range on the timeline.</Empty>
      ) : !tree || !got ? (
        !error.value && <Wait>Adding up call stacks</Wait>
      ) : tree.nodes.length === 0 ? (
        <Empty>{mode.value === 'diff' ? 'Nothing changed between these moments.' : 'Nothing is allocated at this moment.'}</Empty>
      ) : (
        <Graph
          tree={tree}
          searching={got.found !== null}
          look={look}
          label={`Call stacks of ${size(tree.total)}`}
          root={root}
          onZoom={zoom}
          walk={(w) => (walk.current = w)}
          onFold={() => put({ lib: folded.value, zoom: null }, 'push')}
          keys={(selected) => [
            { keys: ['v'], text: 'Next view: top-down, bottom-up, sandwich', run: nextView },
            { keys: ['s'], text: 'Callers and callees of the frame', run: () => middle(selected()) },
          ]}
          side={(i, go) => (
            <>
              <Details tree={tree} i={i < 0 && tree.sandwich ? 0 : i} onPick={go} onMiddle={middle} lost={zoomed.value.length > got.zoomed && view.value !== 'sandwich'} />
              <Sites
                sites={got.sites}
                below={tree.sandwich || root >= 0}
                onPick={(p) => put(tree.sandwich ? { frame: p.at(-1) ?? null } : { zoom: p.join('.') }, 'push')}
              />
            </>
          )}
        />
      )}
    </div>
  );
}
