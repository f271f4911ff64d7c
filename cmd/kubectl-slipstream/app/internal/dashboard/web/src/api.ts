// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Requests to the plugin. It serves this page, and runs each action with the rights of its user.
import { signal } from "@preact/signals";

// ApiError is the answer of the plugin to a request that it refused.
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly todo = "",
  ) {
    super(message);
  }
}

const sessionKey = "slipstream-session";

let session = sessionStorage.getItem(sessionKey) ?? "";

// ended is why this tab has no session, empty while it has one.
export const ended = signal("");

const noSession = "This tab has no session.";

// isCode reports whether the fragment of an address is the code of a link: 256 bits in base64.
export const isCode = (fragment: string): boolean => /^[\w-]{43}$/.test(fragment);

// openSession exchanges the code in the fragment of the address for a session. A code can be used once, so it is removed from the address.
export async function openSession(): Promise<void> {
  const code = location.hash.slice(1);
  if (isCode(code)) {
    history.replaceState(null, "", "#/inbox");
    try {
      session = (await post<{ session: string }>("/api/session", { code })).session;
      sessionStorage.setItem(sessionKey, session);
    } catch (e) {
      session = sessionStorage.getItem(sessionKey) ?? "";
      if (session === "") ended.value = messageOf(e);
    }
  } else if (session === "") {
    ended.value = noSession;
  }
}

// endSession ends the session of this tab.
export async function endSession(): Promise<void> {
  await post("/api/end", {}).catch(() => undefined);
  forgetSession("The session of this tab has ended.");
}

function forgetSession(reason: string): void {
  session = "";
  sessionStorage.removeItem(sessionKey);
  ended.value = reason;
}

async function send(path: string, body: unknown, stop?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (session !== "") headers["X-Slipstream-Session"] = session;
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal: stop ?? null, cache: "no-store" });
  if (response.ok) return response;
  const answer = (await response.json().catch(() => ({}))) as { error?: string; do?: string };
  const error = new ApiError(response.status, answer.error ?? `The plugin answered with status ${response.status}.`, answer.do ?? "");
  if (response.status === 401 && path !== "/api/session") forgetSession(error.message);
  throw error;
}

// post sends a request and returns the answer.
export async function post<T>(path: string, body: unknown, stop?: AbortSignal): Promise<T> {
  const response = await send(path, body, stop);
  return (await response.json()) as T;
}

// lines sends a request whose answer is a stream of JSON, one value a line. Values that arrive together are yielded together.
export async function* lines<T>(path: string, body: unknown, stop: AbortSignal): AsyncGenerator<T[]> {
  const response = await send(path, body, stop);
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    const complete = rest.split("\n");
    rest = complete.pop() ?? "";
    const values = complete.filter((line) => line.trim() !== "").map((line) => JSON.parse(line) as T);
    if (values.length > 0) yield values;
  }
}

// messageOf returns an error as a sentence.
export function messageOf(e: unknown): string {
  if (e instanceof ApiError) return [e.message, e.todo].filter(Boolean).map(withStop).join(" ");
  if (e instanceof TypeError) return "The plugin does not answer. Does kubectl slipstream dashboard still run?";
  return e instanceof Error ? e.message : String(e);
}

// withStop ends a sentence. A command, on an indented line of its own, stays as it is.
const withStop = (text: string): string => (/[.:!?]$|\n\s+.*$/.test(text) ? text : `${text}.`);

// isAbort reports whether a request was stopped by this page.
export function isAbort(e: unknown): boolean {
  return e instanceof DOMException && e.name === "AbortError";
}
