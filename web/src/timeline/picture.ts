// The answer of api/timeline: rectangles and columns in the pixels of the
// request, as little-endian words.
//
//	header   16 words: magic, version, rectangles, columns, bands, flags,
//	         then yMax, x0, x1, yMin as 64-bit floats
//	rect     6 words: col0, col1, y0, y1 as 32-bit floats, allocation, colour
//	column   5 floats: live top, bottom of the band of small allocations,
//	         reserved, pending, highest within it; then the event after which
//	         its state is

const magic = 0x41534854;
const headBytes = 64;
export const rectWords = 6;
export const columnFloats = 6;

// Bits of a rectangle's colour above its index.
export const dimmedBit = 0x80000000;
export const pendingBit = 0x40000000;
export const neverFreedBit = 0x20000000;
export const indexMask = 0x00ffffff;

export interface Picture {
  rects: number;
  words: Uint32Array; // of the rectangles
  floats: Float32Array; // the same memory
  columns: number;
  column: Float32Array;
  ends: Int32Array; // the same memory: of a column the last word
  x0: number;
  x1: number;
  yMin: number;
  yMax: number;
  height: number; // pixels from yMin to yMax
}

export function decode(data: ArrayBuffer, height: number): Picture {
  const head = new DataView(data);
  const u32 = (word: number) => head.getUint32(word * 4, true);
  if (data.byteLength < headBytes || u32(0) !== magic || u32(1) !== 2) {
    throw new Error('the timeline came in a form that this page does not know: reload the page');
  }
  const rects = u32(2);
  const columns = u32(3);
  const end = headBytes + rects * rectWords * 4;
  if (data.byteLength < end + columns * columnFloats * 4) throw new Error('the timeline broke off on its way: reload the page');
  return {
    rects,
    columns,
    words: new Uint32Array(data, headBytes, rects * rectWords),
    floats: new Float32Array(data, headBytes, rects * rectWords),
    column: new Float32Array(data, end, columns * columnFloats),
    ends: new Int32Array(data, end, columns * columnFloats),
    yMax: head.getFloat64(24, true),
    x0: head.getFloat64(32, true),
    x1: head.getFloat64(40, true),
    yMin: head.getFloat64(48, true),
    height,
  };
}

// Window is what the plot shows: x from left to right, bytes from bottom to top.
export interface Window {
  from: number;
  to: number;
  low: number;
  high: number;
}

// Mapping takes the pixels of a picture to those of the plot: x' = x * sx + ox,
// y' = y * sy + oy, both up from the lower left corner.
export interface Mapping {
  sx: number;
  ox: number;
  sy: number;
  oy: number;
}

export function mapping(p: Picture, w: Window, width: number, height: number): Mapping {
  const kx = width / (w.to - w.from);
  const ky = height / (w.high - w.low);
  return {
    sx: ((p.x1 - p.x0) / Math.max(1, p.columns)) * kx,
    ox: (p.x0 - w.from) * kx,
    sy: ((p.yMax - p.yMin) / p.height) * ky,
    oy: (p.yMin - w.low) * ky,
  };
}

// hit is the rectangle at a point of the plot, or the nearest one of that
// column within reach pixels; -1 if there is none.
export function hit(p: Picture, m: Mapping, x: number, y: number, reach: number): number {
  const col = (x - m.ox) / m.sx;
  const at = (y - m.oy) / m.sy;
  const slack = reach / m.sy;
  let best = -1;
  let distance = slack;
  const f = p.floats;
  for (let i = 0, o = 0; i < p.rects; i++, o += rectWords) {
    if (f[o]! > col || f[o + 1]! <= col) continue;
    const low = f[o + 2]!;
    const high = f[o + 3]!;
    if (low <= at && at < high) return i;
    const d = at < low ? low - at : at - high;
    if (d <= distance) {
      distance = d;
      best = i;
    }
  }
  return best;
}

// columnAt is the index of a column at a point of the plot, -1 outside.
export function columnAt(p: Picture, m: Mapping, x: number): number {
  const c = Math.floor((x - m.ox) / m.sx);
  return c >= 0 && c < p.columns ? c : -1;
}

// eventOf is the event after which the state of a column is.
export function eventOf(p: Picture, column: number): number {
  return p.ends[column * columnFloats + 5]!;
}

// Standing is a block that is drawn in a column.
export interface Standing {
  alloc: number;
  y: number;
  height: number;
}

// standing lists the blocks of a column, from the bottom.
export function standing(p: Picture, column: number): Standing[] {
  const found: Standing[] = [];
  for (let i = 0, o = 0; i < p.rects; i++, o += rectWords) {
    if (p.floats[o]! > column || p.floats[o + 1]! <= column) continue;
    found.push({ alloc: p.words[o + 4]!, y: p.floats[o + 2]!, height: p.floats[o + 3]! - p.floats[o + 2]! });
  }
  return found.sort((a, b) => a.y - b.y);
}

// Layer is a picture, where it goes, and the stretch of the plot that it may
// cover, both in pixels from the plot's lower left corner.
export interface Layer {
  picture: Picture;
  map: Mapping;
  left: number;
  right: number;
}
