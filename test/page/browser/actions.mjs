// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";

import { jane, production, row, screens, show, team, until } from "./scene.mjs";

// act runs an action by its button, and returns what its dialog shows at the end. command is a part of the command line that the dialog shows.
async function act(page, button, command, { fill = async () => {}, result = "Done." } = {}) {
  await button.click();
  const dialog = page.getByRole("dialog");
  await fill(dialog);
  await dialog.getByText(command).first().waitFor();
  await run(dialog);
  await dialog.getByText(result).first().waitFor().catch(async (error) => {
    throw new Error(`${command} does not end with ${result}: ${await dialog.innerText()}\n${error.message}`);
  });
  const shown = await dialog.innerText();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await dialog.waitFor({ state: "detached" });
  return shown;
}

// run runs what a dialog shows, after changes are allowed. name is that of the button.
async function run(dialog, name = "Run") {
  const allow = dialog.getByRole("button", { name: "Allow changes" });
  if (await allow.isVisible()) {
    assert.ok(await dialog.getByRole("button", { name, exact: true }).isDisabled(), "an action can be run before changes are allowed");
    await allow.click();
  }
  await dialog.getByRole("button", { name, exact: true }).click();
}

// save saves what a dialog shows: fields, each with its value before and after.
async function save(page, fields) {
  const dialog = page.getByRole("dialog");
  for (const values of fields) {
    const line = dialog.getByRole("row").filter({ hasText: values[0] });
    await line.waitFor();
    assert.deepEqual(await line.getByRole("cell").allInnerTexts(), values);
  }
  await run(dialog, "Save");
  await dialog.waitFor({ state: "detached" });
}

// button returns a button of the screen by its name, in a part of it.
const button = (within, name) => within.getByRole("button", { name }).first();

// stateOf waits for the sentence of an environment or a catalog.
const stateOf = (page, text) => page.getByRole("main").getByText(text).first().waitFor();

// environmentActions dismisses, takes, rolls back and unpins the changes of an environment.
export async function environmentActions(scene) {
  const page = await scene.open(jane, screens["Environment behind"]);
  const main = page.getByRole("main");
  await stateOf(page, "1 workload changed");
  await main.getByRole("region", { name: "What a sync would change" }).getByText("shop/api:2").waitFor();
  await act(page, button(main, "Dismiss"), "kubectl slipstream dismiss bob");
  await act(page, button(main, "Offer again"), "kubectl slipstream undismiss bob");
  await button(main, /^Take everything/).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("region", { name: "Preview" }).waitFor();
  await dialog.getByText("shop/api:2").first().waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  const synced = await act(page, button(main, /^Take everything/), "kubectl slipstream sync bob");
  assert.match(synced, /Synced/, "the output of the sync");
  assert.equal(await image(scene, "bob", "api"), "shop/api:2");
  await stateOf(page, /^Synced/);
  await main.getByRole("tab", { name: "Revisions" }).click();
  await act(page, button(main, "Roll back to r1"), "kubectl slipstream rollback bob --to=1");
  assert.equal(await image(scene, "bob", "api"), "shop/api:1");
  await stateOf(page, "pinned at r1");
  await act(page, button(main, "Unpin"), "kubectl slipstream unpin bob");
  await main.getByText("pinned at r1").first().waitFor({ state: "detached" });
  await act(page, button(main, "Find dependencies again"), "kubectl slipstream rediscover bob");
  await main.getByRole("tab", { name: "Dependencies" }).click();
  await main.getByRole("region", { name: "Dependencies" }).getByText("settings").first().waitFor();
  await main.getByRole("tab", { name: "Records" }).click();
  await main.getByRole("region", { name: "Records" }).getByText(jane).first().waitFor();
}

// explained traces why a workload differs from its source.
export async function explained(scene) {
  const page = await scene.open(jane, screens["Environment behind"]);
  await button(page.getByRole("main"), "Explain a difference").click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox").fill("deployment/api");
  await dialog.getByText("kubectl slipstream explain-drift bob deployment/api").waitFor();
  await dialog.getByRole("region", { name: "Output" }).getByText("production").first().waitFor();
}

// overwritten warns before a sync overwrites what was changed by hand in an environment that is no branch.
export async function overwritten(scene) {
  await scene.kubectl(jane, ["set", "image", "deployment/api", "main=shop/api:hand", "-n", "bob"]);
  const page = await scene.open(jane, screens["Environment behind"]);
  const allow = page.getByRole("switch", { name: "Allow changes" });
  await allow.click(); // The dialog must not be disabled for another reason.
  let check;
  const checked = new Promise((resolve) => (check = resolve));
  await page.route("**/api/run", async (route) => {
    await checked;
    await route.continue();
  });
  await button(page.getByRole("main"), /^Take everything/).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Checking").waitFor();
  assert.ok(await dialog.getByRole("button", { name: "Run", exact: true }).isDisabled(), "a sync can be run before it is known what it overwrites");
  check();
  const warning = dialog.getByRole("status").filter({ hasText: "This overwrites 1 field" });
  await warning.getByText("Deployment/api spec.template.spec.containers[main].image").waitFor();
  await warning.getByText("kubectl-set").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.equal(await image(scene, "bob", "api"), "shop/api:hand");
  await allow.click();
}

