// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs the scenarios of a file for the Go test that starts this process. Both exchange lines of JSON on standard input and output: the test
// names a scenario, and the scenario asks the test for steps, such as a command of kubectl, until it ends.
//
//   node main.mjs FILE

import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

import { Scene } from "./scene.mjs";

const { scenarios } = await import(pathToFileURL(process.argv[2]));
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function receive() {
  const { value, done } = await lines.next();
  return done ? undefined : JSON.parse(value);
}

function send(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

// step asks the test for a step and returns its result.
async function step(name, args) {
  send({ do: name, args });
  const reply = await receive();
  if (reply === undefined) {
    throw new Error("the test has ended");
  }
  if (reply.error) {
    throw new Error(`${name} ${JSON.stringify(args)}: ${reply.error}`);
  }
  return reply.result;
}

// Without Chromium's sandbox, the tests also run as root in containers. They only open pages of their own. The name evil.test is resolved
// to this machine, as the name of an attacker is in DNS rebinding, and slipstream.test as that of the hosted page.
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  chromiumSandbox: false,
  args: ["--host-resolver-rules=MAP evil.test 127.0.0.1, MAP slipstream.test 127.0.0.1"],
});

async function run(name) {
  const scene = new Scene(browser, step, (text) => send({ log: text }));
  try {
    await scenarios[name](scene);
    await scene.end();
    send({ done: true });
  } catch (error) {
    const screenshot = join(process.env.ARTIFACTS, `${name.replaceAll("/", "-")}.png`);
    await scene.screenshot(screenshot).catch(() => {}); // The page may have crashed.
    await scene.close().catch(() => {});
    send({ done: true, error: `${error.stack ?? error}`, screenshot });
  }
}

for (let message = await receive(); message !== undefined; message = await receive()) {
  if (message.list) {
    send({ scenarios: Object.keys(scenarios) });
  } else {
    await run(message.scenario);
  }
}
await browser.close();
