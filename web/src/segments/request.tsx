// The failing request beside the largest free block, to one scale.

import { hatch, useDrawing } from '../draw/canvas';
import { count, exact, size } from '../format';
import { ink } from '../theme';
import type { Segments } from '../types/view.gen';

export function RequestStrip({ s }: { s: Segments }) {
  return s.request ? <Strip s={s} r={s.request} /> : null;
}

function Strip({ s, r }: { s: Segments; r: NonNullable<Segments['request']> }) {
  const canvas = useDrawing(
    (c, area) => {
      const i = ink.value;
      const longest = Math.max(r.size_bytes, s.largest_free_bytes, 1);
      const k = (area.width - 2) / longest;
      c.fillStyle = hatch(c, i.oom, i.back, 6, 2);
      c.strokeStyle = i.oom;
      c.lineWidth = 1.5;
      const w = r.size_bytes * k;
      c.fillRect(1, 3, w, 14);
      c.strokeRect(1, 3, w, 14);
      c.fillStyle = i.free;
      c.strokeStyle = i.good;
      const f = Math.max(1, s.largest_free_bytes * k);
      c.fillRect(1, 23, f, 14);
      c.strokeRect(1, 23, f, 14);
      const gap = r.size_bytes - s.largest_free_bytes;
      if (gap > 0 && w - f > 90) {
        c.fillStyle = i.muted;
        c.font = `11px ${i.sans}`;
        c.textBaseline = 'middle';
        c.textAlign = 'center';
        c.fillText(`${size(gap)} too short`, 1 + f + (w - f) / 2, 30);
      }
    },
    [r, s.largest_free_bytes],
  );
  return (
    <div class="request" data-panel="request">
      <dl>
        <dt>The request that failed</dt>
        <dd data-field="request.size_bytes" data-bytes={r.size_bytes} title={exact(r.size_bytes)}>
          {size(r.size_bytes)}
        </dd>
        <dt>Largest free block</dt>
        <dd data-field="largest_free_bytes" data-bytes={s.largest_free_bytes} title={exact(s.largest_free_bytes)}>
          {size(s.largest_free_bytes)}
        </dd>
      </dl>
      <div
        class="request-bars"
        role="img"
        aria-label={`At event ${count(r.event)} a request for ${size(r.size_bytes)} failed; the largest free block has ${size(s.largest_free_bytes)}.`}
      >
        <canvas ref={canvas} />
      </div>
    </div>
  );
}
