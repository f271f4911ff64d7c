// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The scenarios of test/bench/page, which measure the page with many environments and Changes.
import assert from "node:assert/strict";

import { show } from "./scene.mjs";

export const scenarios = {
  Start: start,
  Environments: environments,
  Filter: filter,
  Updates: updates,
  "Updates/pointer=away": (scene) => updates(scene, true),
  "History/namespaces=all": (scene) => history(scene, ""),
  "History/namespaces=one": (scene) => history(scene, "shop-3"),
  Life: life,
};

// loads is how often the page is loaded.
const loads = 9;
// mostRows is the number of Changes at which scrolling ends.
const mostRows = 10_000;

// observe runs in each page before its scripts: it records long tasks, and when all rows of a grid are known.
function observe() {
  window.tasks = [];
  window.observer = new PerformanceObserver((list) => window.tasks.push(...list.getEntries()));
  window.observer.observe({ type: "longtask", buffered: true });
  const rows = new MutationObserver(() => {
    if (document.querySelector("[role=grid][aria-label=Environments] [data-key]")) {
      window.rowsAt = performance.now();
      rows.disconnect();
    }
  });
  rows.observe(document, { childList: true, subtree: true });
}

// open opens the page of the administrator on a screen.
async function open(scene, hash) {
  const context = await scene.context();
  await context.addInitScript(observe);
  const page = await context.newPage();
  const link = await scene.ask("link", {});
  scene.watch(page, new URL(link).origin);
  await page.goto(link);
  await page.getByRole("navigation").first().waitFor();
  await show(page, hash);
  return page;
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

// during returns the longest task of the page while something runs, in milliseconds, and 0 if none took longer than 50.
async function during(page, run) {
  const from = await page.evaluate(() => performance.now());
  await run();
  return page.evaluate(async (since) => {
    for (let i = 0; i < 3; i++) {
      await new Promise(requestAnimationFrame);
    }
    window.tasks.push(...window.observer.takeRecords());
    return Math.max(0, ...window.tasks.filter((task) => task.startTime >= since).map((task) => task.duration));
  }, from);
}

// rowsOf returns the number of rows of a grid, without its head.
const rowsOf = (page, name) => page.evaluate((label) => Number(document.querySelector(`[role=grid][aria-label="${label}"]`).getAttribute("aria-rowcount")) - 1, name);

// atEnd reports whether the last row of a grid is in the window.
const atEnd = (page, name) =>
  page.evaluate((label) => {
    const list = document.querySelector(`[role=grid][aria-label="${label}"]`);
    return list.querySelector(`[aria-rowindex="${list.getAttribute("aria-rowcount")}"]`)?.getBoundingClientRect().top < innerHeight;
  }, name);

// scroll scrolls the page down to its end or up to its beginning, some rows a frame.
const scroll = (page, up = false) =>
  page.evaluate(async (backwards) => {
    const left = () => (backwards ? scrollY : document.documentElement.scrollHeight - innerHeight - scrollY);
    while (left() > 1) {
      scrollBy(0, backwards ? -300 : 300);
      await new Promise(requestAnimationFrame);
    }
  }, up);

// start loads the page with new links, and then its list of environments again and again.
async function start(scene) {
  const { environments: wanted } = await scene.ask("seeded", {});
  const [paints, rows, longest] = [[], [], []];
  for (let i = 0; i < loads; i++) {
    const page = await open(scene, "#/environments");
    paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
    await page.reload();
    await page.waitForFunction(() => window.rowsAt !== undefined);
    const [at, task] = await page.evaluate(() => [window.rowsAt, Math.max(0, ...window.tasks.map((each) => each.duration))]);
    rows.push(at);
    longest.push(task);
    assert.ok((await rowsOf(page, "Environments")) >= wanted);
    await page.context().close();
  }
  await scene.report("paint-ms", median(paints));
  await scene.report("rows-ms", median(rows));
  await scene.report("longest-ms", median(longest));
}

// environments scrolls the whole list down and up.
async function environments(scene) {
  const { environments: wanted } = await scene.ask("seeded", {});
  const page = await open(scene, "#/environments");
  const longest = await during(page, async () => {
    await scroll(page);
    const rows = await rowsOf(page, "Environments");
    assert.ok(rows >= wanted && (await atEnd(page, "Environments")), `the last of ${rows} rows is not shown`);
    await scroll(page, true);
  });
  await scene.report("longest-ms", longest);
}

// filter types a filter, and removes it.
async function filter(scene) {
  const { environments: wanted } = await scene.ask("seeded", {});
  const page = await open(scene, "#/environments");
  const text = "environment-77";
  const longest = await during(page, async () => {
    await page.keyboard.press("/");
    await page.keyboard.type(text, { delay: 40 });
    await page.getByText(`11 environments of ${wanted}`).waitFor();
    for (let i = 0; i < text.length; i++) {
      await page.keyboard.press("Backspace", { delay: 40 });
    }
    await page.waitForFunction((count) => Number(document.querySelector("[role=grid]").getAttribute("aria-rowcount")) > count, wanted);
  });
  await scene.report("longest-ms", longest);
}

// updates scrolls while environments are updated: with the pointer on the list, where updates wait, or away from it.
async function updates(scene, away = false) {
  const { environments: wanted, updates: count } = await scene.ask("seeded", {});
  const page = await open(scene, "#/environments");
  await (away ? page.getByRole("heading", { level: 1 }) : page.getByRole("grid", { name: "Environments" })).hover();
  const label = `${away ? "away" : "over"}-${Date.now()}`;
  const longest = await during(page, async () => {
    let updating = true;
    const updated = scene.ask("update", { label }).finally(() => (updating = false));
    while (updating) {
      await scroll(page);
      await scroll(page, true);
    }
    await updated;
    if (!away) {
      await page.getByRole("button", { name: `${count} updates`, exact: true }).click();
    }
  });
  await page.getByRole("searchbox", { name: "Filter environments" }).fill(`bench=${label}`);
  await page.getByText(`${count} environments of ${wanted}`).waitFor();
  await scene.report("longest-ms", longest);
}

// history scrolls the Changes of a namespace, or of all, as far as the page lets its user.
async function history(scene, namespace) {
  const { namespaced } = await scene.ask("seeded", {});
  const page = await open(scene, `#/history${namespace === "" ? "" : `?namespace=${namespace}`}`);
  const name = "Changes, newest first";
  await page.getByRole("grid", { name }).waitFor();
  const most = namespace === "" ? mostRows : namespaced;
  let rows = 0;
  const longest = await during(page, async () => {
    do {
      rows = await rowsOf(page, name);
      await scroll(page);
    } while (rows < most && (await grown(page, name, rows)));
    await scroll(page, true);
  });
  assert.ok(rows >= most, `${rows} rows`);
  await scene.report("rows", rows);
  await scene.report("longest-ms", longest);
}

// grown waits for more rows of a grid.
async function grown(page, name, rows) {
  await page.getByRole("grid", { name }).and(page.locator(`[aria-rowcount]:not([aria-rowcount="${rows + 1}"])`)).waitFor();
  return true;
}

// life opens the changes of one object, and goes through them.
async function life(scene) {
  const { life: wanted } = await scene.ask("seeded", {});
  const page = await open(scene, "#/inbox");
  const longest = await during(page, async () => {
    await show(page, "#/history/shop-3/deployments/web");
    await page.getByText(`${wanted} of ${wanted} changes`).waitFor();
    const slider = page.getByRole("slider", { name: "Change" });
    await slider.focus();
    for (let i = 0; i < 50; i++) {
      await slider.press("ArrowLeft");
    }
    await page.getByText(`${wanted - 50} of ${wanted} changes`).waitFor();
  });
  await scene.report("changes", wanted);
  await scene.report("longest-ms", longest);
}
