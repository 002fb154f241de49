// Paints rectangles, with WebGL2 where there is one, else on a plain canvas.

import { dimmedBit, indexMask, pendingBit, rectWords, type Layer, type Picture } from './picture';

export interface Tints {
  table: Uint8Array; // four bytes for each index
  cycle: number;
  ground: readonly [number, number, number];
  pending: readonly [number, number, number];
}

export interface Painter {
  readonly kind: 'webgl2' | 'canvas';
  readonly canvas: HTMLCanvasElement;
  paint(layers: readonly Layer[], tints: Tints, width: number, height: number, ratio: number): void;
  release(): void;
}

const perRow = 682; // rectangles in a row of the texture, three texels each
const texels = 3;

// The vertices of a rectangle are made from its number alone (vertex pulling):
// there is no vertex buffer, only the answer's own bytes as a texture.
const vertexShader = `#version 300 es
precision highp float;
precision highp usampler2D;
uniform usampler2D rects;
uniform sampler2D tints;
uniform vec4 map;
uniform vec2 view;
uniform uint cycle;
flat out vec4 box;
flat out vec3 tint;
flat out uint flags;
void main() {
  int i = gl_VertexID / 6, c = gl_VertexID % 6;
  ivec2 t = ivec2((i % ${perRow}) * ${texels}, i / ${perRow});
  vec2 xs = uintBitsToFloat(texelFetch(rects, t, 0).xy) * map.x + map.y;
  vec2 ys = uintBitsToFloat(texelFetch(rects, t + ivec2(1, 0), 0).xy) * map.z + map.w;
  uint colour = texelFetch(rects, t + ivec2(2, 0), 0).y;
  box = vec4(xs.x, ys.x, xs.y, ys.y);
  flags = colour >> 24;
  tint = texelFetch(tints, ivec2(int((colour & ${indexMask}u) % cycle), 0), 0).rgb;
  bool right = c == 1 || c == 2 || c == 4, top = c == 2 || c == 4 || c == 5;
  gl_Position = vec4(vec2(right ? box.z : box.x, top ? box.w : box.y) / view * 2.0 - 1.0, 0.0, 1.0);
}`;

const fragmentShader = `#version 300 es
precision highp float;
uniform vec3 ground;
uniform vec3 waiting;
uniform float ratio;
flat in vec4 box;
flat in vec3 tint;
flat in uint flags;
out vec4 result;
void main() {
  vec3 c = tint;
  vec2 p = gl_FragCoord.xy;
  if ((flags & 64u) != 0u) c = mod(p.x + p.y, 7.0 * ratio) < 2.5 * ratio ? waiting : mix(c, ground, 0.55);
  vec2 size = box.zw - box.xy;
  float edge = min(p.y - box.y, p.x - box.x);
  if (min(size.x, size.y) > 5.0 * ratio && edge < ratio) c = mix(c, ground, 0.4);
  if ((flags & 128u) != 0u) c = mix(c, ground, 0.82);
  result = vec4(c, 1.0);
}`;

