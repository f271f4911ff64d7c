// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The scenarios of test/pictures, which take the pictures of the documentation.
import { join } from "node:path";

import { loaded, row, show } from "./scene.mjs";

const alice = "alice";

export const scenarios = { Screens: screens, Animation: animation };

// The largest size of the pictures, in pixels of the page. README shows them at about three quarters of their width.
const size = { width: 1160, height: 700 };

const themes = ["light", "dark"];

// files numbers the pictures before they are converted.
let files = 0;

// shoot writes what a page shows as PNG, and returns the file.
async function shoot(page, theme, folder) {
  await page.emulateMedia({ colorScheme: theme });
  const path = join(folder, `${files++}.png`);
  await page.screenshot({ path, animations: "disabled" });
  return path;
}

// picture adds what a page shows to the documentation, as light and dark picture. A short page makes a low picture, and tall is the height of
// one that shows more.
async function picture(scene, page, name, tall = size.height) {
  const folder = await scene.ask("folder", {});
  await page.mouse.move(size.width / 2, 2); // No row is under the pointer.
  const content = await page.evaluate(() => Math.max(...[...document.querySelectorAll("main > *")].map((each) => each.getBoundingClientRect().bottom)));
  await page.setViewportSize({ width: size.width, height: Math.min(tall, Math.ceil(content) + 24) });
  for (const theme of themes) {
    await scene.ask("picture", { name: `${name}-${theme}`, frames: [{ file: await shoot(page, theme, folder), time: 0 }] });
  }
  await page.setViewportSize(size);
}

// open opens the page of alice on a screen. Pixels are doubled for displays that have them.
const open = (scene, hash) => scene.open(alice, hash, { viewport: size, deviceScaleFactor: 2 });

// screens takes one picture of each screen.
async function screens(scene) {
  const page = await open(scene, "#/inbox");
  await picture(scene, page, "inbox");
  await show(page, "#/environments");
  await picture(scene, page, "environments");
  await show(page, "#/environments/teams/bob");
  await loaded(page);
  await page.getByRole("main").getByText("web:2.4").first().waitFor();
  await picture(scene, page, "environment", 820);
  await show(page, "#/environments/teams/new-checkout");
  await page.getByRole("group", { name: /\/memory$/ }).waitFor();
  await page.getByRole("group", { name: /\/image$/ }).getByRole("radio", { name: /Ours/ }).check();
  await page.getByRole("group", { name: /\/memory$/ }).getByRole("radio", { name: /Theirs/ }).check();
  await picture(scene, page, "conflict");
  await show(page, "#/history");
  await row(page.getByRole("grid", { name: "Changes, newest first" }), "Deployment/cart").filter({ hasText: "updated" }).first().click();
  await page.getByText("cart:3.2").first().waitFor();
  await picture(scene, page, "change");
}

// command is what bob runs by mistake.
const command = "kubectl scale deployment/cart --replicas=0 -n shop";

// animation shows how alice finds and takes back what bob has done.
async function animation(scene) {
  const page = await open(scene, "#/history");
  const film = new Film(page, await scene.ask("folder", {}));
  await film.begin();
  await film.type("bob$ ", command);
  await film.print(await scene.kubectl("bob", command.split(" ").slice(1)));
  const change = row(page.getByRole("grid", { name: "Changes, newest first" }), "Deployment/cart").filter({ hasText: "bob" }).first();
  await change.waitFor();
  await film.hold(1800);
  await film.click(change.getByRole("link"));
  await page.getByRole("button", { name: "Undo this change" }).waitFor();
  await page.getByText("Loading the change").waitFor({ state: "detached" });
  await film.leaveTerminal();
  await film.hold(2200);
  await film.click(page.getByRole("button", { name: "Undo this change" }));
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("region", { name: "Preview" }).waitFor();
  await dialog.getByText("Checking", { exact: true }).waitFor({ state: "detached" });
  await film.hold(2600);
  await film.click(dialog.getByRole("button", { name: "Run", exact: true }));
  await dialog.getByText("Done.").waitFor();
  await film.hold(1600);
  await film.click(dialog.getByRole("button", { name: "Close" }).last());
  await film.click(page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "History" }));
  await row(page.getByRole("grid", { name: "Changes, newest first" }), "Deployment/cart").filter({ hasText: alice }).first().waitFor();
  await film.hold(2600);
  for (const theme of themes) {
    await scene.ask("picture", { name: `undo-${theme}`, frames: film.frames.map((frame) => ({ file: frame[theme], time: frame.time })) });
  }
}