// conflict leads to the decision from the inbox and from the end of a sync, and decides about the fields.
export async function conflict(scene) {
  const page = await scene.open(jane);
  const dialog = page.getByRole("dialog");
  await row(page.getByRole("grid", { name: "What waits for you" }), `${team}/dana`).getByRole("button", { name: "Decide now" }).click();
  await dialog.getByText("shop/api:dana").first().waitFor();
  await dialog.getByText("shop/api:2").first().waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await show(page, screens["Environment with a conflict"]);
  const main = page.getByRole("main");
  assert.equal(await main.getByRole("button", { name: "Take", exact: true }).count(), 0, "a conflict is offered as a change to take");
  await button(main, "Take everything").click();
  await dialog.getByText("2 fields were changed here and in the catalog").waitFor();
  await run(dialog);
  await dialog.getByText(/^Fields are in conflict/).waitFor();
  await dialog.getByRole("button", { name: "Decide now" }).click();
  const field = (name) => dialog.getByRole("group", { name });
  await field(/\/image$/).getByRole("radio", { name: /Ours/ }).check();
  await field(/\/memory$/).getByRole("radio", { name: /Theirs/ }).check();
  await act(page, button(dialog, "Resolve 2 fields"), "kubectl slipstream resolve dana");
  await stateOf(page, /^Synced/);
  assert.equal(await image(scene, "dana", "api"), "shop/api:dana");
  assert.equal(await scene.kubectl(jane, ["get", "deployment/api", "-n", "dana", "-o", "jsonpath={..resources.limits.memory}"]), "128Mi");
}

// expected says before a sync that it will find conflicts.
export async function expected(scene) {
  const page = await scene.open(jane, screens["Environment with a conflict"]);
  const main = page.getByRole("main");
  const state = main.getByText(/^(Synced|Conflict: \d+ fields?)/).first();
  await state.waitFor();
  if ((await state.innerText()).startsWith("Conflict")) { // That of the other scenario.
    await button(main, "Keep all ours").click();
    await act(page, button(main, "Resolve 2 fields"), "kubectl slipstream resolve dana");
    await stateOf(page, /^Synced/);
  }
  await scene.kubectl(jane, ["set", "image", "deployment/api", "main=shop/api:mine", "-n", "dana"]);
  await scene.kubectl("ann", ["set", "image", "deployment/api", "main=shop/api:9", "-n", production]);
  await main.getByText(/^1 field will be in conflict/).waitFor();
  await button(main, "Take and decide").click();
  await page.getByRole("dialog").getByText("1 field was changed here and in the catalog.").waitFor();
}

// several takes and dismisses the changes of several environments, which are selected with the space bar and the pointer.
export async function several(scene) {
  const page = await scene.open(jane, screens.Environments);
  const list = page.getByRole("grid", { name: "Environments" });
  await row(list, `${team}/erin`).focus();
  await page.keyboard.press(" ");
  await list.getByRole("checkbox", { name: `Select ${team}/erin` }).and(list.locator(":checked")).waitFor();
  await list.getByRole("checkbox", { name: `Select ${team}/hostile` }).check();
  await page.keyboard.press("x");
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("heading", { name: "Dismiss changes of 2 environments" }).waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Take changes of 2 environments" }).click();
  const result = (name) => dialog.getByRole("row").filter({ hasText: `${team}/${name}` });
  await result("erin").getByText(/create/).first().waitFor();
  await result("hostile").getByText(/1 update/).first().waitFor();
  await dialog.getByText("2 commands").click();
  await dialog.getByText(`kubectl slipstream sync erin -n ${team}`).waitFor();
  await run(dialog, "Take changes of 2 environments");
  for (const name of ["erin", "hostile"]) {
    await result(name).getByText(/^Synced/).first().waitFor();
  }
  assert.equal(await image(scene, "erin", "worker"), "shop/worker:1");
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await page.getByRole("button", { name: /^Take changes of/ }).waitFor({ state: "detached" });
  await row(list, `${team}/erin`).getByText(/^Synced/).first().waitFor();
}

