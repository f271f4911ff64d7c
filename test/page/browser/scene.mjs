// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";

// limit is longer than any state takes to be shown on a busy machine, in milliseconds.
const limit = 120_000;

// The users of the page, as the Go test names them.
export const jane = "jane@example.com";
export const victor = "victor";
export const tim = "tim";
export const nora = "nora";

// The namespaces of the catalog and the environments, and of their source.
export const team = "team";
export const production = "production";

// screens are the screens with their hashes.
export const screens = {
  Inbox: "#/inbox",
  Environments: "#/environments",
  "Environment in sync": `#/environments/${team}/alice`,
  "Environment behind": `#/environments/${team}/bob`,
  "Environment that failed": `#/environments/${team}/carol`,
  "Environment with a conflict": `#/environments/${team}/dana`,
  Catalogs: "#/catalogs",
  Catalog: `#/catalogs/${team}/shop`,
  Git: "#/git",
  Pipelines: "#/pipelines",
  History: "#/history",
  "History of an object": `#/history/${production}/configmaps/note`,
  Settings: "#/settings",
};

// recordProblems runs in each page before its scripts: it records what the policies of the page have refused.
function recordProblems() {
  window.violations = [];
  document.addEventListener("securitypolicyviolation", (event) => {
    window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
  });
}

// Scene is what a scenario has: pages of users, and steps of the Go test.
export class Scene {
  #browser;
  #step;
  #contexts = [];
  // problems are errors of the pages, which fail the scenario.
  problems = [];

  constructor(browser, step, log) {
    this.#browser = browser;
    this.#step = step;
    this.log = log;
  }

  // ask asks the Go test for a step and returns its result.
  ask(name, args) {
    return this.#step(name, args);
  }

  // report reports a result of a benchmark.
  report(unit, value) {
    return this.#step("report", { unit, value });
  }

  // link returns a new link of a user's dashboard.
  link(user) {
    return this.#step("link", { user });
  }

  // kubectl runs kubectl as a user.
  kubectl(user, line, input = "") {
    return this.#step("kubectl", { user, line, input });
  }

  // restart restarts a user's dashboard on the same port.
  restart(user) {
    return this.#step("restart", { user });
  }

  // pause stops the process of a user's dashboard, or continues it.
  pause(user, paused) {
    return this.#step("pause", { user, paused });
  }

  // cut cuts the connection between jane's dashboard and the cluster, or restores it.
  cut(cut) {
    return this.#step("cut", { cut });
  }

  // hosted asks for something about the hosted page: its address, the number of renewed tokens, or to stop or start it.
  hosted(action) {
    return this.#step("hosted", { action });
  }

  // context returns a new window of the browser.
  async context(options = {}) {
    const context = await this.#browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    context.setDefaultTimeout(limit);
    await context.addInitScript(recordProblems);
    this.#contexts.push(context);
    return context;
  }

  // open opens a link in a new window, waits until the page has its data, and shows a screen.
  async open(user, hash = "#/inbox", options = {}) {
    const link = await this.link(user);
    const page = await (await this.context(options)).newPage();
    this.watch(page, new URL(link).origin);
    await page.goto(link);
    await page.getByRole("navigation").first().waitFor();
    await show(page, hash);
    return page;
  }

  // watch records errors of a page, and requests to other servers.
  watch(page, origin) {
    page.on("pageerror", (error) => this.problems.push(`error of a script: ${error.stack ?? error}`));
    page.on("dialog", (dialog) => {
      this.problems.push(`a dialog of a script: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith("data:") && new URL(url).origin !== origin) {
        this.problems.push(`a request to ${url}`);
      }
    });
  }

  async pages() {
    return this.#contexts.flatMap((context) => context.pages());
  }

  // end checks that no script of an attacker has run, and that nothing was refused by the policies of the pages.
  async end() {
    for (const page of await this.pages()) {
      const { hacked, violations } = await page.evaluate(() => ({ hacked: window.hacked, violations: window.violations ?? [] }));
      assert.equal(hacked, undefined, `a script of an attacker has run in ${page.url()}`);
      assert.deepEqual(violations, [], `violations of the policies of ${page.url()}`);
    }
    assert.deepEqual(this.problems, []);
    await this.close();
  }

  async close() {
    await Promise.all(this.#contexts.map((context) => context.close()));
  }

  // screenshot writes what the last page shows to a file.
  async screenshot(path) {
    const page = (await this.pages()).at(-1);
    await page?.screenshot({ path });
  }
}

// show shows a screen and waits until its data is there.
export async function show(page, hash) {
  await page.evaluate((to) => {
    location.hash = to;
  }, hash);
  await page.waitForFunction((to) => location.hash === to, hash);
  await loaded(page);
}

// loaded waits until no part of the page is loading.
export async function loaded(page) {
  await page.getByRole("main").waitFor();
  await page.waitForFunction(() => ![...document.querySelectorAll("main [role=status]")].some((each) => /^(Loading|Computing)/.test(each.textContent)));
}

// row returns the row of a grid or table with a text in one of its cells.
export function row(list, text) {
  return list.getByRole("row").filter({ has: list.page().getByText(text, { exact: true }) });
}

// until repeats a check of the page until it succeeds.
export async function until(what, check) {
  const end = Date.now() + limit;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) {
        throw new Error(`${what}: not within ${limit / 1000} s: ${error.message}`, { cause: error });
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
