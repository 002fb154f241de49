// What the note beside the pointer says of a block.

import { useEffect, useState } from 'preact/hooks';
import { address, percent, size } from '../format';
import { plainName } from '../palette';
import { lifetime } from '../parts/block';
import { noStack } from '../parts/basic';
import { allocation } from '../state';
import type { Block } from '../types/view.gen';
import type { Row } from './layout';

const states = ['free', 'allocated', 'pending: freed, but in use on another stream', 'unmapped'];

export function TipText({ row, b }: { row: Row; b: Block }) {
  const [, bytes, state, id, requested] = b;
  const waste = requested > 0 ? bytes - requested : 0;
  return (
    <>
      <div>
        <strong>{size(bytes)}</strong> {states[state]} at <span class="mono">{address(row.segment.address + b[0])}</span>
        {waste > 0 && <span class="waste-text"> ({percent(waste / bytes)} rounding)</span>}
      </div>
      {id >= 0 && <Origin id={id} />}
    </>
  );
}

function Origin({ id }: { id: number }) {
  const [asked, setAsked] = useState<number | null>(null);
  useEffect(() => {
    // A pointer on its way asks for nothing.
    const timer = setTimeout(() => setAsked(id), 60);
    return () => clearTimeout(timer);
  }, [id]);
  const a = asked === id ? allocation(id).value.data : undefined;
  if (!a) return <div>…</div>;
  return (
    <>
      <div>
        {plainName(a.category)}, {lifetime(a)}
      </div>
      <div class="site">{a.site ?? noStack}</div>
    </>
  );
}
