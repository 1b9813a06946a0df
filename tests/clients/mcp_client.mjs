// The TypeScript SDK of MCP as a client of the bridge: mcp_client.mjs MODULES URL, the token in TOOL_CLI_TOKEN; or
// mcp_client.mjs MODULES COMMAND WORD... for one over standard input and output. MODULES is a folder with the SDK.
// Prints what it saw as one line of JSON.

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, target, ...words] = process.argv.slice(2);
const sdk = createRequire(pathToFileURL(`${modules}/x.js`));
const { Client } = sdk('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = sdk('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { StdioClientTransport } = sdk('@modelcontextprotocol/sdk/client/stdio.js');
const { LoggingMessageNotificationSchema } = sdk('@modelcontextprotocol/sdk/types.js');

const headers = { Authorization: `Bearer ${process.env.TOOL_CLI_TOKEN}` };
const transport = target.startsWith('http')
  ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } })
  : new StdioClientTransport({ command: target, args: words, env: { ...process.env } });
const client = new Client({ name: 'test', version: '1' }, { capabilities: {} });
const seen = { steps: [], logs: 0 };
client.setNotificationHandler(LoggingMessageNotificationSchema, () => { seen.logs += 1; });
await client.connect(transport);
seen.server = client.getServerVersion().name;
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
seen.weather = (await call('demo__get_weather', { city: 'Bern' })).structuredContent;
const refused = await call('demo__get_weather', { town: 'Bern' });
seen.refused = [refused.isError, refused.content[0].text];
await call('demo__count_slowly', { n: 3, stepMs: 20 }, { onprogress: (step) => seen.steps.push(step.progress) });
// One that is taken back is ended at the server: the next call finds its place.
const taken = new AbortController();
const long = call('demo__count_slowly', { n: 600, stepMs: 1000 }, { signal: taken.signal, onprogress: () => taken.abort() });
seen.aborted = await long.then(() => false, () => true);
await call('demo__add_note', { text: 'buy milk' });
seen.templates = (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate);
seen.read = (await client.readResource({ uri: 'note:///1' })).contents[0].text;
seen.prompts = (await client.listPrompts()).prompts.length;
await client.ping();
await client.setLoggingLevel('error');
await client.close();
console.log(JSON.stringify(seen));
