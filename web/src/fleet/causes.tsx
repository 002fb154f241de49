// Failures, together by what they have in common.

import { Panel, Select, count, place, plural, put } from '../shared';
import type { Cause, CausesDocument } from '../types/answers.gen';
import { Answered, FileLink, Frames, day, said } from './parts';
import { useAnswer } from './state';

const ages = [
  { value: '', text: 'ever' },
  { value: '24h', text: 'in a day' },
  { value: '7d', text: 'in a week' },
  { value: '30d', text: 'in 30 days' },
];

export function CausesView() {
  const { since = '' } = place.value.params;
  const answer = useAnswer<CausesDocument>('fleet/causes', { since });
  const failures = answer.data?.causes.reduce((n, c) => n + c.files, 0) ?? 0;
  return (
    <Panel title="Causes of failures" name="causes" aside={answer.data && `${plural(answer.data.causes.length, 'cause')} of ${plural(failures, 'failure')}`}>
      <div class="fleet-tools">
        <Select
          label="Failed"
          name="since"
          value={since}
          options={ages.some((a) => a.value === since) ? ages : [...ages, { value: since, text: since }]}
          onPick={(v) => put({ since: v }, 'push')}
        />
      </div>
      <Answered answer={answer} wait="Comparing failures">
        {(d) => (
          <>
            {d.causes.length === 0 && <p class="empty">No request failed{since ? ' in this time' : ''}.</p>}
            {d.causes.length > 0 && <Table causes={d.causes} />}
            {d.notes.length > 0 && (
              <ul class="rows muted small-text">
                {d.notes.map((n) => (
                  <li>{n}</li>
                ))}
              </ul>
            )}
          </>
        )}
      </Answered>
    </Panel>
  );
}

function Table({ causes }: { causes: readonly Cause[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Causes">
      <table class="grid fleet-causes">
        <thead>
          <tr>
            <th scope="col">Cause</th>
            <th scope="col" class="right">
              Files
            </th>
            <th scope="col" class="right">
              Runs
            </th>
            <th scope="col" class="right">
              Ranks
            </th>
            <th scope="col" class="right">
              Commits
            </th>
            <th scope="col">Where</th>
            <th scope="col">First, last</th>
            <th scope="col">Fix</th>
            <th scope="col">Example</th>
          </tr>
        </thead>
        <tbody>
          {causes.map((c) => (
            <tr key={c.example_hash} data-cause={c.verdict}>
              <th scope="row">{said(c.verdict)}</th>
              <td class="right num">{count(c.files)}</td>
              <td class="right num">{count(c.runs)}</td>
              <td class="right num">{count(c.ranks)}</td>
              <td class="right num">{count(c.commits)}</td>
              <td>{c.frames && c.frames.length > 0 ? <Frames frames={c.frames} roles={c.roles} /> : <span class="muted">no call stack</span>}</td>
              <td class="num">
                {day(c.first_us)}
                <br />
                {day(c.last_us)}
              </td>
              <td>
                {c.fix ? (
                  <>
                    {c.fix.settings ? <code>{c.fix.settings}</code> : said(c.fix.kind)}
                    <br />
                    <span class="muted">
                      passes in {count(c.fix.passes)} of {count(c.fix.of)}
                    </span>
                  </>
                ) : (
                  <span class="muted">none that was tried</span>
                )}
              </td>
              <td>
                <FileLink hash={c.example_hash}>open</FileLink>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
