// Asks ashlar mcp with the client that the protocol's makers publish.
// usage: node check.mjs ASHLAR TESTDATA
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [ashlar, root] = process.argv.slice(2);
const client = new Client({ name: 'mcpcheck', version: '1.0.0' });
await client.connect(new StdioClientTransport({ command: ashlar, args: ['mcp', '--root', root] }));
assert.equal(client.getServerVersion().name, 'ashlar');
assert.match(client.getInstructions(), /relative to/);

// The client checks structured content against the schemas of this list.
const { tools } = await client.listTools();
assert.deepEqual(tools.map((t) => t.name).sort(), ['check', 'diff', 'dry', 'explain', 'plan', 'stats', 'tune', 'whatif']);
for (const t of tools) {
  assert.equal(t.outputSchema.type, 'object', t.name);
  assert.equal(t.annotations.readOnlyHint, true, t.name);
}

async function ask(name, args, options) {
  const answer = await client.callTool({ name, arguments: args }, undefined, options);
  const [text] = answer.content;
  console.log(`${name}: ${answer.isError ? 'refused, ' : ''}${text.text.split('\n', 1)[0]}`);
  return answer;
}
async function document(name, args) {
  const answer = await ask(name, args);
  assert.ok(!answer.isError, answer.content[0].text);
  return answer.structuredContent;
}

const died = 'snapshots/gpt2_fixed-tight-default.pickle.gz';
const whole = 'snapshots/gpt2_fixed-default.pickle.gz';
assert.equal((await document('explain', { files: [died], limit: '7609MiB' })).cause, 'fragmentation');
assert.equal((await document('whatif', { file: died, set: ['expandable_segments:True'] })).schema, 1);
assert.ok((await document('tune', { file: died, limit: '7609MiB' })).recommended);
assert.equal((await document('check', { file: died })).passed, false);
assert.ok((await document('diff', { files: [whole, died] })).cut.length > 0);
assert.ok((await document('stats', { file: whole })).file);
const plan = { config: 'plan/llama-1b.json', batch: 4, seq: 2048 };
assert.equal((await document('plan', { ...plan, gpu: '24GB' })).fits, false);
assert.equal((await document('plan', { ...plan, gpu: 'h200' })).fits, true);
assert.ok((await document('plan', { ...plan, compare: 'h100,h200' })).cards.length === 2);
assert.ok((await document('dry', { ledger: 'dry/mlp.dry' })).file);

for (const file of ['../README.md', '/etc/hostname', 'nothing.pickle', 'plan/llama-1b.json']) {
  const refused = await ask('explain', { files: [file] });
  assert.equal(refused.isError, true, file);
  assert.equal(refused.structuredContent, undefined, file);
}

const stop = new AbortController();
const asked = ask('tune', { file: whole }, { signal: stop.signal });
stop.abort();
await assert.rejects(asked);
assert.ok((await document('stats', { file: whole })).file); // the server has gone on

await client.close();
console.log('ashlar mcp: the npm client is content');
