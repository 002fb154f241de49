// The screen Fleet: many files at once.

import { Trouble, Wait, count, lost, place, plural, provide, put, useEffect, useKeys } from '../shared';
import { CausesView } from './causes';
import { GrowthView } from './growth';
import { FilesView } from './files';
import { To } from './parts';
import { RanksView } from './ranks';
import { follow, openFile, opening, refused, state, trouble } from './state';

const views = [
  { name: '', title: 'Files', page: FilesView },
  { name: 'growth', title: 'Growth', page: GrowthView },
  { name: 'causes', title: 'Causes', page: CausesView },
  { name: 'ranks', title: 'Ranks', page: RanksView },
];

function Fleet() {
  useEffect(follow, []);
  const { open, view = '' } = place.value.params;
  useEffect(() => {
    if (open) void openFile(open);
  }, [open]);
  const at = Math.max(0, views.findIndex((v) => v.name === view));
  useKeys('Fleet', () => [
    {
      keys: ['h', 'l'],
      text: 'Previous, next view',
      run: (e) => put({ view: views[(at + (e.key === 'l' ? 1 : -1) + views.length) % views.length]!.name }, 'push'),
    },
  ], [at]);
  const s = state.value;
  const { page: View } = views[at]!;
  return (
    <div class="overview fleet" tabIndex={-1}>
      {trouble.value && !lost.value && <Trouble>{trouble.value}</Trouble>}
      {refused.value && <Trouble onClose={() => (refused.value = null)}>{refused.value}</Trouble>}
      {opening.value && <Wait>Reading the file {opening.value.slice(0, 8)}</Wait>}
      {!s && !trouble.value && <Wait>Asking for the fleet</Wait>}
      {s?.files === 0 && (
        <div class="centre">
          <p>
            <strong>No file is analysed yet.</strong> Add some with <code>ashlar fleet add FILE|DIR...</code>; <code>ashlar fleet status</code> says what waits.
          </p>
        </div>
      )}
      {s && s.files > 0 && (
        <>
          <nav class="fleet-head" aria-label="Views of the fleet">
            {views.map((v, i) => (
              <To change={{ view: v.name }} on={i === at} name={v.name || 'files'}>
                {v.title}
              </To>
            ))}
            <span class="muted">
              {plural(s.files, 'file')} of {plural(s.runs.length, 'run')}, {count(s.failed)} failed
              {s.refused > 0 && (
                <>
                  ,{' '}
                  <To change={{ view: null, where: 'error != ""', group: null, sort: null, show: 'file,kind,error' }}>
                    {count(s.refused)} could not be analysed
                  </To>
                </>
              )}
            </span>
          </nav>
          <View s={s} />
        </>
      )}
    </div>
  );
}

provide('fleet', Fleet);
