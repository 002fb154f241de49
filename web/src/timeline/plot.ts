// The plot of the timeline: two canvases, one for rectangles and one for what
// lies over them, and the pointer.

import { effect, signal } from '@preact/signals';
import { areaOf, fit, Frames, pen, type Area } from '../draw/canvas';
import { css, indexed, table, tableSize } from '../palette';
import { block, event, put, range, run } from '../route';
import { meta, moment, selectRange } from '../state';
import { ink, theme } from '../theme';
import { Feed } from './feed';
import { bars, drawGrid, drawLit, drawMarks, drawOverlay, plotBox, strip, type Bar, type Sight } from './overlay';
import { painter, type Painter, type Tints } from './paint';
import { columnAt, columnFloats, eventOf, hit, mapping, pendingBit, rectWords, type Layer, type Window } from './picture';
import {
  asked,
  axis,
  colouring,
  filter,
  fits,
  fitted,
  lit,
  look,
  moving,
  only,
  panBy,
  plain,
  selectBetween,
  shown,
  what,
  whole,
  zoomToRange,
  zoomX,
  zoomY,
} from './view';

// Hover is what is under the pointer.
export interface Hover {
  x: number; // in the plot's box, for the tooltip
  y: number;
  event: number; // after which what is drawn there is so
  events: number; // in this column of pixels
  alloc: number | null; // of a segment the event that made it
  pending: boolean;
  band: number | null; // bytes of small allocations, if the pointer is on their band
  live: number;
  highest: number; // of those events
  reserved: number;
  waiting: number;
}

const reach = 3; // pixels within which the nearest rectangle counts
const clickSlop = 4;
const patience = 32; // milliseconds, two frames

