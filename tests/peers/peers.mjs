// The envelopes of sentry-prof in the hands of others: @sentry/core parses them, sentry-cli dispatches them, Spotlight
// receives a recording. Run by scripts/try-with-peers, which tells where all is:
//   node peers.mjs SENTRY_PROF SENTRY_CLI SENTRY_SERVER TEST_DATA      NODE_PATH: the folder node_modules
// A part that cannot run here says "skipped: ..." and the rest goes on. Exit status 0: what ran was right.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [sentryProf, sentryCli, sentryServer, testData] = process.argv.slice(2);
const modules = process.env.NODE_PATH;
const { parseEnvelope, SDK_VERSION } = createRequire(path.join(modules, 'x.js'))('@sentry/core');
const key = 'c0ffee00c0ffee00c0ffee00c0ffee00';
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'sentry-prof-peers-'));

function run(program, args, environment = {}) {
  // No configuration of this machine gets between.
  const own = Object.entries(process.env).filter(([name]) => !/^SENTRY_|proxy$/i.test(name));
  const child = spawn(program, args, { cwd: work, env: { ...Object.fromEntries(own), HOME: work, ...environment } });
  let output = '';
  child.stdout.on('data', (text) => { output += text; });
  child.stderr.on('data', (text) => { output += text; });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status, signal) => resolve({ status: status ?? signal, output }));
  });
}

async function succeed(program, args, environment) {
  const { status, output } = await run(program, args, environment);
  assert.equal(status, 0, `${path.basename(program)} ${args.join(' ')}: ${output}`);
  assert.ok(program !== sentryProf || !output.includes(key), 'the key is printed');
}

async function until(condition, what) {
  for (let i = 0; i < 600; ++i) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`waited in vain for ${what}`);
}

// tests/support/sentry_server.py; answers 200 to everything and keeps it.
class Server {
  static async start() {
    const server = new Server();
    server.folder = fs.mkdtempSync(path.join(work, 'server-'));
    server.process = spawn('python3', [sentryServer, '--folder', server.folder], { stdio: 'inherit' });
    const port = path.join(server.folder, 'port');
    await until(() => fs.existsSync(port), 'the test server');
    server.dsn = `http://${key}@127.0.0.1:${fs.readFileSync(port, 'utf8')}/42`;
    return server;
  }
  bodies() {
    const bodies = [];
    while (fs.existsSync(path.join(this.folder, `${bodies.length + 1}.json`))) {
      bodies.push(fs.readFileSync(path.join(this.folder, `${bodies.length + 1}.body`)));
    }
    return bodies;
  }
  stop() { this.process.kill(); }
}

// An envelope as @sentry/core sees it: [header, [[item header, payload], ...]], payloads parsed. Every byte must be used up.
function parsed(bytes) {
  const [header, items] = parseEnvelope(new Uint8Array(bytes));
  for (const [itemHeader, payload] of items) {
    assert.equal(typeof itemHeader.length, 'number');
    assert.equal(payload.length, itemHeader.length, 'an item is shorter than it says');
  }
  return [header, items.map(([itemHeader, payload]) => [itemHeader, JSON.parse(Buffer.from(payload).toString())])];
}

// What the server wants in place of the documents' image type.
function withServersImageType(profile) {
  for (const image of profile.debug_meta?.images ?? []) {
    if (image.type === 'elf') image.type = 'symbolic';
  }
  return profile;
}

function checkProfiler(transaction, chunk) {
  assert.equal(transaction.contexts.profile.profiler_id, chunk.profiler_id);
  const thread = transaction.contexts.trace.data['thread.id'];
  assert.ok(chunk.profile.samples.some((sample) => sample.thread_id === thread), 'linked to a thread of the chunk');
}

function checkChunkItem([itemHeader, chunk]) {
  assert.equal(itemHeader.type, 'profile_chunk');
  assert.equal(itemHeader.platform, chunk.platform);
}

async function dryRun(name) {
  const envelope = path.join(work, `${name}.envelope`);
  await succeed(sentryProf, ['upload', '--dry-run', '-o', envelope, path.join(testData, `golden_${name}.json`)]);
  return fs.readFileSync(envelope);
}

function golden(name) {
  return withServersImageType(JSON.parse(fs.readFileSync(path.join(testData, `golden_${name}.json`), 'utf8')));
}

async function coreParsesDryRuns() {
  for (const name of ['v2', 'v2_native']) {
    const [, items] = parsed(await dryRun(name));
    assert.equal(items.length, 1);
    checkChunkItem(items[0]);
    assert.deepEqual(items[0][1], golden(name));
  }
  const [header, items] = parsed(await dryRun('v1'));
  const byType = Object.fromEntries(items.map(([itemHeader, payload]) => [itemHeader.type, payload]));
  assert.deepEqual(Object.keys(byType).sort(), ['profile', 'transaction']);
  const { profile, transaction } = byType;
  assert.deepEqual(profile, golden('v1'));
  assert.equal(header.event_id, profile.transaction.id);
  assert.equal(transaction.event_id, profile.transaction.id);
  assert.equal(transaction.transaction, profile.transaction.name);
  assert.equal(transaction.contexts.trace.trace_id, profile.transaction.trace_id);
  assert.equal(transaction.platform, profile.platform);
  assert.ok(transaction.timestamp >= transaction.start_timestamp);
  assert.ok(transaction.sdk.name && transaction.sdk.version);
}

