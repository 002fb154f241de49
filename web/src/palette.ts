// Colours of allocations. Categories take those of Okabe and Ito, which people
// with any kind of colour vision tell apart (but for the yellow, which is too
// loud for large areas and is Tol's sand here), each in three strengths; amounts
// take a ramp from blue to yellow whose lightness rises evenly.

import type { Meta } from './types/view.gen';
import type { Theme } from './theme';
import { pool, stream, tickSize } from './format';

export type Colouring = 'stack' | 'size' | 'stream' | 'pool' | 'category' | 'lifetime';

export const colourings: readonly [Colouring, string][] = [
  ['stack', 'call stack'],
  ['size', 'size'],
  ['stream', 'stream'],
  ['pool', 'pool'],
  ['category', 'category'],
  ['lifetime', 'lifetime'],
];

type Rgb = readonly [number, number, number];

const hues: readonly Rgb[] = [
  [0, 114, 178],
  [230, 159, 0],
  [0, 158, 115],
  [204, 121, 167],
  [86, 180, 233],
  [213, 94, 0],
  [221, 204, 119],
];

function mix(a: Rgb, b: Rgb, part: number): Rgb {
  return [0, 1, 2].map((i) => Math.round(a[i]! + (b[i]! - a[i]!) * part)) as unknown as Rgb;
}

const white: Rgb = [255, 255, 255];
const dark: Rgb = [17, 21, 28];

function categorical(theme: Theme): Rgb[] {
  const out: Rgb[] = [];
  // A touch of the background makes large areas calm.
  const ground = theme === 'dark' ? dark : white;
  for (const part of theme === 'dark' ? [0.3, 0.55, 0.15] : [0.2, 0.48, 0.68]) {
    for (const h of hues) out.push(mix(h, ground, part));
  }
  return out;
}

const ramp: readonly Rgb[] = [
  [0, 45, 95],
  [38, 70, 109],
  [74, 92, 110],
  [106, 115, 117],
  [137, 137, 119],
  [171, 161, 112],
  [207, 188, 94],
  [246, 217, 60],
];

function along(part: number): Rgb {
  const at = Math.max(0, Math.min(1, part)) * (ramp.length - 1);
  const i = Math.min(ramp.length - 2, Math.floor(at));
  return mix(ramp[i]!, ramp[i + 1]!, at - i);
}

export function css([r, g, b]: Rgb): string {
  return `rgb(${r} ${g} ${b})`;
}

const never = 63; // colour index of a lifetime without end
const smallest = 9; // blocks are multiples of 512 bytes
const largest = 34;
const longest = 20;

const grey: Record<Theme, Rgb> = { light: [176, 182, 190], dark: [94, 102, 114] };
const nameless = 'unknown';

// indexed is the colour of an index as the server gives it, for one way of
// colouring. What has no category has no colour.
export function indexed(colouring: Colouring, theme: Theme, meta: Meta): (index: number) => Rgb {
  const many = categorical(theme);
  switch (colouring) {
    case 'category':
      return (i) => (meta.categories[i] === nameless ? grey[theme] : many[i % many.length]!);
    case 'size':
      return (i) => along((i - smallest) / (largest - smallest));
    case 'lifetime':
      return (i) => (i >= never ? mix(hues[3]!, theme === 'dark' ? dark : white, 0.1) : along(i / longest));
    default:
      return (i) => many[i % many.length]!;
  }
}

// table has the colours of the first n indices, as bytes for a texture.
export function table(colouring: Colouring, theme: Theme, meta: Meta, n: number): Uint8Array {
  const of = indexed(colouring, theme, meta);
  const out = new Uint8Array(n * 4);
  for (let i = 0; i < n; i++) {
    const [r, g, b] = of(i);
    out.set([r, g, b, 255], i * 4);
  }
  return out;
}

// cycle is after how many indices the colours repeat: an index is taken modulo it.
export function cycle(colouring: Colouring, theme: Theme): number {
  return colouring === 'size' || colouring === 'lifetime' ? 64 : categorical(theme).length;
}

// part is the colour of a part of a sum; what has no number is grey.
export function part(i: number, theme: Theme): Rgb {
  const many = categorical(theme);
  return i < 0 ? grey[theme] : many[i % many.length]!;
}

export interface Key {
  index: number;
  colour: string;
  text: string;
}

// legend says what the colours mean.
export function legend(colouring: Colouring, theme: Theme, meta: Meta): Key[] {
  const of = indexed(colouring, theme, meta);
  const key = (i: number, text: string): Key => ({ index: i, colour: css(of(i)), text });
  switch (colouring) {
    case 'stack':
      return [];
    case 'size':
      return [10, 15, 20, 25, 30, 33].map((i) => key(i, tickSize(2 ** i)));
    case 'lifetime':
      return [...[0, 5, 10, 15, 20].map((i) => key(i, `${2 ** i} events`)), key(never, 'never freed')];
    case 'stream':
      return meta.streams.map((s, i) => key(i, 'stream ' + stream(s)));
    case 'pool':
      return meta.pools.map((p, i) => key(i, 'pool ' + pool(p)));
    case 'category':
      return meta.categories.map((c, i) => key(i, c));
  }
}

// Lines of a chart differ in colour and in dashes: of two that overlap both show.
// The hues are those that have contrast as thin lines.
const lineHues = [0, 5, 2, 3, 1, 4] as const;
const dashes: readonly (readonly number[])[] = [[], [8, 3], [3, 3], [10, 3, 3, 3], [6, 6], [1, 3]];

export interface LineStyle {
  colour: string;
  dash: readonly number[];
}

export function lineStyle(i: number, theme: Theme): LineStyle {
  const hue = hues[lineHues[i % lineHues.length]!]!;
  const round = Math.floor(i / lineHues.length);
  return { colour: css(theme === 'dark' ? mix(hue, white, 0.25) : mix(hue, dark, 0.12)), dash: dashes[(i + round) % dashes.length]! };
}

// changed is the ground of something that grew (red) or shrank (blue), by how
// much of it changed: from -1 to 1.
export function changed(part: number, theme: Theme): string {
  const still: Rgb = theme === 'dark' ? [44, 51, 63] : [232, 234, 238];
  const [more, less]: [Rgb, Rgb] =
    theme === 'dark'
      ? [
          [158, 52, 44],
          [38, 92, 168],
        ]
      : [
          [240, 124, 110],
          [118, 166, 240],
        ];
  const p = Math.max(-1, Math.min(1, part));
  // Small changes are seen too.
  return p === 0 ? css(still) : css(mix(still, p > 0 ? more : less, 0.2 + 0.8 * Math.abs(p)));
}
