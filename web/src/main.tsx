import { render } from 'preact';
import { App } from './app';
import { watch } from './state';

render(<App />, document.getElementById('app')!);
void watch();
