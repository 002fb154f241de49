// The graph of call stacks: drawn, zoomed and walked through.

import { effect, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { areaOf, Frames, pen } from '../draw/canvas';
import { count } from '../format';
import { useKeys, type Binding } from '../keys';
import { Side } from '../parts/side';
import { ink, theme } from '../theme';
import { draw, nodeAt, rangeOf, rowHeight, yOf, type Look, type Sight } from './icicle';
import { above, below, framesTo, nodeAlong, rows, sibling, within, type Tree } from './tree';

// Walk is what the graph lets others do.
export interface Walk {
  zoom: (i: number) => void;
  match: (by: 1 | -1) => void; // to the next or previous match of the search
}

export function Graph({
  tree,
  searching,
  look,
  label,
  side,
  onFold,
  part,
  root: asked,
  onZoom,
  keys,
  walk,
}: {
  tree: Tree;
  searching?: boolean;
  look: Look;
  label: string;
  side: (i: number, zoom: (i: number) => void) => ComponentChildren; // what is shown about a frame
  onFold: () => void;
  part?: boolean; // of a screen that has more: keys are its own while it has the focus
  root?: number; // the node that is zoomed to, if the graph does not keep that itself
  onZoom?: (i: number) => void;
  keys?: (selected: () => number) => readonly Binding[];
  walk?: (w: Walk) => void;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const own = useSignal(-1);
  const selected = useSignal(-1);
  const hover = useSignal(-1);
  const known = useRef(tree);
  if (known.current !== tree) {
    // Other nodes: the selected frame is found again if it is there.
    const way = framesTo(known.current, selected.value);
    const found = way ? nodeAlong(tree, way) : -1;
    known.current = tree;
    selected.value = way && found >= 0 && framesTo(tree, found)?.length === way.length ? found : -1;
    own.value = hover.value = -1;
  }
  const root = asked ?? own.value;
  const row = useSignal(20);
  const sight = (): Sight => ({
    tree,
    searching: !!searching,
    root,
    selected: selected.value,
    hover: hover.value,
    row: row.value,
    look,
  });
  const total = rows(tree, root);
  const height = total * row.value;
  useEffect(() => {
    const box = scroller.current!;
    const frames = new Frames(() => {
      const area = areaOf(box);
      const target = canvas.current;
      if (!target) return;
      row.value = rowHeight(total, area.height);
      const c = pen(target, area);
      target.style.width = `${area.width}px`;
      target.style.height = `${area.height}px`;
      draw(c, sight(), area.width, area.height, box.scrollTop, theme.value, ink.value);
    });
    const stop = effect(() => {
      void [selected.value, hover.value, ink.value];
      frames.ask();
    });
    const watch = new ResizeObserver(frames.ask);
    watch.observe(box);
    box.addEventListener('scroll', frames.ask);
    return () => {
      stop();
      watch.disconnect();
      frames.stop();
      box.removeEventListener('scroll', frames.ask);
    };
  }, [tree, searching, look, root]);
  const at = (e: MouseEvent): number => {
    const box = scroller.current!;
    const r = box.getBoundingClientRect();
    return nodeAt(sight(), box.clientWidth, e.clientX - r.left, e.clientY - r.top + box.scrollTop);
  };
  const choose = (i: number) => {
    selected.value = i;
    const box = scroller.current!;
    const y = i < 0 ? 0 : yOf(sight(), i);
    if (y < box.scrollTop) box.scrollTop = y;
    if (y + row.value > box.scrollTop + box.clientHeight) box.scrollTop = y + row.value - box.clientHeight;
  };
  const zoom = (i: number) => {
    choose(i);
    if (onZoom) onZoom(i);
    else own.value = i;
  };
  // A match that cannot be seen as things are is zoomed to.
  const match = (by: 1 | -1) => {
    const n = tree.nodes.length;
    const from = selected.value < 0 && by < 0 ? n : selected.value;
    for (let k = 1; k <= n; k++) {
      const i = (from + by * k + 2 * n) % n;
      if (!tree.nodes[i]!.match) continue;
      const wide = (tree.nodes[i]!.bytes / Math.max(1, rangeOf(sight()).bytes)) * scroller.current!.clientWidth > 24;
      if (tree.sandwich || (wide && within(tree, i, root))) choose(i);
      else zoom(i);
      return;
    }
  };
  walk?.({ zoom, match });
  const walking: Binding[] = [
    { keys: ['ArrowDown'], text: 'To the frame below', run: () => choose(below(tree, selected.value)) },
    { keys: ['ArrowUp'], text: 'To the frame above', run: () => choose(above(tree, selected.value)) },
    {
      keys: ['ArrowLeft', 'ArrowRight'],
      text: 'To the neighbour',
      run: (e) => selected.value >= 0 && choose(sibling(tree, selected.value, e.key === 'ArrowRight' ? 1 : -1)),
    },
    { keys: ['z', 'Enter'], text: 'Zoom to the frame', run: () => zoom(selected.value) },
    { keys: ['0', 'Home'], text: 'All', run: () => zoom(-1) },
    { keys: ['M', 'm'], text: 'Previous, next match of the search', run: (e) => match(e.key === 'm' ? 1 : -1) },
    { keys: ['l'], text: 'Fold library frames or not', run: onFold },
    ...(keys?.(() => selected.value) ?? []),
  ];
  const when = () => !part || document.activeElement === scroller.current;
  useKeys(part ? 'Graph, when it has the focus' : 'Stacks', () => walking.map((b) => ({ ...b, when })), [tree, searching, root]);
  const told = hover.value >= 0 ? hover.value : selected.value;
  return (
    <div class="with-side">
      <div class="icicle-box">
        <div
          class="icicle"
          ref={scroller}
          tabIndex={0}
          role="application"
          aria-label={`${label}: ${count(tree.nodes.length)} frames. Arrow keys move, z zooms.`}
          data-keys="screen"
          data-nodes={tree.nodes.length}
          data-root={tree.nodes[root]?.frame ?? -1}
          data-selected={tree.nodes[selected.value]?.frame ?? -1}
          onMouseMove={(e) => (hover.value = Math.max(-1, at(e)))}
          onMouseLeave={() => (hover.value = -1)}
          onClick={(e) => {
            const i = at(e);
            if (i >= -1) zoom(i);
          }}
        >
          <div
            ref={(el) => {
              if (el) el.style.height = `${height}px`;
            }}
          >
            <canvas ref={canvas} class="map-canvas" />
          </div>
        </div>
      </div>
      {part ? (
        <aside class="side" aria-label="Frame">
          {side(told, zoom)}
        </aside>
      ) : (
        <Side>{side(told, zoom)}</Side>
      )}
    </div>
  );
}