// retried tries again what has failed, once its cause is removed.
export async function retried(scene) {
  const page = await scene.open(jane, screens["Environment that failed"]);
  const main = page.getByRole("main");
  await main.getByText(/ConfigMap 'settings' of carol/).first().waitFor();
  await scene.kubectl(jane, ["delete", "configmap/settings", "-n", "carol"]);
  await main.getByRole("tab", { name: "Records" }).click();
  await act(page, button(main.getByRole("region", { name: "Records" }), "Retry"), "kubectl slipstream retry carol-");
  await stateOf(page, /^Synced/);
}

// automatic switches automatic syncs on and off. A dialog shows what is written before it is.
export async function automatic(scene) {
  const page = await scene.open(jane, screens["Environment behind"]);
  const auto = page.getByRole("switch", { name: "Auto-sync" });
  for (const on of [true, false]) {
    await auto.click();
    await page.getByRole("dialog").getByText(`kubectl patch environment bob --type=merge -p '{"spec":{"autoSync":${on}}}' -n ${team}`).waitFor();
    assert.equal(await autoSync(scene), !on, "the switch is saved before the user agrees");
    await save(page, [["spec.autoSync", `${!on}`, `${on}`]]);
    await page.getByRole("switch", { name: "Auto-sync", checked: on }).waitFor();
    assert.equal(await autoSync(scene), on);
  }
}

const autoSync = async (scene) => await scene.kubectl(jane, ["get", "environment/bob", "-n", team, "-o", "jsonpath={.spec.autoSync}"]) === "true";

// catalogActions reads the source again, pauses, and returns to a revision.
export async function catalogActions(scene) {
  const page = await scene.open(jane, screens.Catalog);
  const main = page.getByRole("main");
  await act(page, button(main, "Read the source"), "kubectl slipstream sync catalog/shop");
  await act(page, button(main, "Pause"), "kubectl slipstream pause shop", { fill: (dialog) => dialog.getByRole("radio", { name: "4h", exact: true }).check() });
  await stateOf(page, /^Paused/);
  await act(page, button(main, "Resume"), "kubectl slipstream resume shop");
  await main.getByText(/^Paused/).first().waitFor({ state: "detached" });
  await act(page, button(main, "Roll back to r1"), "kubectl slipstream rollback catalog/shop --to=1");
  await stateOf(page, /^Pinned/);
  await act(page, button(main, "Unpin"), "kubectl slipstream unpin catalog/shop");
  await main.getByText(/^Pinned/).first().waitFor({ state: "detached" });
}

// gitActions compares with Git, and suspends the mirror.
export async function gitActions(scene) {
  const page = await scene.open(jane, screens.Git);
  const card = page.getByRole("article", { name: `${production}/main` });
  await act(page, button(card, "Compare with Git"), "kubectl slipstream sync gitdestination/main");
  await act(page, button(card, "Suspend"), "kubectl slipstream suspend main");
  await card.getByText("Suspended").first().waitFor();
  await act(page, button(card, "Resume"), "kubectl slipstream unsuspend main");
  await card.getByText("Up to date").first().waitFor();
}

// pipelineActions sends everything, and suspends a pipeline.
export async function pipelineActions(scene) {
  const page = await scene.open(jane, screens.Pipelines);
  const card = page.getByRole("article", { name: "index" });
  await act(page, button(card, "Send everything"), "kubectl slipstream sync-pipeline index");
  await act(page, button(card, "Suspend"), "kubectl slipstream suspend syncpipeline/index");
  await card.getByText("Suspended").first().waitFor();
  await act(page, button(card, "Resume"), "kubectl slipstream unsuspend syncpipeline/index");
  await card.getByText("Up to date").first().waitFor();
}

// history finds a change, undoes it, and restores the object.
export async function history(scene) {
  const page = await scene.open(jane, screens.History);
  const main = page.getByRole("main");
  const list = page.getByRole("grid", { name: "Changes, newest first" });
  await page.getByRole("checkbox", { name: "Only bypassed" }).check();
  await row(list, "ConfigMap/managed").first().getByText(/bypassed/).waitFor();
  await row(list, "ConfigMap/note").first().waitFor({ state: "detached" });
  await page.getByRole("checkbox", { name: "Only bypassed" }).uncheck();
  await page.getByLabel("Person").fill("eve");
  // What a user types stays when a row arrives.
  await scene.kubectl("ann", ["create", "configmap", "arrives", "-n", production, "--from-literal=a=1"]);
  await row(list, "ConfigMap/arrives").first().waitFor();
  assert.equal(await page.getByLabel("Person").inputValue(), "eve");
  await page.keyboard.press("Enter");
  await row(list, "ConfigMap/settings").first().waitFor({ state: "detached" });
  await row(list, "ConfigMap/note").first().click();
  for (const text of ["eve", "winter colors", "red", "blue"]) {
    await main.getByText(text).first().waitFor();
  }
  const changes = async () => (await scene.kubectl(jane, ["get", "changes", "-n", production, "--field-selector=object.name=note", "-o", "name"])).split("\n").length;
  const before = await changes();
  await act(page, button(main, "Undo this change"), /kubectl slipstream undo \S+ --yes/, { result: "ConfigMap/note was updated." });
  assert.equal(await color(scene), "red");
  // Pushed together, the undo and the restore would be no change.
  await until("the Change of the undo", async () => assert.equal(await changes(), before + 1));
  await act(page, button(main, "Restore to here"), /kubectl slipstream restore configmaps\/note/);
  assert.equal(await color(scene), "blue");
  await main.getByRole("link", { name: "Life of this object" }).click();
  const all = before + 2;
  await main.getByText(`${all} of ${all} changes`, { exact: true }).waitFor();
  await button(main, "Older").click();
  await main.getByText(`${all - 1} of ${all} changes`, { exact: true }).waitFor();
  await button(main, "Compared with the newest").click();
  await main.getByRole("region", { name: /After this change/ }).waitFor();
  await button(main, "Blame").click();
  await main.getByRole("region", { name: /last change/ }).getByText("color: blue").waitFor();
}

