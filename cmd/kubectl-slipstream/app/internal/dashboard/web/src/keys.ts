// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Keys of the whole page. They do nothing inside inputs and dialogs, and can be switched off.
import { signal } from "@preact/signals";
import { go, to } from "./routes";

const storageKey = "slipstream-keys";

export const keysOn = signal(localStorage.getItem(storageKey) !== "off");
export const helpOpen = signal(false);

export function switchKeys(on: boolean): void {
  keysOn.value = on;
  localStorage.setItem(storageKey, on ? "on" : "off");
}

// ListKeys is a list that keys act on.
export interface ListKeys {
  move: (by: number) => void;
  press: (key: string) => boolean;
}

const mounted = new Set<ListKeys>();
let used: ListKeys | undefined;

// addList adds a list of the screen, and returns a function that removes it.
export function addList(list: ListKeys): () => void {
  mounted.add(list);
  return () => void mounted.delete(list);
}

// chooseList makes a list the one that keys act on.
export function chooseList(list: ListKeys): void {
  used = list;
}

// currentList returns the list that was used last, or else the first one of the screen.
function currentList(): ListKeys | undefined {
  return used && mounted.has(used) ? used : [...mounted][0];
}

let screenKeys: ((key: string) => boolean) | undefined;

// addScreenKeys adds keys of the shown screen, for its one object, and returns a function that removes them.
export function addScreenKeys(press: (key: string) => boolean): () => void {
  screenKeys = press;
  return () => {
    if (screenKeys === press) screenKeys = undefined;
  };
}

const places: Record<string, string> = { i: "inbox", e: "environments", c: "catalogs", g: "git", p: "pipelines", h: "history", s: "settings" };

let waitsForPlace = 0;

export function startKeys(): void {
  addEventListener("keydown", (e) => {
    if (!keysOn.value || e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || isInput(e)) return;
    if (document.querySelector("dialog[open]")) return;
    if (handle(e)) e.preventDefault();
  });
}

// isInput reports whether a key is for an input. A checkbox only takes the space bar.
function isInput({ target, key }: KeyboardEvent): boolean {
  if (target instanceof HTMLInputElement && target.type === "checkbox") return key === " ";
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function handle(e: KeyboardEvent): boolean {
  const inPlace = Date.now() - waitsForPlace < 1500;
  waitsForPlace = 0;
  if (inPlace && places[e.key]) {
    go(to([places[e.key]!]));
    return true;
  }
  switch (e.key) {
    case "g":
      waitsForPlace = Date.now();
      return true;
    case "?":
      helpOpen.value = true;
      return true;
    case "/":
      return focusFilter();
    case "j":
    case "k":
      currentList()?.move(e.key === "j" ? 1 : -1);
      return currentList() !== undefined;
    case " ":
    case "Enter":
      if (e.target instanceof HTMLElement && e.target.closest("a, button, summary")) return false;
  }
  return (currentList()?.press(e.key) ?? false) || (screenKeys?.(e.key) ?? false);
}

function focusFilter(): boolean {
  const input = document.querySelector<HTMLInputElement>("[data-filter]");
  input?.focus();
  input?.select();
  return input !== null;
}

export const keyHelp: [string, string][] = [
  ["/", "Go to the filter"],
  ["j, k", "Select the next or previous row"],
  ["Enter", "Open the selected row"],
  ["Space", "Select an environment for an action on several"],
  ["d", "Show the diff of the environment"],
  ["s", "Take changes of the catalog, of the selected environments if there are any"],
  ["c", "Take changes of the cluster: dependencies"],
  ["x", "Dismiss changes, of the selected environments if there are any"],
  ["g then i e c g p h s", "Go to inbox, environments, catalogs, Git, pipelines, history, settings"],
  ["?", "Show this help"],
];