// Film takes the frames of an animation. It draws a pointer and a terminal above the page, which is not changed otherwise.
class Film {
  frames = [];
  #page;
  #folder;
  #at = { x: size.width * 0.62, y: size.height * 0.5 };

  constructor(page, folder) {
    this.#page = page;
    this.#folder = folder;
  }

  // begin adds the pointer and the terminal. Popovers are above dialogs, in the order in which they were shown.
  async begin() {
    await this.#page.evaluate(() => {
      const add = (id, style) => {
        const element = document.body.appendChild(document.createElement("div"));
        element.id = id;
        element.popover = "manual";
        Object.assign(element.style, { position: "fixed", inset: "auto", margin: "0", border: "none", pointerEvents: "none", ...style });
        element.showPopover();
      };
      add("film-terminal", {
        right: "32px", bottom: "24px", width: "560px", height: "64px", padding: "14px 18px", boxSizing: "content-box", borderRadius: "10px",
        background: "#16181d", color: "#e6e8ee", font: "15px/32px ui-monospace, monospace", whiteSpace: "pre-line", boxShadow: "0 10px 30px rgb(0 0 0 / 35%)",
      });
      add("film-pointer", {
        width: "20px", height: "28px", padding: "0", background: "#e8890c",
        clipPath: "polygon(0 0, 0 82%, 26% 63%, 42% 100%, 60% 93%, 44% 57%, 82% 57%)",
      });
    });
    await this.#point();
    await this.hold(900);
  }

  // hold adds a frame that is shown for some milliseconds, in both themes.
  async hold(time) {
    await this.#raise();
    const frame = { time };
    for (const theme of themes) {
      frame[theme] = await shoot(this.#page, theme, this.#folder);
    }
    this.frames.push(frame);
  }

  // type types a line into the terminal.
  async type(prompt, line) {
    for (let end = 0; end < line.length + 4; end += 4) {
      await this.#terminal(`${prompt}${line.slice(0, end)}█`);
      await this.hold(90);
    }
    await this.#terminal(`${prompt}${line}`);
    await this.hold(500);
  }

  // print prints a line in the terminal.
  async print(line) {
    const before = await this.#page.evaluate(() => document.getElementById("film-terminal").textContent);
    await this.#terminal(`${before}\n${line}`);
    await this.hold(300);
  }

  leaveTerminal() {
    return this.#page.evaluate(() => document.getElementById("film-terminal").remove());
  }

  // click moves the pointer to an element, and clicks it.
  async click(element) {
    await element.scrollIntoViewIfNeeded();
    const box = await element.boundingBox();
    const to = { x: box.x + Math.min(box.width / 2, 60), y: box.y + box.height / 2 };
    const from = this.#at;
    for (const part of [0.25, 0.6, 0.88, 1]) {
      this.#at = { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
      await this.#point();
      await this.hold(part === 1 ? 450 : 60);
    }
    await element.click();
    await loaded(this.#page);
  }

  #terminal(text) {
    return this.#page.evaluate((shown) => (document.getElementById("film-terminal").textContent = shown), text);
  }

  #point() {
    return this.#page.evaluate(({ x, y }) => Object.assign(document.getElementById("film-pointer").style, { left: `${x}px`, top: `${y}px` }), this.#at);
  }

  // raise puts the pointer above a dialog that was opened after it.
  #raise() {
    return this.#page.evaluate(() => {
      const pointer = document.getElementById("film-pointer");
      pointer.hidePopover();
      pointer.showPopover();
    });
  }
}
