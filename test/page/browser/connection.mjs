// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";

import { jane, row, screens, show, team, victor } from "./scene.mjs";

// clusterLost cuts the connection to the cluster: what was read stays, with its age. Changes appear once the connection is back.
export async function clusterLost(scene) {
  const page = await scene.open(jane, "#/environments");
  const main = page.getByRole("main");
  const bob = row(page.getByRole("grid", { name: "Environments" }), `${team}/bob`);
  await bob.waitFor();
  try {
    await scene.cut(true);
    await main.getByText(/\d+ ?s(econds?)? old|old:/).first().waitFor();
    await bob.waitFor();
    await scene.kubectl(jane, ["label", "environment/bob", "-n", team, "while=lost", "--overwrite"]);
  } finally {
    await scene.cut(false);
  }
  await main.getByText(/old:/).first().waitFor({ state: "detached" });
  await page.getByRole("searchbox", { name: "Filter environments" }).fill("while=lost");
  await bob.waitFor();
  await row(page.getByRole("grid", { name: "Environments" }), `${team}/alice`).waitFor({ state: "detached" });
}

// pluginLost has a plugin that sends nothing for a time, as that of a computer that sleeps.
export async function pluginLost(scene) {
  const page = await scene.open(victor, "#/environments");
  const bob = row(page.getByRole("grid", { name: "Environments" }), `${team}/bob`);
  await bob.waitFor();
  try {
    await scene.pause(victor, true);
    await page.getByRole("main").getByText(/^Disconnected/).first().waitFor();
    await bob.waitFor();
  } finally {
    await scene.pause(victor, false);
  }
  await page.getByRole("main").getByText(/^Disconnected/).first().waitFor({ state: "detached" });
  await page.getByRole("navigation").getByText("Live").waitFor();
}

// usedTwice opens a link that was used before.
export async function usedTwice(scene) {
  const link = await scene.link(victor);
  const first = await (await scene.context()).newPage();
  await first.goto(link);
  await first.getByRole("navigation").first().waitFor();
  const second = await (await scene.context()).newPage();
  await second.goto(link);
  await loggedOut(second);
  await first.reload();
  await first.getByRole("navigation").first().waitFor();
  await show(first, screens.Environments);
  await row(first.getByRole("grid", { name: "Environments" }), `${team}/bob`).waitFor();
}

// restarted restarts the dashboard: the page says that the login has ended, and how to get a new link.
export async function restarted(scene) {
  const page = await scene.open(victor);
  await scene.restart(victor);
  await loggedOut(page);
  await page.goto(await scene.link(victor));
  await page.getByRole("navigation").first().waitFor();
}

// loggedOutByUser ends the login of a tab, and not that of others.
export async function loggedOutByUser(scene) {
  const page = await scene.open(victor);
  const other = await scene.open(victor);
  await page.getByRole("button", { name: "Log out" }).click();
  await loggedOut(page);
  await page.reload();
  await loggedOut(page);
  await show(other, screens.Catalogs);
  await other.getByRole("main").getByText("shop").first().waitFor();
}

async function loggedOut(page) {
  await page.getByRole("heading", { name: /not logged in/ }).waitFor();
  await page.getByText(/press Enter/i).first().waitFor();
  assert.equal(await page.getByRole("grid").count(), 0, "data is shown without a login");
}
