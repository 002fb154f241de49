// The selected segment, in words.

import { address, plural, pool, share, stream } from '../format';
import { Bytes } from '../parts/basic';
import { put } from '../route';
import { explain } from '../explained';
import { StackLine } from '../screens/holders';
import type { Row } from './layout';

export function SegmentPanel({ row, failing }: { row: Row | null; failing: boolean }) {
  if (!row) {
    return (
      <section class="muted">
        <h2>No segment selected</h2>
        <p>Click a row, or move with the arrow keys. Up and down change the segment, left and right the block.</p>
      </section>
    );
  }
  const s = row.segment;
  const pinner = failing ? explain.value.data?.pinners.find((p) => p.segment === s.address) : undefined;
  return (
    <section aria-label="Selected segment" data-panel="segment" data-address={s.address}>
      <h2>
        Segment <span class="mono">&nbsp;{address(s.address)}</span>
        <button class="plain aside" onClick={() => put({ segment: null })} aria-label="Deselect the segment">
          ✕
        </button>
      </h2>
      <dl class="facts">
        <dt>Size</dt>
        <dd>
          <Bytes n={s.size_bytes} field="segment.size_bytes" /> {[s.type, s.expandable && 'expandable'].filter(Boolean).join(', ')}
        </dd>
        <dt>Allocated</dt>
        <dd>
          <Bytes n={row.allocated} /> in {plural(row.live, 'block')}, {share(row.allocated, s.size_bytes)}
        </dd>
        {row.pending > 0 && (
          <>
            <dt>Pending</dt>
            <dd>
              <Bytes n={row.pending} /> <span class="pending-text">freed, in use on another stream</span>
            </dd>
          </>
        )}
        <dt>Free</dt>
        <dd>
          <Bytes n={row.free} />
          {row.free > 0 && (
            <>
              , largest piece <Bytes n={row.largestFree} />
            </>
          )}
        </dd>
        {row.unmapped > 0 && (
          <>
            <dt>Unmapped</dt>
            <dd>
              <Bytes n={row.unmapped} /> of addresses without memory
            </dd>
          </>
        )}
        <dt>Stream</dt>
        <dd class="mono">{stream(s.stream)}</dd>
        <dt>Pool</dt>
        <dd>{pool(s.pool)}</dd>
      </dl>
      {row.stuck > 0 && (
        <p class="pins">
          {plural(row.live, 'allocated block')}, <Bytes n={row.allocated + row.pending} /> in all, {row.live === 1 ? 'keeps' : 'keep'}{' '}
          <Bytes n={row.stuck} /> from release.
        </p>
      )}
      {pinner && (
        <ul class="rows">
          {pinner.blocks.slice(0, 6).map((b) => (
            <li>
              <StackLine part={b} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