async function cliDispatches(server, bytes) {
  const envelope = path.join(work, 'raw.envelope');
  fs.writeFileSync(envelope, bytes);
  const before = server.bodies().length;
  await succeed(sentryCli, ['send-envelope', '--raw', envelope], { SENTRY_DSN: server.dsn });
  assert.equal(server.bodies().length, before + 1);
  return server.bodies().at(-1);
}

async function cliSendsWhatUploadSends() {
  const server = await Server.start();
  try {
    for (const name of ['v1', 'v2', 'v2_native']) {
      const written = await dryRun(name);
      assert.deepEqual(await cliDispatches(server, written), written, `sentry-cli sends ${name} otherwise`);
      const file = path.join(testData, `golden_${name}.json`);
      await succeed(sentryProf, ['upload', '-q', '--compress', 'none', '--dsn', server.dsn, file]);
      assert.deepEqual(server.bodies().at(-1), written, `upload sends ${name} otherwise`);
    }
  } finally {
    server.stop();
  }
}

// A real Spotlight in this process, without its command line, which would report to Spotlight's makers.
class Spotlight {
  static async start() {
    const main = path.join(modules, '@spotlightjs', 'spotlight', 'dist', 'server', 'main.js');
    const { startServer } = await import(pathToFileURL(main));
    const spotlight = new Spotlight();
    spotlight.server = await startServer({ port: 0, normalizedAllowedOrigins: [] });
    if (!spotlight.server.listening) await new Promise((resolve) => spotlight.server.once('listening', resolve));
    spotlight.url = `http://localhost:${spotlight.server.address().port}/stream`;
    spotlight.envelopes = [];
    spotlight.follow(await fetch(spotlight.url));
    return spotlight;
  }
  // Spotlight's window reads the same stream of events: lines "data: " with an envelope that Spotlight has parsed.
  async follow(response) {
    let text = '';
    try {
      for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
        const lines = (text + piece).split('\n');
        text = lines.pop();
        for (const line of lines.filter((one) => one.startsWith('data: '))) this.envelopes.push(JSON.parse(line.slice(6)));
      }
    } catch {
      // stop() ends it
    }
  }
  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

async function startSpotlight() {
  try {
    return await Spotlight.start();
  } catch (error) {
    console.log(`skipped: Spotlight does not start with node ${process.version} (${error.message})`);
    return undefined;
  }
}

function checkRecording(envelopes) {
  assert.ok(envelopes.length >= 3, `only ${envelopes.length} envelopes`);
  const chunks = envelopes.slice(0, -1).map(([, items]) => items[0]);
  chunks.forEach(checkChunkItem);
  const [[transactionHeader, transaction]] = envelopes.at(-1)[1];
  assert.equal(transactionHeader.type, 'transaction');
  assert.equal(transaction.transaction, 'peers');
  checkProfiler(transaction, chunks.at(-1)[1]);
}

async function recordingArrivesEverywhere() {
  const server = await Server.start();
  const spotlight = await startSpotlight();
  const busy = spawn('sh', ['-c', 'while :; do :; done']);
  try {
    const { status, output } = await run(
      sentryProf,
      ['record', '-p', `${busy.pid}`, '-d', '3', '--chunk-seconds', '1', '--upload', '--dsn', server.dsn, '--transaction', 'peers'],
      spotlight ? { SENTRY_SPOTLIGHT: spotlight.url } : {});
    // 1: nothing was recorded.
    const isRefused = status === 1 && output.includes('perf_event_open');
    if (isRefused && process.env.SENTRY_PROF_REQUIRE_PERF !== '1') return console.log(`skipped: recording is not permitted here (${output.trim()})`);
    assert.equal(status, 0, output);
    const { gunzipSync } = await import('node:zlib');
    const sent = server.bodies().map((body) => gunzipSync(body));
    const envelopes = sent.map(parsed);
    checkRecording(envelopes);
    for (const body of [sent[0], sent.at(-1)]) assert.deepEqual(await cliDispatches(server, body), body);
    if (!spotlight) return undefined;
    await until(() => spotlight.envelopes.length >= envelopes.length, 'the stream of Spotlight');
    assert.equal(spotlight.envelopes.length, envelopes.length);
    spotlight.envelopes.forEach(([, items], i) => {
      // Spotlight puts the item's type into its payload.
      const expected = envelopes[i][1].map(([itemHeader, payload]) => [itemHeader, { ...payload, type: itemHeader.type }]);
      assert.deepEqual(items, expected);
    });
    console.log(`ok: Spotlight streams the ${envelopes.length} envelopes of a recording as they were sent`);
  } finally {
    busy.kill();
    spotlight?.stop();
    server.stop();
  }
}

try {
  await coreParsesDryRuns();
  console.log(`ok: @sentry/core ${SDK_VERSION} parses what --dry-run writes (V1 with transaction, V2, V2 native)`);
  await cliSendsWhatUploadSends();
  console.log('ok: sentry-cli send-envelope --raw and upload send the bytes of --dry-run');
  await recordingArrivesEverywhere();
  console.log('ok: a recording\'s chunks and transaction are parsed by @sentry/core and dispatched by sentry-cli');
} finally {
  fs.rmSync(work, { recursive: true, force: true });
}
process.exit(0);  // Spotlight leaves timers behind
