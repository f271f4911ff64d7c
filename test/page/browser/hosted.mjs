// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";

import { jane, loaded, row, screens, show, team, tim, until } from "./scene.mjs";

// visit opens the hosted page as a user, who logs in at the issuer first.
async function visit(scene, user) {
  const origin = await scene.hosted("address");
  const page = await (await scene.context({ ignoreHTTPSErrors: true })).newPage();
  await page.goto(`${origin}/`);
  await page.getByRole("textbox", { name: "User" }).fill(user);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL(`${origin}/**`);
  return page;
}

const environments = (page) => page.getByRole("grid", { name: "Environments" });

// hostedRights has two users see the page with their own rights, without a link. One of them may see only a namespace.
export async function hostedRights(scene) {
  const hers = await visit(scene, jane);
  scene.watch(hers, new URL(hers.url()).origin);
  await hers.getByRole("navigation").getByText(jane).waitFor();
  await show(hers, screens.Environments);
  await row(environments(hers), `${team}/bob`).waitFor();

  const his = await visit(scene, tim);
  await his.getByRole("heading", { name: "Which namespace?" }).waitFor();
  await his.getByText("You may not list environments in all namespaces").waitFor();
  await his.getByRole("textbox", { name: "Namespace" }).fill(team);
  await his.getByRole("button", { name: "Show it" }).click();
  await his.getByRole("navigation").getByText(tim, { exact: true }).waitFor();
  await show(his, screens.Environments);
  await row(environments(his), `${team}/bob`).waitFor();
  await allowChanges(his);
  await show(his, screens["Environment behind"]);
  const dismiss = his.getByRole("main").getByRole("button", { name: /^Dismiss/ }).first();
  await dismiss.waitFor();
  assert.equal(await dismiss.isDisabled(), true, "a viewer can dismiss changes");

  // The switch of one user is not that of another.
  assert.equal(await hers.getByRole("switch", { name: "Allow changes" }).getAttribute("aria-checked"), "false");
  await his.getByRole("banner").getByRole("button", { name: `namespace ${team}` }).click();
  await his.getByRole("textbox", { name: "Namespace" }).fill("");
  await his.getByRole("button", { name: "Show it" }).click();
  await his.getByText("You may not list environments in all namespaces").waitFor();
}

async function allowChanges(page) {
  await page.getByRole("switch", { name: "Allow changes" }).click();
  await page.waitForFunction(() => document.querySelector('[role=switch][aria-checked="true"]') !== null);
}

// renewed has the proxy renew the token of a user: the page stays as it is.
export async function renewed(scene) {
  const page = await visit(scene, jane);
  await page.getByRole("navigation").getByText("Live").waitFor();
  const before = await scene.hosted("renewals");
  await until("a renewed token", async () => {
    await show(page, screens.Git);
    await show(page, screens["Environment behind"]);
    assert.ok((await scene.hosted("renewals")) > before);
  });
  await show(page, screens.Environments);
  await row(environments(page), `${team}/bob`).click();
  await loaded(page);
  await page.getByRole("heading", { name: /bob/ }).first().waitFor();
  assert.equal(await page.getByText(/not logged in/).count(), 0);
}

// hostedRestarted restarts the page: the tab opens a session again by itself.
export async function hostedRestarted(scene) {
  const page = await visit(scene, jane);
  await page.getByRole("navigation").getByText("Live").waitFor();
  await scene.hosted("stop"); // It is started only when the tab has noticed.
  try {
    await page.getByRole("navigation").getByText("Disconnected").waitFor();
  } finally {
    await scene.hosted("start");
  }
  await page.getByRole("navigation").getByText("Live").waitFor();
  await show(page, screens.Environments);
  await row(environments(page), `${team}/bob`).waitFor();
}

// expired ends the login of a user at the proxy: the page asks to log in again, and shows no data.
export async function expired(scene) {
  const page = await visit(scene, jane);
  await page.getByRole("navigation").getByText("Live").waitFor();
  await page.context().clearCookies();
  await show(page, screens["Environment behind"]);
  await page.getByRole("heading", { name: /not logged in/ }).waitFor();
  await page.getByText(/asks you to log in again/).waitFor();
  assert.equal(await page.getByRole("grid").count(), 0, "data is shown without a login");
  await page.getByRole("button", { name: "Reload the page" }).click();
  await page.getByRole("textbox", { name: "User" }).waitFor();
}