export class Plot {
  readonly hover = signal<Hover | null>(null);
  readonly bar = signal<{ bar: Bar; x: number; y: number } | null>(null); // under the pointer
  readonly feed: Feed;
  readonly frames: Frames;
  private paint: Painter;
  private readonly stops: (() => void)[] = [];
  private area: Area = { width: 0, height: 0, ratio: 1 };
  private pointer: { x: number; y: number } | null = null;
  private drag: { x: number; y: number; from: number; to: number; low: number; high: number; pan: boolean; moved: boolean } | null =
    null;
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
        void [ink.value, block.value, event.value, range.value, lit.value, asked.value, this.hover.value];
        this.frames.ask();
      }),
    );
    this.stops.push(effect(() => this.moved(shown.value)));
    this.listen();
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
    const at = this.pointer && s ? (this.pointer.x - s.box.left) / s.box.width : 0.5;
    return at >= 0 && at <= 1 ? at : 0.5;
  }

  // standing lists the blocks that are drawn at the moment, from the bottom.
  private standing(): { alloc: number; height: number }[] {
    const p = this.feed.detail;
    const e = moment.peek();
    if (!p || e === null) return [];
    let column = 0;
    while (column < p.columns && eventOf(p, column) < e) column++;
    const x = this.xOfEvent(e + (axis.peek() === 'event' ? 0.5 : 0));
    if (column === p.columns || x === null || x < p.x0) return [];
    const found: { alloc: number; height: number; y: number }[] = [];
    for (let i = 0, o = 0; i < p.rects; i++, o += rectWords) {
      if (p.floats[o]! > column || p.floats[o + 1]! <= column) continue;
      found.push({ alloc: p.words[o + 4]!, height: p.floats[o + 3]! - p.floats[o + 2]!, y: p.floats[o + 2]! });
    }
    return found.sort((a, b) => a.y - b.y);
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
    const h = this.hover.peek();
    const d = this.drag;
    drawMarks(c, s, {
      moment: event.peek(),
      range: range.peek(),
      block: s.blocks ? block.peek() : null,
      hover: h?.alloc ?? null,
      pointer: h ? h.x : null,
      drag: d && !d.pan && d.moved && this.pointer ? [d.x, this.within(this.pointer.x, b)] : null,
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

  private listen(): void {
    const b = this.box;
    const on = <K extends keyof HTMLElementEventMap>(
      name: K,
      run: (e: HTMLElementEventMap[K]) => void,
      options?: AddEventListenerOptions,
    ) => {
      b.addEventListener(name, run, options);
      this.stops.push(() => b.removeEventListener(name, run));
    };
    on('wheel', (e) => this.wheel(e), { passive: false });
    on('pointerdown', (e) => this.down(e));
    on('pointermove', (e) => this.move(e));
    on('pointerup', (e) => this.up(e));
    on('pointercancel', () => (this.drag = null));
    on('pointerleave', () => {
      this.pointer = null;
      this.bar.value = null;
      this.hover.value = null;
    });
    on('dblclick', (e) => {
      const p = this.local(e);
      const bar = this.barAt(p.x, p.y);
      if (bar) void zoomToRange(bar.range);
      else if (p.inside) zoomX(0.25, p.partX);
    });
  }

  private within(x: number, b: { left: number; width: number }): number {
    return Math.max(b.left, Math.min(b.left + b.width, x));
  }

  // barAt is the step or annotation at a point.
  private barAt(x: number, y: number): Bar | null {
    const s = this.sight();
    if (!s || y < s.box.top + s.box.height) return null;
    const found = bars(s).filter((b) => x >= b.x0 - 1 && x <= b.x1 + 1 && y >= b.y && y < b.y + strip);
    return found.find((b) => x >= b.x0 && x < b.x1) ?? found[0] ?? null;
  }

  private local(e: MouseEvent) {
    const r = this.box.getBoundingClientRect();
    const x = e.clientX - r.left;
    const y = e.clientY - r.top;
    const b = plotBox(this.area.width, this.area.height, meta.peek().data!);
    const partX = (x - b.left) / b.width;
    const partY = 1 - (y - b.top) / b.height;
    return { x, y, b, partX, partY, inside: partX >= 0 && partX <= 1 && partY >= 0 && partY <= 1 };
  }

  private wheel(e: WheelEvent): void {
    if (!meta.peek().data || e.defaultPrevented) return;
    const p = this.local(e);
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 33 : 1;
    const across = e.deltaX * unit;
    const down = e.deltaY * unit;
    if (e.shiftKey || Math.abs(across) > Math.abs(down)) panBy((Math.abs(across) > Math.abs(down) ? across : down) / p.b.width);
    else if (e.altKey || p.partX < 0) zoomY(Math.exp(down * 0.002), Math.max(0, Math.min(1, p.partY)));
    else zoomX(Math.exp(down * 0.002), Math.max(0, Math.min(1, p.partX)));
    this.pointAt(p.x, p.y);
  }

  private down(e: PointerEvent): void {
    if (e.button > 1 || !meta.peek().data) return;
    const p = this.local(e);
    const bar = this.barAt(p.x, p.y);
    if (bar) selectRange(bar.range);
    if (!p.inside) return;
    if (e.button === 1) e.preventDefault();
    this.box.setPointerCapture(e.pointerId);
    this.drag = { x: p.x, y: p.y, ...shown.peek(), pan: e.shiftKey || e.button === 1, moved: false };
  }

  private move(e: PointerEvent): void {
    if (!meta.peek().data) return;
    const p = this.local(e);
    this.pointer = { x: p.x, y: p.y };
    const d = this.drag;
    if (!d) {
      const bar = this.barAt(p.x, p.y);
      this.bar.value = bar && { bar, x: p.x, y: p.y };
      this.box.classList.toggle('on-bar', bar !== null);
      this.pointAt(p.x, p.y);
      return;
    }
    if (!d.moved && Math.hypot(p.x - d.x, p.y - d.y) < clickSlop) return;
    d.moved = true;
    this.hover.value = null;
    if (!d.pan) this.frames.ask();
    else {
      const dx = ((d.x - p.x) / p.b.width) * (d.to - d.from);
      const dy = ((p.y - d.y) / p.b.height) * (d.high - d.low);
      look({ from: d.from + dx, to: d.to + dx, low: d.low + dy, high: d.high + dy });
    }
  }

  private up(e: PointerEvent): void {
    const d = this.drag;
    this.drag = null;
    if (!d) return;
    const p = this.local(e);
    if (!d.pan && d.moved) {
      const s = shown.peek();
      const at = (x: number) => s.from + ((this.within(x, p.b) - p.b.left) / p.b.width) * (s.to - s.from);
      void selectBetween(at(d.x), at(p.x));
    } else if (!d.moved && !d.pan) {
      this.pointAt(p.x, p.y);
      const h = this.hover.peek();
      const alloc = what.peek() === 'blocks' ? (h?.alloc ?? block.peek()) : block.peek();
      if (h) put({ event: h.event, alloc }, 'push');
    }
    this.frames.ask();
  }

  private pointAt(x: number, y: number): void {
    const s = this.sight();
    if (!s) return;
    const { box: b } = s;
    if (x < b.left || x > b.left + b.width || y < b.top || y > b.top + b.height) {
      this.hover.value = null;
      return;
    }
    const px = x - b.left;
    const py = b.top + b.height - y;
    const l = s.layers.find((l) => px >= l.left && px < l.right);
    const column = l ? columnAt(l.picture, l.map, px) : -1;
    if (!l || column < 0) {
      this.hover.value = null;
      return;
    }
    const p = l.picture;
    const before = column > 0 ? eventOf(p, column - 1) : axis.peek() === 'event' ? Math.ceil(p.x0) - 1 : eventOf(p, 0) - 1;
    const perPixel = (p.yMax - p.yMin) / p.height;
    const o = column * columnFloats;
    const bytes = (i: number) => p.yMin + p.column[o + i]! * perPixel;
    const inPicture = (py - l.map.oy) / l.map.sy;
    const onBand = inPicture >= p.column[o + 1]! && inPicture < p.column[o]!;
    const found = onBand || inPicture > p.column[o]! + reach / l.map.sy ? -1 : hit(p, l.map, px, py, reach);
    this.hover.value = {
      x,
      y,
      event: eventOf(p, column),
      events: Math.max(1, eventOf(p, column) - before),
      alloc: found >= 0 ? p.words[found * rectWords + 4]! : null,
      pending: found >= 0 && (p.words[found * rectWords + 5]! & pendingBit) !== 0,
      band: onBand ? (p.column[o]! - p.column[o + 1]!) * perPixel : null,
      live: bytes(0),
      highest: bytes(4),
      reserved: bytes(2),
      waiting: p.column[o + 3]! * perPixel,
    };
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
