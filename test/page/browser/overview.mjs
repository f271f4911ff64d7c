// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";

import { jane, production, row, screens, show, team, until, victor } from "./scene.mjs";

// overview opens the page as its user does, and finds what the screens are about.
export async function overview(scene) {
  const page = await scene.open(victor);
  assert.ok(!/[A-Za-z0-9_-]{20}/.test(page.url()), `the code is still in the address ${page.url()}`);
  const paints = await page.evaluate(() => performance.getEntriesByType("paint").map((entry) => `${entry.name} ${Math.round(entry.startTime)} ms`));
  scene.log(`paint: ${paints.join(", ")}`);
  await page.getByRole("navigation").getByText(victor).waitFor();
  const inbox = page.getByRole("grid", { name: "What waits for you" });
  for (const [name, state] of [["dana", "Conflict: 2 fields"], ["carol", "Failed"], ["bob", "1 workload changed"]]) {
    await row(inbox, `${team}/${name}`).getByText(state).first().waitFor();
  }
  assert.equal(await row(inbox, `${team}/alice`).count(), 0, "what is in sync waits for nobody");
  const order = await inbox.getByRole("row").allInnerTexts();
  const at = (text) => order.findIndex((each) => each.includes(text));
  assert.ok(at("dana") < at("carol") && at("carol") < at("bob"), `the worst is not first: ${order}`);
  for (const [screen, text] of Object.entries(expected)) {
    await show(page, screens[screen]);
    await page.getByRole("main").getByText(text).first().waitFor();
    await page.getByRole("heading", { level: 1 }).first().waitFor({ state: "attached" });
    assert.match(await page.title(), /Slipstream/, `the title of ${screen}`);
  }
}

// expected is a text that each screen shows.
const expected = {
  Inbox: "Waits for you",
  Environments: "Not synced yet",
  "Environment in sync": "Synced",
  "Environment behind": "1 workload changed",
  "Environment that failed": "settings",
  "Environment with a conflict": "Conflict: 2 fields",
  Catalogs: "shop",
  Catalog: "production",
  Git: "clusters/test",
  Pipelines: "index",
  History: "bypassed",
  "History of an object": "eve",
  Settings: "Syncs per minute",
};

// numbers follows the numbers at the top, which filter the list of environments.
export async function numbers(scene) {
  const page = await scene.open(victor, "#/environments");
  const list = page.getByRole("grid", { name: "Environments" });
  const group = page.getByRole("group", { name: "Environments by state" });
  for (const [number, shown, hidden] of [
    [/synced$/, "alice", "bob"], [/waiting$/, "bob", "alice"], [/conflicts?$/, "dana", "bob"], [/failed$/, "carol", "alice"],
  ]) {
    const button = group.getByRole("button", { name: number });
    await button.click();
    await row(list, `${team}/${shown}`).waitFor();
    assert.equal(await row(list, `${team}/${hidden}`).count(), 0, `${number} also shows ${hidden}`);
    assert.equal(await button.getAttribute("aria-pressed"), "true");
    const count = parseInt(await button.innerText(), 10);
    assert.equal(await list.getByRole("row").filter({ hasText: `${team}/` }).filter({ hasNotText: "Catalog " }).count(), count, `the number of ${number}`);
  }
  await group.getByRole("button", { name: /environments$/ }).click();
  await row(list, `${team}/alice`).waitFor();
  const filter = page.getByRole("searchbox", { name: "Filter environments" });
  await filter.fill("dana");
  await row(list, `${team}/dana`).waitFor();
  await row(list, `${team}/alice`).waitFor({ state: "detached" });
  assert.match(page.url(), /q=dana/, "the filter can be linked to");
}

// older reads the changes of all namespaces until there are no more.
export async function older(scene) {
  const page = await scene.open(victor, screens.History);
  const list = page.getByRole("grid", { name: "Changes, newest first" });
  await list.waitFor();
  const more = page.getByRole("button", { name: "Show older changes" });
  await more.dispatchEvent("click"); // A real click scrolls there first, which reads them, too.
  await list.hover({ position: { x: 300, y: 100 } }); // Rows stay where they are under the pointer, and older ones are added below them.
  await until("all changes", async () => {
    await page.mouse.wheel(0, 5000);
    assert.equal(await page.getByText("These are all that are kept").count(), 1);
  });
  await more.waitFor({ state: "detached" });
  const count = Number(await list.getAttribute("aria-rowcount"));
  assert.ok(count > 210, `${count} rows`);
  await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
  await list.getByRole("link", { name: /older-/ }).first().waitFor();
}

// live changes production and sees it without a reload.
export async function live(scene) {
  const page = await scene.open(victor, "#/environments");
  await page.evaluate(() => (window.neverReloaded = true));
  const bob = row(page.getByRole("grid", { name: "Environments" }), `${team}/bob`);
  await bob.getByText("1 workload changed").first().waitFor();
  await page.getByRole("heading", { name: "Environments" }).hover();
  const began = Date.now();
  await setImage(scene, "worker", "shop/worker:2");
  const written = Date.now();
  await bob.getByText("2 workloads changed").first().waitFor();
  const seen = Date.now();
  scene.log(`a change of production is on the page ${seen - written} ms after kubectl has ended, ${seen - began} ms after it was started`);
  await show(page, "#/history");
  await page.getByRole("main").getByText("Deployment/worker").first().waitFor();
  assert.equal(await page.evaluate(() => window.neverReloaded), true, "the page was loaded again");
}

