// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";

import { loaded, row, screens, show, team } from "./scene.mjs";

// visit opens the hosted page as a user whom the proxy knows.
async function visit(scene, user) {
  const origin = await scene.hosted("login", user);
  const context = await scene.context({ ignoreHTTPSErrors: true });
  await context.addCookies([{ name: "user", value: user, url: origin, httpOnly: true }]);
  const page = await context.newPage();
  // The page follows no redirect to the login of the proxy, but Playwright reports it.
  scene.watch(page, origin, "https://login.slipstream.test");
  await page.goto(`${origin}/`);
  return page;
}

const environments = (page) => page.getByRole("grid", { name: "Environments" });

// hostedRights has two users see the page with their own rights, without a link. One of them may see only a namespace.
export async function hostedRights(scene) {
  const jane = await visit(scene, "jane");
  await jane.getByRole("navigation").first().waitFor();
  await jane.getByText("system:serviceaccount:default:jane").waitFor();
  await show(jane, screens.Environments);
  await row(environments(jane), `${team}/bob`).waitFor();

  const tim = await visit(scene, "tim");
  await tim.getByRole("heading", { name: "Which namespace?" }).waitFor();
  await tim.getByText("You may not list environments in all namespaces").waitFor();
  await tim.getByRole("textbox", { name: "Namespace" }).fill(team);
  await tim.getByRole("button", { name: "Show it" }).click();
  await tim.getByText("system:serviceaccount:default:tim").waitFor();
  await show(tim, screens.Environments);
  await row(environments(tim), `${team}/bob`).waitFor();
  await allowChanges(tim);
  await show(tim, screens["Environment behind"]);
  const dismiss = tim.getByRole("main").getByRole("button", { name: /^Dismiss/ }).first();
  await dismiss.waitFor();
  assert.equal(await dismiss.isDisabled(), true, "a viewer can dismiss changes");

  // The switch of one user is not that of another.
  assert.equal(await jane.getByRole("switch", { name: "Allow changes" }).getAttribute("aria-checked"), "false");
  await tim.getByRole("banner").getByRole("button", { name: `namespace ${team}` }).click();
  await tim.getByRole("textbox", { name: "Namespace" }).fill("");
  await tim.getByRole("button", { name: "Show it" }).click();
  await tim.getByText("You may not list environments in all namespaces").waitFor();
}

async function allowChanges(page) {
  await page.getByRole("switch", { name: "Allow changes" }).click();
  await page.waitForFunction(() => document.querySelector('[role=switch][aria-checked="true"]') !== null);
}

// renewed has the proxy renew the token of a user: the page stays as it is.
export async function renewed(scene) {
  const page = await visit(scene, "jane");
  await page.getByRole("navigation").first().waitFor();
  await show(page, screens.Environments);
  await scene.hosted("login", "jane");
  await row(environments(page), `${team}/bob`).click();
  await loaded(page);
  await page.getByRole("heading", { name: /bob/ }).first().waitFor();
  assert.equal(await page.getByText(/not logged in/).count(), 0);
}

// hostedRestarted restarts the page: the tab opens a session again by itself.
export async function hostedRestarted(scene) {
  const page = await visit(scene, "jane");
  await page.getByRole("navigation").getByText("Live").waitFor();
  await scene.hosted("restart");
  await page.getByRole("navigation").getByText("Disconnected").waitFor();
  await page.getByRole("navigation").getByText("Live").waitFor();
  await show(page, screens.Environments);
  await row(environments(page), `${team}/bob`).waitFor();
}

// expired has the proxy forget the login of a user: the page asks to log in again, and shows no data.
export async function expired(scene) {
  const page = await visit(scene, "jane");
  await page.getByRole("navigation").getByText("Live").waitFor();
  await scene.hosted("logout", "jane");
  await show(page, screens["Environment behind"]);
  await page.getByRole("heading", { name: /not logged in/ }).waitFor();
  await page.getByText(/asks you to log in again/).waitFor();
  assert.equal(await page.getByRole("grid").count(), 0, "data is shown without a login");
  await scene.hosted("login", "jane");
  await page.getByRole("button", { name: "Reload the page" }).click();
  await page.getByRole("navigation").getByText("Live").waitFor();
}
