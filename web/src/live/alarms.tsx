// What was raised, what was done about it, and the snapshot that explains it.

import { Go, Panel, place, plural, put, size, span } from '../shared';
import type { Action, Alarm } from '../types/watch.gen';
import { clock } from './seen';
import { jobOf, opening, openSnapshot, snapshotLink } from './state';

// few is how many alarms are listed unless all are asked for: a table of hundreds
// would be drawn anew each second.
const few = 30;

export function AlarmsPanel({
  alarms,
  older,
  now,
  own,
  title = 'Alarms',
}: {
  alarms: readonly Alarm[];
  older: number;
  now: number;
  own?: boolean;
  title?: string;
}) {
  const raised = alarms.filter((a) => a.cleared_us === null).length;
  const shown = place.value.params['alarms'] === 'all' ? alarms : alarms.slice(0, few);
  return (
    <Panel title={title} name="alarms" aside={alarms.length > 0 ? `${raised} raised, ${alarms.length - raised} cleared` : ''}>
      {alarms.length === 0 ? (
        <p class="muted">None has been raised{own ? ' for this job' : ''}.</p>
      ) : (
        <div class="scroll alarm-list" tabIndex={0} role="region" aria-label={title}>
          <table class="grid">
            <thead>
              <tr>
                <th scope="col">Raised</th>
                <th scope="col">Alarm</th>
                {!own && <th scope="col">Job</th>}
                <th scope="col">Rank</th>
                <th scope="col" class="right">
                  Value
                </th>
                <th scope="col">State</th>
                <th scope="col">Snapshot</th>
                <th scope="col">What was done</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((a) => (
                <Row key={a.id} a={a} now={now} own={own} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {shown.length < alarms.length && (
        <p>
          <button class="link" onClick={() => put({ alarms: 'all' })}>
            Show {alarms.length - shown.length} more
          </button>
        </p>
      )}
      {older > 0 && shown.length === alarms.length && <p class="muted small-text">{plural(older, 'older alarm')} not shown: ashlar watch --once --json has them.</p>}
    </Panel>
  );
}

function Row({ a, now, own }: { a: Alarm; now: number; own: boolean | undefined }) {
  const job = own ? undefined : jobOf(a);
  return (
    <tr data-alarm={a.id} class={a.cleared_us === null ? 'failed' : ''}>
      <td class="num">{clock(a.raised_us, now)}</td>
      <th scope="row" title={a.rule}>
        {a.name}
      </th>
      {!own && <td>{job ? <Go screen="live" change={{ job: job.key }}>{job.label}</Go> : a.run}</td>}
      <td class="num">{a.rank}</td>
      <td class="right num">{a.value_text || a.value.toPrecision(3)}</td>
      <td class={a.cleared_us === null ? 'fails' : 'muted'}>{a.cleared_us === null ? 'raised' : `cleared after ${span(a.cleared_us - a.raised_us)}`}
        {a.at_hub && (
          <span class="tag" title="Raised by this server, to which another ashlar watch forwards the job">
            at the hub
          </span>
        )}
      </td>
      <td>{a.snapshot ? <SnapshotLink name={a.snapshot} /> : <span class="muted">-</span>}</td>
      <td class="done">{done(a)}</td>
    </tr>
  );
}

// SnapshotLink opens a snapshot on the Overview, with its verdict.
function SnapshotLink({ name }: { name: string }) {
  return (
    <a
      href={snapshotLink(name)}
      data-snapshot={name}
      title={`Why: open ${name}`}
      aria-busy={opening.value === name}
      onClick={(e) => {
        if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
        e.preventDefault();
        void openSnapshot(name);
      }}
    >
      {opening.value === name ? 'opening' : 'open it'}
    </a>
  );
}

function done(a: Alarm): string {
  return a.actions
    .filter((x) => x.result !== 'logged')
    .map((x) => `${x.action}: ${result(x, a)}`)
    .join('; ');
}

function result(x: Action, a: Alarm): string {
  let text = x.result || 'under way';
  if (a.snapshot && text.endsWith(a.snapshot)) text = 'stored';
  if (x.before !== null && x.after !== null) text += `, reserved ${size(x.before)} before and ${size(x.after)} after`;
  return text;
}
