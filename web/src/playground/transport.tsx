// The buttons that move through the steps, and the slider under the curve.

import { drawCurve, drawFailure, xOf, type Box } from '../draw/curve';
import { useDrawing } from '../draw/canvas';
import { count } from '../format';
import { Choice } from '../parts/basic';
import { ink } from '../theme';
import type { Curve } from '../types/view.gen';
import { at, forward, go, playing, speed, speeds, steps, togglePlay, turn } from './game';

export function Transport() {
  const n = steps.value.length;
  const now = at.value;
  return (
    <>
      <span class="together" role="group" aria-label="Steps">
        <button onClick={() => forward(-n)} disabled={now === 0} title="To the beginning (Home)" aria-label="To the beginning">
          |‹
        </button>
        <button onClick={() => turn(-1)} disabled={now === 0} title="Previous chapter (Page up)" aria-label="Previous chapter">
          «
        </button>
        <button onClick={() => forward(-1)} disabled={now === 0} title="Step back (←)" data-step="back">
          ‹ back
        </button>
        <button class="play" onClick={togglePlay} disabled={n === 0} title="Play or pause (p)" data-step="play" aria-pressed={playing.value}>
          {playing.value ? '❚❚ pause' : '▶ play'}
        </button>
        <button onClick={() => forward(1)} disabled={now >= n} title="Next step (→)" data-step="next">
          step ›
        </button>
        <button onClick={() => turn(1)} disabled={now >= n} title="Next chapter (Page down)" aria-label="Next chapter">
          »
        </button>
        <button onClick={() => forward(n)} disabled={now >= n} title="To the end (End)" aria-label="To the end" data-step="end">
          ›|
        </button>
      </span>
      <Choice
        label="Speed"
        value={speed.value}
        options={speeds.map(([value, text]) => ({ value, text }))}
        onPick={(v) => (speed.value = v as typeof speed.value)}
      />
    </>
  );
}

const inset = 8; // half of the slider's thumb

export function Slider() {
  const canvas = useDrawing((c, area) => {
    const s = steps.value;
    const i = ink.value;
    const b: Box = { left: inset, top: 2, width: Math.max(1, area.width - 2 * inset), height: area.height - 4 };
    const high = s.reduce((m, x) => Math.max(m, x.reserved_bytes), 1) * 1.05;
    const scale = { from: 0, to: Math.max(1, s.length), low: 0, high };
    // What holds after step k is drawn from k - 1/2 to k + 1/2.
    const xs = s.map((_, k) => k + 0.5);
    const curve = { x: xs, reserved: s.map((x) => x.reserved_bytes), active: s.map((x) => x.active_bytes), pending_end: [] as number[] };
    drawCurve(c, b, scale, curve as unknown as Curve, s.length, i, false);
    s.forEach((x, k) => x.outcome === 'oom' && drawFailure(c, b, xOf(b, scale, k + 1), i));
    const x = xOf(b, scale, at.value);
    c.strokeStyle = i.accent;
    c.lineWidth = 2;
    c.beginPath();
    c.moveTo(x, 0);
    c.lineTo(x, area.height);
    c.stroke();
  });
  const s = steps.value;
  const now = at.value;
  return (
    <div class="scrub">
      <div class="scrub-curve" aria-hidden="true">
        <canvas ref={canvas} />
      </div>
      <input
        type="range"
        name="step"
        min={0}
        max={s.length}
        step={1}
        value={now}
        aria-label="Step"
        aria-valuetext={now === 0 ? 'before the first step' : `step ${count(now)} of ${count(s.length)}: ${s[now - 1]?.text ?? ''}`}
        onInput={(e) => {
          playing.value = false;
          go(Number(e.currentTarget.value));
        }}
      />
    </div>
  );
}
