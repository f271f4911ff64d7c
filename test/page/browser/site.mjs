// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The scenarios of test/site, which read the site of the documentation.
import assert from "node:assert/strict";

import { axe } from "./accessibility.mjs";

export const scenarios = { Search: search, Folder: searchFolder, Read: read, Accessible: accessible };

// open opens a page of the site, and records errors of its scripts, what its policy refuses, and what the console shows. The site is on a
// server, or in a folder.
async function open(scene, path, options = {}, where = "address") {
  const address = await scene.ask(where, {});
  const page = await (await scene.context(options)).newPage();
  scene.watch(page, new URL(address).origin);
  page.on("console", (message) => scene.problems.push(`console: ${message.text()}`));
  await page.goto(`${address}/${path}`);
  return page;
}

// find starts on the first page of the site, finds a section of another page, and opens it. It returns the results.
async function find(page) {
  await page.getByRole("heading", { level: 1, name: "Slipstream" }).waitFor();
  assert.match(page.url(), /\/v0\.1\.0\/(index\.html)?$/, "the first page is not that of the newest release");
  for (const modifier of ["Control", "Alt", "Meta"]) {
    await page.keyboard.press(`${modifier}+/`);
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "BODY", `${modifier}+/ starts a search`);
  }
  await page.keyboard.press("/");
  await page.keyboard.type("Defragment store");
  const results = page.locator(".results");
  const first = results.getByRole("link").first();
  await first.getByText(/defragment/i).first().waitFor();
  assert.ok(await results.locator("mark").count() > 1, "the words are not marked");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/docs\/operations\.html#/);
  await page.getByRole("heading", { level: 1, name: "Operations" }).waitFor();
  return results;
}

// searchFolder searches in pages that are opened from a folder, without a server.
async function searchFolder(scene) {
  await find(await open(scene, "index.html", {}, "folder"));
}

// search searches from the keyboard.
async function search(scene) {
  const page = await open(scene, "");
  const results = await find(page);
  const box = page.getByRole("searchbox");
  await box.fill("<img src=x> nowhere");
  await results.getByText("No section has all these words.").waitFor();
  await page.keyboard.press("Escape");
  await results.waitFor({ state: "hidden" });
  await box.fill("kubectl");
  await results.getByText(/^The first 20 of \d+ sections$/).waitFor();
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.evaluate(() => document.activeElement.closest(".results") !== null), true, "the arrow selects no result");
}

// read opens pages of all kinds on a large and on a small screen, whose menu is folded, and chooses another version.
async function read(scene) {
  for (const width of [1400, 1000, 320]) {
    const page = await open(scene, "v0.1.0/docs/dashboard.html", { viewport: { width, height: 800 } });
    for (const path of ["dashboard", "concepts", "decisions", "kinds/environment", "operations"]) {
      await page.goto(`${new URL(page.url()).origin}/v0.1.0/docs/${path}.html`);
      const [wide, window, broken] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth,
        [...document.images].filter((image) => !image.complete || image.naturalWidth === 0).map((image) => image.src)]);
      assert.ok(wide <= window, `${path} is ${wide} wide at ${window}`);
      assert.deepEqual(broken, [], "pictures are not shown");
    }
    const menu = page.getByRole("navigation", { name: "Pages" });
    if (width < 800) {
      await menu.getByText("Menu", { exact: true }).click();
    }
    await menu.getByText("Kinds", { exact: true }).click();
    await menu.getByRole("link", { name: "WatchRule", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "WatchRule" }).waitFor();
    await page.getByRole("link", { name: "v0.1.0" }).click();
    await page.getByRole("main").getByRole("link", { name: "latest" }).click();
    await page.waitForURL(/\/latest\/(index\.html)?$/);
  }
}

// accessible checks pages and results of the search with axe-core.
async function accessible(scene) {
  for (const colorScheme of ["light", "dark"]) {
    for (const path of ["versions.html", "v0.1.0/docs/tour.html", "latest/docs/kinds/environment.html"]) {
      const page = await open(scene, path, { colorScheme });
      if (path !== "versions.html") {
        await page.getByRole("searchbox").fill("webhook");
        await page.locator(".results").getByRole("link").first().waitFor();
      }
      await page.evaluate(axe);
      const violations = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations
        .map((each) => `${each.id}: ${each.help}: ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`));
      assert.deepEqual(violations, [], `${path}, ${colorScheme}`);
    }
  }
}
