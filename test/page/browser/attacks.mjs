// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { createServer } from "node:http";

import { jane, production, screens, show, team, victor } from "./scene.mjs";

// evil serves a page of an attacker to a function, which gets its origin.
async function evil(html, use) {
  const server = createServer((_, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end(html);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await use(`http://evil.test:${server.address().port}`, `http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

// unused expects that the code of a link has not been used: it logs in, or on a busy machine it is too old by now. The page says so only of an unused one.
async function unused(scene, link) {
  const page = await (await scene.context()).newPage();
  await page.goto(link);
  await page.getByRole("navigation").or(page.getByText("This link is older than a minute")).first().waitFor();
}

// rebound opens the page by a name of the attacker that is resolved to this machine.
export async function rebound(scene) {
  const { port, hash } = new URL(await scene.link(victor));
  const page = await (await scene.context()).newPage();
  const response = await page.goto(`http://evil.test:${port}/${hash}`);
  assert.equal(response.status(), 421);
  assert.doesNotMatch(await page.content(), /Slipstream|app\.js/);
  const statuses = await page.evaluate(async (code) => {
    const post = (path, body) => fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }).then((r) => r.status, (e) => `${e}`);
    return [await post("/api/session", { code }), await post("/api/list", { resource: "environments" })];
  }, hash.slice(1)).catch((error) => [`${error}`]);
  assert.ok(!statuses.includes(200), `the API answers ${statuses}`);
}

// crossOrigin posts from other pages with a valid code: forms and scripts, with and without CORS.
export async function crossOrigin(scene) {
  const link = new URL(await scene.link(victor));
  const code = link.hash.slice(1);
  await evil("<title>evil</title>", async (...origins) => {
    for (const origin of origins) {
      const page = await (await scene.context()).newPage();
      await page.goto(origin);
      const results = await page.evaluate(async ([target, code]) => {
        const body = JSON.stringify({ code });
        const outcome = (promise) => promise.then(async (r) => `${r.type} ${r.status} ${await r.text()}`, () => "refused");
        return Promise.all([
          outcome(fetch(`${target}/api/session`, { method: "POST", headers: { "Content-Type": "application/json" }, body })),
          outcome(fetch(`${target}/api/session`, { method: "POST", mode: "no-cors", headers: { "Content-Type": "text/plain" }, body })),
          outcome(fetch(`${target}/app.js`)),
          outcome(fetch(`${target}/`)),
        ]);
      }, [link.origin, code]);
      for (const result of results) {
        assert.ok(result === "refused" || result.startsWith("opaque 0"), `from ${origin}: ${result}`);
      }
      const answer = page.waitForResponse((response) => response.url().startsWith(link.origin));
      await page.evaluate(([target, code]) => {
        const form = document.createElement("form");
        form.method = "POST";
        form.enctype = "text/plain";
        form.action = `${target}/api/session`;
        const field = document.createElement("input");
        field.name = `{"code":"${code}","x":"`;
        field.value = `"}`;
        form.append(field);
        document.body.append(form);
        form.submit();
      }, [link.origin, code]);
      assert.equal((await answer).status(), 403, `a form from ${origin}`);
      await page.waitForURL(`${link.origin}/api/session`);
      await page.goto(origin);
      // A script of the page is not loaded into another page.
      const loaded = await page.evaluate((target) => new Promise((resolve) => {
        const script = document.createElement("script");
        script.src = `${target}/app.js`;
        script.onload = () => resolve("loaded");
        script.onerror = () => resolve("refused");
        document.head.append(script);
      }), link.origin);
      assert.equal(loaded, "refused", `the script of the page in a page of ${origin}`);
    }
  });
  await unused(scene, link.href);
}

// framed puts the page into a frame of another page, with a valid link.
export async function framed(scene) {
  const link = await scene.link(jane);
  await evil(`<title>evil</title><iframe src="${link}"></iframe>`, async (...origins) => {
    for (const origin of origins) {
      const page = await (await scene.context()).newPage();
      await page.goto(origin);
      await page.waitForLoadState("load");
      const frame = page.frames().find((each) => each !== page.mainFrame());
      assert.ok(frame, "there is no frame");
      assert.equal(await frame.locator("nav, main, #page").count(), 0, `the page is shown in a frame of ${origin}`);
      assert.doesNotMatch(frame.url(), /^http:\/\/127\.0\.0\.1/, `the frame of ${origin} has loaded ${frame.url()}`);
    }
  });
  await unused(scene, link);
}

// openedByAttacker opens the page in a window of another page, which must not reach it.
export async function openedByAttacker(scene) {
  await evil("<title>evil</title>", async (origin) => {
    const context = await scene.context();
    const page = await context.newPage();
    await page.goto(origin);
    const link = await scene.link(victor); // It can be opened for a minute.
    const opened = context.waitForEvent("page");
    await page.evaluate((to) => {
      window.opened = window.open(to);
    }, link);
    const dashboard = await opened;
    await dashboard.getByRole("navigation").first().waitFor();
    assert.equal(await dashboard.evaluate(() => window.opener), null, "the page knows who opened it");
    assert.equal(await page.evaluate(() => window.opened.closed), true, "the opener still has the window");
  });
}

// markup is what the Go test writes into all texts.
const markup = `<img src=x onerror="window.hacked=1">`;

// injected shows all texts in which an attacker has written markup. They are shown as they are, and no script runs: scene.end checks that.
export async function injected(scene) {
  const page = await scene.open(jane);
  const main = page.getByRole("main");
  const see = async (what) => {
    await main.getByText(markup).first().waitFor().catch((error) => {
      throw new Error(`${what} does not show the text of the attacker: ${error.message}`);
    });
    const { images, scripts } = await page.evaluate(() => ({ images: document.querySelectorAll('img[src="x"]').length, scripts: document.querySelectorAll("body script:not([src])").length }));
    assert.deepEqual({ images, scripts }, { images: 0, scripts: 0 }, what);
  };
  await show(page, "#/history");
  await see("the history");
  await show(page, `#/history/${production}/configmaps/hostile`);
  await see("the history of an object");
  await main.getByRole("row").filter({ hasText: "again" }).first().click();
  await see("a change");
  await show(page, "#/pipelines");
  await see("the error of a sink");
  await show(page, `#/environments/${team}/hostile?tab=diff`);
  await see("the diff of an environment");
  for (const hash of Object.values(screens)) {
    await show(page, hash);
  }
  for (const hash of ["#/git", `#/catalogs/${team}/hostile`, `#/environments/${team}/hostile`]) {
    await show(page, hash);
  }
  // The address is a text of an attacker, too, and so is what is typed.
  const encoded = encodeURIComponent(markup);
  for (const hash of [`#/environments/${encoded}/${encoded}`, `#/catalogs/${team}/${encoded}`, `#/history/${encoded}/configmaps/${encoded}`, `#/environments?q=${encoded}&state=${encoded}&by=${encoded}`, `#/${encoded}`, "#/environments/__proto__/constructor", "#/environments?state=__proto__"]) {
    await show(page, hash);
  }
  await show(page, "#/environments");
  await page.getByRole("searchbox", { name: "Filter environments" }).fill(markup);
  for (const link of await page.locator("a[href]").all()) {
    assert.match(await link.getAttribute("href"), /^(#|https?:)/, "a link to another scheme");
  }
}
