// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Requests to the server of this page, which runs each action with the rights of its user.
import { signal } from "@preact/signals";

// Ask is what the page asks for after a refusal: a new link, a login at the proxy, to be loaded again for another user, or a namespace.
export type Ask = "" | "link" | "login" | "reload" | "namespace";

// ApiError is the answer to a request that was refused.
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly todo = "",
    readonly ask: Ask = "",
  ) {
    super(message);
  }
}

const sessionKey = "slipstream-session";

let session = sessionStorage.getItem(sessionKey) ?? "";

// ended is why this tab has no session, null while it has one.
export const ended = signal<{ reason: string; todo: string; ask: Ask } | null>(null);

// namespaceKey has the namespace that the user has chosen, if the page does not show all.
const namespaceKey = "slipstream-namespace";

// isCode reports whether the fragment of an address is the code of a link: 256 bits in base64.
export const isCode = (fragment: string): boolean => /^[\w-]{43}$/.test(fragment);

// openSession exchanges the code in the fragment of the address for a session. A code can be used once, so it is removed from the address.
// Without a code, a proxy in front of the page may know the user.
export async function openSession(): Promise<void> {
  const code = location.hash.slice(1);
  try {
    if (isCode(code)) {
      history.replaceState(null, "", "#/inbox");
      await requestSession({ code });
    } else if (session === "") {
      await requestSession({ namespace: chosenNamespace() });
    }
  } catch (e) {
    session = sessionStorage.getItem(sessionKey) ?? "";
    if (session === "") endWith(e);
  }
}

// user is whose session it is, empty unless a proxy knows several users.
let user = "";

async function requestSession(by: { code: string } | { namespace: string }): Promise<void> {
  const opened = await post<{ session: string; user: string }>("/api/session", by);
  session = opened.session;
  sessionStorage.setItem(sessionKey, session);
  if (user !== "" && opened.user !== user) location.reload(); // What is shown is of another user.
  user = opened.user;
}

function endWith(e: unknown): void {
  const ask = e instanceof ApiError ? e.ask : "";
  ended.value = { reason: e instanceof ApiError ? withStop(e.message) : messageOf(e), todo: e instanceof ApiError ? e.todo : "", ask };
}

// chosenNamespace returns the namespace that a hosted page shows, empty for all.
export const chosenNamespace = (): string => localStorage.getItem(namespaceKey) ?? "";

// chooseNamespace shows another namespace, or all of them if it is empty.
export async function chooseNamespace(namespace: string): Promise<void> {
  if (namespace === "") localStorage.removeItem(namespaceKey);
  else localStorage.setItem(namespaceKey, namespace);
  await post("/api/end", {}).catch(() => undefined);
  forgetSession();
  location.reload();
}

// endSession ends the session of this tab.
export async function endSession(): Promise<void> {
  await post("/api/end", {}).catch(() => undefined);
  forgetSession();
  ended.value = { reason: "The session of this tab has ended.", todo: "", ask: hosted ? "login" : "link" };
  if (logoutURL !== "") location.assign(logoutURL);
}

function forgetSession(): void {
  session = "";
  sessionStorage.removeItem(sessionKey);
}

// hosted is set if a proxy in front of the page knows the user.
let hosted = false;
let logoutURL = "";

// setHosted says who has logged the user in: a proxy, and where the browser goes to log out there.
export const setHosted = (is: boolean, name: string, logout: string): void => {
  hosted = is;
  user = is ? name : "";
  logoutURL = logout;
};

// again is the new session that is being opened, so that requests at the same time open one.
let again: Promise<void> | undefined;

// reopen opens a session in place of one that has ended: the page was restarted, or the proxy has renewed the login.
async function reopen(reason: ApiError): Promise<void> {
  forgetSession();
  if (reason.ask === "reload") location.reload();
  if (reason.ask !== "login") return endWith(reason);
  again ??= requestSession({ namespace: chosenNamespace() }).finally(() => (again = undefined));
  try {
    await again;
  } catch (e) {
    if (e instanceof ApiError) endWith(e);
  }
}

// writing are the requests that are not repeated in a new session.
const writing = ["/api/run", "/api/patch", "/api/allow"];

async function send(path: string, body: unknown, stop?: AbortSignal): Promise<Response> {
  const used = session;
  const response = await request(path, body, stop);
  if (response.ok) return response;
  const error = await refusalOf(response);
  if (error.status !== 401 || path === "/api/session" || ended.value !== null) throw error;
  if (session === used) await reopen(error);
  if (session === "") throw error;
  if (writing.includes(path)) throw new ApiError(409, "Your login was renewed, and this was not done", "Allow changes, and do it again");
  const repeated = await request(path, body, stop);
  if (repeated.ok) return repeated;
  throw await refusalOf(repeated);
}

function request(path: string, body: unknown, stop?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { "Content-Type": "application/json", Accept: "application/json" };
  if (session !== "") headers["X-Slipstream-Session"] = session;
  return fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal: stop ?? null, cache: "no-store", redirect: "manual" });
}

// refusalOf returns the error of a response. Without a sentence of the server, it is one of a proxy, which may redirect to its login.
async function refusalOf(response: Response): Promise<ApiError> {
  const answer = (await response.json().catch(() => ({}))) as { error?: string; do?: string; ask?: Ask };
  if (response.type === "opaqueredirect" || (response.status === 401 && answer.error === undefined)) {
    return new ApiError(401, "The proxy in front of this page asks you to log in again", "Reload the page", "login");
  }
  return new ApiError(response.status, answer.error ?? `The server answered with status ${response.status}.`, answer.do ?? "", answer.ask ?? "");
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
  if (e instanceof TypeError) return hosted ? "The server does not answer." : "The plugin does not answer. Does kubectl slipstream dashboard still run?";
  return e instanceof Error ? e.message : String(e);
}

// withStop ends a sentence. A command, on an indented line of its own, stays as it is.
const withStop = (text: string): string => (/[.:!?]$|\n\s+.*$/.test(text) ? text : `${text}.`);

// isAbort reports whether a request was stopped by this page.
export function isAbort(e: unknown): boolean {
  return e instanceof DOMException && e.name === "AbortError";
}