// steady holds the pointer over a list: its rows do not move, and updates wait behind a button.
export async function steady(scene) {
  const page = await scene.open(victor, "#/environments");
  const list = page.getByRole("grid", { name: "Environments" });
  const bob = row(list, `${team}/bob`);
  await bob.hover();
  // The last cell is an age, which grows.
  const shown = async () => (await bob.innerText()).split("\n").slice(0, -1).join("\n");
  const before = await shown();
  await setImage(scene, "worker", "shop/worker:1");
  const updates = page.getByRole("button", { name: /^\d+ updates?$/ });
  await updates.waitFor();
  assert.equal(await shown(), before, "the row has changed under the pointer");
  await updates.click();
  await page.getByRole("heading", { name: "Environments" }).first().hover();
  await bob.getByText("1 workload changed").first().waitFor();
}

async function setImage(scene, deployment, image) {
  await scene.kubectl("ann", ["set", "image", `deployment/${deployment}`, `main=${image}`, "-n", "production"]);
}

// compared mirrors objects that exist already: they share a line of the activity.
export async function compared(scene) {
  for (const name of ["one", "two", "three", "four"]) {
    await scene.kubectl("ann", ["create", "service", "clusterip", name, "--tcp=80", "-n", production]);
  }
  const page = await scene.open(victor);
  await scene.kubectl(jane, ["apply", "-f", "-"], `
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: services, namespace: ${production}}
spec: {destinationRef: {name: main}, rules: [{name: services, resources: [services]}]}
`);
  const activity = page.getByRole("grid", { name: "Newest changes" });
  await row(activity, "4 objects compared at the start").waitFor();
  assert.equal(await activity.getByText(/Service\//).count(), 0, "an object that was compared has a line of its own");
}

// missing leads from the inbox to the workload that is missing, and to its history, where it can be created again.
export async function missing(scene) {
  await scene.kubectl("ann", ["delete", "deployment/worker", "-n", production]);
  const page = await scene.open(victor);
  const item = row(page.getByRole("grid", { name: "What waits for you" }), `${team}/shop`);
  await item.getByText(/1 missing/).first().waitFor();
  await item.getByRole("link", { name: "Show what is missing" }).click();
  const main = page.getByRole("main");
  await main.getByText("kubectl edit appcatalog shop -n team").waitFor();
  const workload = main.getByRole("region", { name: "Workloads of the catalog" }).getByRole("row").filter({ hasText: "deployment/worker" });
  await until("the workload is in view", async () => assert.ok(await workload.evaluate((e) => e.getBoundingClientRect().top < innerHeight && e.getBoundingClientRect().top > 0)));
  await workload.getByRole("link", { name: /create it again/ }).click();
  await main.getByRole("button", { name: "Create it again" }).waitFor();
}

// large compares two contents of 7,000 lines: the page shows the lines around what differs, and more of them as its user wants.
export async function large(scene) {
  const lines = Array.from({ length: 7_000 }, (_, i) => `${i % 3 === 0 ? "again and again" : `line ${i}`}, with a text of the usual length of a line`);
  const configMap = (text) => JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "large", namespace: production }, data: { text } });
  await scene.kubectl("ann", ["create", "-f", "-"], configMap(lines.join("\n")));
  const page = await scene.open(jane, screens.History);
  const list = page.getByRole("grid", { name: "Changes, newest first" });
  const change = (did) => row(list, "ConfigMap/large").filter({ has: page.getByText(did, { exact: true }) }).first();
  await change("created").waitFor();
  lines[2_000] += " (first)";
  lines.splice(5_000, 0, "second");
  await scene.kubectl("ann", ["replace", "-f", "-"], configMap(lines.join("\n")));
  await page.evaluate(() => {
    window.longest = 0;
    new PerformanceObserver((tasks) => tasks.getEntries().forEach((each) => (window.longest = Math.max(window.longest, each.duration)))).observe({ type: "longtask" });
  });
  await change("updated").click();
  const diff = page.getByRole("region", { name: "Before and After" });
  await diff.locator("ins").getByText("second").waitFor();
  assert.deepEqual([await diff.locator("ins").count(), await diff.locator("del").count()], [2, 1], "lines that are the same are marked");
  scene.log(`the longest task while two contents of ${Math.round(lines.join("\n").length / 1024)} KiB are compared takes ${Math.round(await page.evaluate(() => window.longest))} ms`);
  const shown = async () => await diff.getByRole("row").count();
  const before = await shown();
  assert.ok(before < 50, `${before} rows are shown at first`);
  await diff.getByRole("button", { name: "Show 200 more unchanged lines" }).first().click();
  await until("200 more lines are shown", async () => assert.equal(await shown(), before + 200));
  await show(page, `#/history/${production}/configmaps/large`);
  await page.getByRole("main").getByRole("button", { name: "Blame" }).click();
  await page.getByRole("region", { name: "Each line with its last change" }).getByText(/older lines left out/).waitFor();
}

// loading shows what is on the way until the lists arrive.
export async function loading(scene) {
  const page = await scene.open(victor);
  let arrive;
  const arrived = new Promise((resolve) => (arrive = resolve));
  await page.route("**/api/stream", async (route) => {
    await arrived;
    await route.continue();
  });
  await page.reload();
  await page.getByText("Loading environments: 0 of 6 lists have arrived").waitFor();
  assert.equal(await page.getByRole("heading", { name: "Waits for you" }).innerText(), "Waits for you", "a number is shown before it is known");
  arrive();
  await row(page.getByRole("grid", { name: "What waits for you" }), `${team}/carol`).waitFor();
}