// createdAgain has one way back from a deletion, and says what it has written, with a link to the history of the object.
export async function createdAgain(scene) {
  await scene.kubectl("ann", ["create", "configmap", "brief", "-n", production, "--from-literal=a=1"]);
  const page = await scene.open(jane, `#/history?namespace=${production}&kind=ConfigMap`);
  const list = page.getByRole("grid", { name: "Changes, newest first" });
  const brief = (did) => row(list, "ConfigMap/brief").filter({ has: page.getByText(did, { exact: true }) }).first();
  await brief("created").waitFor();
  await scene.kubectl("ann", ["delete", "configmap", "brief", "-n", production]);
  await brief("deleted").click();
  const main = page.getByRole("main");
  await main.getByRole("button", { name: "Create it again" }).waitFor();
  assert.equal(await main.getByRole("button", { name: /Undo|Restore/ }).count(), 0, "a deletion has two ways back");
  await main.getByRole("button", { name: "Create it again" }).click();
  const dialog = page.getByRole("dialog", { name: "Create it again" });
  await dialog.getByText(/kubectl slipstream undo \S+ --yes/).waitFor();
  await run(dialog);
  await dialog.getByText("ConfigMap/brief was created.").waitFor();
  assert.equal(await scene.kubectl(jane, ["get", "configmap/brief", "-n", production, "-o", "jsonpath={.data.a}"]), "1");
  await dialog.getByRole("link", { name: "History of the object" }).click();
  await dialog.waitFor({ state: "detached" });
  await main.getByText("3 of 3 changes").waitFor();
}

// settings changes a setting of the server, and shows the error of an invalid one.
export async function settings(scene) {
  const page = await scene.open(jane, screens.Settings);
  const main = page.getByRole("main");
  const perMinute = main.getByLabel("Syncs per minute");
  await perMinute.fill("9999");
  await button(main, "Save").click();
  await save(page, [["spec.maxSyncsPerMinute", "10000", "9999"]]);
  await main.getByText("Saved.").waitFor();
  assert.equal(await scene.kubectl(jane, ["get", "syncpolicy/default", "-o", "jsonpath={.spec.maxSyncsPerMinute}"]), "9999");
  await perMinute.fill("0");
  await button(main, "Save").click();
  await save(page, [["spec.maxSyncsPerMinute", "9999", "0"]]);
  await main.getByText(/greater than or equal to 1|at least 1|from 1/).first().waitFor();
  assert.equal(await scene.kubectl(jane, ["get", "syncpolicy/default", "-o", "jsonpath={.spec.maxSyncsPerMinute}"]), "9999");
}

// outdated changes a setting that another user has changed meanwhile: nothing is lost.
export async function outdated(scene) {
  const page = await scene.open(jane, screens.Settings);
  const main = page.getByRole("main");
  await main.getByLabel("Syncs per minute").fill("8888");
  await scene.kubectl(jane, ["patch", "syncpolicy/default", "--type=merge", "-p", '{"spec":{"maxSyncsPerMinute":10000}}']);
  await button(main, "Save").click();
  await save(page, []);
  await main.getByText(/has changed/).first().waitFor();
  assert.equal(await scene.kubectl(jane, ["get", "syncpolicy/default", "-o", "jsonpath={.spec.maxSyncsPerMinute}"]), "10000");
}

const image = (scene, namespace, name) => scene.kubectl(jane, ["get", `deployment/${name}`, "-n", namespace, "-o", "jsonpath={..containers[0].image}"]);
const color = (scene) => scene.kubectl(jane, ["get", "configmap/note", "-n", production, "-o", "jsonpath={.data.color}"]);
