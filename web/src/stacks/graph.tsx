// The graph of call stacks: drawn, zoomed and walked through.

import { effect, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { areaOf, Frames, pen } from '../draw/canvas';
import { count } from '../format';
import { useKeys, type Binding } from '../keys';
import { ink, theme } from '../theme';
import { draw, nodeAt, rowHeight, type Look, type Sight } from './icicle';
import { firstChild, sibling, type Tree } from './tree';

export function Graph({
  tree,
  marks,
  searching,
  look,
  label,
  side,
  onFold,
  part,
}: {
  tree: Tree;
  marks: Uint8Array;
  searching: boolean;
  look: Look;
  label: string;
  side: (i: number, zoom: (i: number) => void) => ComponentChildren; // what is shown about a frame
  onFold: () => void;
  part?: boolean; // of a screen that has more: keys are its own while it has the focus
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const root = useSignal(-1);
  const selected = useSignal(-1);
  const hover = useSignal(-1);
  // Another moment has other nodes.
  const known = useRef<Tree | null>(null);
  if (known.current !== tree) {
    known.current = tree;
    root.value = selected.value = hover.value = -1;
  }
  const row = useSignal(20);
  const sight = (): Sight => ({
    tree,
    marks,
    searching,
    root: root.value,
    selected: selected.value,
    hover: hover.value,
    row: row.value,
    look,
  });
  const height = (tree.deepest + 2) * row.value;
  useEffect(() => {
    const box = scroller.current!;
    const frames = new Frames(() => {
      const area = areaOf(box);
      const target = canvas.current;
      if (!target) return;
      row.value = rowHeight(tree.deepest, area.height);
      const c = pen(target, area);
      target.style.width = `${area.width}px`;
      target.style.height = `${area.height}px`;
      draw(c, sight(), area.width, area.height, box.scrollTop, theme.value, ink.value);
    });
    const stop = effect(() => {
      void [root.value, selected.value, hover.value, ink.value];
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
  }, [tree, marks, searching, look]);
  const at = (e: MouseEvent): number => {
    const box = scroller.current!;
    const r = box.getBoundingClientRect();
    return nodeAt(sight(), box.clientWidth, e.clientX - r.left, e.clientY - r.top + box.scrollTop);
  };
  const choose = (i: number) => {
    selected.value = i;
    const box = scroller.current!;
    const y = ((tree.nodes[i]?.depth ?? -1) + 1) * row.value;
    if (y < box.scrollTop) box.scrollTop = y;
    if (y + row.value > box.scrollTop + box.clientHeight) box.scrollTop = y + row.value - box.clientHeight;
  };
  const zoom = (i: number) => {
    root.value = i;
    choose(i);
  };
  const nextMatch = () => {
    for (let n = 1; n <= marks.length; n++) {
      const i = (selected.value + n) % marks.length;
      if (marks[i]) return zoom(i);
    }
  };
  const walking: Binding[] = [
    { keys: ['ArrowDown'], text: 'To the callee', run: () => choose(selected.value < 0 ? 0 : firstChild(tree, selected.value)) },
    { keys: ['ArrowUp'], text: 'To the caller', run: () => selected.value >= 0 && choose(tree.parent[selected.value]!) },
    {
      keys: ['ArrowLeft', 'ArrowRight'],
      text: 'To the neighbour',
      run: (e) => selected.value >= 0 && choose(sibling(tree, selected.value, e.key === 'ArrowRight' ? 1 : -1)),
    },
    { keys: ['z', 'Enter'], text: 'Zoom to the frame', run: () => zoom(selected.value) },
    { keys: ['0', 'Home'], text: 'All', run: () => zoom(-1) },
    { keys: ['m'], text: 'Next match of the search', run: nextMatch },
    { keys: ['l'], text: 'Fold library frames or not', run: onFold },
  ];
  const when = () => !part || document.activeElement === scroller.current;
  useKeys(part ? 'Graph, when it has the focus' : 'Stacks', () => walking.map((b) => ({ ...b, when })), [tree, marks]);
  const told = hover.value >= 0 ? hover.value : selected.value;
  return (
    <div class="with-side">
      <div class="icicle-box">
        <div
          class="icicle"
          ref={scroller}
          tabIndex={0}
          role="application"
          aria-label={`${label}: ${count(tree.nodes.length)} frames, outermost at the top. Arrow keys move, z zooms.`}
          data-keys="screen"
          data-nodes={tree.nodes.length}
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
      <aside class="side" aria-label="Details">
        {side(told, zoom)}
      </aside>
    </div>
  );
}
