// How far a comparison is.

import { Trouble, Wait } from '../parts/basic';
import { again, stopAll, type Answer } from './answers';

// Coming is how far a comparison is, where it will be.
export function Coming({ got, what }: { got: Answer<unknown>; what: string }) {
  if (got.error) {
    return (
      <Trouble>
        {got.error}{' '}
        <button class="small" onClick={again}>
          Try again
        </button>
      </Trouble>
    );
  }
  const p = got.going?.progress;
  return (
    <div class="doing">
      <Wait>
        {got.going?.waiting
          ? 'Waiting: another replay is under way'
          : p?.what
            ? `Replaying ${p.what.slice(p.what.lastIndexOf('/') + 1)}`
            : what}
      </Wait>
      <progress aria-label="Progress" max={1} {...(p?.total ? { value: p.done / p.total } : {})} />
      <button onClick={stopAll} title="Stop (s)">
        Stop
      </button>
    </div>
  );
}
