// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

import { jane, row, screens, show, team } from "./scene.mjs";

// axe is the script of axe-core, which finds what assistive technology cannot use.
export const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// accessible checks each screen, and dialogs, with axe-core.
export async function accessible(scene, colorScheme) {
  const page = await scene.open(jane, "#/inbox", { colorScheme });
  await page.evaluate(axe);
  const findings = [];
  const check = async (what) => {
    // Policies of the page refuse what axe-core tries out, which is no violation of the page.
    const violations = await page.evaluate(async () => {
      const before = window.violations.length;
      const result = await window.axe.run(document, { resultTypes: ["violations"] });
      window.violations.length = before;
      return result.violations.map((each) => ({ id: each.id, impact: each.impact, help: each.help, nodes: each.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`) }));
    });
    for (const each of violations) {
      const line = `${what}, ${colorScheme}: ${each.impact}: ${each.id}: ${each.help}: ${each.nodes.join(" | ")}`;
      findings.push(line);
    }
  };
  for (const [screen, hash] of Object.entries(screens)) {
    await show(page, hash);
    await check(screen);
  }
  await show(page, screens["Environment behind"]);
  await page.getByRole("main").getByRole("button", { name: /^Take/ }).first().click();
  await page.getByRole("dialog").getByText("kubectl slipstream sync").first().waitFor();
  await check("Dialog of an action");
  await page.getByRole("dialog").getByRole("button", { name: /^(Cancel|Close)$/ }).first().click();
  await page.keyboard.press("?");
  await page.getByRole("dialog").waitFor();
  await check("Help");
  assert.deepEqual(findings, []);
}

// widths are those of a small phone to a large screen, in pixels.
const widths = [320, 375, 600, 768, 1024, 1280, 1920, 2560];

// wide shows each screen at all widths, and expects no horizontal scrolling.
export async function wide(scene) {
  const page = await scene.open(jane);
  const findings = [];
  for (const [screen, hash] of Object.entries(screens)) {
    await show(page, hash);
    for (const width of widths) {
      await page.setViewportSize({ width, height: 800 });
      // The next frame has the layout of the new size, also where a script computes it.
      const wider = await page.evaluate(() => new Promise((resolve) => {
        requestAnimationFrame(() => requestAnimationFrame(() => {
          const root = document.documentElement;
          const beyond = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => `${e.tagName} ${e.className}`);
          resolve(root.scrollWidth > root.clientWidth ? `${root.scrollWidth} of ${root.clientWidth}: ${beyond.slice(0, 4)}` : "");
        }));
      }));
      if (wider !== "") {
        findings.push(`${screen} at ${width}: ${wider}`);
      }
    }
    await page.setViewportSize({ width: 1280, height: 800 });
  }
  assert.deepEqual(findings, []);
}

// phone uses the smallest width: nothing of the frame is cut or has to be scrolled, and the items of the inbox have their buttons.
export async function phone(scene) {
  const page = await scene.open(jane, "#/inbox", { viewport: { width: 320, height: 640 } });
  const fits = (locator) => locator.evaluate((e) => e.scrollWidth <= e.clientWidth + 1 && e.getBoundingClientRect().right <= innerWidth);
  assert.ok(await fits(page.getByRole("banner").locator(".context")), "the name of the context is cut");
  const navigation = page.getByRole("navigation", { name: "Screens" });
  assert.ok(await fits(navigation), "the navigation has to be scrolled");
  for (const link of await navigation.getByRole("link").all()) {
    assert.ok(await fits(link), `${await link.innerText()} does not fit into the navigation`);
  }
  const inbox = page.getByRole("grid", { name: "What waits for you" });
  await row(inbox, `${team}/dana`).getByRole("button", { name: "Decide now" }).waitFor();
  await row(inbox, `${team}/bob`).getByRole("button", { name: "Take" }).click();
  await page.getByRole("dialog").getByText("kubectl slipstream sync bob").waitFor();
}
