// The screen Live: jobs that run.

import { Empty, Trouble, Wait, lost, place, provide, useEffect } from '../shared';
import { AlarmsPanel } from './alarms';
import { JobScreen } from './job';
import { JobsScreen } from './jobs';
import { chosen, follow, opening, openSnapshot, refused, state, trouble } from './state';

function Live() {
  useEffect(follow, []);
  const snapshot = place.value.params['snapshot'];
  useEffect(() => {
    if (snapshot) void openSnapshot(snapshot);
  }, [snapshot]);
  return (
    <div class="overview live" tabIndex={-1}>
      {trouble.value && !lost.value && <Trouble>{trouble.value}</Trouble>}
      {refused.value && <Trouble onClose={() => (refused.value = null)}>{refused.value}</Trouble>}
      {opening.value && <Wait>Reading the snapshot {opening.value}</Wait>}
      <Body />
    </div>
  );
}

function Body() {
  const s = state.value;
  if (!s) return <Wait>Asking for the jobs</Wait>;
  const job = chosen.value;
  if (job === undefined)
    return (
      <Empty>
        This job is not there any more: it has been silent for a day. <a href="#//live">All jobs</a>
      </Empty>
    );
  if (job) return <JobScreen key={job.key} job={job} now={s.now_us} />;
  if (s.jobs.length === 0) {
    return (
      <div class="centre">
        <p>
          <strong>No job has said anything yet.</strong> Start one with <code>python ashlar.py --watch train.py</code>, or call{' '}
          <code>ashlar.watch()</code> in it.
        </p>
        <AlarmsPanel alarms={s.alarms} older={s.older_alarms} now={s.now_us} />
      </div>
    );
  }
  return <JobsScreen s={s} />;
}

provide('live', Live);
