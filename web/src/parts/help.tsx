// The sheet behind ?: keys, and what the mouse does.

import { signal } from '@preact/signals';
import { groups, sign } from '../keys';
import { Sheet } from './sheet';

export const helpShown = signal(false);

export function HelpDialog() {
  return (
    <Sheet title="Keys and mouse" shown={helpShown}>
      <div class="keys">
        {groups.value.map((g) => (
          <section>
            <h3>{g.title}</h3>
            <dl>
              {g.bindings.map((b) => (
                <div>
                  <dt>{b.shown ? <kbd>{b.shown}</kbd> : b.keys.map((k) => <kbd>{sign(k)}</kbd>)}</dt>
                  <dd>{b.text}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Sheet>
  );
}
