// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";

import { jane, loaded, production, row, show } from "./scene.mjs";

// The values of the Secret before and after it is changed. The Go test has written the first one.
const values = ["hunter2-of-production", "swordfish-of-production"];

// recordResponses runs in a page before its scripts, and keeps all that the page receives.
function recordResponses() {
  window.received = [];
  const { fetch } = window;
  window.fetch = async (...request) => {
    const response = await fetch(...request);
    const reader = response.clone().body?.getReader();
    const at = window.received.push("") - 1;
    const decoder = new TextDecoder();
    const read = async () => {
      for (let part = await reader?.read(); part && !part.done; part = await reader.read()) {
        window.received[at] += decoder.decode(part.value, { stream: true });
      }
    };
    read().catch(() => {}); // The page has stopped to read.
    return response;
  };
}

// secretValues shows, undoes and restores changes of a Secret, and looks for its values in all that the browser receives.
export async function secretValues(scene) {
  await scene.kubectl("ann", ["patch", "secret/setup", "-n", production, "-p", JSON.stringify({ stringData: { TOKEN: values[1] } })]);
  const page = await (await scene.context()).newPage();
  await page.addInitScript(recordResponses);
  const link = await scene.link(jane);
  scene.watch(page, new URL(link).origin);
  await page.goto(link);
  await page.getByRole("navigation").first().waitFor();
  await show(page, `#/history?namespace=${production}&kind=Secret`);
  const list = page.getByRole("grid", { name: "Changes, newest first" });
  await row(list, "Secret/setup").filter({ has: page.getByText("updated", { exact: true }) }).first().click();
  const main = page.getByRole("main");
  await main.getByText("Only values differ").waitFor();
  await main.getByText("/data/TOKEN").first().waitFor();
  for (const action of ["Undo this change", "Restore to here"]) {
    await main.getByRole("button", { name: action }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("region", { name: "Preview" }).getByText("Secret/setup").first().waitFor();
    const allow = dialog.getByRole("button", { name: "Allow changes" });
    if (await allow.isVisible()) {
      await allow.click();
    }
    await dialog.getByRole("button", { name: "Run", exact: true }).click();
    await dialog.getByText("Secret/setup was updated.").waitFor();
    await dialog.getByRole("button", { name: "Close" }).last().click();
    await dialog.waitFor({ state: "detached" });
  }
  assert.equal(Buffer.from(await scene.kubectl(jane, ["get", "secret/setup", "-n", production, "-o", "jsonpath={.data.TOKEN}"]), "base64").toString(), values[1]);
  await main.getByRole("link", { name: "Life of this object" }).click();
  await main.getByRole("button", { name: "Compared with the newest" }).click();
  await loaded(page);
  await main.getByRole("button", { name: "Blame" }).click();
  await main.getByRole("region", { name: "Each line with its last change" }).getByText("TOKEN").first().waitFor();
  await show(page, "#/environments/team/bob");
  await show(page, "#/environments/team/bob?tab=dependencies");
  const received = (await page.evaluate(() => window.received)).join("\n");
  for (const expected of ["Secret/setup", "TOKEN"]) {
    assert.ok(received.includes(expected), `${expected} was not received: the responses were not recorded`);
  }
  for (const value of values) {
    for (const text of [value, Buffer.from(value).toString("base64")]) {
      assert.ok(!received.includes(text), `the browser has received ${text}`);
    }
  }
}
