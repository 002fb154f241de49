// A canvas in units of the page on a screen of any resolution.

import { useEffect, useRef } from 'preact/hooks';
import { effect } from '@preact/signals';

export interface Area {
  width: number;
  height: number;
  ratio: number;
}

// fit gives a canvas as many pixels as it covers. Resizing clears the canvas, so
// fit does nothing if the size is right.
export function fit(canvas: HTMLCanvasElement, area: Area): void {
  const w = Math.max(1, Math.round(area.width * area.ratio));
  const h = Math.max(1, Math.round(area.height * area.ratio));
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
}

export function areaOf(box: Element): Area {
  return { width: box.clientWidth, height: box.clientHeight, ratio: devicePixelRatio || 1 };
}

// pen is the context of a cleared canvas in units of the page.
export function pen(canvas: HTMLCanvasElement, area: Area): CanvasRenderingContext2D {
  fit(canvas, area);
  const c = canvas.getContext('2d')!;
  c.setTransform(area.ratio, 0, 0, area.ratio, 0, 0);
  c.clearRect(0, 0, area.width, area.height);
  return c;
}

// Frames draws at most once a frame, however often it is asked.
export class Frames {
  private asked = 0;

  constructor(private readonly draw: () => void) {}

  ask = (): void => {
    this.asked ||= requestAnimationFrame(() => {
      this.asked = 0;
      this.draw();
    });
  };

  stop(): void {
    cancelAnimationFrame(this.asked);
    this.asked = 0;
  }
}

// useDrawing draws on a canvas that fills its parent, again whenever a signal
// that draw reads changes or the size does.
export function useDrawing(draw: (c: CanvasRenderingContext2D, area: Area) => void, inputs: readonly unknown[] = []) {
  const ref = useRef<HTMLCanvasElement>(null);
  const latest = useRef(draw);
  latest.current = draw;
  useEffect(() => {
    const canvas = ref.current!;
    const box = canvas.parentElement!;
    let dispose = () => {};
    const frames = new Frames(() => {
      dispose();
      let first = true;
      dispose = effect(() => {
        const area = areaOf(box);
        if (first && area.width > 0) latest.current(pen(canvas, area), area);
        else if (!first) frames.ask();
        first = false;
      });
    });
    const watch = new ResizeObserver(frames.ask);
    watch.observe(box);
    frames.ask();
    return () => {
      watch.disconnect();
      frames.stop();
      dispose();
    };
  }, inputs);
  return ref;
}

const tiles = new Map<string, HTMLCanvasElement>();

// pattern repeats a tile of gap units, drawn once for each name.
function pattern(
  c: CanvasRenderingContext2D,
  name: string,
  gap: number,
  ground: string | null,
  draw: (t: CanvasRenderingContext2D, n: number, ratio: number) => void,
): CanvasPattern {
  const ratio = devicePixelRatio || 1;
  const key = `${name} ${gap} ${ground} ${ratio}`;
  let tile = tiles.get(key);
  if (!tile) {
    tile = document.createElement('canvas');
    tile.width = tile.height = Math.round(gap * ratio);
    const t = tile.getContext('2d')!;
    if (ground) {
      t.fillStyle = ground;
      t.fillRect(0, 0, tile.width, tile.height);
    }
    draw(t, tile.width, ratio);
    tiles.set(key, tile);
  }
  const p = c.createPattern(tile, 'repeat')!;
  p.setTransform(new DOMMatrix().scale(1 / ratio));
  return p;
}

// hatch is a pattern of diagonal lines, to distinguish things without colour.
export function hatch(c: CanvasRenderingContext2D, colour: string, ground: string | null, gap = 6, width = 1.5): CanvasPattern {
  return pattern(c, `hatch ${colour} ${width}`, gap, ground, (t, n, ratio) => {
    t.strokeStyle = colour;
    t.lineWidth = width * ratio;
    t.beginPath();
    for (const o of [-n, 0, n]) {
      t.moveTo(o - 1, n + 1);
      t.lineTo(o + n + 1, -1);
    }
    t.stroke();
  });
}

// dots is a pattern of points.
export function dots(c: CanvasRenderingContext2D, colour: string, ground: string | null, gap = 4): CanvasPattern {
  return pattern(c, `dots ${colour}`, gap, ground, (t, _n, ratio) => {
    t.fillStyle = colour;
    t.fillRect(0, 0, Math.ceil(ratio), Math.ceil(ratio));
  });
}

// short cuts text to a width, at its end.
export function short(c: CanvasRenderingContext2D, text: string, width: number): string {
  if (c.measureText(text).width <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (c.measureText(text.slice(0, mid) + '…').width <= width) low = mid;
    else high = mid - 1;
  }
  return low > 0 ? text.slice(0, low) + '…' : '';
}
