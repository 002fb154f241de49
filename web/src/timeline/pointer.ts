// The pointer on the timeline: what is under it, and what the mouse does.

import { signal } from '@preact/signals';
import { block, put } from '../route';
import { selectRange } from '../state';
import { bars, strip, type Bar, type Sight } from './overlay';
import { columnAt, columnFloats, eventOf, hit, pendingBit, rectWords, type Window } from './picture';
import { axis, look, panBy, selectBetween, shown, what, zoomToRange, zoomX, zoomY } from './view';

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

interface Drag extends Window {
  x: number;
  y: number;
  pan: boolean;
  moved: boolean;
}

export class Pointer {
  readonly hover = signal<Hover | null>(null);
  readonly bar = signal<{ bar: Bar; x: number; y: number } | null>(null);
  at: { x: number; y: number } | null = null;
  private drag: Drag | null = null;

  constructor(
    private readonly box: HTMLElement,
    private readonly sight: () => Sight | null,
    private readonly redraw: () => void,
  ) {}

  // selecting is the stretch of pixels that a drag is about to select.
  selecting(s: Sight): [number, number] | null {
    const d = this.drag;
    return d && !d.pan && d.moved && this.at ? [d.x, within(this.at.x, s.box)] : null;
  }

  // listen takes the events of the box and returns what lets go of them.
  listen(): () => void {
    const b = this.box;
    const stops: (() => void)[] = [];
    const on = <K extends keyof HTMLElementEventMap>(
      name: K,
      run: (e: HTMLElementEventMap[K]) => void,
      options?: AddEventListenerOptions,
    ) => {
      b.addEventListener(name, run, options);
      stops.push(() => b.removeEventListener(name, run));
    };
    on('wheel', (e) => this.wheel(e), { passive: false });
    on('pointerdown', (e) => this.down(e));
    on('pointermove', (e) => this.move(e));
    on('pointerup', (e) => this.up(e));
    on('pointercancel', () => (this.drag = null));
    on('pointerleave', () => {
      this.at = null;
      this.bar.value = null;
      this.hover.value = null;
    });
    on('dblclick', (e) => {
      const p = this.local(e);
      const bar = this.barAt(p.x, p.y);
      if (bar) void zoomToRange(bar.range);
      else if (p.inside) zoomX(0.25, p.partX);
    });
    return () => stops.forEach((stop) => stop());
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
    const b = this.sight()!.box;
    const partX = (x - b.left) / b.width;
    const partY = 1 - (y - b.top) / b.height;
    return { x, y, b, partX, partY, inside: partX >= 0 && partX <= 1 && partY >= 0 && partY <= 1 };
  }

  private wheel(e: WheelEvent): void {
    if (!this.sight() || e.defaultPrevented) return;
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
    if (e.button > 1 || !this.sight()) return;
    const p = this.local(e);
    const bar = this.barAt(p.x, p.y);
    if (bar) selectRange(bar.range);
    if (!p.inside) return;
    if (e.button === 1) e.preventDefault();
    this.box.setPointerCapture(e.pointerId);
    this.drag = { x: p.x, y: p.y, ...shown.peek(), pan: e.shiftKey || e.button === 1, moved: false };
  }

  private move(e: PointerEvent): void {
    if (!this.sight()) return;
    const p = this.local(e);
    this.at = { x: p.x, y: p.y };
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
    if (!d.pan) this.redraw();
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
      const at = (x: number) => s.from + ((within(x, p.b) - p.b.left) / p.b.width) * (s.to - s.from);
      void selectBetween(at(d.x), at(p.x));
    } else if (!d.moved && !d.pan) {
      this.pointAt(p.x, p.y);
      const h = this.hover.peek();
      const alloc = what.peek() === 'blocks' ? (h?.alloc ?? block.peek()) : block.peek();
      if (h) put({ event: h.event, alloc }, 'push');
    }
    this.redraw();
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

function within(x: number, b: { left: number; width: number }): number {
  return Math.max(b.left, Math.min(b.left + b.width, x));
}
