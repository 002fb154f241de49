// The keys of the timeline.

import { useKeys, useMouse } from '../keys';
import { colourings } from '../palette';
import { block, put, range } from '../route';
import { allocation, meta, moment, select } from '../state';
import { columnFloats } from './picture';
import type { Plot } from './plot';
import {
  axis,
  bringEvent,
  colourBy,
  colouring,
  extend,
  hasTimes,
  look,
  lookAtAll,
  matches,
  moving,
  only,
  panBy,
  shown,
  toStep,
  turn,
  what,
  zoomToMoment,
  zoomToRange,
  zoomY,
} from './view';

export function usePlotKeys(plot: Plot | null): void {
  useKeys(
    'Timeline',
    () => [
      { keys: ['+', '=', 'w'], shown: '+ w', text: 'Zoom in', run: () => plot?.zoom(0.6) },
      { keys: ['-', 's'], text: 'Zoom out', run: () => plot?.zoom(1 / 0.6) },
      { keys: ['ArrowLeft', 'a'], text: 'Move left; with Shift select a range', run: (e: KeyboardEvent) => (e.shiftKey ? extend(-1) : panBy(-0.2)) },
      { keys: ['ArrowRight', 'd'], text: 'Move right; with Shift select a range', run: (e: KeyboardEvent) => (e.shiftKey ? extend(1) : panBy(0.2)) },
      { keys: ['ArrowUp'], text: 'Move up', run: () => panBy(0, 0.2) },
      { keys: ['ArrowDown'], text: 'Move down', run: () => panBy(0, -0.2) },
      { keys: ['W', 'S'], text: 'Zoom in, out on bytes', run: (e: KeyboardEvent) => zoomY(e.key === 'W' ? 0.6 : 1 / 0.6) },
      { keys: ['0', 'Home'], text: 'The whole run', run: lookAtAll },
      { keys: ['f'], text: 'Fit the bytes in view', run: () => plot && fitBytes(plot) },
      { keys: ['z'], text: 'Zoom to the block, the range or the moment', run: zoomToSelected },
      { keys: ['Enter'], text: 'Select the largest block at the moment', run: () => plot && pickBlock(plot, 'largest') },
      { keys: ['j', 'k'], text: 'Block below, above', run: (e: KeyboardEvent) => plot && pickBlock(plot, e.key === 'k' ? 'above' : 'below') },
      { keys: ['E', 'e'], text: 'Previous, next step', run: (e: KeyboardEvent) => toStep(e.key === 'e' ? 1 : -1) },
      { keys: ['M', 'm'], text: 'Previous, next match of the filter', run: (e: KeyboardEvent) => toMatch(e.key === 'm' ? 'next' : 'previous') },
      { keys: ['i'], text: 'Only what the filter chooses', run: () => put({ only: !only.value }, 'push') },
      { keys: ['u'], text: 'Without what lives through the window', run: () => put({ moving: !moving.value }, 'push') },
      { keys: ['x'], text: 'By event or by time', run: () => hasTimes(meta.value.data) && void turn(axis.value === 'time' ? 'event' : 'time') },
      { keys: ['c'], text: 'Next way of colouring', run: nextColouring },
      { keys: ['b'], text: 'Blocks or segments', run: () => put({ what: what.value === 'blocks' ? 'segments' : null }, 'push') },
    ],
    [plot],
  );
  useMouse('Timeline', mouse);
}

const mouse = [
  ['Drag', 'Select a range'],
  ['Shift drag', 'Move; also with the middle button'],
  ['Wheel', 'Zoom around the pointer'],
  ['Shift wheel', 'Move left and right'],
  ['Alt wheel', 'Zoom on bytes; also at the axis of bytes'],
  ['Click', 'Select the moment and the block, a step or an annotation'],
  ['Double click', 'Zoom in, or to a step or an annotation'],
  ['Mini-map', 'Drag the window or its edges'],
] as const;

function pickBlock(plot: Plot, which: 'largest' | 'above' | 'below'): void {
  if (!plot.pick(which) && moment.value !== null) void bringEvent(moment.value);
}

function toMatch(which: 'next' | 'previous'): void {
  const found = matches.value?.data?.[which];
  if (found !== null && found !== undefined) select(found);
}

function zoomToSelected(): void {
  if (block.value !== null) zoomToBlock();
  else if (range.value) void zoomToRange(range.value);
  else void zoomToMoment();
}

function fitBytes(plot: Plot): void {
  const d = plot.feed.detail;
  if (!d) return;
  let most = 0;
  for (let i = 0; i < d.columns; i++) most = Math.max(most, d.column[i * columnFloats]!);
  const top = d.yMin + (most * (d.yMax - d.yMin)) / d.height;
  look({ ...shown.value, low: 0, high: top * 1.05 }, 'push');
}

function zoomToBlock(): void {
  const m = meta.value.data;
  const a = block.value === null ? null : allocation(block.value).value.data;
  if (!a || !m) return;
  const time = axis.value === 'time' && m.first_time !== null;
  const begin = time ? (a.alloc_time === null ? 0 : a.alloc_time - m.first_time!) : (a.alloc_event ?? 0);
  const end = time ? (a.free_time === null ? m.last_time! - m.first_time! : a.free_time - m.first_time!) : (a.free_event ?? m.events);
  const room = Math.max(2, (end - begin) * 0.25);
  look({ ...shown.value, from: begin - room, to: end + room }, 'push');
}

function nextColouring(): void {
  const i = colourings.findIndex(([c]) => c === colouring.value);
  colourBy(colourings[(i + 1) % colourings.length]![0]);
}
