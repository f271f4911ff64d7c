// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";

import { nora, row, screens, show, team, tim, victor } from "./scene.mjs";

// viewer sees everything and no way to act: what would change something is disabled, with the permission that is missing.
export async function viewer(scene) {
  const page = await scene.open(victor);
  for (const screen of ["Environment behind", "Environment with a conflict", "Catalog", "Git", "Pipelines", "Settings"]) {
    await show(page, screens[screen]);
    const buttons = page.getByRole("main").getByRole("button", { name: acting });
    await buttons.first().waitFor();
    for (const button of await buttons.all()) {
      const name = await button.evaluate((element) => element.innerText);
      assert.ok(await button.isDisabled(), `${screen}: the button ${name} is enabled for a viewer`);
      const reason = await button.evaluate((element) => `${element.title} ${element.textContent} ${document.getElementById(element.getAttribute("aria-describedby"))?.textContent ?? ""}`);
      assert.match(reason, /permission|slipstream-edit|slipstream-admin/, `${screen}: the button ${name} has no reason: ${reason}`);
    }
  }
  // Keys do not act either.
  await show(page, screens["Environment behind"]);
  await page.keyboard.press("x");
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/permission/).first().waitFor();
  assert.ok(await dialog.getByRole("button", { name: "Run" }).isDisabled(), "a viewer can run an action");
}

// acting are the names of buttons that change something.
const acting = /^(Take|Dismiss|Offer|Roll back|Unpin|Find dep|Resolve|Retry|Read the source|Pause|Resume|Compare|Suspend|Send|Save|Apply)(?! all)/;

// oneNamespace has a user who may read only the namespace of the team.
export async function oneNamespace(scene) {
  const page = await scene.open(tim);
  await page.getByRole("main").getByText(/namespace/).first().waitFor();
  await show(page, "#/environments");
  await row(page.getByRole("grid", { name: "Environments" }), `${team}/bob`).waitFor();
  await show(page, "#/pipelines");
  await page.getByRole("main").getByText(/lack the permission/).first().waitFor();
  await page.getByRole("main").getByText(/syncpipelines/).first().waitFor();
}

// noPermissions has a user who may read nothing: each screen names the permission that is missing.
export async function noPermissions(scene) {
  const page = await scene.open(nora);
  for (const [hash, resource] of [
    ["#/inbox", "environments"], ["#/environments", "environments"], ["#/catalogs", "appcatalogs"], ["#/git", "gitdestination"],
    ["#/pipelines", "syncpipelines"], ["#/history", "changes"], ["#/settings", "syncpolicies"], [screens["Environment behind"], "environments"],
  ]) {
    await show(page, hash);
    await page.getByRole("main").getByText(/lack the permission to/).first().waitFor();
    await page.getByRole("main").getByText(resource).first().waitFor();
    assert.equal(await page.getByRole("main").getByText("bob", { exact: true }).count(), hash.endsWith("bob") ? await page.getByRole("main").getByText("bob", { exact: true }).count() : 0);
  }
}
