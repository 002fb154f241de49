// The map of a what-if: the same segments, as they would be under other settings.

import type { Query } from '../api';
import { count } from '../format';
import { At, Go } from '../parts/basic';
import { moment } from '../state';
import { place, put, type Params } from '../route';

// variantQuery is what the map is asked with; null for the recording's own.
export function variantQuery(p: Params): Query | null {
  const v = p['variant'];
  if (v === undefined) return null;
  return {
    ...(v === 'recorded' ? { recorded: 1 } : { set: [v === 'defaults' ? '' : v] }),
    limit: p['vlimit'],
    device_memory: p['vmemory'],
  };
}

export function VariantLine({ failed }: { failed: number | null }) {
  const p = place.value.params;
  const v = p['variant']!;
  const at = moment.value;
  const bounds = [p['vlimit'] && `limit ${p['vlimit']}`, p['vmemory'] && `device memory ${p['vmemory']}`].filter(Boolean).join(', ');
  return (
    <div class="variant-line" role="note" data-variant={v}>
      <span>
        <strong>What-if:</strong> the segments as a replay lays them out with{' '}
        {v === 'recorded' ? 'the recorded settings' : v === 'defaults' ? "PyTorch's defaults" : <code>{v}</code>}
        {bounds && `, ${bounds}`}. Blocks are those of the recording; addresses are the replay's.
        {failed !== null && failed < 0 && ' What is held at the beginning is more than there is.'}
        {failed !== null && failed >= 0 && at !== null && failed !== at && (
          <>
            {' '}
            The first request fails at event <At event={failed} />
            {at > failed && `, which is left out here (${count(at - failed)} events ago)`}.
          </>
        )}
      </span>
      <span class="grow" />
      <Go screen="whatif">Back to the what-if</Go>
      <button class="small" onClick={() => put({ variant: null, vlimit: null, vmemory: null }, 'push')}>
        Show the recording
      </button>
    </div>
  );
}
