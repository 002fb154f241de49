// The plot of the timeline: two canvases, one for rectangles and one for what
// lies over them.

import { effect } from '@preact/signals';
import { areaOf, fit, Frames, pen, type Area } from '../draw/canvas';
import { css, indexed, table, tableSize } from '../palette';
import { block, event, put, range, run } from '../route';
import { meta, moment } from '../state';
import { ink, theme } from '../theme';
import { Feed } from './feed';
import { drawGrid, drawLit, drawMarks, drawOverlay, plotBox, type Sight } from './overlay';
import { painter, type Painter, type Tints } from './paint';
import { eventOf, mapping, standing, type Layer, type Standing, type Window } from './picture';
import { Pointer } from './pointer';
import { asked, axis, colouring, filter, fits, fitted, lit, moving, only, plain, shown, what, whole, zoomX } from './view';

const patience = 32; // milliseconds, two frames

export class Plot {
  readonly pointer: Pointer;
  readonly feed: Feed;
  readonly frames: Frames;
  private paint: Painter;
  private readonly stops: (() => void)[] = [];
  private area: Area = { width: 0, height: 0, ratio: 1 };
  private tintsFor = '';
  private closed = false;
  private painted: { layers: readonly Layer[]; tints: Tints; area: Area; by: Painter } | null = null;
  private soon = 0;
  private measured = 0;
  private tints: Tints | null = null;

  constructor(
    private readonly box: HTMLElement,
    rects: HTMLCanvasElement,
    private readonly over: HTMLCanvasElement,
  ) {
    this.paint = painter(rects, plain.peek());
    rects.addEventListener('webglcontextlost', () => {
      if (this.closed) return;
      this.paint = painter(this.paint.canvas, false);
      this.frames.ask();
    });
    this.frames = new Frames(() => this.draw());
    this.pointer = new Pointer(box, () => this.sight(), this.frames.ask);
    this.feed = new Feed(() => {
      clearTimeout(this.soon);
      if (fits.peek() && this.feed.detail && this.feed.matches) fitted.value = this.feed.detail.yMax;
      this.frames.ask();
    });
    const watch = new ResizeObserver(() => {
      this.area = areaOf(box);
      this.ask();
      this.frames.ask();
    });
    watch.observe(box);
    this.stops.push(() => watch.disconnect());
    this.stops.push(effect(() => this.ask()));
    this.stops.push(
      effect(() => {
        void [ink.value, block.value, event.value, range.value, lit.value, asked.value, this.pointer.hover.value];
        this.frames.ask();
      }),
    );
    this.stops.push(effect(() => this.moved(shown.value)));
    this.stops.push(this.pointer.listen());
  }

  close(): void {
    this.closed = true;
    for (const stop of this.stops) stop();
    clearTimeout(this.soon);
    this.frames.stop();
    this.feed.cancel();
    this.paint.release();
  }

  // moved shows another window. It moves and stretches the old picture, unless
  // the new one is expected within two frames.
  private moved(_: Window): void {
    clearTimeout(this.soon);
    if (this.feed.pace > patience) this.frames.ask();
    else this.soon = setTimeout(this.frames.ask, patience);
  }

  get kind(): string {
    return this.paint.kind;
  }

  private ask(): void {
    const m = meta.value.data;
    const id = run.value;
    const q = {
      window: fits.value ? { ...shown.value, low: 0, high: 0 } : shown.value,
      whole: whole.value,
      fits: fits.value,
      axis: axis.value,
      what: what.value,
      colour: colouring.value,
      filter: { ...filter.value, ...(only.value ? { only: '1' } : {}), ...(moving.value ? { moving: '1' } : {}) },
    };
    if (!m || id === null || this.area.width === 0 || m.events === 0) return;
    const b = plotBox(this.area.width, this.area.height, m);
    // More columns than that show nothing more.
    const ratio = Math.min(this.area.ratio, 3000 / b.width);
    this.feed.want({ ...q, run: id, width: Math.max(1, Math.round(b.width * ratio)), height: Math.max(1, Math.round(b.height * ratio)) });
  }

  // sight gathers what is drawn now.
  sight(): Sight | null {
    const m = meta.peek().data;
    if (!m || this.area.width === 0) return null;
    const box = plotBox(this.area.width, this.area.height, m);
    const s = shown.peek();
    const layers: Layer[] = [];
    const { detail, base, curve } = this.feed;
    const w = box.width;
    if (detail) {
      const map = mapping(detail, s, w, box.height);
      const left = Math.max(0, Math.min(w, map.ox));
      const right = Math.max(left, Math.min(w, map.ox + detail.columns * map.sx));
      if (base && base !== detail) {
        const under = mapping(base, s, w, box.height);
        layers.push({ picture: base, map: under, left: 0, right: left }, { picture: base, map: under, left: right, right: w });
      }
      layers.push({ picture: detail, map, left, right });
    }
    return {
      box,
      scale: s,
      layers: layers.filter((l) => l.right > l.left),
      curve,
      blocks: what.peek() === 'blocks',
      all: !only.peek() && !moving.peek(),
      asked: asked.peek(),
      curveEnd: this.feed.curveEnd,
      meta: m,
      ink: ink.peek(),
      axis: axis.peek(),
      xOfEvent: (e) => this.xOfEvent(e),
    };
  }

