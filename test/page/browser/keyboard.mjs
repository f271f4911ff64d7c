// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";

import { jane, loaded, row, screens, show, team } from "./scene.mjs";

// keyboard uses the page without a pointer.
export async function keyboard(scene) {
  const page = await scene.open(jane);
  const press = async (...keys) => {
    for (const key of keys) {
      await page.keyboard.press(key);
    }
  };
  // The first key leads past the navigation.
  await page.reload();
  await page.getByRole("navigation").first().waitFor();
  await loaded(page);
  await press("Tab");
  assert.match(await focused(page), /Skip/);
  await press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  // Every place has its keys. The second one must follow within 1.5 s, for which a busy machine can be too slow, so time stands still.
  await page.evaluate(() => {
    const now = Date.now();
    Date.now = () => now;
  });
  for (const [key, hash] of [["e", "#/environments"], ["c", "#/catalogs"], ["g", "#/git"], ["p", "#/pipelines"], ["h", "#/history"], ["s", "#/settings"], ["i", "#/inbox"], ["e", "#/environments"]]) {
    await press("g", key);
    await page.waitForFunction((to) => location.hash === to, hash);
    await loaded(page);
  }
  // The filter takes what is typed, also what are keys elsewhere.
  const filter = page.getByRole("searchbox", { name: "Filter environments" });
  await filter.waitFor(); // The hash is the new one before the screen is.
  await press("/");
  await page.keyboard.type("bob");
  assert.equal(await filter.inputValue(), "bob");
  const list = page.getByRole("grid", { name: "Environments" });
  await row(list, `${team}/alice`).waitFor({ state: "detached" });
  assert.equal(await page.getByRole("dialog").count(), 0);
  // From the filter, Tab leads to the list.
  for (let i = 0; i < 10 && !(await focused(page)).includes(`${team}/bob`); i++) {
    await press("Tab");
  }
  assert.match(await focused(page), /bob/, "Tab does not lead to the list");
  await press("j", "Enter");
  await page.waitForFunction((to) => location.hash.startsWith(to), screens["Environment behind"]);
  await loaded(page);
  // Enter opens an action, Escape closes it, and the focus is where it was.
  for (const [key, command] of [["s", "--action=catalog"], ["c", "--action=cluster"], ["x", "dismiss bob"]]) {
    await press(key);
    const dialog = page.getByRole("dialog");
    await dialog.getByText(command).first().waitFor();
    assert.ok(await page.evaluate(() => document.querySelector("dialog").contains(document.activeElement)), "the focus is outside of the dialog");
    for (let i = 0; i < 12; i++) {
      await press("Tab");
      assert.ok(await page.evaluate(() => document.activeElement === document.body || document.querySelector("dialog").contains(document.activeElement)), "Tab leaves the dialog");
    }
    await press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
  await press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  // Every control can be reached, and shows that it has the focus.
  await show(page, screens["Environment behind"]);
  await reachable(page);
}

// reachable tabs through the page and expects each button and link of the main part to get the focus visibly.
async function reachable(page) {
  const wanted = await page.evaluate(() => {
    const all = [...document.querySelectorAll("main a[href], main button, main input, main select")].filter((e) => e.checkVisibility() && !e.disabled && e.tabIndex >= 0);
    all.forEach((element, i) => element.setAttribute("data-tab", i));
    return all.length;
  });
  await page.evaluate(() => {
    document.activeElement.blur();
    getSelection().removeAllRanges();
  });
  const seen = new Set();
  for (let i = 0; i < wanted + 60 && seen.size < wanted; i++) {
    await page.keyboard.press("Tab");
    const { at, visible, name } = await page.evaluate(() => {
      const e = document.activeElement;
      const style = getComputedStyle(e);
      return { at: e.getAttribute("data-tab"), visible: style.outlineStyle !== "none" || style.boxShadow !== "none", name: e.textContent };
    });
    if (at !== null) {
      assert.ok(visible, `the focus of ${name} is not visible`);
      seen.add(at);
    }
  }
  assert.equal(seen.size, wanted, "some controls cannot be reached with Tab");
}

// keysOff switches the keys off.
export async function keysOff(scene) {
  const page = await scene.open(jane, "#/environments");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).getByRole("switch").click();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("?");
  await page.keyboard.press("g");
  await page.keyboard.press("c");
  await page.keyboard.press("/");
  assert.equal(await page.getByRole("dialog").count(), 0);
  assert.match(page.url(), /#\/environments$/);
  await page.reload();
  await page.getByRole("navigation").first().waitFor();
  await page.keyboard.press("?");
  assert.equal(await page.getByRole("dialog").count(), 0, "the keys are on again after a reload");
}

const focused = (page) => page.evaluate(() => document.activeElement?.innerText ?? "");
