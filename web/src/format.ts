// Numbers as text, by the rules of internal/units: powers of two, two decimals,
// the unit being the largest in which the written number is at least 1.

const kib = 1024;
const mib = 1024 * kib;
const gib = 1024 * mib;

export function size(bytes: number): string {
  const n = Math.abs(bytes);
  const sign = bytes < 0 ? '-' : '';
  if (n < kib) return `${sign}${n} B`;
  // Numbers that would round to 1024.00 move on to the next unit.
  if (n < mib - kib / 200) return `${sign}${decimals(n, kib)} KiB`;
  if (n < gib - mib / 200) return `${sign}${decimals(n, mib)} MiB`;
  return `${sign}${decimals(n, gib)} GiB`;
}

// sizeUp writes a size that is never too small, for "at least this much".
export function sizeUp(bytes: number): string {
  if (bytes < kib) return size(bytes);
  const [unit, name] = bytes < mib - kib / 200 ? [kib, 'KiB'] : bytes < gib - mib / 200 ? [mib, 'MiB'] : [gib, 'GiB'];
  const hundredths = Math.ceil((bytes * 100) / unit); // exact: units are powers of two
  if (hundredths >= 100 * kib && unit < gib) return sizeUp((hundredths / 100) * unit);
  return `${(hundredths / 100).toFixed(2)} ${name}`;
}

// decimals writes a quotient with two digits. Halves go to the even digit as in
// Go; toFixed would round them up.
function decimals(n: number, unit: number): string {
  const hundredths = (n * 100) / unit; // exact: units are powers of two
  let whole = Math.floor(hundredths);
  const rest = hundredths - whole;
  if (rest > 0.5 || (rest === 0.5 && whole % 2 === 1)) whole++;
  return (whole / 100).toFixed(2);
}

// delta writes a difference with its sign.
export function delta(bytes: number): string {
  return bytes > 0 ? '+' + size(bytes) : size(bytes);
}

// exact is what a title says beside a rounded size.
export function exact(bytes: number): string {
  return `${count(bytes)} bytes`;
}

export function count(n: number): string {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ',');
}

export function plural(n: number, one: string, many = one + 's'): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function percent(part: number, digits = 1): string {
  return `${(part * 100).toFixed(digits)} %`;
}

export function share(part: number, whole: number): string {
  return whole > 0 ? percent(part / whole) : '-';
}

// seconds writes a moment as the commands do.
export function seconds(us: number): string {
  return `${(us / 1e6).toFixed(3)} s`;
}

// span writes a length of time in its own unit.
export function span(us: number): string {
  if (us < 1000) return `${Math.round(us)} µs`;
  if (us < 1e6) return `${(us / 1e3).toFixed(us < 1e4 ? 2 : 1)} ms`;
  if (us < 6e7) return `${(us / 1e6).toFixed(us < 1e7 ? 3 : 2)} s`;
  const s = Math.round(us / 1e6);
  const m = Math.floor(s / 60) % 60;
  return s < 3600 ? `${m} min ${s % 60} s` : `${Math.floor(s / 3600)} h ${m} min`;
}

export function address(n: number): string {
  return '0x' + n.toString(16);
}

// stream writes the handle of a stream: small ones as they are.
export function stream(handle: number): string {
  return handle < 65536 ? String(handle) : address(handle);
}

// pool writes the number of a pool; all but 0,0 are private.
export function pool(id: readonly number[] | null): string {
  if (!id) return 'not known';
  return id[0] === 0 && id[1] === 0 ? 'default' : `${id[0]},${id[1]}`;
}

// ticks are round numbers that divide a range into about n parts.
export function ticks(from: number, to: number, n: number, bases: readonly number[] = [1, 2, 5]): number[] {
  const width = to - from;
  if (!(width > 0) || n < 1) return [];
  const raw = width / n;
  let step = Math.pow(10, Math.floor(Math.log10(raw)));
  for (const f of [...bases, 10]) {
    if (f * step >= raw) {
      step *= f;
      break;
    }
  }
  return every(from, to, step);
}

export interface Tick {
  at: number;
  text: string;
}

// sizeTicks are the same in powers of two, all written in one unit: the one of
// the upper end.
export function sizeTicks(from: number, to: number, n: number): Tick[] {
  const [unit, name] = to >= gib ? [gib, 'GiB'] : to >= mib ? [mib, 'MiB'] : to >= kib ? [kib, 'KiB'] : [1, 'B'];
  const list = ticks(from / unit, to / unit, n).filter((t) => unit > 1 || t % 1 === 0);
  const step = list.length > 1 ? list[1]! - list[0]! : 1;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return list.map((t) => ({ at: t * unit, text: t === 0 ? '0' : `${t.toFixed(digits)} ${name}` }));
}

function every(from: number, to: number, step: number): number[] {
  const out: number[] = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; i++) out.push(i * step);
  return out;
}

// tickSize leaves out decimals that are zero.
export function tickSize(bytes: number): string {
  return bytes === 0 ? '0' : size(bytes).replace(/\.?0+ /, ' ');
}
