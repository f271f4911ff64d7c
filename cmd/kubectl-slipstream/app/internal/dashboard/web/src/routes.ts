// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The address of what is shown: the part after the hash, as in #/environments/teams/alice?tab=diff.
import { signal } from "@preact/signals";

export interface Route {
  screen: string;
  parts: string[];
  query: Record<string, string>;
}

export const screens = ["inbox", "environments", "catalogs", "git", "pipelines", "history", "settings"] as const;

function parse(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?");
  const [screen = "", ...parts] = path.split("/").map(decoded);
  return { screen: screen || "inbox", parts: parts.filter((part) => part !== ""), query: Object.fromEntries(new URLSearchParams(search)) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const route = signal(parse(location.hash));

addEventListener("hashchange", () => (route.value = parse(location.hash)));

// startRouting reads the address again, after the code has been removed from it.
export function startRouting(): void {
  route.value = parse(location.hash);
}

// to returns the address of a screen.
export function to(parts: readonly string[], query: Record<string, string | undefined> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter((each): each is [string, string] => Boolean(each[1]))).toString();
  return `#/${parts.map((part) => encodeURIComponent(part)).join("/")}${search === "" ? "" : `?${search}`}`;
}

export function go(address: string): void {
  location.hash = address;
}

// setQuery changes the query of the address, without an entry in the history of the browser.
export function setQuery(query: Record<string, string>): void {
  const address = to([route.value.screen, ...route.value.parts], { ...route.value.query, ...query });
  history.replaceState(null, "", address);
  route.value = parse(address);
}

// object returns the address of an object of the page. Cluster-scoped objects have no namespace.
export function addressOf(screen: string, of: { namespace: string; name: string }): string {
  return to(of.namespace === "" ? [screen, of.name] : [screen, of.namespace, of.name]);
}

// lifeOf returns the address of the history of one object.
export function lifeOf(namespace: string, resource: string, name: string): string {
  return to(["history", namespace, resource, name]);
}
