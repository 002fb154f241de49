// The hole that is looked at, and who lies beside it.

import { size } from '../format';
import { plainName } from '../palette';
import { Bytes, noStack } from '../parts/basic';
import { Word } from '../parts/word';
import { put } from '../route';
import { allocation } from '../state';
import type { Block, Segments } from '../types/view.gen';
import { beside, type Hole } from './layout';

export function HolePanel({ hole, s }: { hole: Hole | null; s: Segments }) {
  if (!hole) return null;
  const segment = hole.row.segment;
  const bytes = segment.blocks[hole.index]![1];
  const edges = beside(hole);
  const short = s.request ? s.request.size_bytes - bytes : 0;
  return (
    <section aria-label="Hole" data-panel="hole" data-address={segment.address + segment.blocks[hole.index]![0]}>
      <h2>{hole.chosen ? 'Selected hole' : 'Largest hole'}</h2>
      <p>
        <Bytes n={bytes} field="hole.size_bytes" /> <Word of="free">free</Word> in a segment of <Bytes n={segment.size_bytes} />
        {short > 0 && (
          <>
            , <span class="waste-text">{size(short)} less than the failed request</span>
          </>
        )}
        .
      </p>
      {edges.length === 0 ? (
        <p class="muted">No allocated block lies beside it.</p>
      ) : (
        <>
          <h3>Pinned by the blocks beside it</h3>
          <ul class="rows">
            {edges.map((b) => (
              <li>
                <Neighbour b={b} segment={segment.address} side={b[0] < segment.blocks[hole.index]![0] ? 'before' : 'after'} />
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function Neighbour({ b, segment, side }: { b: Block; segment: number; side: string }) {
  const a = allocation(b[3]).value.data;
  return (
    <button class="leaf" data-beside={b[3]} onClick={() => put({ segment, alloc: b[3] }, 'push')}>
      <Bytes n={b[1]} />
      <span>
        {side}, {a ? plainName(a.category) : '…'}
      </span>
      <span class="muted mono">{a ? (a.site ?? noStack) : '…'}</span>
    </button>
  );
}
