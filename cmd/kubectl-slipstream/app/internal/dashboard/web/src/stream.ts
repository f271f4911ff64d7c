// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The one stream of this tab, which is opened again when it breaks.
import { batch } from "@preact/signals";
import { ended, isAbort, lines, messageOf } from "./api";
import { connection, type Message, receive } from "./store";

// silence is how long the stream may be silent. The plugin sends a message every 10 seconds.
const silence = 25_000;
const longestPause = 15_000;

// hiddenFor is how long a tab may be hidden until its stream is closed: browsers open only six connections to a server.
const hiddenFor = 20_000;

// shown resolves when the tab is visible.
function shown(): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((done) => document.addEventListener("visibilitychange", () => done(), { once: true }));
}

// whileHidden calls stop when the tab has been hidden for a while, and returns a function that ends that.
function whileHidden(stop: () => void): () => void {
  let timer = document.hidden ? setTimeout(stop, hiddenFor) : undefined;
  const change = () => {
    clearTimeout(timer);
    timer = document.hidden ? setTimeout(stop, hiddenFor) : undefined;
  };
  document.addEventListener("visibilitychange", change);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", change);
  };
}

// follow reads the stream until the session ends.
export async function follow(): Promise<void> {
  let pause = 1000;
  while (ended.value === null) {
    const began = Date.now();
    const error = await read();
    if (error === "") continue; // The server has asked for another stream.
    if (ended.value !== null) return;
    if (document.hidden) {
      await shown();
      continue;
    }
    if (connection.value.state !== "lost") connection.value = { state: "lost", since: Date.now(), error };
    else connection.value = { ...connection.value, error };
    pause = Date.now() - began > longestPause ? 1000 : Math.min(pause * 2, longestPause);
    await new Promise((done) => setTimeout(done, pause));
  }
}

// read reads one stream to its end and returns why it ended.
async function read(): Promise<string> {
  const stop = new AbortController();
  const end = whileHidden(() => stop.abort());
  let watchdog = setTimeout(() => stop.abort(), silence);
  try {
    for await (const messages of lines<Message>("/api/stream", {}, stop.signal)) {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => stop.abort(), silence);
      if (connection.value.state !== "live") connection.value = { state: "live", since: Date.now(), error: "" };
      batch(() => messages.forEach(receive));
      if (messages.at(-1)?.type === "again") return "";
    }
    return "The plugin has closed the connection.";
  } catch (e) {
    return isAbort(e) ? "The plugin sends nothing." : messageOf(e);
  } finally {
    clearTimeout(watchdog);
    end();
    stop.abort();
  }
}