class GL implements Painter {
  readonly kind = 'webgl2';
  private readonly program: WebGLProgram;
  private readonly at: Record<string, WebGLUniformLocation | null> = {};
  private readonly textures = new Map<Picture, WebGLTexture>();
  private readonly tints: WebGLTexture;
  private shown: Uint8Array | null = null;

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly gl: WebGL2RenderingContext,
  ) {
    this.program = link(gl);
    for (const name of ['rects', 'tints', 'map', 'view', 'cycle', 'ground', 'waiting', 'ratio']) {
      this.at[name] = gl.getUniformLocation(this.program, name);
    }
    this.tints = gl.createTexture()!;
    gl.bindVertexArray(gl.createVertexArray());
  }

  paint(layers: readonly Layer[], t: Tints, width: number, height: number, ratio: number): void {
    const gl = this.gl;
    if (gl.isContextLost()) return;
    const w = gl.drawingBufferWidth;
    const h = gl.drawingBufferHeight;
    gl.viewport(0, 0, w, h);
    gl.disable(gl.SCISSOR_TEST);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.useProgram(this.program);
    this.keepOnly(layers);
    this.setTints(t);
    gl.uniform1i(this.at['rects']!, 0);
    gl.uniform1i(this.at['tints']!, 1);
    gl.uniform2f(this.at['view']!, width * ratio, height * ratio);
    gl.uniform1ui(this.at['cycle']!, t.cycle);
    gl.uniform3f(this.at['ground']!, t.ground[0] / 255, t.ground[1] / 255, t.ground[2] / 255);
    gl.uniform3f(this.at['waiting']!, t.pending[0] / 255, t.pending[1] / 255, t.pending[2] / 255);
    gl.uniform1f(this.at['ratio']!, ratio);
    gl.enable(gl.SCISSOR_TEST);
    for (const l of layers) {
      if (l.picture.rects === 0 || l.right <= l.left) continue;
      gl.activeTexture(gl.TEXTURE0);
      gl.bindTexture(gl.TEXTURE_2D, this.texture(l.picture));
      const m = l.map;
      gl.uniform4f(this.at['map']!, m.sx * ratio, m.ox * ratio, m.sy * ratio, m.oy * ratio);
      const left = Math.round(l.left * ratio);
      gl.scissor(left, 0, Math.max(0, Math.round(l.right * ratio) - left), h);
      gl.drawArrays(gl.TRIANGLES, 0, l.picture.rects * 6);
    }
  }

  // The bytes go up as they came: whole rows, then the rest of the last one.
  private texture(p: Picture): WebGLTexture {
    const kept = this.textures.get(p);
    if (kept) return kept;
    const gl = this.gl;
    const t = gl.createTexture()!;
    this.textures.set(p, t);
    const whole = Math.floor(p.rects / perRow);
    const rest = p.rects - whole * perRow;
    gl.bindTexture(gl.TEXTURE_2D, t);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RG32UI, perRow * texels, whole + (rest ? 1 : 0));
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    const rows = perRow * rectWords;
    if (whole)
      gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, perRow * texels, whole, gl.RG_INTEGER, gl.UNSIGNED_INT, p.words.subarray(0, whole * rows));
    if (rest)
      gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, whole, rest * texels, 1, gl.RG_INTEGER, gl.UNSIGNED_INT, p.words.subarray(whole * rows));
    return t;
  }

  private keepOnly(layers: readonly Layer[]): void {
    for (const [p, t] of this.textures) {
      if (layers.some((l) => l.picture === p)) continue;
      this.gl.deleteTexture(t);
      this.textures.delete(p);
    }
  }

  private setTints(t: Tints): void {
    const gl = this.gl;
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, this.tints);
    if (this.shown === t.table) return;
    this.shown = t.table;
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, t.table.length / 4, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, t.table);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  }

  release(): void {
    for (const t of this.textures.values()) this.gl.deleteTexture(t);
    this.textures.clear();
    this.gl.getExtension('WEBGL_lose_context')?.loseContext();
  }
}

function link(gl: WebGL2RenderingContext): WebGLProgram {
  const program = gl.createProgram()!;
  for (const [kind, source] of [
    [gl.VERTEX_SHADER, vertexShader],
    [gl.FRAGMENT_SHADER, fragmentShader],
  ] as const) {
    const s = gl.createShader(kind)!;
    gl.shaderSource(s, source);
    gl.compileShader(s);
    gl.attachShader(program, s);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program) ?? 'shader');
  return program;
}

class Plain implements Painter {
  readonly kind = 'canvas';

  private readonly c: CanvasRenderingContext2D;

  constructor(readonly canvas: HTMLCanvasElement) {
    this.c = canvas.getContext('2d')!;
  }

  paint(layers: readonly Layer[], t: Tints, width: number, height: number, ratio: number): void {
    const c = this.c;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    const inks: string[] = [];
    for (let i = 0; i < t.table.length; i += 4) inks.push(`rgb(${t.table[i]} ${t.table[i + 1]} ${t.table[i + 2]})`);
    const waiting = `rgb(${t.pending.join(' ')})`;
    for (const { picture: p, map: m, left, right } of layers) {
      if (right <= left) continue;
      c.save();
      c.beginPath();
      c.rect(left, 0, right - left, height);
      c.clip();
      for (let i = 0, o = 0; i < p.rects; i++, o += rectWords) {
        const x0 = p.floats[o]! * m.sx + m.ox;
        const x1 = p.floats[o + 1]! * m.sx + m.ox;
        if (x1 < left || x0 > right) continue;
        const y1 = height - (p.floats[o + 3]! * m.sy + m.oy);
        const y0 = height - (p.floats[o + 2]! * m.sy + m.oy);
        const colour = p.words[o + 5]!;
        c.globalAlpha = colour & dimmedBit ? 0.18 : 1;
        c.fillStyle = colour & pendingBit ? waiting : inks[(colour & indexMask) % t.cycle]!;
        c.fillRect(x0, y1, x1 - x0, y0 - y1);
      }
      c.restore();
    }
  }

  release(): void {}
}

// painter makes the best one that the canvas gives. A canvas that gave a
// context of one kind gives no other, so the plain one may take a fresh canvas
// in its place.
export function painter(canvas: HTMLCanvasElement, plain: boolean): Painter {
  if (!plain) {
    const gl = canvas.getContext('webgl2', { antialias: false, depth: false });
    if (gl && !gl.isContextLost()) {
      try {
        return new GL(canvas, gl);
      } catch (err) {
        console.warn('WebGL2 cannot be used:', err);
      }
    }
    if (gl) {
      const fresh = canvas.cloneNode() as HTMLCanvasElement;
      canvas.replaceWith(fresh);
      canvas = fresh;
    }
  }
  return new Plain(canvas);
}