  // On the axis of time an event lies where the columns of the curve say.
  private xOfEvent(e: number): number | null {
    if (axis.peek() === 'event') return e;
    const c = this.feed.curve;
    if (!c || c.event.length === 0) return null;
    let low = 0;
    let high = c.event.length - 1;
    if (e > c.event[high]!) return this.feed.curveEnd + (e > c.event[high]! + 1 ? 1 : 0);
    while (low < high) {
      const mid = (low + high) >> 1;
      if (c.event[mid]! < e) low = mid + 1;
      else high = mid;
    }
    return low === 0 && e < c.event[0]! - 1 ? c.x[0]! - 1 : c.x[low]!;
  }

  // zoom zooms around the moment if it is selected and in view, else around the
  // pointer.
  zoom(factor: number): void {
    zoomX(factor, this.focus());
  }

  private focus(): number {
    const v = shown.peek();
    const part = (x: number) => (x - v.from) / (v.to - v.from);
    const e = event.peek();
    const x = e === null ? null : this.xOfEvent(e + (axis.peek() === 'event' ? 0.5 : 0));
    if (x !== null && part(x) >= 0 && part(x) <= 1) return part(x);
    const s = this.sight();
    const at = this.pointer.at && s ? (this.pointer.at.x - s.box.left) / s.box.width : 0.5;
    return at >= 0 && at <= 1 ? at : 0.5;
  }

  // standing lists the blocks that are drawn at the moment, from the bottom.
  private standing(): Standing[] {
    const p = this.feed.detail;
    const e = moment.peek();
    if (!p || e === null) return [];
    let column = 0;
    while (column < p.columns && eventOf(p, column) < e) column++;
    const x = this.xOfEvent(e + (axis.peek() === 'event' ? 0.5 : 0));
    return column === p.columns || x === null || x < p.x0 ? [] : standing(p, column);
  }

  // pick selects a block that is drawn at the moment: the largest, or the one
  // above or below the selected one. It reports whether there is one.
  pick(which: 'largest' | 'above' | 'below'): boolean {
    const all = what.peek() === 'blocks' ? this.standing() : [];
    const at = all.findIndex((b) => b.alloc === block.peek());
    const largest = all.reduce((best, b, i) => (b.height > (all[best]?.height ?? -1) ? i : best), -1);
    const i = which === 'largest' || at < 0 ? largest : at + (which === 'above' ? 1 : -1);
    const found = all[i];
    if (found) put({ alloc: found.alloc, event: moment.peek() }, 'push');
    return all.length > 0;
  }

  private draw(): void {
    const s = this.sight();
    if (!s) return;
    const canvas = this.paint.canvas;
    const { box: b } = s;
    canvas.style.left = `${b.left}px`;
    canvas.style.top = `${b.top}px`;
    canvas.style.width = `${b.width}px`;
    canvas.style.height = `${b.height}px`;
    const tints = this.colours();
    if (
      !this.painted ||
      !sameLayers(this.painted.layers, s.layers) ||
      this.painted.tints !== tints ||
      this.painted.area !== this.area ||
      this.painted.by !== this.paint
    ) {
      // Nothing else changes the rectangles, and in software they take longest.
      fit(canvas, { width: b.width, height: b.height, ratio: this.area.ratio });
      this.paint.paint(s.layers, tints, b.width, b.height, this.area.ratio);
      this.painted = { layers: s.layers, tints, area: this.area, by: this.paint };
    }
    const c = pen(this.over, this.area);
    drawGrid(c, s);
    const bright = lit.peek();
    if (bright !== null) drawLit(c, s, bright, css(indexed(colouring.peek(), theme.peek(), s.meta)(bright)));
    drawOverlay(c, s);
    const h = this.pointer.hover.peek();
    drawMarks(c, s, {
      moment: event.peek(),
      range: range.peek(),
      block: s.blocks ? block.peek() : null,
      hover: h?.alloc ?? null,
      pointer: h ? h.x : null,
      drag: this.pointer.selecting(s),
    });
    this.box.dataset['drawn'] = String(this.feed.detail?.rects ?? 0);
    this.measure();
  }

  // measure enters into the browser's timeline how long an answer took, from the
  // question to the frame after the one that shows it.
  private measure(): void {
    const start = this.feed.answered;
    if (start === null) return;
    this.feed.answered = null;
    requestAnimationFrame(() => {
      if (++this.measured % 200 === 0) performance.clearMeasures('timeline');
      performance.measure('timeline', { start, end: performance.now() });
    });
  }

  private colours(): Tints {
    const key = theme.peek() + colouring.peek();
    if (this.tints && this.tintsFor === key) return this.tints;
    this.tintsFor = key;
    this.tints = {
      table: table(colouring.peek(), theme.peek(), meta.peek().data!),
      cycle: tableSize,
      ground: rgb(ink.peek().back),
      pending: rgb(ink.peek().pending),
    };
    return this.tints;
  }

}

function sameLayers(a: readonly Layer[], b: readonly Layer[]): boolean {
  const same = (l: Layer, m: Layer) =>
    l.picture === m.picture &&
    l.left === m.left &&
    l.right === m.right &&
    l.map.sx === m.map.sx &&
    l.map.ox === m.map.ox &&
    l.map.sy === m.map.sy &&
    l.map.oy === m.map.oy;
  return a.length === b.length && a.every((l, i) => same(l, b[i]!));
}

// rgb reads a colour of the style sheet, which are written #rrggbb.
function rgb(hex: string): [number, number, number] {
  const n = parseInt(hex.slice(1), 16);
  return [(n >> 16) & 255, (n >> 8) & 255, n & 255];
}
